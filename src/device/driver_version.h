// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <compare>
#include <optional>
#include <string_view>

namespace headroom {

struct DriverVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const DriverVersion&) const = default;
};

// "535.86.10" -> 535.86; nothing where the text does not begin so.
[[nodiscard]] std::optional<DriverVersion> parse_driver_version(std::string_view text);

// Drivers 535.43 to 535.86 fill the third version of the process list with longer rows than its header says: every row
// after the first is scrambled. (gpustat issue 161; mended in 535.98 and later.)
[[nodiscard]] bool scrambles_process_list(std::string_view driver_version);

}  // namespace headroom
