// SPDX-License-Identifier: Apache-2.0
#include "model/bounds.h"

#include <gtest/gtest.h>

#include <array>

#include "model/losses.h"

namespace headroom {
namespace {

constexpr auto kMin = std::numeric_limits<std::int64_t>::min(), kMax = std::numeric_limits<std::int64_t>::max();

const Loss* loss(const Recording& recording, LossKind kind) {
  for (const Loss& one : recording.losses)
    if (one.what == info(kind).name) return &one;
  return nullptr;
}

Recording with(SourceKind kind, Metric metric, std::vector<std::int64_t> values) {
  MemorySink sink;
  const SourceId id = sink.add_source({kind, "a", kNoSource, {}});
  Nanos at = 0;
  for (const std::int64_t value : values)
    sink.add_row(id, at += kSecond, std::array{Cell{metric, value, std::nullopt}});
  Recording recording = sink.take();
  recording.meta.end = at;
  recording.meta.interval = kSecond;
  return recording;
}

TEST(Bounds, EveryMetricHasSome) {
  for (const MetricInfo& metric : metrics()) {
    EXPECT_EQ(metric.low == 0 || metric.unit == "celsius", true) << metric.name;
    EXPECT_GT(metric.high, metric.low) << metric.name;
    if (metric.unknown) {
      EXPECT_LE(*metric.unknown, metric.high) << metric.name;
    }
    Recording edge = with(SourceKind::kGpu, metric.id, {metric.low, metric.high});
    const Recording before = edge;
    keep_in_bounds(edge);
    EXPECT_EQ(edge, before) << metric.name;
  }
  EXPECT_EQ(info(Metric::kGpuUtil).high, 10'000);
  EXPECT_EQ(info(Metric::kPower).high, 20'000'000);
}

TEST(Bounds, ValuesThatCannotBeTrueAreAbsentAndCounted) {
  Recording recording = with(SourceKind::kGpu, Metric::kGpuUtil, {5000, -12'300, 10'001, kMax, kMin, 10'000});
  keep_in_bounds(recording);
  const Column& column = recording.tracks[0].columns[0];
  EXPECT_EQ(column.values, (std::vector<std::int64_t>{5000, 0, 0, 0, 0, 10'000}));
  EXPECT_EQ(column.at(1).error(), Absent::kGarbage);
  EXPECT_TRUE(column.has(5));
  ASSERT_NE(loss(recording, LossKind::kValueOutOfRange), nullptr);
  EXPECT_EQ(loss(recording, LossKind::kValueOutOfRange)->count, 4);
  EXPECT_EQ(loss(recording, LossKind::kValueOutOfRange)->detail, "gpu_util_ratio -1.23");
}

TEST(Bounds, StatesOfANewerProgramAreUnknown) {
  constexpr auto kUnknown = static_cast<std::int64_t>(WaitChannel::kUnknown);
  Recording recording = with(SourceKind::kProcess, Metric::kWaitChannel, {1, kUnknown + 1, 83, -1});
  keep_in_bounds(recording);
  EXPECT_EQ(recording.tracks[0].columns[0].values, (std::vector<std::int64_t>{1, kUnknown, kUnknown, kUnknown}));
  EXPECT_EQ(loss(recording, LossKind::kUnknownValue)->count, 3);
}

TEST(Bounds, TheSpanOfAllGpusTogetherIsKept) {
  for (const Nanos end : {kMax, kLongestGpuTime + 1}) {
    Recording recording = with(SourceKind::kGpu, Metric::kGpuUtil, {1});
    recording.meta.end = end;
    keep_in_bounds(recording);
    EXPECT_EQ(recording.meta.end, kSecond) << end << ": the last row";
    EXPECT_NE(loss(recording, LossKind::kUnknownTime), nullptr) << end;
  }
  Recording longest = with(SourceKind::kGpu, Metric::kGpuUtil, {1});
  longest.meta.end = kLongestGpuTime;
  keep_in_bounds(longest);
  EXPECT_EQ(loss(longest, LossKind::kUnknownTime), nullptr);
}

TEST(Bounds, WhatStandsFarFromTheSpanIsLeftOut) {
  Recording recording = with(SourceKind::kGpu, Metric::kGpuUtil, {1, 2, 3});
  recording.tracks[0].at = {kMin, 2 * kSecond, kMax};
  recording.events = {{kMin, std::nullopt, "note", kNoSource, {}},
                      {kSecond, kMin, "note", kNoSource, {}},
                      {kSecond, kSecond, "note", kNoSource, {}}};
  recording.losses = {{"gap", kMin, Severity::kNotice, "", {{kMin, kMax, kNoSource}}}};
  recording.meta.start = 3 * kSecond;
  recording.meta.end = kSecond;
  recording.meta.interval = kMin;
  keep_in_bounds(recording);
  EXPECT_EQ(recording.meta.start, recording.meta.end);
  EXPECT_EQ(recording.meta.interval, 0);
  EXPECT_EQ(recording.tracks[0].at, std::vector<Nanos>{2 * kSecond});
  EXPECT_EQ(recording.tracks[0].columns[0].values, std::vector<std::int64_t>{2});
  EXPECT_EQ(recording.events.size(), 1U);
  EXPECT_EQ(recording.losses[0].count, 0);
  EXPECT_EQ(recording.losses[0].places[0], (LossPlace{kEarliest, kLatest, kNoSource}));
  EXPECT_EQ(loss(recording, LossKind::kUnknownTime)->count, 1 + 2 + 2);
}

}  // namespace
}  // namespace headroom
