// SPDX-License-Identifier: Apache-2.0
// Plans beside what a probe measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/plan.h"
#include "plan/testing.h"

namespace headroom {
namespace {

using planning::Change;
using planning::simulate;
using planning::StepModel;
using testing::explained;
using testing::loader_bound;
using testing::option;
using testing::readings;
using testing::RecordingBuilder;

ProbeReport probe(std::string parameter, ProbedTime now_over_best) {
  ProbeReport report{.parameter = std::move(parameter), .complete = 3};
  report.values = {{.value = "2", .level = ProbedTime{0.2, 0.19, 0.21}, .to_best = now_over_best},
                   {.value = "4", .level = ProbedTime{0.15, 0.14, 0.16}}};
  report.best = 1;
  return report;
}

TEST(Plan, WhatAProbeMeasuredOfWorkersIsBothEnds) {
  const Explanation e = explained(loader_bound(0.3, 12, 2));
  PlanRequest request;
  request.workers = 4;
  const Gain bound = option(plan(e, request), "more_loader_workers")->gain;
  request.probe = probe("num_workers", {1.3, 1.25, 1.35});
  const Gain measured = option(plan(e, request), "more_loader_workers")->gain;
  EXPECT_NEAR(measured.low, 1.25, 0.02);
  EXPECT_NEAR(measured.high, 1.35, 0.02);
  EXPECT_THAT(measured.words(), ::testing::HasSubstr("measured num_workers 2 and 4 in turn, 3 runs each"));
  request.probe = probe("num_workers", {30, 20, 40});
  EXPECT_NEAR(option(plan(e, request), "more_loader_workers")->gain.high, bound.high, 1e-6)
      << "no more than the recording allows";
  request.probe = probe("threads", {1.3, 1.25, 1.35});
  EXPECT_EQ(option(plan(e, request), "more_loader_workers")->gain, bound) << "of something else";
}

// Nobody saw a loader, and the one free core carries one worker: what four gave is known all the same.
TEST(Plan, AProbeOfWorkersIsBelievedWhereNothingWasSeenToWaitForThem) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.5; }).machine(2, 1.0);
  recording.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100, 0.5);
  recording.stacks(100, 0, 100, {"<module> (/u/train.py:1)", "forward (/u/torch/nn/modules/module.py:9)"});
  PlanRequest request;
  request.workers = 4;
  request.probe = probe("num_workers", {1.6, 1.55, 1.65});
  request.probe->values[0].value = "0";
  const Plan p = plan(explained(recording.build()), request);
  const Option* more = option(p, "start_loader_workers");
  ASSERT_NE(more, nullptr) << p.options.front().id << p.options.size();
  EXPECT_THAT(more->apply, ::testing::HasSubstr("num_workers=4"));
  EXPECT_NEAR(more->gain.low, 1.55, 0.05);
  EXPECT_NEAR(more->gain.high, 1.65, 0.05);
}

// Two workers that share a core with another program have one each when that is gone.
TEST(Plan, LessLoadOnTheCoresGivesThemToTheLoader) {
  StepModel model{.seconds = 100, .least = 20, .kernels = 20};
  model.loading = 80;
  model.workers = 2;
  model.cores = 1;
  model.parts = {{1, 60, false, true}, {0, 40, false, false}};
  model.findings = {{60, 60, false, true}};
  model.input = 60;
  const Change gone{.finding = 0, .frees = true};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{gone}), 40) << "80 CPU-seconds on two cores";
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 0}}), 80) << "while the other program runs";
}

TEST(Plan, WhatAProbeMeasuredOfBatchSizesIsBothEnds) {
  const Explanation e = explained(readings(100, [](double) { return 0.11; }));
  PlanRequest request;
  request.batch = {2, 4};
  request.probe = probe("batch_size", {1.5, 1.4, 1.6});
  const Gain measured = option(plan(e, request), "larger_batch")->gain;
  EXPECT_NEAR(measured.low, 1.4, 0.02);
  EXPECT_NEAR(measured.high, 1.6, 0.02);
}

}  // namespace
}  // namespace headroom
