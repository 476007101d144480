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

std::optional<double> measured_startup(const StudyOptions& options, const Trial& trial) {
  const auto found = options.measured.find(trial.number);
  return found == options.measured.end() ? std::nullopt : found->second.startup_seconds;
}

bool any_reports(const Study& study) {
  return std::any_of(study.trials.begin(), study.trials.end(), [](const Trial& trial) { return trial.reports > 0; });
}

// What trials that failed before their first report tell: they were in their start-up or in their first step. Where no
// trial ever reports that tells nothing.
std::string failed_bound(const Study& study, const Timeline& timeline) {
  std::vector<double> failed;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    if (timeline.spans[i].timed && trial.state == TrialState::kFail && trial.reports == 0)
      failed.push_back(seconds(timeline.spans[i].duration()));
  }
  if (failed.empty() || !any_reports(study)) return "";
  const std::string trials = count_of(failed.size(), "trial");
  return fmt::format("{} that failed before a report took {} in the middle", trials,
                     human_duration(to_nanos(median(std::move(failed)))));
}

}  // namespace

StartupFacts startup_inside(const Study& study, const StudyOptions& options, const StepModel& model,
                            const Timeline& timeline) {
  StartupFacts facts;
  std::vector<double> measured;
  for (const Trial& trial : study.trials)
    if (const auto one = measured_startup(options, trial)) measured.push_back(*one);
  if (measured.size() >= kEnoughMeasured || (!measured.empty() && !model.line)) {
    facts.method = fmt::format("measured: begin to first kernel, of {}", count_of(measured.size(), "trial"));
    facts.inside_seconds = middle(std::move(measured));
    return facts;
  }
  facts.borne_out = failed_bound(study, timeline);
  if (!model.line) {
    facts.method = model.later_longer   ? "later steps take longer than the first"
                   : any_reports(study) ? "no line of duration over reports stands out"
                                        : "no trial reports its steps";
    return facts;
  }
  const auto cut = [](double value) { return std::max(0.0, value); };
  facts.inside_seconds =
      Estimate{cut(model.line->intercept.low), cut(model.line->intercept.value), cut(model.line->intercept.high)};
  facts.method = "Theil-Sen regression of duration on steps";
  return facts;
}

void place_first_steps(const Study& study, const StudyOptions& options, const StartupFacts& startup,
                       Timeline& timeline) {
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    TrialSpan& span = timeline.spans[i];
    if (!span.timed) continue;
    const auto measured = measured_startup(options, trial);
    if (measured || startup.inside_seconds) {
      const double usual = startup.inside_seconds ? startup.inside_seconds->value : 0;
      const double most = seconds(span.alive_until - span.begin);
      span.first_step = span.begin + to_nanos(std::clamp(measured.value_or(usual), 0.0, most));
    }
    const bool failed_at_once = trial.state == TrialState::kFail && trial.reports == 0 && startup.inside_seconds;
    if (failed_at_once && !measured) span.first_step = span.alive_until;
  }
}

}  // namespace headroom::tune
