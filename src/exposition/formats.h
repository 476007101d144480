// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "exposition/family.h"

namespace headroom::exposition {

// OpenMetrics 1.0. Counters must be named …_total and infos …_info, units be the end of the name before that.
inline constexpr std::string_view kOpenMetricsType = "application/openmetrics-text; version=1.0.0; charset=utf-8";
[[nodiscard]] std::string to_openmetrics(std::span<const Family> families);

// Prometheus text format 0.0.4, which has no units and no infos (they are gauges). For those who do not ask for more.
inline constexpr std::string_view kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";
[[nodiscard]] std::string to_prometheus(std::span<const Family> families);

}  // namespace headroom::exposition
