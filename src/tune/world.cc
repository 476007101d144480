// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "base/random.h"
#include "tune/study_model.h"

// What is not known of a study, drawn by chance.
namespace headroom::tune {

namespace {

constexpr double kWarmHigh = 2;      // seconds: a process that has its imports, its data and its context
constexpr double kWarmMost = 0.1;    // of the start-up there is
constexpr double kLeastSteps = 0.1;  // of a trial that reported: it is not all start-up
constexpr double kHighestStartup = 0.98;
constexpr double kFarOff = 5;  // standard deviations, and more than half of the trial: no start-up, and no slow step
struct Split {
  double startup = 0, step = 0, stall = 0;
};

// A trial's duration as start-up and steps: by their variances, where the start-up was not measured.
Split split(const TimedTrial& timed, const StepTimes& way, double crowding, double startup_mean) {
  const double duration = timed.end - timed.begin;
  if (timed.reports == 0) return {.startup = duration, .step = timed.relative * way.step};
  const double reports = static_cast<double>(timed.reports) * crowding, steps = timed.steps() * crowding;
  const double growing = steps * steps * way.step_variance;
  const double off = duration - startup_mean - steps * way.step;
  if (!timed.startup && off > kFarOff * std::sqrt(way.startup_variance + growing) && off > duration - off)
    return {.startup = startup_mean,
            .step = timed.relative * way.step,
            .stall = off};  // something else happened, at any time of it
  const double share = way.startup_variance + growing > 0 ? way.startup_variance / (way.startup_variance + growing) : 0;
  const double most = std::max(0.0, std::min(kHighestStartup * duration, duration - kLeastSteps * steps * way.step));
  const double startup = std::clamp(timed.startup.value_or(startup_mean + share * off), 0.0, most);
  return {.startup = startup, .step = (duration - startup) / reports};
}

// Where the start-up is not known: such a share of the trial.
Split split_at(double share, const TimedTrial& timed, const StepTimes& way, double crowding, double growth) {
  const double alone = (timed.end - timed.begin) / crowding;
  if (timed.reports == 0) return {.startup = alone, .step = timed.relative * way.step};
  return {.startup = share * alone, .step = (1 - share) * alone / std::pow(static_cast<double>(timed.reports), growth)};
}

// A trial that completes makes as many reports as one of those that did, of those that made more than it has.
std::size_t length_of(const StudyModel& model, std::size_t reports, Random& random) {
  std::size_t longer = 0;
  for (const std::size_t length : model.lengths) longer += length > reports;
  if (longer == 0) return reports;
  std::size_t left = random.below(longer);
  for (const std::size_t length : model.lengths) {
    if (length > reports && left-- == 0) return length;
  }
  return reports;
}

}  // namespace

World draw_world(const StudyModel& model, std::uint64_t seed) {
  Random random(seed);
  const StepTimes& way = draw(model.ways, random);
  const double startup_mean = std::max(0.0, way.startup + way.startup_error * random.normal());
  World world;
  world.machine.kernel_share = model.kernel_share;
  world.machine.contended = way.contended;
  world.loader_cores = random.uniform();
  const double share = model.startup_known ? 0 : random.uniform();
  world.trials = model.observed;
  std::vector<double> startups;
  for (std::size_t i = 0; i < world.trials.size(); ++i) {
    ReplayTrial& trial = world.trials[i];
    const Split times = model.startup_known ? split(model.times[i], way, way.crowding[i], startup_mean)
                                            : split_at(share, model.times[i], way, way.crowding[i], model.growth);
    trial.startup = times.startup;
    trial.startup_computes = !model.startup_known;
    trial.step = times.step;
    trial.growth = model.growth;
    trial.stall = times.stall;
    startups.push_back(times.startup);
    if (!model.pruner || trial.ends != TrialState::kPruned || trial.curve.empty()) continue;
    model.curves->extend(trial.curve, length_of(model, trial.curve.size(), random), i, random);
    trial.ends = TrialState::kComplete;
  }
  world.warm_startup = random.uniform(0, std::min(kWarmHigh, kWarmMost * median(startups)));
  return world;
}

}  // namespace headroom::tune
