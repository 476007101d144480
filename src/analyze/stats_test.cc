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
TEST(IdleCause, OtherThreadsAreNotTheMainThread) {
  Activity a{.cpu = 3.0, .main_cpu = 0.02};
  EXPECT_EQ(idle_cause(a, {0, 0}, 0.8).account, Account::kUnexplained);
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

TEST(Phases, FlickerIsNoPhase) {
  const Recording recording =
      RecordingBuilder(300).gpu(0, [](double t) { return static_cast<int>(t) % 2 == 0 ? 0.2 : 0.0; }).build();
  auto times = testing::times_of(recording);
  EXPECT_TRUE(find_phases(recording, times).empty());
}

}  // namespace
}  // namespace headroom
