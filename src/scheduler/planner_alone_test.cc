// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <functional>
#include <map>

#include "scheduler/testing/builders.h"

namespace headroom::scheduler {
namespace {

using testing::Batch;
using testing::kGib;
using ::testing::SizeIs;
using testing::task;

// A second in which every running attempt does so many steps.
void step(Batch& batch, double steps, std::map<TaskIndex, double>& done) {
  Readings all;
  for (const auto& [task, start] : batch.running)
    all.attempts.push_back({.attempt = start.attempt,
                            .gpu_bytes = 10 * kGib,
                            .gpu_util_ratio = 0.3,
                            .cores = 0.5,
                            .steps = done[task] += steps});
  batch.wait(kSecond).tell(all);
}

TEST(Alone, TheRateOfOnePerGpuRestsOnStepsAtTheirSpeedAlone) {
  Batch batch(1);
  batch.add(3, task()).begin();
  std::map<TaskIndex, double> done;
  for (int second = 0; second < 12; ++second) step(batch, 10, done);  // the others join the first, after 4 s and 6 s
  ASSERT_THAT(batch.running_tasks(), SizeIs(3));
  for (int second = 0; second < 10; ++second) step(batch, 5, done);  // at half its speed
  for (TaskIndex i = 0; i < 3; ++i) batch.end(i);
  const auto rates = batch.planner().alone_rates();
  ASSERT_THAT(rates, SizeIs(1));
  EXPECT_EQ(rates[0].gpu_model, "Model");
  EXPECT_EQ(rates[0].alone_attempts, 1);
  EXPECT_EQ(rates[0].tasks, 3);
  EXPECT_EQ(rates[0].unmeasured_tasks, 0);
  EXPECT_NEAR(rates[0].alone_seconds, (12 + 5) + (8 + 5) + (6 + 5), 2);
  EXPECT_NEAR(rates[0].error_seconds / rates[0].alone_seconds, 0.1, 1e-9);
}

// A short task's readings tell little of how long it takes alone; the clock does of those that were.
TEST(Alone, WhatTheWholeLivesOfThoseThatWereAloneTookIsTold) {
  Batch batch(1);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 2;
  batch.add(1, task()).begin();
  AttemptEnded end{.attempt = batch.running.at(0).attempt};
  end.gpu_time = kSecond;
  batch.wait(2 * kSecond + kSecond / 2).tell(end);
  const auto alone = batch.planner().alone_rates();
  ASSERT_THAT(alone, SizeIs(1));
  EXPECT_EQ(alone[0].tasks, 1);
  EXPECT_NEAR(alone[0].alone_seconds, 2.5, 0.01);
  EXPECT_NEAR(alone[0].busy_ratio.value(), 0.4, 1e-9);
}

// Kernel time and CPU time beside others are no measure of what a task would have taken alone.
TEST(Alone, WhatIsReckonedFromReadingsMeasuresNothing) {
  Batch batch(1);
  batch.add(3, task()).begin();
  batch.learn(10 * kGib);
  ASSERT_THAT(batch.running_tasks(), SizeIs(3));
  for (int second = 0; second < 10; ++second) batch.wait(kSecond).read(10 * kGib, 0.15);
  for (TaskIndex i = 0; i < 3; ++i) batch.end(i);
  const auto rates = batch.planner().alone_rates();
  ASSERT_THAT(rates, SizeIs(1));
  EXPECT_EQ(rates[0].tasks, 0);
  EXPECT_EQ(rates[0].unmeasured_tasks, 3);
}

GroupStats finished(const std::vector<double>& alone, int beside_others) {
  GroupStats stats;
  for (const double seconds : alone) stats.finished(seconds, std::nullopt), stats.took_alone(seconds);
  for (int i = 0; i < beside_others; ++i) stats.finished(9, std::nullopt);
  return stats;
}

TEST(Alone, ThreeDoNotSpeakForOthersAndFourDoAsSurelyAsTheyAgree) {
  const GroupStats::Alone three = finished({2, 2, 2}, 8).all_alone();
  EXPECT_EQ(three.known, 3);
  EXPECT_EQ(three.assumed, 0);
  EXPECT_NEAR(three.error_seconds / three.seconds, 0.05, 1e-9) << "what two equal runs differ by";
  const GroupStats::Alone four = finished({2, 2, 2, 2}, 8).all_alone(), apart = finished({1, 3, 1, 3}, 8).all_alone();
  EXPECT_EQ(four.assumed, 8);
  EXPECT_DOUBLE_EQ(four.seconds, 24);
  EXPECT_DOUBLE_EQ(apart.seconds, 24);
  EXPECT_NEAR(four.error_seconds / four.seconds, 0.05 + 0.05 * 8 / 12, 1e-9);
  EXPECT_GT(apart.error_seconds, 6);
}

TEST(Alone, WhatWasNeverAloneIsNotTold) {
  Batch batch(1);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 2;
  batch.add(2, task()).begin();
  for (int second = 0; second < 20; ++second) batch.wait(kSecond).read(10 * kGib, 0.3);
  batch.end(0).end(1);
  const auto rates = batch.planner().alone_rates();
  ASSERT_THAT(rates, SizeIs(1));
  EXPECT_EQ(rates[0].tasks, 0);
  EXPECT_EQ(rates[0].unmeasured_tasks, 2);
  EXPECT_EQ(rates[0].alone_attempts, 0);
  EXPECT_FALSE(batch.planner().learned().at(0).duration) << "in company is not alone";
}

// Twelve tasks that say what memory they need, on one GPU; `seconds` of the first with readings each second.
std::size_t running_after(int seconds_of_first, const std::function<void(Batch&)>& then = {}) {
  Batch batch(1);
  batch.setup.measure_alone = true;
  batch.add(12, task().memory(kGib)).begin();
  EXPECT_THAT(batch.running, SizeIs(1)) << "nothing joins it";
  for (int second = 0; second < seconds_of_first; ++second) batch.wait(kSecond).read(kGib);
  if (then) then(batch);
  batch.tell(Tick{});
  return batch.running.size();
}

TEST(Alone, NothingIsPackedUntilATaskWasSeenAlone) {
  EXPECT_EQ(running_after(1), 1u);
  EXPECT_GT(running_after(6), 1u);
}

TEST(Alone, OfShortTasksTwoAreAlone) {
  EXPECT_EQ(running_after(0, [](Batch& batch) { batch.wait(kSecond).end(0); }), 1u);
  EXPECT_GT(running_after(0, [](Batch& batch) { batch.wait(kSecond).end(0).wait(kSecond).end(1); }), 1u);
}

TEST(Alone, WhoOnlyFailsKeepsNobodyWaiting) {
  EXPECT_GT(running_after(0,
                          [](Batch& batch) {
                            for (const TaskIndex failing : {0u, 1u})
                              batch.wait(kSecond).end(failing, AttemptOutcome::kFailed);
                          }),
            1u);
}

TEST(Alone, WhatTakesLongToBeginKeepsNobodyWaiting) {
  const auto starts_for = [](Nanos time) {
    return running_after(0, [time](Batch& batch) { batch.wait(time).read(kGib, 0, true); });
  };
  EXPECT_EQ(starts_for(50 * kSecond), 1u);
  EXPECT_GT(starts_for(61 * kSecond), 1u);
}

TEST(Alone, FewTasksAndThoseOfAnEarlierBatchArePackedAtOnce) {
  Batch few(1);
  few.setup.measure_alone = true;
  few.add(7, task().memory(kGib)).begin();
  EXPECT_GT(few.running.size(), 1u);
  Batch known(1);
  known.setup.measure_alone = true;
  known.setup.history = {{.group = 0, .gpu_model = "Model", .finished = 9, .gpu_util_ratio = 0.2}};
  known.add(9, task().memory(kGib)).begin();
  EXPECT_GT(known.running.size(), 1u);
}

// Too short for a reading.
TEST(Alone, ShortTasksThatWereAloneAreKnownByTheClock) {
  Batch batch(1);
  batch.add(2, task()).begin();
  for (TaskIndex i = 0; i < 2; ++i) batch.wait(2 * kSecond).end(i);
  const auto alone = batch.planner().alone_rates();
  ASSERT_THAT(alone, SizeIs(1));
  EXPECT_EQ(alone[0].tasks, 2);
  EXPECT_EQ(alone[0].unmeasured_tasks, 0);
  EXPECT_DOUBLE_EQ(alone[0].alone_seconds, 4);
}

// Two tasks beside each other for ten seconds; an earlier batch left this utilisation. `before`: what each took alone.
std::vector<AloneRate> after_an_earlier_batch(std::optional<Nanos> before) {
  Batch batch(1);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 2;
  batch.setup.history = {{.group = 0, .gpu_model = "Model", .finished = 9, .gpu_util_ratio = 0.1}};
  batch.add(2, task()).begin();
  for (int second = 0; second < 10; ++second) batch.wait(kSecond).read(10 * kGib, 0.3);
  for (TaskIndex i = 0; i < 2; ++i) {
    AttemptEnded end{.attempt = batch.running.at(i).attempt};
    end.took_alone = before;
    batch.tell(end);
  }
  return batch.planner().alone_rates();
}

TEST(Alone, WhatAnEarlierBatchLeftOfTheSpeedMeasuresNothing) {
  const auto unknown = after_an_earlier_batch({});
  ASSERT_THAT(unknown, SizeIs(1));
  EXPECT_EQ(unknown[0].tasks, 0);
  EXPECT_EQ(unknown[0].unmeasured_tasks, 2);
  EXPECT_FALSE(unknown[0].from_history);
}

TEST(Alone, TheSameTasksAloneInAnEarlierBatchSpeakForThemselves) {
  const auto known = after_an_earlier_batch(6 * kSecond);
  ASSERT_THAT(known, SizeIs(1));
  EXPECT_EQ(known[0].tasks, 2);
  EXPECT_EQ(known[0].unmeasured_tasks, 0);
  EXPECT_DOUBLE_EQ(known[0].alone_seconds, 12);
  EXPECT_TRUE(known[0].from_history);
}

TEST(Alone, AnAttemptBesideAnotherUserWasNotAlone) {
  for (const bool tenant : {false, true}) {
    Batch batch(1);
    batch.add(1, task()).begin().wait(kSecond);
    batch.tell(Readings{.gpus = {{.gpu = 0, .others_compute = tenant}}}).wait(kSecond).end(0);
    EXPECT_EQ(batch.all<CloseAttempt>().at(0).alone.whole, !tenant);
  }
}

AloneTime alone_of(const Batch& batch) { return batch.all<CloseAttempt>().at(0).alone; }

TEST(Alone, AnAttemptWithoutCompanyTookWhatItTook) {
  Batch batch(1);
  batch.add(1, task()).begin().wait(7 * kSecond);
  const auto now = batch.planner().alone_time(1, batch.now);
  ASSERT_TRUE(now);
  EXPECT_DOUBLE_EQ(now->done_seconds, 7);
  EXPECT_DOUBLE_EQ(now->speed, 1);
  batch.wait(kSecond).end(0);
  EXPECT_DOUBLE_EQ(alone_of(batch).done_seconds, 8);
  EXPECT_TRUE(alone_of(batch).measured);
  EXPECT_FALSE(batch.planner().alone_time(1, batch.now)) << "it runs no more";
}

TEST(Alone, AtHalfItsSpeedAnAttemptTakesTwiceAsLong) {
  Batch batch(1);
  batch.add(3, task()).begin().learn(10 * kGib);
  for (int second = 0; second < 10; ++second) batch.wait(kSecond).read(10 * kGib, 0.15);
  batch.wait(2 * kSecond);  // since the last reading as before it
  const double before = batch.planner().alone_time(2, batch.now)->done_seconds;
  EXPECT_NEAR(before, (8 + 5) * 20.0 / 18.0, 1);  // it joined when the first had stood still for four looks
  batch.end(1);
  EXPECT_DOUBLE_EQ(alone_of(batch).done_seconds, before);
  EXPECT_TRUE(alone_of(batch).measured);
}

TEST(Alone, BesideBusyTasksTheSpeedIsPredictedAndWhatNobodySampledIsNotMeasured) {
  Batch batch(1);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 2;
  batch.setup.history = {{.group = 0, .gpu_model = "Model", .finished = 9, .gpu_util_ratio = 1.0}};
  batch.add(2, task()).begin().wait(10 * kSecond);
  const auto now = batch.planner().alone_time(1, batch.now);
  ASSERT_TRUE(now);
  EXPECT_NEAR(now->speed, 0.5, 0.05);
  EXPECT_NEAR(now->done_seconds, 5, 0.5);
  EXPECT_FALSE(now->measured);
  batch.end(0);
  EXPECT_FALSE(alone_of(batch).measured);
  EXPECT_NEAR(alone_of(batch).done_seconds, 5, 0.5);
}

TEST(Alone, OfWhatNothingIsKnownCompanyIsNotHeldToSlowIt) {
  Batch batch(1);
  batch.setup.pack = PackMode::kFixed;
  batch.setup.per_gpu = 4;
  batch.add(4, task()).begin().wait(10 * kSecond).end(0);
  EXPECT_DOUBLE_EQ(alone_of(batch).done_seconds, 10);
  EXPECT_FALSE(alone_of(batch).measured);
}

}  // namespace
}  // namespace headroom::scheduler
