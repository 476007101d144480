// SPDX-License-Identifier: Apache-2.0
#include "diagnose/health.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "diagnose/explain.h"

namespace headroom {
namespace {

using testing::RecordingBuilder;

Answer answer(const Explanation& e, std::string_view name) {
  for (const HealthCheck& check : e.health)
    if (check.check == name) {
      EXPECT_NE(check.evidence, "") << name;
      return check.good;
    }
  ADD_FAILURE() << "no check " << name;
  return Answer::kUnknown;
}

TEST(Health, AJobThatComputesToItsEndNeitherHangsNorRunsOutOfMemory) {
  RecordingBuilder recording(60);
  recording.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 60, 0.5).context(100, 0, 0, 60, 0.9);
  recording.meta().exit_code = 0;
  const Explanation e = explain(recording.build());
  EXPECT_EQ(answer(e, "runs_on_gpu"), Answer::kYes);
  EXPECT_EQ(answer(e, "no_hang"), Answer::kYes);
  EXPECT_EQ(answer(e, "no_out_of_memory"), Answer::kYes);
  EXPECT_EQ(answer(e, "mixed_precision"), Answer::kUnknown) << "nothing says";
}

TEST(Health, WhatMovesNoMoreHangs) {
  RecordingBuilder recording(600);
  recording.gpu(0, [](double t) { return t < 200 ? 0.9 : 0.0; })
      .process(100, 1, 0, 600, 0)
      .context(100, 0, 0, 600, 0.9);
  const Explanation e = explain(recording.build());
  ASSERT_GT(e.ledger.total(Account::kHung), 0);
  EXPECT_EQ(answer(e, "no_hang"), Answer::kNo);
  EXPECT_EQ(answer(e, "no_out_of_memory"), Answer::kUnknown);
}

TEST(Health, AttemptsThatRanOutOfMemoryAreCounted) {
  RecordingBuilder recording(60);
  recording.gpu(0, [](double) { return 0.9; }).queue(0, 1);
  recording.task("a", 100, {0}, 0, 20, 1, std::string(info(AttemptOutcome::kGpuOutOfMemory).name));
  recording.task("b", 101, {0}, 20, 60, 1);
  EXPECT_EQ(answer(explain(recording.build()), "no_out_of_memory"), Answer::kNo);
}

TEST(Health, MixedPrecisionIsWhatTheJobSaysWhereNoCounterDoes) {
  for (const auto& [value, expected] : {std::pair("bf16-mixed", Answer::kYes), std::pair("32-true", Answer::kNo),
                                        std::pair("float32", Answer::kNo), std::pair("auto", Answer::kUnknown)}) {
    RecordingBuilder recording(20);
    recording.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 20, 0.5).context(100, 0, 0, 20, 0.9);
    recording.sink().add_event(
        to_event(events::Parameter{.name = "precision", .value = value}, RecordingBuilder::at(2)));
    EXPECT_EQ(answer(explain(recording.build()), "mixed_precision"), expected) << value;
  }
}

}  // namespace
}  // namespace headroom
