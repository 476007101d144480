// SPDX-License-Identifier: Apache-2.0
#include "tune/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"

namespace headroom::tune {

namespace {

// Means over the seeds.
struct Likeness {
  double same_ends = 0, steps = 0, observed_steps = 0;
};

Likeness likeness(const StudyModel& model, const std::vector<ReplayOutcome>& outcomes) {
  Likeness like;
  const auto seeds = static_cast<double>(outcomes.size());
  const auto trials = static_cast<double>(model.observed.size());
  for (std::size_t i = 0; i < model.observed.size(); ++i) {
    like.observed_steps += static_cast<double>(model.observed[i].curve.size());
    for (const ReplayOutcome& outcome : outcomes) {
      const ReplayEnd& end = outcome.ends[i];
      const bool same = end.state == model.observed[i].ends && end.reports == model.observed[i].curve.size();
      like.same_ends += same ? 1 / (trials * seeds) : 0;
      like.steps += static_cast<double>(outcome.ends[i].reports) / seeds;
    }
  }
  return like;
}

// "1.2 % more steps".
std::string more_words(double ratio) {
  const double tenths = std::round(1000 * ratio);
  return tenths == 0 ? "as many steps"
                     : fmt::format("{:.1f} % {} steps", std::abs(tenths) / 10, tenths > 0 ? "more" : "fewer");
}

std::string seconds_text(double seconds) { return human_duration(static_cast<Nanos>(seconds * 1e9)); }

}  // namespace

Estimate estimate_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {.low = at(0.05), .value = at(0.5), .high = at(0.95)};
}

Calibration calibrate(const StudyModel& model, const std::vector<ReplayOutcome>& outcomes) {
  Calibration made;
  made.replays = static_cast<std::int64_t>(outcomes.size());
  made.observed_seconds = model.seconds;
  std::vector<double> seconds;
  for (const ReplayOutcome& outcome : outcomes) {
    seconds.push_back(outcome.seconds);
    for (std::size_t s = 0; s < kTrialStates; ++s) {
      made.replayed[s] += static_cast<double>(outcome.states[s]);
    }
  }
  for (double& count : made.replayed) count /= static_cast<double>(outcomes.size());
  made.observed = model.states;
  made.replayed_seconds = estimate_of(std::move(seconds));
  const Likeness like = likeness(model, outcomes);
  const double time_off = made.replayed_seconds.value / model.seconds - 1;
  const double steps_off = like.observed_steps > 0 ? like.steps / like.observed_steps - 1 : 0;
  const bool ends = like.same_ends >= kSameEnds, steps = std::abs(steps_off) <= kStepsTolerance,
             time = std::abs(time_off) <= kTimeTolerance;
  made.good = ends && steps && time;
  const std::string seen = fmt::format(
      "replayed under the study's own settings, {} of the trials end as they did and after as many reports; "
      "all together make {} and take {} (the study: {})",
      human_percent(like.same_ends), more_words(steps_off), seconds_text(made.replayed_seconds.value),
      seconds_text(model.seconds));
  if (made.good) {
    made.why = seen;
  } else if (!ends || !steps) {
    made.why = "the replay does not give the study back: " + seen +
               ". Is the pruner the one that the study ran with (--pruner), all the time?";
  } else {
    made.why = "the replay does not give the study back: " + seen +
               fmt::format(". Did {} run all the time (--workers)?", count_of(model.workers, "worker"));
  }
  return made;
}

}  // namespace headroom::tune
