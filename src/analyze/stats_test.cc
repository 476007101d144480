// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats.h"

#include <gtest/gtest.h>

#include "analyze/idle_cause.h"
#include "analyze/phases.h"
#include "analyze/testing.h"

namespace headroom {
namespace {

using testing::RecordingBuilder;

Recording with_power(const std::vector<double>& watts, std::optional<double> limit = std::nullopt) {
  RecordingBuilder builder(static_cast<double>(watts.size()));
  Device device;
  device.uuid = "GPU-0";
  device.power_limit_watts = limit;
  const SourceId id = builder.sink().add_source({SourceKind::kGpu, "GPU-0", kNoSource, to_attrs(device)});
  for (std::size_t i = 0; i < watts.size(); ++i)
    builder.sink().add_row(id, RecordingBuilder::at(static_cast<double>(i + 1)),
                           std::array{testing::cell(Metric::kPower, from_unit(Metric::kPower, watts[i]))});
  return builder.build();
}

std::optional<MetricStats> power_stats(const Recording& recording) {
  return metric_stats(recording, 0, Metric::kPower, testing::whole(recording));
}

std::vector<double> ordinary(std::size_t count) {
  std::vector<double> watts;
  for (std::size_t i = 0; i < count; ++i) watts.push_back(18 + static_cast<double>(i % 6));
  return watts;
}

TEST(Stats, AReadingAboveTheEnforcedLimitIsNamedAndLeftOut) {
  auto watts = ordinary(90);
  watts[40] = 590;
  const auto stats = power_stats(with_power(watts, 55));
  ASSERT_EQ(stats->excluded.size(), 1u);
  EXPECT_EQ(stats->excluded[0].value, 590);
  EXPECT_EQ(stats->excluded[0].reason, "above the enforced limit of 55 W");
  EXPECT_LT(stats->max, 24);
  EXPECT_EQ(stats->samples, 89);
}

TEST(Stats, WithoutALimitTheHampelIdentifierNamesIt) {
  auto watts = ordinary(90);
  watts[40] = 590;
  const auto stats = power_stats(with_power(watts));
  ASSERT_EQ(stats->excluded.size(), 1u);
  EXPECT_NE(stats->excluded[0].reason.find("Hampel"), std::string::npos);
}

TEST(Stats, TwoLevelsOfLoadAreNoOutliers) {
  std::vector<double> watts(90, 20);
  for (std::size_t i = 60; i < 90; ++i) watts[i] = 290;  // a third of the time under load
  EXPECT_TRUE(power_stats(with_power(watts))->excluded.empty());
  watts.assign(90, 20);
  watts[70] = 290;
  watts[71] = 280;  // twice: not rare enough to be a fault of the sensor
  EXPECT_TRUE(power_stats(with_power(watts))->excluded.empty());
}

TEST(Stats, PercentilesAreReadings) {
  std::vector<double> watts;
  for (int i = 1; i <= 100; ++i) watts.push_back(i);
  const auto stats = power_stats(with_power(watts, 1000));
  EXPECT_EQ(stats->p50, 50);
  EXPECT_EQ(stats->p95, 95);
  EXPECT_DOUBLE_EQ(stats->mean, 50.5);
}

TEST(IdleCause, StorageGoesBeforeEverything) {
  Activity a{.cpu = 0.05, .main_cpu = 0.05, .run_delay = 0, .io_delay = 0.5};
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.6).account, Account::kInput);
}
TEST(IdleCause, LargeWritesAreACheckpoint) {
  Activity a{.cpu = 0.3, .main_cpu = 0.3, .io_delay = 0.2, .write_bytes_per_second = 5e7};
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.9).account, Account::kCheckpoint);
}
TEST(IdleCause, WorkersAtWorkAndASleepingTrainer) {
  Activity a{.cpu = 0.2, .main_cpu = 0.2};
  EXPECT_EQ(idle_cause(a, {1.9, 0}, 0.7), (IdleCause{Account::kInput, Confidence::kHigh}));
}
TEST(IdleCause, BothExplanationsLowerTheConfidence) {
  Activity a{.cpu = 0.5, .main_cpu = 0.5};
  EXPECT_EQ(idle_cause(a, {1.9, 0}, 0.5), (IdleCause{Account::kInput, Confidence::kMedium}));
}
TEST(IdleCause, ARunningTrainerIsHostCodeEvenWithWorkers) {
  Activity a{.cpu = 0.95, .main_cpu = 0.95};
  EXPECT_EQ(idle_cause(a, {1.9, 0}, 0.7).account, Account::kHostCode);
}
TEST(IdleCause, WantingACoreCountsAsRunning) {
  Activity a{.cpu = 0.1, .main_cpu = 0.1, .run_delay = 0.8};
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.8).account, Account::kHostCode);
}
TEST(IdleCause, AWaitForACoreIsNoProofOfCode) {
  Activity a{.cpu = 0.1, .main_cpu = 0.1, .run_delay = 0.8};
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.9), (IdleCause{Account::kHostCode, Confidence::kMedium}));
  a.read_bytes_per_second = 2e7;  // it wakes after each read and wants a core again
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.9).account, Account::kInput);
  a.main_cpu = 0.7;
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.9), (IdleCause{Account::kHostCode, Confidence::kHigh}));
}

TEST(IdleCause, OtherThreadsAreCodeOfTheJobToo) {
  Activity a{.cpu = 3.0, .main_cpu = 0.02};
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.8), (IdleCause{Account::kHostCode, Confidence::kLow}));
  a.cpu = 0.1;
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.8).account, Account::kUnexplained);
}
TEST(IdleCause, ASleepOnTheDiskIsInputWhereItReadsAndACheckpointAfterWriting) {
  Activity a{.cpu = 0.05, .main_cpu = 0.05, .read_bytes_per_second = 5e7, .state = 'D', .wait = WaitChannel::kDisk};
  EXPECT_EQ(idle_cause(a, {}, 0.5).account, Account::kInput);
  a.read_bytes_per_second = 0;
  EXPECT_EQ(idle_cause(a, {}, 0.5).account, Account::kUnexplained);
  EXPECT_EQ(idle_cause(a, {}, 0.5, {}, true).account, Account::kCheckpoint);
}
TEST(IdleCause, WorkersAsleepOnANetworkAreInput) {
  const Activity a{.cpu = 0.05, .main_cpu = 0.05};
  EXPECT_EQ(idle_cause(a, {.cpu = 0.01, .waits_for_data = true}, 0.5).account, Account::kInput);
  EXPECT_EQ(idle_cause(a, {.cpu = 0.01}, 0.5).account, Account::kUnexplained);
}
TEST(IdleCause, WritingTakesNoMoreTimeThanItCan) {
  Activity a{.main_cpu = 0.9, .write_bytes_per_second = 4e7};
  EXPECT_NEAR(*writing_share(a, {}), 0.1 + 0.2, 1e-9) << "the rest of what it ran was other work";
  a.main_cpu = 0.1;
  EXPECT_NEAR(*writing_share(a, {}), 1.0, 1e-9);
  a.write_bytes_per_second = 1e6;
  EXPECT_EQ(writing_share(a, {}), std::nullopt);
}

Recording counters(const std::vector<std::pair<double, std::int64_t>>& read) {
  RecordingBuilder builder(1, 0.2);
  const SourceId id =
      builder.sink().add_source({SourceKind::kProcess, "1/1", kNoSource, {{"pid", "1"}, {"start_ns", "1"}}});
  for (double t = 0; t < 1.01; t += 0.2) {
    std::vector<Cell> cells{testing::cell(Metric::kCpuUser, 0)};
    for (const auto& [at, value] : read)
      if (std::abs(at - t) < 0.01) cells.push_back(testing::cell(Metric::kReadBytes, value));
    builder.sink().add_row(id, RecordingBuilder::at(t), cells);
  }
  return builder.build();
}

TEST(Activities, ACounterThatIsReadSeldomSpeaksForTheTimeSinceItWasReadLast) {
  const auto list = activities(counters({{0, 0}, {0.6, 600}}), 0);
  ASSERT_EQ(list.size(), 5u);
  EXPECT_NEAR(list[0].read_bytes_per_second.value(), 1000, 1);
  EXPECT_NEAR(list[2].read_bytes_per_second.value(), 1000, 1);
  EXPECT_EQ(list[3].read_bytes_per_second, std::nullopt) << "nobody read it since";
  EXPECT_EQ(list[0].write_bytes_per_second, std::nullopt) << "nobody ever read it";
  EXPECT_EQ(list[0].wait, WaitChannel::kUnknown);
}

TEST(Activities, TheFirstRowSpeaksForTheTimeSinceTheProcessBegan) {
  RecordingBuilder builder(10);
  builder.process({100, 1, 2.5, 10, 0.4, true, {testing::cell(Metric::kReadBytes, 1000)}});
  builder.process(101, 1, -5, 10, 0.4);
  const Recording recording = builder.build();
  const auto processes = recording.all(SourceKind::kProcess);
  const auto born = activities(recording, processes[0]);
  ASSERT_FALSE(born.empty());
  EXPECT_EQ(born[0].begin, RecordingBuilder::at(2.5));
  EXPECT_EQ(born[0].end, RecordingBuilder::at(3));
  EXPECT_NEAR(*born[0].main_cpu, 0.4, 1e-6);
  EXPECT_EQ(born[0].read_bytes_per_second, std::nullopt) << "a program is read before it runs";
  const auto older = activities(recording, processes[1]);
  ASSERT_FALSE(older.empty());
  EXPECT_EQ(older[0].begin, RecordingBuilder::at(0)) << "what it did before is of no time that was watched";
}

TEST(Activities, WhatIsReadFromFilesAndWhatMemoryGrowsByIsLoaded) {
  RecordingBuilder builder(10);
  builder.process({.pid = 100,
                   .ppid = 1,
                   .to = 10,
                   .cpu = 0.4,
                   .extra = {testing::cell(Metric::kReadChars, 3'000'000), testing::cell(Metric::kRss, 2'000'000)}});
  builder.sleeping_in(WaitChannel::kPoll, 0.1).process(101, 1, 0, 10, 0.4);
  const Recording recording = builder.build();
  const auto processes = recording.all(SourceKind::kProcess);
  const auto loads = activities(recording, processes[0]), neither = activities(recording, processes[1]);
  ASSERT_FALSE(loads.empty() || neither.empty());
  EXPECT_NEAR(loads.back().loaded_bytes_per_second.value(), 5e6, 1);
  EXPECT_EQ(loads.back().threads, 1);
  EXPECT_EQ(neither.back().loaded_bytes_per_second, std::nullopt) << "neither was read";
  EXPECT_EQ(neither.back().threads, 2);
}

TEST(Phases, EpochsOfFiveOneOneAreFound) {
  const Recording recording = RecordingBuilder(21 * 60)
                                  .gpu(0,
                                       [](double t) {
                                         const double in_epoch = std::fmod(t - 0.001, 420);
                                         return in_epoch < 300 ? 1.0 : in_epoch < 360 ? 0.30 : 0.0;
                                       })
                                  .build();
  auto times = testing::times_of(recording);
  const auto phases = find_phases(recording, times);
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].name, "kernels running");
  EXPECT_EQ(phases[2].name, "idle");
  EXPECT_EQ(phases[2].count, 3);
  EXPECT_EQ(phases[2].total, 180 * kSecond);
  ASSERT_TRUE(phases[2].period);
  EXPECT_EQ(*phases[2].period, 420 * kSecond);
  EXPECT_NEAR(*phases[1].gpu_util_ratio, 0.30, 0.01);
}

TEST(Phases, TheDriversRingIsFineHoweverRarelyItIsDrained) {
  const auto util = [](double t) { return t > 0.4 && std::fmod(t - 0.01, 6) < 5 ? 1.0 : 0.2; };
  RecordingBuilder builder(30);
  builder.gpu(0, util);
  const SourceId gpu = *builder.sink().recording().find(SourceKind::kGpu, "GPU-0");
  const auto phases_of = [](const Recording& recording) {
    auto times = testing::times_of(recording);
    return find_phases(recording, times);
  };
  EXPECT_TRUE(phases_of(builder.sink().recording()).empty()) << "a second is no phase among seconds";
  const SourceId ring = builder.sink().add_source({SourceKind::kGpuUtilRing, "GPU-0", gpu, {}});
  for (double t = 0.2; t < 30; t += 0.2)
    builder.sink().add_row(ring, RecordingBuilder::at(t),
                           std::array{testing::cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util(t)))});
  const auto phases = phases_of(builder.build());
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[1].name, "partly busy");
  EXPECT_EQ(phases[1].count, 5);
}

// A GPU that draws 300 W with kernels and 50 W without, in turns of so many seconds; its power is a mean over a second.
std::vector<Phase> phases_with_power(double with, double without, double interval) {
  const double length = 8 * (with + without);
  RecordingBuilder builder(length, interval);
  Device device;
  device.uuid = "GPU-0";
  const SourceId gpu = builder.sink().add_source({SourceKind::kGpu, "GPU-0", kNoSource, to_attrs(device)});
  const auto busy = [&](double t) { return std::fmod(t, with + without) < with; };
  for (int i = 1; i * interval <= length; ++i) {
    const double t = i * interval;
    double watts = 0;
    constexpr int kParts = 100;
    for (int part = 0; part < kParts; ++part) watts += busy(std::max(0.0, t - (part + 0.5) / kParts)) ? 300 : 50;
    builder.sink().add_row(
        gpu, RecordingBuilder::at(t),
        std::array{testing::cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, busy(t - interval / 2) ? 1 : 0)),
                   testing::cell(Metric::kPower, from_unit(Metric::kPower, watts / kParts))});
  }
  const Recording recording = builder.build();
  auto times = testing::times_of(recording);
  return find_phases(recording, times);
}

TEST(Phases, HaveThePowerOfReadingsThatAreOfThemAlone) {
  const auto phases = phases_with_power(4, 4, 0.5);
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_NEAR(phases[0].power_watts.value(), 300, 1);
  EXPECT_NEAR(phases[1].power_watts.value(), 50, 1);
  const auto brief = phases_with_power(4, 0.8, 0.2);
  ASSERT_EQ(brief.size(), 2U);
  EXPECT_NEAR(brief[0].power_watts.value(), 300, 1);
  EXPECT_FALSE(brief[1].power_watts) << "each of its readings is of the phase before, too";
}

TEST(Phases, FlickerIsNoPhase) {
  const Recording recording =
      RecordingBuilder(300).gpu(0, [](double t) { return static_cast<int>(t) % 2 == 0 ? 0.2 : 0.0; }).build();
  auto times = testing::times_of(recording);
  EXPECT_TRUE(find_phases(recording, times).empty());
}

}  // namespace
}  // namespace headroom
