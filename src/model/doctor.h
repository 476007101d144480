// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// kAbsent: there is nothing here that the check could be about (no GPU, no container), and nothing is wrong.
enum class CheckStatus : std::uint8_t { kOk, kWarn, kFail, kAbsent };
[[nodiscard]] constexpr std::string_view check_status_name(CheckStatus status) {
  constexpr std::string_view kNames[]{"ok", "warn", "fail", "absent"};
  return kNames[static_cast<std::size_t>(status)];
}

// One answer of `headroom doctor`. Identifiers are stable; docs/doctor.md explains each.
struct DoctorCheck {
  std::string id;
  CheckStatus status = CheckStatus::kOk;
  std::string what;  // what was found, and what it means for what Headroom can see
  std::string fix;   // what to do about it; "" where there is nothing to do
  bool operator==(const DoctorCheck&) const = default;
};

}  // namespace headroom
