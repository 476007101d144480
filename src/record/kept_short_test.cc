// SPDX-License-Identifier: Apache-2.0
#include "record/kept_short.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "model/entities.h"

namespace headroom {
namespace {

constexpr Nanos kEvery = 10;

SourceId process(MemorySink& sink, std::int64_t pid, SourceId parent = kNoSource) {
  Process facts;
  facts.pid = pid;
  return sink.add_source({SourceKind::kProcess, std::to_string(pid) + "/0", parent, to_attrs(facts)});
}

void add(MemorySink& sink, SourceId source, Nanos at, std::int64_t cpu) {
  sink.add_row(source, at, std::array{Cell{Metric::kCpuUser, cpu, std::nullopt}});
}

std::vector<Nanos> left(Recording recording, SourceId source) {
  KeptShort(kEvery).shorten(recording);
  const Track& track = recording.tracks[static_cast<std::size_t>(source)];
  for (const Column& column : track.columns) EXPECT_EQ(column.values.size(), track.at.size());
  return track.at;
}

TEST(KeptShort, OfEqualRowsTheFirstTheLastTwoAndOneInSoMuchTimeStay) {
  MemorySink sink;
  const SourceId asleep = process(sink, 1), runs = process(sink, 2);
  for (Nanos at = 0; at <= 25; ++at) add(sink, asleep, at, 7), add(sink, runs, at, at);
  const Recording recording = sink.take();
  EXPECT_EQ(left(recording, asleep), (std::vector<Nanos>{0, 10, 20, 24, 25}));
  EXPECT_EQ(left(recording, runs).size(), 26U) << "it changes";
}

TEST(KeptShort, WhatWakesAndSleepsAgainIsSeenToDoSo) {
  MemorySink sink;
  const SourceId asleep = process(sink, 1);
  for (const Nanos at : {0, 1, 2, 3}) add(sink, asleep, at, 7);
  for (const Nanos at : {4, 5, 6, 7}) add(sink, asleep, at, 8);
  EXPECT_EQ(left(sink.take(), asleep), (std::vector<Nanos>{0, 2, 3, 4, 6, 7}));
}

TEST(KeptShort, WhoIsOnAGpuAndWhomItStartedKeepEveryRow) {
  MemorySink sink;
  const SourceId gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  const SourceId beside = process(sink, 1), owner = process(sink, 2, beside), worker = process(sink, 3, owner);
  sink.add_source({SourceKind::kGpuProcess, "GPU-1/2/0", gpu, to_attrs(GpuContext{.pid = 2})});
  for (Nanos at = 0; at <= 9; ++at)
    for (const SourceId id : {beside, owner, worker}) add(sink, id, at, 7);
  const Recording recording = sink.take();
  EXPECT_EQ(left(recording, owner).size(), 10U);
  EXPECT_EQ(left(recording, worker).size(), 10U);
  EXPECT_EQ(left(recording, beside), (std::vector<Nanos>{0, 8, 9}));
}

TEST(KeptShort, OfFinePowerSamplesTheLastSecondsStay) {
  MemorySink sink;
  sink.set_meta({.start = 0, .end = 100 * kSecond});
  const SourceId power = sink.add_source({SourceKind::kGpuPowerRing, "GPU-1", kNoSource, {}});
  const SourceId util = sink.add_source({SourceKind::kGpuUtilRing, "GPU-1", kNoSource, {}});
  for (Nanos at = 0; at <= 100; ++at) {
    sink.add_row(power, at * kSecond, std::array{Cell{Metric::kPower, 7, std::nullopt}});
    sink.add_row(util, at * kSecond, std::array{Cell{Metric::kGpuUtil, 7, std::nullopt}});
  }
  const Recording recording = sink.take();
  EXPECT_EQ(left(recording, power).size(), 6U);
  EXPECT_EQ(left(recording, util).size(), 101U);
}

TEST(KeptShort, ACellThatOnlyOneRowHasIsKept) {
  MemorySink sink;
  const SourceId asleep = process(sink, 1);
  for (const Nanos at : {0, 1, 3, 4}) add(sink, asleep, at, 7);
  sink.add_row(asleep, 5,
               std::array{Cell{Metric::kCpuUser, 7, std::nullopt}, Cell{Metric::kReadBytes, 42, std::nullopt}});
  for (const Nanos at : {6, 7, 8}) add(sink, asleep, at, 7);
  Recording recording = sink.take();
  KeptShort(kEvery).shorten(recording);
  const Track& track = recording.tracks[0];
  EXPECT_EQ(track.at, (std::vector<Nanos>{0, 7, 8}));
  ASSERT_TRUE(track.find(Metric::kReadBytes)->has(1));
  EXPECT_EQ(track.find(Metric::kReadBytes)->values[1], 42);
}

TEST(KeptShort, CalledAfterEachRowItLeavesTheSame) {
  Recording recording;
  {
    MemorySink sink;
    add(sink, process(sink, 1), 0, 7);
    recording = sink.take();
  }
  KeptShort sleep(kEvery);
  Track& track = recording.tracks[0];
  for (Nanos at = 1; at <= 25; ++at) {
    track.at.push_back(at);
    track.columns[0].values.push_back(at < 22 ? 7 : 8);
    sleep.shorten(recording);
    EXPECT_EQ(track.at.back(), at);
  }
  EXPECT_EQ(track.at, (std::vector<Nanos>{0, 10, 20, 21, 22, 24, 25}));
}

}  // namespace
}  // namespace headroom
