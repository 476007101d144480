// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <array>

#include "base/strings.h"

namespace headroom {

Result<std::int64_t> parse_bytes(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  static constexpr std::array kUnits{Unit{"b", 1},        Unit{"k", 0x1p10},   Unit{"kib", 0x1p10}, Unit{"kb", 1e3},
                                     Unit{"m", 0x1p20},   Unit{"mib", 0x1p20}, Unit{"mb", 1e6},     Unit{"g", 0x1p30},
                                     Unit{"gib", 0x1p30}, Unit{"gb", 1e9},     Unit{"t", 0x1p40},   Unit{"tib", 0x1p40},
                                     Unit{"tb", 1e12}};
  const std::string_view whole = trim(text);
  const auto end = whole.find_first_not_of("0123456789.");
  const auto number = parse_number<double>(whole.substr(0, end));
  const std::string unit = end == std::string_view::npos ? "" : lower(trim(whole.substr(end)));
  for (const Unit& known : kUnits) {
    if (!number || unit != known.name) continue;
    const double bytes = *number * known.bytes;
    if (bytes <= 0x1p62) return static_cast<std::int64_t>(bytes);
    return fail(Errc::kInvalidInput, fmt::format("'{}' is too large", text), "for example 3GiB");
  }
  return fail(Errc::kInvalidInput, fmt::format("'{}' is no size", text), "write a number and a unit: 3GiB, 512MiB");
}

}  // namespace headroom
