// SPDX-License-Identifier: Apache-2.0
#include "tune/step_model.h"

#include <algorithm>
#include <utility>

#include "base/median.h"

namespace headroom::tune {

namespace {

constexpr std::size_t kRanges = 10;
constexpr std::size_t kFewest = 10;  // trials in a range

std::optional<RobustLine> line_over(const Study& study, const std::vector<double>& relative, const Timeline& timeline) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    if (!tells_of_steps(study.trials[i], timeline.spans[i])) continue;
    points.emplace_back(static_cast<double>(study.trials[i].reports) * relative[i],
                        seconds(timeline.spans[i].duration()));
  }
  return robust_line(points);
}

struct Range {
  double to = 0;  // of the parameter, this one included
  std::vector<double> steps;
};

// Ranges of the parameter with about as many trials each; equal values are in one.
std::vector<Range> ranges(const ParameterColumn& column, const Study& study, const Timeline& timeline) {
  std::vector<std::pair<double, double>> trials;  // parameter, seconds per step
  for (const auto& [i, value] : column.values) {
    const TrialSpan& span = timeline.spans[i];
    if (!tells_of_steps(study.trials[i], span)) continue;
    trials.emplace_back(value, seconds(span.end - span.first_step) / static_cast<double>(study.trials[i].reports));
  }
  std::sort(trials.begin(), trials.end());
  const std::size_t full = column.number ? std::max(kFewest, (trials.size() + kRanges - 1) / kRanges) : 1;
  std::vector<Range> result;
  for (const auto& [value, step] : trials) {
    const bool next = result.empty() || (result.back().steps.size() >= full && value != result.back().to) ||
                      (!column.number && value != result.back().to);
    if (next) result.emplace_back();
    result.back().to = value;
    result.back().steps.push_back(step);
  }
  return result;
}

}  // namespace

StepModel step_model(const Study& study, const Timeline& timeline) {
  StepModel model{.relative = std::vector<double>(study.trials.size(), 1.0)};
  model.line = line_over(study, model.relative, timeline);
  return model;
}

StepModel step_model_by(const ParameterColumn& column, const Study& study, const Timeline& timeline) {
  StepModel model{.relative = std::vector<double>(study.trials.size(), 1.0)};
  std::vector<std::pair<double, double>> middles;  // end of the range, seconds per step
  std::vector<double> all;
  for (Range& range : ranges(column, study, timeline)) {
    all.insert(all.end(), range.steps.begin(), range.steps.end());
    if (range.steps.size() >= kFewest / 2) middles.emplace_back(range.to, median(std::move(range.steps)));
  }
  const double usual = all.empty() ? 0 : median(std::move(all));
  for (const auto& [i, value] : column.values) {
    auto range = std::lower_bound(middles.begin(), middles.end(), std::pair(value, 0.0),
                                  [](const auto& a, const auto& b) { return a.first < b.first; });
    if (range == middles.end() && column.number && !middles.empty()) range = std::prev(middles.end());
    const bool known = range != middles.end() && (column.number || range->first == value) && range->second > 0;
    if (known && usual > 0) model.relative[i] = range->second / usual;
  }
  model.line = line_over(study, model.relative, timeline);
  return model;
}

}  // namespace headroom::tune
