// SPDX-License-Identifier: Apache-2.0
#include "base/human.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace headroom {

std::string human_duration(Nanos ns) {
  if (ns < 0) return "-" + human_duration(-std::max(ns, -std::numeric_limits<Nanos>::max()));
  if (ns == 0) return "0 s";
  if (ns < kMicrosecond) return fmt::format("{} ns", ns);
  if (ns < 10 * kMicrosecond) return fmt::format("{:.1f} us", static_cast<double>(ns) / kMicrosecond);
  if (ns < kMillisecond) return fmt::format("{} us", ns / kMicrosecond);
  if (ns < 999'500'000) return fmt::format("{} ms", (ns + kMillisecond / 2) / kMillisecond);
  if (ns < 59'950'000'000) return fmt::format("{:.1f} s", seconds(ns));
  const Nanos whole = ns / kSecond + (ns % kSecond >= kSecond / 2 ? 1 : 0);
  if (whole >= 10 * 86'400) return fmt::format("{:.0f} days", seconds(ns) / 86'400);
  if (whole >= 36'000) return fmt::format("{:.1f} h", seconds(ns) / 3600);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string human_bytes(std::int64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr std::array kMost{1000.0, 1024.0, 9999.5, 9999.5, 9999.5};  // of MiB and more four digits, as nvidia-smi has
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (unit < kMost.size() && std::abs(value) >= kMost[unit]) {
    value /= 1024;
    ++unit;
  }
  const bool whole = unit == 0 || std::abs(value) >= 99.95;
  return whole ? fmt::format("{:.0f} {}", value, kUnits[unit]) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string human_percent(double ratio) {
  const double percent = 100 * ratio;
  const double size = std::abs(percent);
  const bool nearly_all = size >= 99.5 && size < 99.95;
  if ((size >= 9.95 && !nearly_all) || size == 0) return fmt::format("{:.0f} %", percent);
  if (size >= 0.095) return fmt::format("{:.1f} %", percent);
  return fmt::format("{:.2g} %", percent);
}

std::string human_factor(double factor) {
  if (factor < 2) return fmt::format("{:.2f}x", factor);
  if (factor < 9.95) return fmt::format("{:.1f}x", factor);
  return fmt::format("{:.0f}x", factor);
}

std::string human_count(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string human_figure(double value, int digits) {
  constexpr double kLargest = 9e15;  // that a double and a count hold to the unit
  if (std::abs(value) >= std::pow(10.0, digits) - 0.5 && std::abs(value) < kLargest)
    return human_count(std::llround(value));
  return fmt::format("{:.{}g}", value, digits);
}

std::string count_of(std::int64_t count, std::string_view noun, std::string_view nouns) {
  if (count != 1 && !nouns.empty()) return fmt::format("{} {}", human_count(count), nouns);
  return fmt::format("{} {}{}", human_count(count), noun, count == 1 ? "" : "s");
}

std::string clock_time(Nanos unix_ns, Nanos offset) {
  constexpr Nanos kOneDay = 86'400 * kSecond;
  const Nanos of_day = ((unix_ns + offset) % kOneDay + kOneDay) % kOneDay / kSecond;
  return fmt::format("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
}

}  // namespace headroom
