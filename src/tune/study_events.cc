// SPDX-License-Identifier: Apache-2.0
#include "tune/study_events.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/median.h"

namespace headroom::tune {

namespace {

// Nanoseconds per report of the middle trial: the median slope of duration over reports, between trials that lie half
// the study apart in the number of reports (the Theil-Sen estimate from a share of all pairs).
double time_per_report(const Study& study) {
  std::vector<std::pair<double, double>> points;  // reports, duration
  for (const Trial& trial : study.trials)
    if (trial.start && trial.complete && is_finished(trial.state))
      points.emplace_back(static_cast<double>(trial.reports), static_cast<double>(*trial.complete - *trial.start));
  std::ranges::sort(points);
  std::vector<double> slopes;
  for (std::size_t i = 0, half = points.size() / 2; i + half < points.size(); ++i)
    if (const double more = points[i + half].first - points[i].first; more > 0)
      slopes.push_back((points[i + half].second - points[i].second) / more);
  return slopes.empty() ? 0 : std::max(0.0, median(std::move(slopes)));
}

}  // namespace

std::vector<StudyEvent> study_events(const Study& study, std::size_t most_reports) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < study.trials.size(); ++i)
    if (study.trials[i].start) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(*study.trials[i].start, i); });

  const double pace = time_per_report(study);
  std::vector<StudyEvent> events;
  std::size_t reports = 0;
  for (const std::uint32_t i : order) {
    const Trial& trial = study.trials[i];
    if ((reports += trial.reports) > most_reports) break;
    const auto count = static_cast<double>(trial.reports);
    const Nanos end = trial.complete.value_or(*trial.start + static_cast<Nanos>(pace * count));
    const auto duration = static_cast<double>(std::max<Nanos>(0, end - *trial.start));  // clocks are set back
    const double space = std::min(pace, duration / std::max(1.0, count));
    events.push_back({*trial.start, StudyEvent::Kind::kBegin, i, 0});
    for (std::uint32_t r = 0; r < trial.reports; ++r) {
      const double before_end = space * static_cast<double>(trial.reports - 1 - r);
      events.push_back({end - static_cast<Nanos>(before_end), StudyEvent::Kind::kReport, i, r});
    }
    if (is_finished(trial.state)) events.push_back({end, StudyEvent::Kind::kEnd, i, 0});
  }
  std::ranges::stable_sort(events, {}, [](const StudyEvent& e) { return e.at; });
  return events;
}

}  // namespace headroom::tune
