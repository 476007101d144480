// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Which way a metric is better, as far as its name tells.
enum class Better : std::uint8_t { kUnknown, kLower, kHigher };
[[nodiscard]] Better better_by_name(std::string_view metric);  // kUnknown also where it tells both

// What a job said of one of its metrics, of the values that the recording keeps.
struct SaidMetric {
  std::string name;
  double last = 0, first = 0, lowest = 0, highest = 0;
  std::int64_t values = 1;
  Better better = Better::kUnknown;
  std::vector<double> curve;  // in order of time, at most kMostOfCurve: of more values the means of as many in a row
  // Where its name tells which way it is better.
  [[nodiscard]] std::optional<double> best() const {
    return better == Better::kUnknown ? std::nullopt : std::optional(better == Better::kLower ? lowest : highest);
  }
  bool operator==(const SaidMetric&) const = default;
};
inline constexpr std::size_t kMostOfCurve = 24;

}  // namespace headroom
