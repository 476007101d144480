// SPDX-License-Identifier: Apache-2.0
#include "report/progress_json.h"

#include "report/time_limit.h"

namespace headroom::report {

namespace {

Json at_json(const std::optional<Progress::At>& at) {
  if (!at) return nullptr;
  return {{"number", at->number}, {"of", at->of}, {"done", at->done}};
}

constexpr std::string_view fits_name(TimeLimit::Fits fits) {
  return fits == TimeLimit::Fits::kYes ? "yes" : fits == TimeLimit::Fits::kNo ? "no" : "may_not";
}

Json time_limit_json(const std::optional<TimeLimit>& limit) {
  if (!limit) return nullptr;
  const bool over = limit->fits == TimeLimit::Fits::kNo;
  return {{"fits", fits_name(limit->fits)},
          {"left_seconds", limit->left_seconds},
          {"over_low_seconds", over ? Json(limit->over_low) : Json(nullptr)},
          {"over_high_seconds", over ? optional_json(limit->over_high) : Json(nullptr)}};
}

}  // namespace

Json progress_json(const Explanation& e) {
  const auto& progress = e.progress;
  if (!progress) return nullptr;
  const auto& left = progress->left;
  Json next = nullptr;
  if (const auto& validation = progress->next_validation)
    next = {{"phase", validation->phase},
            {"low_seconds", validation->low_seconds},
            {"high_seconds", validation->high_seconds}};
  return {{"epoch", at_json(progress->epoch)},
          {"step", at_json(progress->step)},
          {"left_low_seconds", left ? Json(left->low_seconds) : Json(nullptr)},
          {"left_high_seconds", left ? Json(left->high_seconds) : Json(nullptr)},
          {"left_of", left ? Json(left->of_epochs ? "epochs" : "steps") : Json(nullptr)},
          {"left_without_pauses", left ? Json(left->without_pauses) : Json(nullptr)},
          {"next_validation", next},
          {"time_limit", time_limit_json(time_limit(e))}};
}

Json metric_values_json(const Said& said) {
  Json list = Json::array();
  for (const SaidMetric& metric : said.metrics) {
    const bool low = metric.better == Better::kLower;
    list.push_back(
        {{"name", metric.name},
         {"values", metric.values},
         {"first", metric.first},
         {"last", metric.last},
         {"lowest", metric.lowest},
         {"highest", metric.highest},
         {"best", metric.better == Better::kUnknown ? Json(nullptr) : Json(low ? metric.lowest : metric.highest)},
         {"curve", metric.curve}});
  }
  return list;
}

}  // namespace headroom::report
