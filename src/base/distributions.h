// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// Tails of distributions, by Boost.Math.
namespace headroom {

// The t beyond which Student's distribution has `outside` on both sides together. `degrees` >= 1.
[[nodiscard]] double student_t(std::int64_t degrees, double outside);

// How likely `drawn` of `all` hold `least` or more of the `marked` ones, if they are drawn blindly (hypergeometric).
[[nodiscard]] double drawn_by_chance(std::int64_t least, std::int64_t drawn, std::int64_t marked, std::int64_t all);

}  // namespace headroom
