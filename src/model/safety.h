// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "base/enum_table.h"

namespace headroom {

// What a change puts at risk.
enum class Safety : std::uint8_t { kSafe, kModerate, kRisky };
struct SafetyInfo {
  Safety id;
  std::string_view name;  // JSON, and for people
  std::string_view help;
};
inline constexpr std::array kSafeties{
    SafetyInfo{Safety::kSafe, "safe", "the same results, and nothing else is put at risk"},
    SafetyInfo{Safety::kModerate, "moderate",
               "the same results as far as the code keeps to its own rules, or more memory"},
    SafetyInfo{Safety::kRisky, "risky", "results may change: check quality, too"},
};
static_assert(in_order_of_ids(kSafeties));
[[nodiscard]] constexpr const SafetyInfo& info(Safety safety) { return kSafeties[static_cast<std::size_t>(safety)]; }

}  // namespace headroom
