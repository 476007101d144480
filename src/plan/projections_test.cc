// SPDX-License-Identifier: Apache-2.0
// What a plan says of work that is still to come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plan/plan.h"
#include "plan/projections.h"
#include "plan/testing.h"

namespace headroom {
namespace {

using testing::explained;
using testing::readings;
using testing::RecordingBuilder;

TEST(Plan, ASweepIsProjectedAsARange) {
  const Recording built = readings(1300, [](double t) { return std::fmod(t, 420) <= 300 ? 1.0 : 0.0; });
  PlanRequest request;
  request.trials = 20;
  request.epochs = 10;
  request.epoch = 420 * kSecond;
  const Plan p = plan(explained(built), request);
  ASSERT_FALSE(p.projections.empty());
  const Projection& sweep = p.projections.back();
  EXPECT_NEAR(sweep.high_seconds / 3600, 23.33, 0.01);
  EXPECT_GE(sweep.low_seconds / 3600, 23.33 * 300 / 420 - 0.1);
  EXPECT_LT(sweep.low_seconds, sweep.high_seconds);
}

// Asked about workers that gain nothing, a plan that gains by other means projects both.
TEST(Plan, WhatWasAskedAboutIsProjectedBesideThePlan) {
  const Explanation e = explained(readings(1300, [](double t) { return std::fmod(t, 420) <= 300 ? 1.0 : 0.0; }));
  const Gain none{}, some{.low = 1, .high = 1.3};
  const auto both = planning::projections(e, {.epoch = 420 * kSecond}, {none, some});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].what, "an epoch of 7:00, with nothing but what was asked about");
  EXPECT_EQ(both[0].low_seconds, 420);
  EXPECT_EQ(both[1].what, "an epoch of 7:00, with all options");
  EXPECT_NEAR(both[1].low_seconds, 420 / 1.3, 1e-6);
  const auto alike = planning::projections(e, {.epoch = 420 * kSecond}, {some, some});
  ASSERT_EQ(alike.size(), 1U);
  EXPECT_EQ(alike[0].what, "an epoch of 7:00, with all options");
}

TEST(Plan, WhatIsLeftIsWhatFasterKernelsAreProjectedOn) {
  Explanation e = explained(readings(1300, [](double) { return 1.0; }));
  e.pipeline.emplace();
  e.pipeline->kernels = e.ledger.span() / 4;
  const Plan p = plan(e, {.left = 1000 * kSecond});
  ASSERT_GE(p.projections.size(), 2U);
  EXPECT_THAT(p.projections[0].what, ::testing::StartsWith("the remaining 16:40"));
  EXPECT_NEAR(p.projections[0].low_seconds, 875, 0.1);
  EXPECT_NEAR(p.projections[1].low_seconds, 750, 0.1);
  for (const auto at : {0U, 1U})
    EXPECT_NEAR(p.projections[at].high_seconds, 1000, 0.1) << "what goes on beside the kernels may set the pace";
  for (const Projection& one : p.projections) EXPECT_THAT(one.what, ::testing::Not(::testing::HasSubstr("GPU part")));
}

TEST(Plan, OfOneReadingItSaysWhatWouldBeEnough) {
  const Plan p = plan(explained(readings(1, [](double) { return 0.0; })));
  EXPECT_TRUE(p.options.empty());
  EXPECT_THAT(p.nothing,
              ::testing::HasSubstr("to plan from it: log for minutes, once a second, or record the job itself"));
}

TEST(Plan, BesideAnIdleGpuItSaysWhatBothMakeOfTheGpuPart) {
  RecordingBuilder recording(90);
  recording.gpu(0, [](double t) { return t < 30 ? 0.5 : 0.0; }).gpu(1, [](double) { return 0.0; });
  recording.process(100, 1, 0, 90, 0.1).context(100, 0, 0, 90, 0.2);
  Explanation e = explained(recording.build());
  ASSERT_EQ(e.ledger.devices.size(), 2U);
  const Nanos span = e.ledger.span();
  e.pipeline = Pipeline{.gpu_part = span / 3, .kernels = span / 6, .rest = span - span / 3};
  const Plan p = plan(e, {.left = 1080 * kSecond});
  ASSERT_GE(p.projections.size(), 4U);
  EXPECT_EQ(p.projections[2].what, "the remaining 18:00 with its GPU part split evenly over 2 GPUs");
  EXPECT_NEAR(p.projections[2].low_seconds, 900, 0.1);
  EXPECT_EQ(p.projections[2].low_seconds, p.projections[2].high_seconds);
  EXPECT_EQ(p.projections[3].what, "the remaining 18:00 however fast its GPU part becomes");
  EXPECT_NEAR(p.projections[3].low_seconds, 720, 0.1);
  EXPECT_NEAR(p.projections[3].high_seconds, 1080, 0.1);
}

}  // namespace
}  // namespace headroom
