// SPDX-License-Identifier: Apache-2.0
// Corner cases by hand; tests/e2e/test_pruners.py holds every decision of random studies against Optuna's own.
#include "tune/pruners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tune/pruner_text.h"
#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

using testing::kInfinity;
using testing::kNaN;

constexpr std::int64_t kLate = std::numeric_limits<std::int64_t>::max();

Pruning pruning(std::string_view text, Direction direction = Direction::kMinimize) {
  return {parse_pruner(text).value(), direction, "study"};
}

// Reports the values at steps 0, 1, 2, …; the step at which the trial is to be pruned first.
std::optional<std::int64_t> pruned_at(Pruning& pruner, std::int64_t trial, const std::vector<double>& values) {
  pruner.begin(trial);
  std::optional<std::int64_t> at;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (pruner.report(trial, static_cast<std::int64_t>(i), values[i]) && !at) at = static_cast<std::int64_t>(i);
  return at;
}

void complete(Pruning& pruner, std::int64_t trial, const std::vector<double>& values) {
  (void)pruned_at(pruner, trial, values);
  pruner.end(trial, TrialState::kComplete);
}

TEST(Pruning, NoneNeverPrunes) {
  for (const char* text : {"none", "PatientPruner(NopPruner(), 0)"}) {
    Pruning pruner = pruning(text);
    EXPECT_EQ(pruned_at(pruner, 0, {1, kNaN, kInfinity, 9, 9}), std::nullopt) << text;
  }
}

TEST(SuccessiveHalving, TheBestOfTooFewGoesOn) {
  Pruning pruner = pruning("SuccessiveHalvingPruner(1)");
  EXPECT_EQ(pruned_at(pruner, 0, {0, 5}), std::nullopt) << "the only one is the best";
  EXPECT_EQ(pruned_at(pruner, 1, {0, 6}), 1);
  EXPECT_EQ(pruned_at(pruner, 2, {0, 4}), std::nullopt);
  EXPECT_EQ(pruned_at(pruner, 3, {0, 4}), std::nullopt) << "as good as the best";
}

TEST(SuccessiveHalving, AValueThatIsNoNumberIsPrunedAtItsRungAndNotRecorded) {
  Pruning pruner = pruning("SuccessiveHalvingPruner(1, 2)");
  EXPECT_EQ(pruned_at(pruner, 0, {kNaN, kNaN, 7}), 1) << "and at step 2 it reaches both rungs with 7";
  EXPECT_EQ(pruned_at(pruner, 1, {0, 8}), 1);
  EXPECT_EQ(pruned_at(pruner, 2, {0, 7, 7}), std::nullopt);
}

TEST(SuccessiveHalving, RungsHoldTheValuesOfTheirChecks) {
  Pruning pruner = pruning("SuccessiveHalvingPruner(1, 2)");
  pruner.begin(0);
  for (const std::int64_t step : {0, 2, 3, 4}) (void)pruner.report(0, step, 10.0 + static_cast<double>(step));
  EXPECT_THAT(pruner.rungs(0), ::testing::ElementsAre(12, 12, 14)) << "step 2 is past the rungs at 1 and 2";
  EXPECT_TRUE(pruner.rungs(7).empty());
}

TEST(SuccessiveHalving, NobodyIsPromotedDuringBootstrap) {
  Pruning pruner = pruning("SuccessiveHalvingPruner(1, bootstrap_count=2)");
  EXPECT_EQ(pruned_at(pruner, 0, {0, 5}), 1);
  EXPECT_EQ(pruned_at(pruner, 1, {0, 4}), 1);
  EXPECT_EQ(pruned_at(pruner, 2, {0, 3}), std::nullopt);
}

TEST(SuccessiveHalving, ATrialThatGoesOnRegardlessIsAskedAgainAtTheNextRung) {
  Pruning pruner = pruning("SuccessiveHalvingPruner(1, 2)");
  complete(pruner, 0, {0, 1, 1, 1, 1});
  pruner.begin(1);
  std::vector<bool> decisions;
  for (std::int64_t step = 1; step <= 4; ++step) decisions.push_back(pruner.report(1, step, 2));
  EXPECT_EQ(decisions, (std::vector{true, true, false, true}));
}

TEST(SuccessiveHalving, AutoIsFixedByTheFirstThatCompletes) {
  Pruning pruner = pruning("SuccessiveHalvingPruner()");
  pruner.begin(0);
  EXPECT_FALSE(pruner.report(0, 300, kNaN)) << "nothing completed: no resource, no rung";
  pruner.end(0, TrialState::kComplete);
  pruner.begin(1);
  EXPECT_FALSE(pruner.report(1, 2, kNaN));
  EXPECT_TRUE(pruner.report(1, 3, kNaN)) << "300 / 100";
  pruner.begin(2);
  EXPECT_FALSE(pruner.report(2, 9000, 1));
  pruner.end(2, TrialState::kComplete);
  pruner.begin(3);
  EXPECT_TRUE(pruner.report(3, 3, kNaN)) << "still 3";
}

TEST(SuccessiveHalving, RungsBeyondAllNumbersAreNeverReached) {
  for (const char* text : {"SuccessiveHalvingPruner(1, 2, 9223372036854775807)",
                           "SuccessiveHalvingPruner(9223372036854775807, 9223372036854775807)",
                           "HyperbandPruner(1, 9223372036854775807, 9223372036854775807)"}) {
    Pruning pruner = pruning(text);
    EXPECT_FALSE(pruner.report(0, kLate, 1)) << text;
  }
}

TEST(Hyperband, BracketsAreThoseOfOptuna) {
  const auto brackets = [](std::string_view text, const std::string& name) {
    std::vector<int> all;
    for (std::int64_t trial = 0; trial < 16; ++trial)
      all.push_back(hyperband_bracket(parse_pruner(text).value(), name, trial, 0).value());
    return all;
  };
  // As python3-optuna 3.1 gives them.
  EXPECT_EQ(brackets("HyperbandPruner(1, 60, 6)", "study"),
            (std::vector{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(brackets("HyperbandPruner(1, 81, 3)", "étude 研究"),
            (std::vector{0, 0, 3, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 2}));
  // The logarithm of 1000 to base 10 is 2.9999999999999996 in floating point: three brackets, not four.
  EXPECT_EQ(brackets("HyperbandPruner(1, 1000, 10)", "s"),
            (std::vector{0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(Hyperband, WithoutAMaximumThereIsNoBracket) {
  const auto settings = parse_pruner("hyperband").value();
  EXPECT_EQ(hyperband_bracket(settings, "s", 0, 0), std::nullopt);
  EXPECT_TRUE(hyperband_bracket(settings, "s", 0, 60).has_value());
}

TEST(Hyperband, AMaximumBelowTheMinimumNeverPrunesEvenWhereAutoFoundIt) {
  Pruning pruner = pruning("HyperbandPruner(min_resource=4)");
  complete(pruner, 0, {0, 0});
  EXPECT_EQ(pruned_at(pruner, 1, std::vector<double>(50, kNaN)), std::nullopt);
  pruner.end(1, TrialState::kComplete);  // 50 steps now; too late
  EXPECT_EQ(pruned_at(pruner, 2, std::vector<double>(50, kNaN)), std::nullopt);
}

TEST(Pruning, AChangeKeepsWhatStandsAtRungs) {
  Pruning pruner = pruning("SuccessiveHalvingPruner(1, 2)");
  for (std::int64_t trial = 0; trial < 3; ++trial)
    (void)pruned_at(pruner, trial, {0, 1.0 + static_cast<double>(trial)});
  pruner.change(parse_pruner("SuccessiveHalvingPruner(2, 4)").value());
  EXPECT_EQ(pruned_at(pruner, 3, {0, 9, 2}), 2) << "its rung 0 is at step 2 now, against values of step 1";
  EXPECT_EQ(pruned_at(pruner, 4, {0, 9, 1}), std::nullopt);
}

TEST(Pruning, AChangeToTheMedianSeesTrialsThatCompletedBefore) {
  Pruning pruner = pruning("none");
  for (std::int64_t trial = 0; trial < 5; ++trial) complete(pruner, trial, {1});
  pruner.change(parse_pruner("median").value());
  EXPECT_EQ(pruned_at(pruner, 5, {2}), 0);
}

TEST(Patient, PrunesAtReportPatiencePlusTwoAtTheEarliest) {
  for (std::int64_t patience = 0; patience < 4; ++patience) {
    Pruning pruner = pruning("PatientPruner(None, " + std::to_string(patience) + ")");
    EXPECT_EQ(pruned_at(pruner, 0, {1, 2, 3, 4, 5, 6, 7}), patience + 1);
  }
}

TEST(Patient, EqualIsNotWorseAndNumbersOutrankNaN) {
  Pruning pruner = pruning("PatientPruner(None, 1)", Direction::kMaximize);
  EXPECT_EQ(pruned_at(pruner, 0, {1, 1, 1, 1}), std::nullopt);
  EXPECT_EQ(pruned_at(pruner, 1, {1, kNaN, kNaN, kNaN}), std::nullopt) << "nothing to compare with";
  EXPECT_EQ(pruned_at(pruner, 2, {kNaN, 1, kNaN, 0, 0.5}), 3) << "the NaN before hides nothing";
}

TEST(Patient, OnlyTrialsThatStagnateReachRungs) {
  Pruning pruner = pruning("PatientPruner(SuccessiveHalvingPruner(1), 0)");
  EXPECT_EQ(pruned_at(pruner, 0, {9, 8, 7, 6}), std::nullopt);
  EXPECT_EQ(pruned_at(pruner, 1, {98, 99}), std::nullopt) << "the first at the rung, though the other is better";
}

TEST(Percentile, NeedsTrialsThatCompleted) {
  Pruning pruner = pruning("MedianPruner(n_startup_trials=0)");
  EXPECT_EQ(pruned_at(pruner, 0, {kNaN}), std::nullopt);
  pruner.end(0, TrialState::kPruned);
  complete(pruner, 1, {});
  EXPECT_EQ(pruned_at(pruner, 2, {9}), std::nullopt) << "nobody that completed reported at step 0";
  EXPECT_EQ(pruned_at(pruner, 3, {kNaN}), 0) << "only NaN so far";
}

TEST(Percentile, TheBestSoFarCountsNotTheLast) {
  Pruning pruner = pruning("MedianPruner(1)");
  complete(pruner, 0, {5, 5, 5});
  EXPECT_EQ(pruned_at(pruner, 1, {4, 100, 100}), std::nullopt);
  EXPECT_EQ(pruned_at(pruner, 2, {6, 5, 100}), 0);
}

TEST(Percentile, InterpolatesAndDrawsNoBarBetweenInfinities) {
  Pruning pruner = pruning("PercentilePruner(25, 1)");
  complete(pruner, 0, {1});
  complete(pruner, 1, {2});
  EXPECT_EQ(pruned_at(pruner, 2, {1.25}), std::nullopt);
  EXPECT_EQ(pruned_at(pruner, 3, {1.26}), 0);
  complete(pruner, 4, {kInfinity});  // 1, 2 and infinity: the quarter is 1.5
  EXPECT_EQ(pruned_at(pruner, 5, {1.51}), 0);
  complete(pruner, 6, {-kInfinity});
  complete(pruner, 7, {-kInfinity});  // two of five: the quarter lies between infinities
  EXPECT_EQ(pruned_at(pruner, 8, {99}), std::nullopt);
}

TEST(Interval, ChecksAtTheFirstReportOfEachInterval) {
  Pruning pruner = pruning("ThresholdPruner(upper=0, n_warmup_steps=2, interval_steps=3)");
  std::vector<std::int64_t> checked;
  for (const std::int64_t step : {0, 1, 2, 3, 4, 6, 7, 8, 20, 21})
    if (pruner.report(0, step, 1)) checked.push_back(step);
  EXPECT_EQ(checked, (std::vector<std::int64_t>{2, 6, 8, 20}));
}

TEST(Threshold, BoundsThemselvesAreWithin) {
  Pruning pruner = pruning("ThresholdPruner(lower=-1, upper=1)");
  EXPECT_EQ(pruned_at(pruner, 0, {-1, 1, 0}), std::nullopt);
  EXPECT_EQ(pruned_at(pruner, 1, {0, -kInfinity}), 1);
  EXPECT_EQ(pruned_at(pruner, 2, {kNaN}), 0);
}

}  // namespace
}  // namespace headroom::tune
