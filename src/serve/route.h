// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "serve/http.h"

// The subject of a request.
namespace headroom::serve {

struct Route {
  enum class What {
    kNothing,  // 404
    kHealth,
    kFile,  // of the page
    kOverview,
    kView,
    kWhy,
    kPlan,
    kReport,
    kComparison,
    kTrace,
    kStacks,
    kBatch,
    kStudy,
    kStudyReport,
    kEvents,
    kMetrics,
    kDcgmMetrics,
  } what = What::kNothing;
  std::string key;  // of a recording, batch or study: [A-Za-z0-9_-]{1,64}
};
[[nodiscard]] Route route_of(std::string_view path);

// The query of a view.
struct ViewQuery {
  std::optional<Nanos> begin, end;  // offsets from the recording's start
  std::size_t bins = 480, series_bins = 240;
  auto operator<=>(const ViewQuery&) const = default;
};
inline constexpr std::size_t kMostBins = 2000;
// `problem` says for people what is wrong with it; "" where nothing is.
[[nodiscard]] ViewQuery view_query(const Request& request, std::string& problem);

// Whether a client asks for OpenMetrics 1.0 by its Accept; else it gets Prometheus' text 0.0.4, which all can read.
[[nodiscard]] bool takes_openmetrics(std::string_view accept);

}  // namespace headroom::serve
