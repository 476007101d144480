// SPDX-License-Identifier: Apache-2.0
#include "tune/step_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tune/replay.h"

namespace headroom::tune {
namespace {

// What a storage would tell of trials that share a GPU in the way given.
std::vector<TimedTrial> observed(double contended, std::int64_t workers, std::uint64_t seed) {
  Random random(seed);
  std::vector<ReplayTrial> trials(200);
  for (ReplayTrial& trial : trials) {
    trial.startup = random.uniform(30, 60);
    trial.step = random.uniform(1.5, 2.5);
    const std::size_t reports = random.uniform() < 0.1 ? 60 : 8 + random.below(10);
    for (std::size_t i = 1; i <= reports; ++i)
      trial.curve.push_back({.step = static_cast<std::int64_t>(i), .value = 0});
  }
  const ReplayOutcome outcome =
      replay(trials, {.contended = contended}, {.workers = workers}, Direction::kMinimize, "", 0);
  std::vector<double> free(static_cast<std::size_t>(workers), 0.0);
  std::vector<TimedTrial> seen;
  for (const ReplayEnd& end : outcome.ends) {
    const auto worker = std::min_element(free.begin(), free.end());
    seen.push_back({.begin = *worker, .end = end.at, .reports = end.reports, .startup = std::nullopt});
    *worker = end.at;
  }
  return seen;
}

StepTimes likeliest(const std::vector<StepTimes>& ways) {
  return *std::max_element(ways.begin(), ways.end(), [](const auto& a, const auto& b) { return a.fits < b.fits; });
}

TEST(StepTimes, DurationsTellTheStartUpAndTheStep) {
  for (const double contended : {0.0, 0.75}) {
    double startup = 0, step = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const StepTimes way = likeliest(step_times(observed(contended, 4, seed), std::nullopt, 40));
      startup += way.startup / 8;
      step += way.step / 8;
    }
    EXPECT_NEAR(startup, 45, 2.5) << contended;
    EXPECT_NEAR(step, 2, 0.25) << contended;
  }
}

TEST(StepTimes, DurationsTellHowFarTrialsSlowEachOtherDown) {
  double apart = 0, in_turns = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    apart += likeliest(step_times(observed(0, 4, seed), std::nullopt, 45)).contended / 8;
    in_turns += likeliest(step_times(observed(0.75, 4, seed), std::nullopt, 45)).contended / 8;
  }
  EXPECT_LT(apart, 0.2);
  EXPECT_NEAR(in_turns, 0.75, 0.15);
}

TEST(StepTimes, AloneNothingTellsAndAllIsPossible) {
  const std::vector<StepTimes> ways = step_times(observed(0.75, 1, 1), std::nullopt, 45);
  double low = 1, high = 0;
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    low = std::min(low, draw(ways, random).contended);
    high = std::max(high, draw(ways, random).contended);
  }
  EXPECT_LT(low, 0.1);
  EXPECT_GT(high, 0.9);
}

TEST(StepTimes, ToldKernelsBoundWhatTrialsTakeFromEachOther) {
  for (const StepTimes& way : step_times(observed(0.75, 4, 1), 0.5, 45)) EXPECT_LE(way.contended, 0.51);
}

TEST(StepTimes, MeasuredStartUpsAreTaken) {
  std::vector<TimedTrial> trials;
  for (int i = 0; i < 20; ++i) {
    trials.push_back({.begin = 100.0 * i,
                      .end = 100.0 * i + 30 + 2 * (i % 7 + 3),
                      .reports = static_cast<std::size_t>(i % 7 + 3),
                      .startup = 30});
  }
  EXPECT_NEAR(likeliest(step_times(trials, std::nullopt, 5)).step, 2, 1e-3);
}

TEST(StepTimes, SharesOfTimeSumToOne) {
  const std::vector<TimedTrial> trials = observed(0.5, 4, 2);
  double sum = 0;
  for (const double share : computing_shares(trials, 45)) sum += share;
  EXPECT_NEAR(sum, 1, 1e-9);
}

}  // namespace
}  // namespace headroom::tune
