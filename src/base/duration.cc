// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/strings.h"

namespace headroom {

Result<Nanos> parse_duration(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 7> kUnits{
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"d", 86400e9}}};
  std::string_view number = trim(text);
  double scale = 0;
  for (const auto& [name, factor] : kUnits)
    if (number.ends_with(name)) {
      scale = factor;
      number = trim(number.substr(0, number.size() - name.size()));
      break;
    }
  const auto value = parse_number<double>(number);
  if (scale == 0 && value && *value > 0)
    return fail(Errc::kInvalidInput, fmt::format("'{}' has no unit", text),
                fmt::format("write {}s or {}m or {}h", number, number, number));
  if (!value || !std::isfinite(*value) || *value < 0 || *value * scale > 9e18)
    return fail(Errc::kInvalidInput, fmt::format("'{}' is no duration", text),
                "write a number and a unit: 100ms, 1s, 5m, 70h");
  return static_cast<Nanos>(std::llround(*value * scale));
}

}  // namespace headroom
