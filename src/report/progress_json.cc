// SPDX-License-Identifier: Apache-2.0
#include "report/progress_json.h"

#include "report/progress_words.h"
#include "report/time_limit.h"

namespace headroom::report {

namespace {

Json at_json(const std::optional<Progress::At>& at) {
  if (!at) return nullptr;
  return {{"number", at->number}, {"of", at->of > 0 ? Json(at->of) : Json(nullptr)}, {"done", at->done}};
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
  return {{"fold", at_json(progress->fold)},
          {"epoch", at_json(progress->epoch)},
          {"step", at_json(progress->step)},
          {"left_low_seconds", left ? Json(left->low_seconds) : Json(nullptr)},
          {"left_high_seconds", left ? Json(left->high_seconds) : Json(nullptr)},
          {"left_of", left ? Json(unit_name(left->to_end_of)) : Json(nullptr)},
          {"left_without_pauses", left ? Json(left->without_pauses) : Json(nullptr)},
          {"next_validation", next},
          {"time_limit", time_limit_json(time_limit(e))}};
}

Json metric_values_json(const std::vector<SaidMetric>& metrics) {
  Json list = Json::array();
  for (const SaidMetric& metric : metrics)
    list.push_back({{"name", metric.name},
                    {"values", metric.values},
                    {"first", metric.first},
                    {"last", metric.last},
                    {"lowest", metric.lowest},
                    {"highest", metric.highest},
                    {"best", optional_json(metric.best())},
                    {"curve", metric.curve}});
  return list;
}

}  // namespace headroom::report
