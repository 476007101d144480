// SPDX-License-Identifier: Apache-2.0
#include "base/iso_time.h"

#include <fmt/format.h>

#include <ctime>

namespace headroom {

std::string iso_time(Nanos unix_ns) {
  const Nanos micros = unix_ns / kMicrosecond;
  Nanos fraction = micros % 1'000'000;
  auto second = static_cast<std::time_t>(micros / 1'000'000);
  if (fraction < 0) fraction += 1'000'000, --second;
  std::tm utc{};
  char text[32];
  ::gmtime_r(&second, &utc);
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:06}Z", std::string_view(text, size), fraction);
}

}  // namespace headroom
