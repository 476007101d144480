// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Metrics as Prometheus and OpenMetrics know them, before they are text.
namespace headroom::exposition {

enum class FamilyType : std::uint8_t { kGauge, kCounter, kInfo };

struct Label {
  std::string name, value;
  bool operator==(const Label&) const = default;
};

// value / 10^decimals. There is no sample for what is not known: neither NaN nor 0 would say that.
struct Sample {
  std::vector<Label> labels;
  std::int64_t value = 0;
  int decimals = 0;
  bool operator==(const Sample&) const = default;
};

struct Family {
  std::string name;  // of its samples: what is ours ends in _total if it is a counter, in _info if it is an info
  FamilyType type = FamilyType::kGauge;
  std::string unit;  // which the name ends in, before _total; "": a number of things
  std::string help;
  std::vector<Sample> samples;  // no two have the same labels
  bool operator==(const Family&) const = default;
};

// OpenMetrics 1.0. Counters must be named …_total and infos …_info, units be the end of the name before that.
inline constexpr std::string_view kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";
[[nodiscard]] std::string to_openmetrics(std::span<const Family> families);

// Prometheus text format 0.0.4, which has no units and no infos (they are gauges). For those who do not ask for more.
inline constexpr std::string_view kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";
[[nodiscard]] std::string to_prometheus(std::span<const Family> families);

}  // namespace headroom::exposition
