// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <fmt/format.h>

namespace headroom {

std::string decimal(std::int64_t stored, int exp10) {
  if (exp10 == 0) return fmt::format("{}", stored);
  const auto bits = static_cast<std::uint64_t>(stored);
  const auto places = static_cast<std::size_t>(exp10);
  std::string digits = fmt::format("{}", stored < 0 ? ~bits + 1 : bits);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  const std::size_t point = digits.size() - places;
  std::string fraction = digits.substr(point);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  const std::string whole = (stored < 0 ? "-" : "") + digits.substr(0, point);
  return fraction.empty() ? whole : whole + "." + fraction;
}

}  // namespace headroom
