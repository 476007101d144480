// SPDX-License-Identifier: Apache-2.0
#include "tune/startup.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/median.h"
#include "tune/quantiles.h"
#include "tune/study_clock.h"

namespace headroom::tune {

namespace {

constexpr std::size_t kEnoughMeasured = 5;

Nanos nanos(double value) { return static_cast<Nanos>(value * 1e9); }

std::optional<double> measured_startup(const StudyOptions& options, const Trial& trial) {
  const auto found = options.measured.find(trial.number);
  return found == options.measured.end() ? std::nullopt : found->second.startup_seconds;
}

// What trials that failed before their first report tell: they were in their start-up or in their first step.
std::string failed_bound(const Study& study, const Timeline& timeline) {
  std::vector<double> failed;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    if (timeline.spans[i].timed && trial.state == TrialState::kFail && trial.reports == 0)
      failed.push_back(seconds(timeline.spans[i].duration()));
  }
  if (failed.empty()) return "";
  const std::string trials = count_of(failed.size(), "trial");
  return fmt::format("; {} that failed before a report took {} in the middle", trials,
                     human_duration(nanos(median(std::move(failed)))));
}

}  // namespace

std::optional<RobustLine> duration_by_steps(const Study& study, const Timeline& timeline) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    if (!tells_of_steps(study.trials[i], timeline.spans[i])) continue;
    points.emplace_back(static_cast<double>(study.trials[i].reports), seconds(timeline.spans[i].duration()));
  }
  return robust_line(points);
}

StartupFacts startup_inside(const Study& study, const StudyOptions& options, const std::optional<RobustLine>& line,
                            const Timeline& timeline) {
  StartupFacts facts;
  std::vector<double> measured;
  for (const Trial& trial : study.trials)
    if (const auto one = measured_startup(options, trial)) measured.push_back(*one);
  if (measured.size() >= kEnoughMeasured || (!measured.empty() && !line)) {
    facts.method = fmt::format("measured: begin to first kernel, of {}", count_of(measured.size(), "trial"));
    facts.inside_seconds = middle(std::move(measured));
    return facts;
  }
  const std::string bound = failed_bound(study, timeline);
  if (!line) {
    facts.method = "unknown: no line of duration over reports stands out" + bound;
    return facts;
  }
  const auto cut = [](double value) { return std::max(0.0, value); };
  facts.inside_seconds = Estimate{cut(line->intercept.low), cut(line->intercept.value), cut(line->intercept.high)};
  facts.method = "Theil-Sen regression of duration on steps" + bound;
  return facts;
}

void place_first_steps(const Study& study, const StudyOptions& options, const StartupFacts& startup,
                       const std::optional<RobustLine>& line, Timeline& timeline) {
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    TrialSpan& span = timeline.spans[i];
    if (!span.timed) continue;
    const auto measured = measured_startup(options, trial);
    if (measured || startup.inside_seconds) {
      const double usual = startup.inside_seconds ? startup.inside_seconds->value : 0;
      const double most = seconds(span.duration());
      span.first_step = span.begin + nanos(std::clamp(measured.value_or(usual), 0.0, most));
    }
    const bool failed_at_once = trial.state == TrialState::kFail && trial.reports == 0 && startup.inside_seconds;
    if (failed_at_once && !measured) span.first_step = span.end;
  }
  place_last_signs(study, line, timeline);
}

void place_last_signs(const Study& study, const std::optional<RobustLine>& line, Timeline& timeline) {
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    TrialSpan& span = timeline.spans[i];
    if (span.dead == DeadBy::kNone) continue;
    const double steps = line ? static_cast<double>(trial.reports) * line->slope.value : 0;
    Nanos sign = span.first_step + nanos(std::min(steps, seconds(span.end - span.first_step)));
    const auto heartbeat = sane(trial.heartbeat);
    if (heartbeat && timeline.clock.known) sign = *heartbeat - timeline.clock.offset;
    span.alive_until = std::clamp(sign, span.begin, span.end);
    span.first_step = std::min(span.first_step, span.alive_until);
  }
}

}  // namespace headroom::tune
