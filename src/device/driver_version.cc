// SPDX-License-Identifier: Apache-2.0
#include "device/driver_version.h"

#include "base/strings.h"

namespace headroom {

std::optional<DriverVersion> parse_driver_version(std::string_view text) {
  const auto parts = split(trim(text), '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = parse_number<int>(parts[0]);
  const auto minor = parse_number<int>(parts[1]);
  if (!major || !minor) return std::nullopt;
  return DriverVersion{*major, *minor};
}

bool scrambles_process_list(std::string_view driver_version) {
  const auto version = parse_driver_version(driver_version);
  return version && *version >= DriverVersion{535, 43} && *version <= DriverVersion{535, 86};
}

}  // namespace headroom
