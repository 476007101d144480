// SPDX-License-Identifier: Apache-2.0
#include "tune/replay.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "tune/gpu_share.h"

namespace headroom::tune {
namespace {

// Trials of `reports` steps with made-up curves, as different as `seed` has it.
std::vector<ReplayTrial> made_up(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<ReplayTrial> trials;
  for (std::size_t i = 0; i < count; ++i) {
    ReplayTrial& trial = trials.emplace_back();
    trial.number = static_cast<std::int64_t>(i);
    trial.startup = random.uniform(5, 20);
    trial.step = random.uniform(1, 3);
    if (random.uniform() < 0.1) {
      trial.ends = TrialState::kFail;
      continue;
    }
    const double level = random.uniform();
    for (std::int64_t step = 1; step <= 20; ++step) {
      trial.curve.push_back({.step = step, .value = level + 1.0 / static_cast<double>(step) + 0.1 * random.normal()});
    }
    trial.value = trial.curve.back().value;
  }
  return trials;
}

double alone(const ReplayTrial& trial) { return trial.startup + trial.step * static_cast<double>(trial.curve.size()); }

double all_alone(const std::vector<ReplayTrial>& trials) {
  return std::accumulate(trials.begin(), trials.end(), 0.0,
                         [](double sum, const ReplayTrial& trial) { return sum + alone(trial); });
}

const PrunerSettings kHalving{.kind = PrunerKind::kSuccessiveHalving, .reduction_factor = 3};

ReplayOutcome replayed(const std::vector<ReplayTrial>& trials, const ReplaySettings& settings,
                       const ReplayMachine& machine = {}) {
  return replay(trials, machine, settings, Direction::kMinimize, "study", 0.5);
}

TEST(Replay, OneWorkerTakesTheSumOfItsTrials) {
  const std::vector<ReplayTrial> trials = made_up(30, 1);
  const ReplayOutcome outcome = replayed(trials, {.workers = 1, .between = 2});
  EXPECT_NEAR(outcome.seconds, all_alone(trials) + 29 * 2, 1e-6);
  EXPECT_EQ(outcome.ends.size(), trials.size());
}

TEST(Replay, WorkerTimeSumsToWorkersTimesTime) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::int64_t workers = 1 + static_cast<std::int64_t>(seed % 7);
    const ReplayOutcome outcome = replayed(made_up(40, seed), {.workers = workers, .between = 1, .pruner = kHalving},
                                           {.kernel_share = 0.7, .contended = 0.7, .cores = 3});
    EXPECT_NEAR(outcome.startup_seconds + outcome.step_seconds + outcome.idle_seconds,
                static_cast<double>(workers) * outcome.seconds, 1e-6 * outcome.seconds);
    EXPECT_LE(outcome.any_kernel, outcome.seconds * (1 + 1e-12));
    EXPECT_EQ(std::accumulate(outcome.states.begin(), outcome.states.end(), std::int64_t{0}), 40);
  }
}

TEST(Replay, TheSameTwiceIsTheSame) {
  const std::vector<ReplayTrial> trials = made_up(50, 3);
  const ReplaySettings settings{.workers = 4, .pruner = kHalving};
  const ReplayOutcome first = replayed(trials, settings), second = replayed(trials, settings);
  EXPECT_EQ(first.seconds, second.seconds);
  for (std::size_t i = 0; i < trials.size(); ++i) EXPECT_EQ(first.ends[i].at, second.ends[i].at);
}

TEST(Replay, MoreWorkersAreNeverLaterWhereNothingIsShared) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<ReplayTrial> trials = made_up(40, seed);
    for (std::int64_t workers = 1; workers < 8; ++workers) {
      const ReplayMachine apart{.contended = 0};
      const ReplayOutcome few = replayed(trials, {.workers = workers}, apart);
      const ReplayOutcome more = replayed(trials, {.workers = workers + 1}, apart);
      for (double at = 0; at < few.seconds; at += 7) {  // never fewer ended
        const auto ended = [&](const ReplayOutcome& outcome) {
          return std::count_if(outcome.ends.begin(), outcome.ends.end(),
                               [&](const ReplayEnd& end) { return end.at <= at; });
        };
        ASSERT_GE(ended(more), ended(few)) << workers << " workers, second " << at;
      }
    }
  }
}

TEST(Replay, TrialsThatFillTheGpuTakeTurns) {
  std::vector<ReplayTrial> trials(2);
  for (ReplayTrial& trial : trials) {
    trial.step = 1;
    trial.curve.assign(10, {.step = 1, .value = 0});
  }
  EXPECT_NEAR(replayed(trials, {.workers = 2}, {.kernel_share = 1, .contended = 1}).seconds, 20, 1e-9);
  EXPECT_NEAR(replayed(trials, {.workers = 2}, {.kernel_share = 1, .contended = 0}).seconds, 10, 1e-9);
  const ReplayOutcome partly = replayed(trials, {.workers = 2}, {.kernel_share = 0.75, .contended = 0.75});
  EXPECT_NEAR(partly.seconds, 16, 1e-9);  // 2 x 7.5 s of kernels in the 0.9375 of the time that the GPU is busy
  EXPECT_NEAR(partly.any_kernel, 15, 1e-9);
}

TEST(Replay, KernelTimeOfTrialsThatTakeTurnsIsConserved) {
  const std::vector<ReplayTrial> trials = made_up(60, 5);
  double kernels = 0;
  for (const ReplayTrial& trial : trials) kernels += 0.6 * trial.step * static_cast<double>(trial.curve.size());
  for (const std::int64_t workers : {1, 3, 8}) {
    EXPECT_NEAR(replayed(trials, {.workers = workers}, {.kernel_share = 0.6, .contended = 0.6}).any_kernel, kernels,
                1e-6 * kernels);
  }
}

TEST(Replay, ScarceCoresSlowStartUps) {
  std::vector<ReplayTrial> trials(4);
  for (ReplayTrial& trial : trials) trial.startup = 10;
  EXPECT_NEAR(replayed(trials, {.workers = 4}, {.cores = 4}).seconds, 10, 1e-9);
  EXPECT_NEAR(replayed(trials, {.workers = 4}, {.cores = 2}).seconds, 20, 1e-9);
  EXPECT_NEAR(replayed(trials, {.workers = 4}, {.cores = 0}).seconds, 10, 1e-9);
}

TEST(Replay, AWarmWorkerStartsColdOnce) {
  std::vector<ReplayTrial> trials(6);
  for (ReplayTrial& trial : trials) trial.startup = 10;
  const ReplayOutcome outcome = replayed(trials, {.workers = 2, .warm_startup = 1});
  EXPECT_NEAR(outcome.startup_seconds, 2 * 10 + 4 * 1, 1e-9);
}

TEST(Replay, BestIsReachedByObservedValuesOnly) {
  std::vector<ReplayTrial> trials(2);
  trials[0].curve = {{.step = 1, .value = 0.1}};  // reports a good value, but was never observed to complete with it
  trials[0].step = 1;
  trials[1] = trials[0];
  trials[1].value = 0.4;
  const ReplayOutcome outcome = replayed(trials, {.workers = 1});
  ASSERT_TRUE(outcome.best_at);
  EXPECT_NEAR(*outcome.best_at, 2, 1e-9);
  trials[1].value.reset();
  EXPECT_FALSE(replayed(trials, {.workers = 1}).best_at);
}

TEST(Replay, AFailureComesAtItsStep) {
  std::vector<ReplayTrial> trials(1);
  trials[0].startup = 3;
  trials[0].step = 2;
  trials[0].curve = {{.step = 1, .value = 1}, {.step = 2, .value = 1}};
  trials[0].ends = TrialState::kFail;
  const ReplayOutcome outcome = replayed(trials, {.workers = 3});
  EXPECT_EQ(outcome.ends[0].state, TrialState::kFail);
  EXPECT_NEAR(outcome.ends[0].at, 7, 1e-9);
}

TEST(Replay, ATrialObservedToCompleteIsNotAskedAtItsLastReport) {
  std::vector<ReplayTrial> trials(1);
  trials[0].curve = {{.step = 1, .value = 9}};
  const PrunerSettings below{.kind = PrunerKind::kThreshold, .upper = 5};
  EXPECT_EQ(replayed(trials, {.pruner = below}).ends[0].state, TrialState::kPruned);
  trials[0].value = 9;
  EXPECT_EQ(replayed(trials, {.pruner = below}).ends[0].state, TrialState::kComplete);
}

TEST(Replay, AChangeInMidStudyHoldsFromItsTrialOn) {
  std::vector<ReplayTrial> trials(4);
  for (ReplayTrial& trial : trials) trial.curve.assign(3, {.step = 1, .value = 9});
  for (std::size_t i = 0; i < 4; ++i) {
    trials[i].number = static_cast<std::int64_t>(i);
    for (std::int64_t s = 0; s < 3; ++s) trials[i].curve[static_cast<std::size_t>(s)].step = s + 1;
  }
  const PrunerSettings below{.kind = PrunerKind::kThreshold, .upper = 5};
  const ReplayOutcome outcome = replayed(trials, {.workers = 1, .change = {{2, below}}});
  EXPECT_EQ(outcome.ends[1].state, TrialState::kComplete);
  EXPECT_EQ(outcome.ends[2].state, TrialState::kPruned);
}

TEST(Replay, RatesAreCountedUntilTheLastTrialBegins) {
  std::vector<ReplayTrial> trials(3);
  trials[0].startup = 10;
  trials[1].startup = 10;
  trials[2].startup = 100;
  const ReplayOutcome outcome = replayed(trials, {.workers = 2});
  EXPECT_NEAR(outcome.steady_seconds, 10, 1e-9);
  EXPECT_EQ(outcome.steady_trials, 2);
  EXPECT_NEAR(outcome.seconds, 110, 1e-9);
}

TEST(Replay, OfTrialsThatAreOpenThenAPartIsDone) {
  std::vector<ReplayTrial> trials(3);
  trials[0].startup = 10;
  trials[1].startup = 40;
  trials[2].startup = 100;
  EXPECT_NEAR(replayed(trials, {.workers = 2}).steady_trials, 1.25, 1e-9);
}

TEST(Replay, NothingIsOverAtOnce) { EXPECT_EQ(replayed({}, {.workers = 4}).seconds, 0); }

TEST(Replay, WorkersThatWereNotThereTakeNoTrials) {
  std::vector<ReplayTrial> trials(12);
  for (ReplayTrial& trial : trials) trial.startup = 10;
  ReplaySettings settings{.workers = 4};
  const auto seconds = [&] { return replay(trials, {}, settings, Direction::kMinimize, "", 0).seconds; };
  EXPECT_DOUBLE_EQ(seconds(), 30);
  settings.present.assign(12, 4);
  EXPECT_DOUBLE_EQ(seconds(), 30);
  settings.present = {4, 4, 4, 4, 1, 1, 1, 1, 4, 4, 4, 4};  // three stop after their first trial, and come back
  EXPECT_DOUBLE_EQ(seconds(), 10 + 40 + 10);
  settings.present.assign(12, 1);
  EXPECT_DOUBLE_EQ(seconds(), 120);
}

}  // namespace
}  // namespace headroom::tune
