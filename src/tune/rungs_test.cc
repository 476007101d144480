// SPDX-License-Identifier: Apache-2.0
#include "tune/rungs.h"

#include <gtest/gtest.h>

#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

// Three trials reach rung 0 at step 2; one of them, and one that still runs, go on.
Study halved() {
  testing::StudyBuilder builder;
  for (const auto& [state, reports] :
       {std::pair(TrialState::kPruned, 2), std::pair(TrialState::kComplete, 8), std::pair(TrialState::kRunning, 3)}) {
    Trial& trial = builder.add(state, 0, state == TrialState::kRunning ? -1 : 10, reports);
    trial.rungs = {{0, 0.5}};
    if (reports == 8) trial.rungs.emplace_back(1, 0.25);
  }
  return builder.study;
}

TEST(Rungs, TellTheirStepByTheValueThatTheyKeep) {
  const auto rungs = rung_facts(halved(), std::nullopt);
  ASSERT_EQ(rungs.size(), 2u);
  EXPECT_EQ(rungs[0], (RungFacts{.rung = 0, .step = 2, .reached = 3, .promoted = 2}));
  EXPECT_EQ(rungs[1], (RungFacts{.rung = 1, .step = 4, .reached = 1, .promoted = 1}));
}

TEST(Rungs, HaveTheStepThatTheSettingsSay) {
  const PrunerSettings settings{
      .kind = PrunerKind::kSuccessiveHalving, .min_resource = 1, .reduction_factor = 4, .min_early_stopping_rate = 1};
  const auto rungs = rung_facts(halved(), settings);
  ASSERT_EQ(rungs.size(), 2u);
  EXPECT_EQ(rungs[0].step, 4);
  EXPECT_EQ(rungs[1].step, 16);
}

TEST(Rungs, WhoseTrialsDisagreeHaveNoStep) {
  Study study = halved();
  study.trials[0].rungs = {{0, 7.0}};
  study.trials[1].rungs = {{0, 0.25}};
  EXPECT_EQ(rung_facts(study, std::nullopt)[0].step, 0);
}

}  // namespace
}  // namespace headroom::tune
