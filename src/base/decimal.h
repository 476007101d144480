// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace headroom {

// stored / 10^exp10 as a decimal, exactly: 55000 with three decimals is "55", 1140 with four "0.114".
[[nodiscard]] std::string decimal(std::int64_t stored, int exp10);

}  // namespace headroom
