// SPDX-License-Identifier: Apache-2.0
#include "tune/step_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "base/median.h"

namespace headroom::tune {

namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr std::size_t kWideRanges = 4, kNarrowRanges = 10;
constexpr std::size_t kFewestInRange = 10;      // trials in a range
constexpr std::size_t kFewestOfOne = 3;         // of one value, once it is known that the parameter decides
constexpr std::size_t kTrialsToChoose = 4'000;  // trials, to choose the parameter
constexpr double kWorthIt = 0.85;  // of the distance to one line: less by chance is rare, as the tests show

// Trials of one range of a parameter, or of one category.
struct Range {
  double to = 0;  // of the parameter, this one included
  std::vector<std::size_t> trials;
};

// As many ranges, with about as many trials each; equal values are in one. 0: one for each value, of few trials, too.
// Of many trials some are looked at.
std::vector<Range> ranges(const ParameterColumn& column, const Study& study, const Timeline& timeline,
                          std::size_t count, std::size_t looked_at) {
  std::vector<std::pair<double, std::size_t>> trials;
  const std::size_t stride = column.values.size() / looked_at + 1;
  for (std::size_t k = 0; k < column.values.size(); k += stride) {
    const auto& [i, value] = column.values[k];
    if (tells_of_steps(study.trials[i], timeline.spans[i])) trials.emplace_back(value, i);
  }
  std::sort(trials.begin(), trials.end());
  const std::size_t full =
      column.number && count > 0 ? std::max(kFewestInRange, (trials.size() + count - 1) / count) : 1;
  std::vector<Range> result;
  for (const auto& [value, trial] : trials) {
    const bool other = result.empty() || value != result.back().to;
    if (result.empty() || (other && result.back().trials.size() >= full)) result.emplace_back();
    result.back().to = value;
    result.back().trials.push_back(trial);
  }
  const std::size_t fewest = count > 0 ? kFewestInRange : kFewestOfOne;
  std::erase_if(result, [&](const Range& range) { return range.trials.size() < fewest; });
  return result;
}

using ByRange = std::vector<std::pair<double, double>>;  // end of the range, seconds per step

// What each trial's range says, over what the middle trial's does.
std::vector<double> relative_of(const ParameterColumn& column, const ByRange& by_range, std::size_t trials) {
  std::vector<double> relative(trials, 1.0), all;
  std::vector<std::pair<std::size_t, double>> known;
  for (const auto& [i, value] : column.values) {
    auto range = std::lower_bound(by_range.begin(), by_range.end(), value,
                                  [](const auto& one, double of) { return one.first < of; });
    if (range == by_range.end() && column.number && !by_range.empty()) range = std::prev(by_range.end());
    if (range == by_range.end() || (!column.number && range->first != value)) continue;
    known.emplace_back(i, range->second);
    all.push_back(range->second);
  }
  if (all.empty()) return relative;
  const double usual = median(std::move(all));
  for (const auto& [i, step] : known) relative[i] = step / usual;
  return relative;
}

Points points_of(const Study& study, const std::vector<std::size_t>& trials, const std::vector<double>& relative,
                 const Timeline& timeline) {
  Points points;
  for (const std::size_t i : trials)
    points.emplace_back(static_cast<double>(study.trials[i].reports) * relative[i],
                        seconds(timeline.spans[i].duration()));
  return points;
}

// How far durations lie from the line, in the middle.
double distance(const Line& line, const Points& points) {
  std::vector<double> off;
  for (const auto& [x, y] : points) off.push_back(std::abs(y - line.intercept - line.slope * x));
  return median(std::move(off));
}

// Relative step times by lines within ranges of the parameter; absent where too few trials lie in one.
std::optional<std::vector<double>> relative_within(const ParameterColumn& column, const Study& study,
                                                   const Timeline& timeline) {
  const std::vector<double> same(study.trials.size(), 1.0);
  ByRange by_range;
  for (const Range& range : ranges(column, study, timeline, kWideRanges, kTrialsToChoose)) {
    const auto line = theil_sen(points_of(study, range.trials, same, timeline));
    if (line && line->slope > 0) by_range.emplace_back(range.to, line->slope);
  }
  if (by_range.size() < 2) return std::nullopt;
  return relative_of(column, by_range, study.trials.size());
}

std::vector<std::size_t> telling_trials(const Study& study, const Timeline& timeline) {
  std::vector<std::size_t> trials;
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    if (tells_of_steps(study.trials[i], timeline.spans[i])) trials.push_back(i);
  return trials;
}

void set_line(const Points& points, StepModel& model) {
  model.line = robust_line(points);
  model.later_longer = model.line && model.line->intercept.high < 0;
  if (model.later_longer) model.line.reset();  // its foot is no start-up
}

}  // namespace

StepModel step_model(const Study& study, const std::vector<ParameterColumn>& columns, const Timeline& timeline) {
  StepModel model{.relative = std::vector<double>(study.trials.size(), 1.0)};
  const std::vector<std::size_t> all = telling_trials(study, timeline);
  std::vector<std::size_t> some;
  for (std::size_t k = 0; k < all.size(); k += all.size() / kTrialsToChoose + 1) some.push_back(all[k]);
  const Points points = points_of(study, some, model.relative, timeline);
  if (const auto line = theil_sen(points)) {
    double least = kWorthIt * distance(*line, points);
    for (const ParameterColumn& column : columns) {
      auto relative = relative_within(column, study, timeline);
      if (!relative) continue;
      const Points by_work = points_of(study, some, *relative, timeline);
      const auto closer = theil_sen(by_work);
      if (!closer || distance(*closer, by_work) >= least) continue;
      least = distance(*closer, by_work);
      model.relative = std::move(*relative);
    }
  }
  set_line(points_of(study, all, model.relative, timeline), model);
  return model;
}

StepModel step_model_by(const ParameterColumn& column, const Study& study, const Timeline& timeline) {
  ByRange by_range;
  std::set<double> values;
  for (const auto& [i, value] : column.values) values.insert(value);
  const std::size_t count = column.number && values.size() > kNarrowRanges ? kNarrowRanges : 0;
  for (const Range& range : ranges(column, study, timeline, count, study.trials.size() + 1)) {
    std::vector<double> steps;
    for (const std::size_t i : range.trials) {
      const TrialSpan& span = timeline.spans[i];
      steps.push_back(seconds(span.end - span.first_step) / static_cast<double>(study.trials[i].reports));
    }
    const double middle = median(std::move(steps));
    if (middle > 0) by_range.emplace_back(range.to, middle);
  }
  StepModel model{.relative = relative_of(column, by_range, study.trials.size())};
  set_line(points_of(study, telling_trials(study, timeline), model.relative, timeline), model);
  return model;
}

}  // namespace headroom::tune
