// SPDX-License-Identifier: Apache-2.0
#include "tune/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tune/calibration.h"
#include "tune/changes.h"
#include "tune/random.h"
#include "tune/replay.h"
#include "tune/safety.h"
#include "tune/study_model.h"

namespace headroom::tune {

namespace {

constexpr std::int64_t kMostReplays = 1000;
// A seed's two orders begin half a study apart, so that its best trial is never near the begin of both.
constexpr std::size_t kOrders = 2;
constexpr double kReachedAsOften = 0.9;  // of as it is: a change that loses the best trial more often does not help

// The trials in another order, as they might have come. Where in a study its best trial comes is luck for the most
// part: the order begins at any of them and goes round. Which of the trials that were open together came first is luck
// too: each moves by up to a round of the workers. What came long after what stays that way, as a sampler that learns
// would have it.
std::vector<ReplayTrial> in_other_order(const std::vector<ReplayTrial>& trials, std::size_t first, std::int64_t workers,
                                        Random& random) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    order.emplace_back(static_cast<double>(i) + random.uniform(0, static_cast<double>(workers)),
                       (first + i) % trials.size());
  }
  std::sort(order.begin(), order.end());
  std::vector<ReplayTrial> made;
  made.reserve(trials.size());
  for (const auto& [place, i] : order) made.push_back(trials[i]);
  return made;
}

// A seed's world and its orders: the same for all changes, so that these differ by nothing but the change.
struct Seed {
  World world;
  std::vector<std::vector<ReplayTrial>> orders;
};

std::vector<Seed> draw_seeds(const StudyModel& model, std::int64_t count) {
  std::vector<Seed> seeds;
  const std::size_t trials = model.observed.size();
  for (std::int64_t s = 0; s < count; ++s) {
    Seed& seed = seeds.emplace_back(Seed{.world = draw_world(model, static_cast<std::uint64_t>(s)), .orders = {}});
    Random random(static_cast<std::uint64_t>(s) + (1ULL << 32));
    const auto first = static_cast<std::size_t>((static_cast<double>(s) + random.uniform()) /
                                                static_cast<double>(count) * static_cast<double>(trials));
    for (std::size_t o = 0; o < kOrders; ++o) {
      seed.orders.push_back(in_other_order(seed.world.trials, first + o * trials / kOrders, model.workers, random));
    }
  }
  return seeds;
}

ReplayOutcome outcome_of(const StudyModel& model, const World& world, const std::vector<ReplayTrial>& trials,
                         const Change& change) {
  ReplayMachine machine = world.machine;
  const auto cores_each = [&](std::int64_t loaders) { return 1 + static_cast<double>(loaders) * world.loader_cores; };
  machine.step_cores = cores_each(change.loader_workers);
  // What the cores did to the study as it is lies in its durations already.
  if (model.cores) {
    machine.cores = std::max(*model.cores, static_cast<double>(model.workers) * cores_each(model.loader_workers));
  }
  ReplaySettings settings = change.settings;
  if (change.warm) {
    settings.warm_startup = world.warm_startup;
    settings.between = std::min(settings.between, world.warm_startup);
  }
  return replay(trials, machine, settings, model.direction, model.name, model.target);
}

// A change in all seeds.
struct Replays {
  std::vector<double> trials_per_hour, utilisation;
  std::vector<double> to_best;  // per seed: seconds of its replays, per replay that reached the best value
  std::array<double, kTrialStates> states{};
  double reached = 0, seconds = 0;
};

Replays replays_of(const StudyModel& model, const std::vector<Seed>& seeds, const Change& change) {
  Replays all;
  const double each = 1 / static_cast<double>(seeds.size() * kOrders);
  for (const Seed& seed : seeds) {
    double steady = 0, ended = 0, busy = 0, spent = 0, reached = 0;
    for (const std::vector<ReplayTrial>& order : seed.orders) {
      const ReplayOutcome outcome = outcome_of(model, seed.world, order, change);
      const bool ran_dry_at_once = outcome.steady_ended == 0;
      steady += ran_dry_at_once ? outcome.seconds : outcome.steady_seconds;
      ended += static_cast<double>(ran_dry_at_once ? static_cast<std::int64_t>(order.size()) : outcome.steady_ended);
      busy += ran_dry_at_once ? outcome.any_kernel : outcome.steady_any_kernel;
      spent += outcome.best_at.value_or(outcome.seconds);
      reached += outcome.best_at ? 1 : 0;
      for (std::size_t s = 0; s < kTrialStates; ++s) all.states[s] += each * static_cast<double>(outcome.states[s]);
      all.seconds += each * outcome.seconds;
    }
    all.reached += each * reached;
    all.to_best.push_back(reached > 0 ? spent / reached : std::numeric_limits<double>::quiet_NaN());
    all.trials_per_hour.push_back(steady > 0 ? ended / steady * 3600 : 0);
    all.utilisation.push_back(steady > 0 ? busy / steady : 0);
  }
  return all;
}

Estimate ratio_of(const Replays& changed, const Replays& base) {
  std::vector<double> ratios;
  for (std::size_t s = 0; s < base.to_best.size(); ++s) {
    const double ratio = changed.to_best[s] / base.to_best[s];
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return estimate_of(std::move(ratios));
}

WhatIf what_if_of(const Change& change, const Replays& changed, const Replays& base, const StudyOptions& options) {
  WhatIf made;
  made.change = change.name;
  made.how = change.how;
  made.trials_per_hour = estimate_of(changed.trials_per_hour);
  made.utilisation = estimate_of(changed.utilisation);
  made.time_to_best_ratio = ratio_of(changed, base);
  made.best_reached = changed.reached;
  made.gpu_hours = changed.seconds / 3600;
  made.memory_bytes = memory_of(change, options);
  made.cores = cores_of(change, options);
  made.states = changed.states;
  made.safety = change.safety;
  made.why = change.why;
  made.helps =
      changed.reached > 0 && made.time_to_best_ratio.high < 1 && changed.reached >= kReachedAsOften * base.reached;
  return made;
}

// By time to best; changes that never reach it last.
bool ranks_before(const WhatIf& a, const WhatIf& b) {
  if ((a.best_reached > 0) != (b.best_reached > 0)) return a.best_reached > 0;
  return a.time_to_best_ratio.value < b.time_to_best_ratio.value;
}

void say_what_is_assumed(const StudyModel& model, std::vector<std::string>& assumptions) {
  assumptions.insert(assumptions.end(), model.assumptions.begin(), model.assumptions.end());
  assumptions.emplace_back(
      "The sampler is not replayed: all replays run the study's own trials, in orders that are shifted and a little "
      "shuffled; with more trials at once a sampler knows less at each suggestion.");
  assumptions.emplace_back(
      "Only values that trials were observed to complete with count as reached: a trial that a change lets live costs "
      "time and earns nothing.");
  if (model.pruner) {
    assumptions.emplace_back("Curves that were cut go on as other trials of the study did from there, by chance.");
  }
  assumptions.emplace_back(
      "A trial that failed fails again at the same step; a warm worker needs 1 to 2 s per trial, and at most a tenth "
      "of "
      "a start-up; more loader workers make no step shorter, since nothing here shows that steps wait for data.");
}

}  // namespace

void add_what_if(const Study& study, const StudyOptions& options, StudyReport& report) {
  const Result<StudyModel> model = study_model(study, options, report);
  if (!model) {
    report.calibration.why = "not replayed: " + model.error().what;
    return;
  }
  const Change now = as_it_is(*model);
  const std::vector<Seed> seeds = draw_seeds(*model, std::clamp<std::int64_t>(options.replays, 1, kMostReplays));
  std::vector<ReplayOutcome> own;
  for (const Seed& seed : seeds) own.push_back(outcome_of(*model, seed.world, seed.world.trials, now));
  report.calibration = calibrate(*model, own);
  if (!report.calibration.good) return;

  const Replays base = replays_of(*model, seeds, now);
  if (base.reached == 0) {
    report.calibration.good = false;
    report.calibration.why = "in no replay does the trial with the best value live to its end";
    return;
  }
  report.as_it_is = what_if_of(now, base, base, options);
  report.as_it_is->helps = false;
  say_what_is_assumed(*model, report.assumptions);
  for (const Change& change : changes(*model, options, report, report.assumptions)) {
    report.what_if.push_back(what_if_of(change, replays_of(*model, seeds, change), base, options));
  }
  std::stable_sort(report.what_if.begin(), report.what_if.end(), ranks_before);
}

}  // namespace headroom::tune
