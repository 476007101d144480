// SPDX-License-Identifier: Apache-2.0
#include "analyze/loop_roles.h"

#include <gtest/gtest.h>

#include "analyze/analysis.h"
#include "analyze/testing.h"

namespace headroom {
namespace {

using testing::RecordingBuilder;

const std::vector<std::string> kWaits{"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"};
const std::vector<std::string> kOwn{"train (/u/train.py:1)", "tidy (/u/train.py:9)"};

// Of a job of 60 s the process is at `frames` in the last `length` seconds of each `period`, and else waits for
// kernels.
struct Job {
  double period = 1, length = 0.3;
  std::vector<std::string> frames = kOwn;
  std::vector<std::pair<double, std::string>> says;
  bool another_thread = false;
  double until = 60;
};

LoopRole role(const Job& job) {
  const auto at_it = [&](double t) {
    const double in = t - job.period * static_cast<double>(static_cast<int>(t / job.period));
    return in >= job.period - job.length && t < job.until;
  };
  RecordingBuilder builder(60, 0.1);
  builder.gpu(0, [&](double t) { return at_it(t - 0.05) ? 0.0 : 1.0; });
  builder.process(7, 1, 0, 60, 0.5).context(7, 0, 0, 60);
  if (!job.says.empty()) builder.marks(7, "output", job.says);
  for (double t = 0; t < 60; t += 0.1) builder.stacks(7, t, t + 0.1, at_it(t + 0.05) ? job.frames : kWaits);
  if (job.another_thread) builder.stacks(7, 0, 60, {"watch (/u/train.py:30)"}, 8);
  const auto roles = analyze(builder.build()).code.roles;
  const auto found = roles.find("tidy (train.py)");
  return found == roles.end() ? LoopRole{} : found->second;
}

TEST(LoopRoles, WhatComesWithTheStepsIsSeenThroughout) {
  EXPECT_EQ(role({}).recurs, Recurs::kThroughout);
  EXPECT_EQ(role({.period = 0.4, .length = 0.2}).recurs, Recurs::kThroughout);
}

TEST(LoopRoles, WhatComesNowAndThenIsSeenAtSomeTimesOnly) {
  EXPECT_EQ(role({.period = 10, .length = 2}).recurs, Recurs::kAtTimes);
  EXPECT_EQ(role({.period = 30, .length = 2, .until = 40}).recurs, Recurs::kOnce);
  EXPECT_EQ(role({.period = 30, .length = 25}).recurs, Recurs::kUnknown) << "most of the time, in one long stay";
}

// A look in twelve finds it, as by chance: once in 0.6 s on average, and often not for more than a second.
TEST(LoopRoles, ASmallPartOfEachStepIsNotSeenAtSomeTimesOnly) {
  EXPECT_EQ(role({.period = 1.7, .length = 0.1}).recurs, Recurs::kUnknown);
}

TEST(LoopRoles, WhatLiesBetweenTheEpochsThatTheJobNumbersIsToldAsThat) {
  Job job{.period = 10, .length = 2};
  for (int epoch = 0; epoch < 6; ++epoch) job.says.emplace_back(10 * epoch, "epoch " + std::to_string(epoch + 1));
  EXPECT_EQ(role(job).recurs, Recurs::kEachEpoch);
  for (auto& [when, name] : job.says) when = std::min(59.0, when + 4);
  EXPECT_EQ(role(job).recurs, Recurs::kAtTimes) << "in the middle of each";
}

TEST(LoopRoles, TheNameOfACallerTellsThePart) {
  const LoopRole step =
      role({.frames = {"main (/u/train.py:1)", "Net.train_step (/u/train.py:4)", "tidy (/u/train.py:9)"}});
  EXPECT_EQ(step.part, LoopPart::kStep);
  EXPECT_EQ(step.caller, "Net.train_step (train.py)");
  EXPECT_EQ(role({.frames = {"Run.on_epoch_end (/u/train.py:4)", "tidy (/u/train.py:9)"}}).part, LoopPart::kEpochEnd);
  EXPECT_EQ(role({.frames = {"Scheduler.step (/u/train.py:4)", "tidy (/u/train.py:9)"}}).part, LoopPart::kUnknown);
}

TEST(LoopRoles, WhereALookMayBeAtAnotherThreadNothingIsTold) { EXPECT_FALSE(role({.another_thread = true}).known()); }

}  // namespace
}  // namespace headroom
