// SPDX-License-Identifier: Apache-2.0
#include "tune/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "tune/calibration.h"
#include "tune/changes.h"
#include "tune/failures.h"
#include "tune/first_trials.h"
#include "tune/quantiles.h"
#include "tune/replay.h"
#include "tune/safety.h"
#include "tune/seeds.h"
#include "tune/study_model.h"

namespace headroom::tune {

namespace {

constexpr std::int64_t kMostReplays = 1000, kFewestReplays = 5;
constexpr double kReportsForAll = 20'000;  // studies of so many reports are replayed as often as was asked for
constexpr double kLeastGain = 0.02;        // of the time to the best value; a smaller one is not worth an edit
constexpr double kShownAsOne = 0.995;      // of a ratio: "1.00x", which is no gain
constexpr double kReachedAsOften = 0.9;  // of the replays: a change that loses the best trial more often does not help

// FirstTrials of each replay.
struct FirstOfAll {
  std::vector<double> trials_per_hour, pruned_share, trial_seconds, at_once;
};

// A change in all seeds.
struct Replays {
  std::vector<double> trials_per_hour, utilisation, memory;
  std::vector<double> to_best, as_it_is_to_best;  // per seed: seconds, summed over its orders
  std::vector<double> best_seconds;               // per order
  FirstOfAll all;                                 // of the order of the study
  std::map<std::int64_t, FirstOfAll> first;       // of all orders, by how many
  std::array<double, kTrialStates> states{};
  double seconds = 0;
  double reached = 0, orders = 0;
};

void add(const FirstFigures& figures, FirstOfAll& all) {
  all.trials_per_hour.push_back(figures.trials_per_hour);
  all.pruned_share.push_back(static_cast<double>(figures.pruned) / static_cast<double>(figures.trials));
  all.trial_seconds.push_back(quantiles(figures.lengths).p50);
  all.at_once.push_back(figures.at_once);
}

// Memory: what each trial was measured to hold, else what trials hold.
std::vector<TrialTimes> times_of(const std::vector<ReplayTrial>& trials, const ReplayOutcome& outcome,
                                 const StudyOptions& options) {
  const auto usual = static_cast<double>(memory_per_trial(options).value_or(0));
  std::vector<TrialTimes> times;
  times.reserve(trials.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const auto measured = options.measured.find(trials[i].number);
    const bool known = measured != options.measured.end() && measured->second.memory_bytes;
    times.push_back({.begin = outcome.ends[i].begin,
                     .end = outcome.ends[i].at,
                     .pruned = outcome.ends[i].state == TrialState::kPruned,
                     .memory = known ? static_cast<double>(*measured->second.memory_bytes) : usual});
  }
  return times;
}

// But for the last trials, with which the workers run dry.
std::size_t steady(std::size_t trials, const Change& change) {
  const auto workers = static_cast<std::size_t>(std::max<std::int64_t>(1, change.settings.workers));
  return trials > workers ? trials - workers : 1;
}

// In the order of the study: what became of its trials, and how fast.
void add_rates(const StudyModel& model, const World& world, const Change& change, double each,
               const StudyOptions& options, Replays& all) {
  const ReplayOutcome outcome = replay(model, world, {world.trials, model.target}, change);
  const bool went_on = outcome.steady_trials >= 1;  // else the workers ran dry at once
  const double seconds = went_on ? outcome.steady_seconds : outcome.seconds;
  const double trials = went_on ? outcome.steady_trials : static_cast<double>(world.trials.size());
  all.trials_per_hour.push_back(seconds > 0 ? trials / seconds * 3600 : 0);
  all.utilisation.push_back(seconds > 0 ? (went_on ? outcome.steady_any_kernel : outcome.any_kernel) / seconds : 0);
  const std::vector<TrialTimes> times = times_of(world.trials, outcome, options);
  add(first_trials(times, {steady(times.size(), change)}).front(), all.all);
  if (memory_per_trial(options)) all.memory.push_back(most_together(times, outcome.seconds).memory);
  for (std::size_t s = 0; s < kTrialStates; ++s) all.states[s] += each * static_cast<double>(outcome.states[s]);
  all.seconds += each * outcome.seconds;
}

// In other orders: how soon the best value is there. Under another pruner, a study that loses it is followed by one as
// it is. Under the same pruner it is lost only by who was there first, which as often saves another: left out.
// How the first trials go, likewise.
void add_best(const StudyModel& model, const Seed& seed, const Change& now, const Change& change,
              const StudyOptions& options, Replays& all) {
  const bool same_pruner = change.settings.pruner == now.settings.pruner && !change.settings.change;
  double changed = 0, as_it_is = 0;
  for (const Order& order : seed.orders) {
    const ReplayOutcome outcome = replay(model, seed.world, order, change);
    all.reached += outcome.best_at ? 1 : 0;
    all.orders += 1;
    std::vector<std::size_t> counts(kFirstTrials.begin(), kFirstTrials.end());
    std::erase_if(counts, [&](std::size_t count) { return count > steady(order.trials.size(), change); });
    for (const FirstFigures& first : first_trials(times_of(order.trials, outcome, options), counts))
      add(first, all.first[first.trials]);
    if (!outcome.best_at && same_pruner) continue;
    const double best_at = outcome.best_at ? *outcome.best_at : outcome.seconds + order.best_at;
    all.best_seconds.push_back(best_at);
    changed += best_at;
    as_it_is += order.best_at;
  }
  all.to_best.push_back(changed);
  all.as_it_is_to_best.push_back(as_it_is);
}

// Over all seeds; the range is that of single seeds.
Estimate ratio_of(const Replays& all) {
  std::vector<double> ratios;
  double changed = 0, as_it_is = 0;
  for (std::size_t s = 0; s < all.to_best.size(); ++s) {
    if (all.as_it_is_to_best[s] <= 0) continue;
    ratios.push_back(all.to_best[s] / all.as_it_is_to_best[s]);
    changed += all.to_best[s];
    as_it_is += all.as_it_is_to_best[s];
  }
  Estimate made = estimate_of(std::move(ratios));
  if (as_it_is > 0) made.value = changed / as_it_is;
  made.low = std::min(made.low, made.value);
  made.high = std::max(made.high, made.value);
  return made;
}

WhatIf what_if_of(const StudyModel& model, const Change& change, const Replays& all, const StudyOptions& options) {
  WhatIf made;
  made.change = change.name;
  made.how = change.how;
  made.trials_per_hour = estimate_of(all.trials_per_hour);
  made.utilisation = estimate_of(all.utilisation);
  made.time_to_best_ratio = ratio_of(all);
  made.time_to_best_seconds = estimate_of(all.best_seconds);
  made.best_reached = all.orders > 0 ? all.reached / all.orders : 0;
  made.pruned_share = estimate_of(all.all.pruned_share);
  made.trial_seconds = estimate_of(all.all.trial_seconds);
  made.at_once = estimate_of(all.all.at_once);
  for (const auto& [trials, first] : all.first)
    made.first.push_back({.trials = trials,
                          .trials_per_hour = estimate_of(first.trials_per_hour),
                          .pruned_share = estimate_of(first.pruned_share),
                          .trial_seconds = estimate_of(first.trial_seconds),
                          .at_once = estimate_of(first.at_once)});
  made.gpu_hours = all.seconds / 3600;
  made.memory_bytes = memory_of(change, options);
  if (!all.memory.empty()) made.memory_at_once_bytes = estimate_of(all.memory);
  made.cores = cores_of(change, options);
  made.states = all.states;
  if (model.pruner) made.pruner = change.settings.change ? change.settings.change->second : change.settings.pruner;
  made.safety = change.safety;
  made.why = change.why;
  made.fits = change.fits;
  const Estimate& ratio = made.time_to_best_ratio;
  const bool gains = ratio.high < kShownAsOne && ratio.value <= 1 - kLeastGain;
  made.helps = made.fits && gains && made.best_reached >= kReachedAsOften;
  return made;
}

// By time to best; first what helps in nearly all seeds.
bool ranks_before(const WhatIf& a, const WhatIf& b) {
  return a.helps != b.helps ? a.helps : a.time_to_best_ratio.value < b.time_to_best_ratio.value;
}

// A change that asks for more than another ("warm workers, 3 trials at once" than "3 trials at once") and gains hardly
// more stands behind it.
void put_simpler_before(std::vector<WhatIf>& changes) {
  constexpr double kHardlyMore = 1.05;
  const auto parts = [](const WhatIf& one) {
    std::set<std::string_view> result;
    for (const std::string_view part : split(one.change, ',')) result.insert(trim(part));
    return result;
  };
  const auto at = [&](std::size_t n) { return changes.begin() + static_cast<std::ptrdiff_t>(n); };
  for (std::size_t i = changes.size(); i-- > 0;) {
    const auto mine = parts(changes[i]);
    std::size_t behind = i;
    for (std::size_t k = i + 1; k < changes.size(); ++k) {
      const auto other = parts(changes[k]);
      const bool less =
          other.size() < mine.size() && std::includes(mine.begin(), mine.end(), other.begin(), other.end());
      if (less && changes[i].helps == changes[k].helps &&
          changes[k].time_to_best_ratio.value <= kHardlyMore * changes[i].time_to_best_ratio.value)
        behind = k;
    }
    std::rotate(at(i), at(i + 1), at(behind + 1));
  }
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
      "A trial that failed fails again at the same step; a warm worker needs up to 2 s per trial, and at most a "
      "tenth of a start-up; more loader workers make no step shorter, since nothing here shows that steps wait for "
      "data.");
}

// Longer studies are replayed with fewer seeds: each then says more.
std::int64_t seeds_for(const StudyModel& model, std::int64_t wanted) {
  const double share = kReportsForAll / static_cast<double>(std::max<std::size_t>(1, most_reports(model)));
  const auto fewer = static_cast<std::int64_t>(share * static_cast<double>(wanted));
  return std::clamp(std::max(fewer, kFewestReplays), std::int64_t{1},
                    std::clamp(wanted, std::int64_t{1}, kMostReplays));
}

Calibration calibrate(const StudyModel& model, Change now, std::int64_t seeds) {
  now.settings.present = model.present;
  for (const std::int64_t there : model.present) now.settings.workers = std::max(now.settings.workers, there);
  std::vector<ReplayOutcome> outcomes;
  for (std::int64_t s = 0; s < seeds; ++s) {
    World world = draw_world(model, static_cast<std::uint64_t>(s));
    const Order order{.trials = std::move(world.trials), .target = model.target};
    outcomes.push_back(replay(model, world, order, now));
  }
  return calibrate(model, outcomes);
}

}  // namespace

void add_what_if(const Study& study, const StudyOptions& options, StudyReport& report) {
  const FailureGroup* since = failing_since(report.failures);
  if (const FailureGroup* failing = since ? since : failing_worker(report.failures)) {
    report.calibration.why =
        fmt::format("not replayed: hardly a trial {} succeeded, and no change of the study mends that", failing->where);
    return;
  }
  const Result<StudyModel> model = study_model(study, options, report);
  if (!model) {
    report.calibration.why = "not replayed: " + model.error().what;
    return;
  }
  const std::int64_t seeds = seeds_for(*model, options.replays);
  std::vector<Change> all{as_it_is(*model)};  // first: what the others are compared with
  report.calibration = calibrate(*model, all.front(), seeds);
  if (!report.calibration.good) return;

  say_what_is_assumed(*model, report.assumptions);
  for (Change& change : changes(*model, options, report, report.assumptions)) all.push_back(std::move(change));
  std::vector<Replays> replays(all.size());
  for (std::int64_t s = 0; s < seeds; ++s) {
    const Seed seed = draw_seed(*model, all.front(), s, seeds);
    for (std::size_t c = 0; c < all.size(); ++c) {
      add_rates(*model, seed.world, all[c], 1 / static_cast<double>(seeds), options, replays[c]);
      add_best(*model, seed, all.front(), all[c], options, replays[c]);
    }
  }
  if (replays.front().orders == 0) {
    report.calibration.good = false;
    report.calibration.why = "in no replay does a trial with a value live to its end";
    report.assumptions.clear();
    return;
  }
  for (std::size_t c = 0; c < all.size(); ++c)
    report.what_if.push_back(what_if_of(*model, all[c], replays[c], options));
  report.utilisation_of_gpu = options.kernel_share || (options.recording && options.recording->gpu_busy);
  report.as_it_is = report.what_if.front();
  report.what_if.erase(report.what_if.begin());
  std::stable_sort(report.what_if.begin(), report.what_if.end(), ranks_before);
  put_simpler_before(report.what_if);
}

}  // namespace headroom::tune
