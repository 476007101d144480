// SPDX-License-Identifier: Apache-2.0
#include "scheduler/packing.h"

#include <gtest/gtest.h>

#include "scheduler/learned.h"
#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using testing::kGib;

TEST(WorkRate, OneTaskAloneRunsAtItsSpeed) {
  EXPECT_NEAR(work_rate(std::vector{0.7}, 1.0), 1.0, 1e-9);
  EXPECT_EQ(work_rate({}, 1.0), 0.0);
}

TEST(WorkRate, IdleTasksAddUpAndBusyOnesDoNot) {
  EXPECT_GT(work_rate(std::vector(4, 0.05), 1.0), 3.8);
  EXPECT_LT(work_rate(std::vector(4, 0.95), 1.0), 1.1);
  EXPECT_GT(work_rate(std::vector(4, 0.95), 4.0), 3.5) << "kernels that run side by side";
}

TEST(WorkRate, MoreTasksNeverDoLess) {
  for (const double load : {0.1, 0.4, 0.8, 1.0}) {
    double last = 0;
    for (std::size_t n = 1; n <= 32; ++n) {
      const double rate = work_rate(std::vector(n, load), 1.0);
      EXPECT_GE(rate, last - 1e-6);
      EXPECT_LE(rate, 1.02 / load) << n << " tasks cannot use more than the device";
      last = rate;
    }
  }
}

PackObservation second(Nanos now, double load, int tasks, double work_per_predicted, double delivered) {
  return {.now = now,
          .seconds = 1,
          .work = work_per_predicted,
          .predicted = 1,
          .delivered = delivered,
          .load = load,
          .tasks = tasks,
          .by_steps = true};
}

TEST(Packer, LearnsThatKernelsRunSideBySide) {
  Packer packer;
  for (int s = 1; s <= 300; ++s) packer.observe(second(s * kSecond, 2.0, 4, 1.4, 1));
  EXPECT_GT(packer.parallelism(), 1.5);
  Packer as_predicted;
  for (int s = 1; s <= 300; ++s) as_predicted.observe(second(s * kSecond, 2.0, 4, 1.05, 1));
  EXPECT_EQ(as_predicted.parallelism(), 1.0) << "within the noise";
}

TEST(Packer, TakesBackWhatDeliversLessAndTriesAgainLater) {
  Packer packer;
  Nanos now = 0;
  for (int s = 0; s < 30; ++s) packer.observe(second(now += kSecond, 1.4, 3, 1, 0.9));
  EXPECT_FALSE(packer.max_load(now));
  for (int s = 0; s < 30; ++s) packer.observe(second(now += kSecond, 2.3, 5, 1, 0.5));
  ASSERT_TRUE(packer.max_load(now));
  EXPECT_LE(*packer.max_load(now), 1.5);
  EXPECT_FALSE(packer.admits(now, std::vector(3, 0.47), 0.47));
  for (int s = 0; s < 55; ++s) packer.observe(second(now += kSecond, 1.4, 3, 1, 0.9));
  EXPECT_TRUE(packer.max_load(now)) << "the hold begins when what was too much has ended";
  for (int s = 0; s < 20; ++s) packer.observe(second(now += kSecond, 1.4, 3, 1, 0.9));
  EXPECT_FALSE(packer.max_load(now));
}

TEST(Packer, HoldsLongerEachTime) {
  Packer packer;
  Nanos now = 0;
  std::vector<int> holds;
  for (int round = 0; round < 3; ++round) {
    for (int s = 0; s < 60; ++s) packer.observe(second(now += kSecond, 1.4, 3, 1, 0.9));
    while (!packer.max_load(now)) packer.observe(second(now += kSecond, 2.3, 5, 1, 0.4));
    int held = 0;
    for (; packer.max_load(now); ++held) packer.observe(second(now += kSecond, 1.4, 3, 1, 0.9));
    holds.push_back(held);
  }
  EXPECT_GT(holds[1], holds[0] * 3 / 2);
  EXPECT_GT(holds[2], holds[1] * 3 / 2);
}

TEST(Packer, UnderSpaceSharingOneTaskAtATimeIsAdded) {
  Packer packer(5 * kSecond, true);
  const std::vector three(3, 0.45), four(4, 0.45);
  EXPECT_TRUE(packer.admits(0, std::vector(2, 0.45), 0.45)) << "up to the free load at once";
  EXPECT_FALSE(packer.admits(0, three, 0.45));
  Nanos now = 0;
  for (int s = 0; s < 20; ++s) packer.observe(second(now += kSecond, 1.35, 3, 1, 1));
  EXPECT_TRUE(packer.admits(now, three, 0.45));
  EXPECT_FALSE(packer.admits(now, four, 0.45)) << "the fourth was not seen yet";
}

TEST(Packer, UnderSpaceSharingWhatWasMeasuredDecidesTheNextStep) {
  for (const double rate_of_four : {1.25, 1.0}) {
    Packer packer(5 * kSecond, true);
    Nanos now = 0;
    for (int s = 0; s < 25; ++s) packer.observe(second(now += kSecond, 1.35, 3, 1, 1));
    for (int s = 0; s < 25; ++s) packer.observe(second(now += kSecond, 1.8, 4, 1, rate_of_four));
    EXPECT_EQ(packer.admits(now, std::vector(4, 0.45), 0.45), rate_of_four > 1.1);
    // The one that made no difference may come back: that little is noise.
    EXPECT_TRUE(packer.admits(now, std::vector(3, 0.45), 0.45));
  }
}

TEST(Packer, UnderSpaceSharingWhatWouldBeFasterOneAfterTheOtherIsTakenBack) {
  for (const bool space_sharing : {true, false}) {
    Packer packer(5 * kSecond, space_sharing);
    Nanos now = 0;
    for (int s = 0; s < 40; ++s) packer.observe(second(now += kSecond, 2.3, 5, 0.6, 1));
    EXPECT_EQ(packer.max_load(now).has_value(), space_sharing) << "no lower load was ever seen";
  }
}

TEST(Packer, TurnsAreCountedWhileTasksWait) {
  for (const bool queued : {true, false}) {
    Packer packer;
    Nanos now = 0;
    for (int s = 0; s < 1200; ++s) {
      PackObservation seen = second(now += kSecond, 4.8, 12, s % 100 < 25 ? 1.4 : 0.7, 1);
      seen.queued = queued;
      packer.observe(seen);
    }
    EXPECT_EQ(packer.direction_changes() > 0, queued) << packer.direction_changes();
  }
}

TEST(Memory, TheMarginShrinksAsMoreTasksAgree) {
  GroupStats group;
  EXPECT_FALSE(group.memory_known());
  EXPECT_EQ(group.expected_bytes(80 * kGib), 20 * kGib) << "a quarter of the GPU";
  group.finished(60, 10 * kGib);
  const auto first = group.expected_bytes(80 * kGib);
  for (int i = 0; i < 40; ++i) group.finished(60, 10 * kGib);
  const auto many = group.expected_bytes(80 * kGib);
  EXPECT_NEAR(static_cast<double>(first), 11.5 * kGib, 1e6);
  EXPECT_NEAR(static_cast<double>(many), 10.3 * kGib, 1e6);
}

TEST(Memory, AnOomCountsUntilThreeHaveFinished) {
  GroupStats group;
  for (int i = 0; i < 40; ++i) group.finished(60, 10 * kGib);
  const auto before = group.expected_bytes(80 * kGib);
  group.ran_out(10 * kGib);
  EXPECT_GT(group.expected_bytes(80 * kGib), before * 5 / 4);
  for (int i = 0; i < 3; ++i) group.finished(60, 10 * kGib);
  EXPECT_LE(group.expected_bytes(80 * kGib), before);
}

TEST(Memory, TasksTooShortToBeSeenAreBelievedAfterSome) {
  GroupStats group;
  for (int i = 0; i < 3; ++i) group.finished(0.2, std::nullopt);
  EXPECT_TRUE(group.memory_known());
}

TEST(Memory, APlateauNeedsTimeWithoutGrowth) {
  RunningMemory task;
  EXPECT_FALSE(note_memory(task, 2 * kGib, kSecond));
  EXPECT_FALSE(note_memory(task, 3 * kGib, 4 * kSecond));
  EXPECT_FALSE(note_memory(task, 3 * kGib, 8 * kSecond));
  EXPECT_TRUE(note_memory(task, 3 * kGib, 9 * kSecond));
  EXPECT_FALSE(note_memory(task, 4 * kGib, 40 * kSecond));
  EXPECT_FALSE(note_memory(task, 4 * kGib, 48 * kSecond)) << "a quarter of its age";
}

TEST(Memory, ManySmallStepsAreNoPlateau) {
  RunningMemory task;
  for (int s = 1; s < 60; ++s)
    EXPECT_FALSE(note_memory(task, 4 * kGib + s * kGib / 20, s * kSecond)) << s;  // about 1 % a second
}

TEST(Memory, AnEarlierBatchDoesNotTellHowLongTasksTakeInThisOnesCompany) {
  GroupStats group;
  group.recall(50, 20 * kGib);
  group.recall_speed({}, {}, {}, 100.0, {});
  RunningMemory task{.reserved_bytes = 21 * kGib};
  note_memory(task, 8 * kGib, 10 * kSecond);
  EXPECT_GT(counted_bytes(task, group, 80 * kGib, 90 * kSecond), 20 * kGib);
}

TEST(Memory, LateInItsLifeATaskCountsForWhatItShows) {
  GroupStats group;
  for (int i = 0; i < 5; ++i) group.finished(100, 20 * kGib);
  RunningMemory task{.reserved_bytes = 21 * kGib};
  note_memory(task, 10 * kGib, 10 * kSecond);
  EXPECT_GT(counted_bytes(task, group, 80 * kGib, 20 * kSecond), 20 * kGib);
  EXPECT_LT(counted_bytes(task, group, 80 * kGib, 70 * kSecond), 11 * kGib);
  task.victim = true;
  EXPECT_GT(counted_bytes(task, group, 80 * kGib, 70 * kSecond), 20 * kGib) << "not one that ran out before";
}

TEST(Speeds, CompanyCorrectsOnlyInTheDirectionItCannotFake) {
  GroupStats group;
  for (int i = 0; i < 10; ++i) group.see({.seconds = 5, .alone = true, .gpu_util_ratio = 0.6, .cores = 1.0});
  for (int i = 0; i < 200; ++i) group.see({.seconds = 5, .alone = false, .gpu_util_ratio = 0.2, .cores = 0.4});
  EXPECT_NEAR(group.util(), 0.6, 0.01);
  EXPECT_NEAR(group.cores(), 1.0, 0.01);
  for (int i = 0; i < 200; ++i) group.see({.seconds = 5, .alone = false, .gpu_util_ratio = 0.8});
  EXPECT_NEAR(group.util(), 0.8, 0.01);
}

TEST(Speeds, StartUpLowersTheLoadOnceATaskHasFinished) {
  GroupStats group;
  group.see({.seconds = 30, .in_startup = true});
  group.see({.seconds = 30, .alone = true, .gpu_util_ratio = 0.8});
  EXPECT_NEAR(group.load(), 0.8, 1e-9);
  group.lived(30, 60);
  group.finished(60, kGib);
  EXPECT_NEAR(group.load(), 0.4, 1e-9);
  // Many have just begun: that says nothing of how much of a life its start-up is.
  for (int i = 0; i < 20; ++i) group.see({.seconds = 10, .in_startup = true});
  EXPECT_NEAR(group.load(), 0.4, 1e-9);
}

TEST(Speeds, GlimpsesAreWeighedAgainstTheGuessUntilMoreIsKnown) {
  GroupStats group;
  group.finished(0.4, kGib);
  group.glimpsed(0.1, 0.1);
  EXPECT_NEAR(group.util(), (0.1 * 0.1 + kUnknownLoad * 0.4) / 0.5, 1e-9);
  for (int i = 0; i < 99; ++i) group.glimpsed(0.1, 0.1);
  EXPECT_NEAR(group.util(), 0.1, 0.03);
  group.see({.seconds = 1, .alone = true, .gpu_util_ratio = 0.3});
  group.glimpsed(0.1, 0.1);
  EXPECT_NEAR(group.util(), 0.3, 1e-9) << "a task alone tells more";
}

TEST(Speeds, ABriefTaskNeedsACoreForItsStartUpAndLittleAfterIt) {
  GroupStats group;
  group.lived(0.5, 1);
  group.finished(1, kGib);
  group.used_cpu(0.4, 1, 0.5, true);
  EXPECT_NEAR(group.cores_of(true, 0.2), 0.8, 1e-9);
  EXPECT_NEAR(group.cores_of(true, 0.6), 0, 1e-9) << "past it, though no look has told yet";
  EXPECT_NEAR(group.most_cores(), 0.8, 1e-9);
}

TEST(Memory, OneThatStandsStillForThreeLooksAtItsWorkShowsHowItBegins) {
  RunningMemory task;
  for (int look = 0; look < 4; ++look) (void)note_memory(task, kGib, look * kSecond / 2);
  EXPECT_EQ(task.still_looks, 3);
  (void)note_memory(task, kGib + kGib / 10, 2 * kSecond);
  EXPECT_EQ(task.still_looks, 0);
  GroupStats group;
  EXPECT_FALSE(group.beginning_known());
  group.stood_still();
  EXPECT_TRUE(group.beginning_known());
  EXPECT_EQ(group.expected_bytes(80 * kGib), 20 * kGib) << "which is not what it will need";
}

}  // namespace
}  // namespace headroom::scheduler
