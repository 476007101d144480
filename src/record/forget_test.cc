// SPDX-License-Identifier: Apache-2.0
#include "record/growing.h"

#include <gtest/gtest.h>
#include <array>
#include <string>
#include <vector>

#include "model/entities.h"

namespace headroom {

namespace {

// A GPU whose rows are 10, 20, 30, a thread that was looked at then, and a phase that is open since 5.
Recording recorded() {
  MemorySink sink;
  sink.set_meta({.start = 0, .end = 40, .start_realtime = 1'000});
  const SourceId gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  const SourceId thread = sink.add_source({SourceKind::kPythonThread, "1/1/1", kNoSource, {}});
  const SourceId marks = sink.add_source({SourceKind::kMarks, "1/1/1/marks", kNoSource, {}});
  const std::array texts{sink.intern("train")};
  const ListId list = sink.intern_list(texts);
  sink.add_list_row(marks, {5, list, 1});
  for (const Nanos at : {10, 20, 30}) {
    sink.add_row(gpu, at,
                 std::array{Cell{Metric::kPower, at, std::nullopt}, Cell{Metric::kFan, 0, Absent::kNotSupported}});
    sink.add_list_row(thread, {at, list, 1});
  }
  sink.add_event({.at = 8, .kind = "device_lost", .source = gpu, .attrs = {}});
  sink.add_event({.at = 9, .kind = "note", .source = gpu, .attrs = {}});
  sink.add_event({.at = 11, .end = 25, .kind = "gap", .source = gpu, .attrs = {}});
  return sink.take();
}

TEST(RecentPart, IsWhatWouldBeLeftAndTheWholeStays) {
  for (const Nanos instant : {-5, 0, 1, 5, 6, 9, 10, 15, 20, 30, 31, 45}) {
    Recording whole = recorded(), left = recorded();
    forget_before(left, instant);
    {
      const RecentPart part(whole, instant);
      EXPECT_EQ(part.recording(), left) << instant;
    }
    EXPECT_EQ(whole, recorded()) << instant;
  }
}

// Two GPUs of which one has worked last at 10, the other at 30, and one that nobody uses.
TEST(LastKernels, AreThoseOfTheGpuThatIsIdleForLongest) {
  MemorySink sink;
  sink.set_meta({.start = 0, .end = 40});
  for (const Nanos last : {10, 30, -1}) {
    const SourceId gpu = sink.add_source({SourceKind::kGpu, std::to_string(last), kNoSource, {}});
    for (Nanos at = 0; at <= 40; at += 10)
      sink.add_row(gpu, at, std::array{Cell{Metric::kGpuUtil, at <= last ? 50 : 0, std::nullopt}});
  }
  const Recording recording = sink.recording();
  const auto from = [&](Nanos until) { return last_kernels_before(recording, until) + kSecond; };
  EXPECT_EQ(from(35), 10);
  EXPECT_EQ(from(15), 10);
  EXPECT_EQ(from(5), 0);
}

TEST(LastKernels, OfAGpuThatIsHeldAndHasNeverWorkedAreAtTheStart) {
  MemorySink sink;
  sink.set_meta({.start = 7, .end = 40});
  const SourceId gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  const SourceId context = sink.add_source({SourceKind::kGpuProcess, "GPU-1/1/0", gpu, {}});
  sink.add_row(context, 20, {});
  EXPECT_EQ(last_kernels_before(sink.recording(), 30) + kSecond, 7);
}

TEST(ForgetBefore, WhatIsLeftBeginsThere) {
  Recording recording = recorded();
  forget_before(recording, 20);
  EXPECT_EQ(recording.meta.start, 20);
  EXPECT_EQ(recording.meta.start_realtime, 1'020);
  EXPECT_EQ(recording.meta.end, 40);
  const Track& gpu = recording.tracks[0];
  EXPECT_EQ(gpu.at, (std::vector<Nanos>{20, 30}));
  EXPECT_EQ(gpu.find(Metric::kPower)->values, (std::vector<std::int64_t>{20, 30}));
  EXPECT_FALSE(gpu.find(Metric::kFan)->has(1));
  EXPECT_EQ(recording.tracks[1].lists.size(), 2U) << "a look is of its own instant";
  ASSERT_EQ(recording.tracks[2].lists.size(), 1U);
  EXPECT_EQ(recording.tracks[2].lists[0].at, 20) << "the phase is open when it begins";
  ASSERT_EQ(recording.events.size(), 2U);
  EXPECT_EQ(recording.events[0].kind, "device_lost");
  EXPECT_EQ(recording.events[1].kind, "gap");
}

TEST(ForgetBefore, NothingChangesWhereItBeginsLater) {
  Recording recording = recorded();
  recording.meta.start = 4;
  const Recording before = recording;
  forget_before(recording, 3);
  forget_before(recording, 4);
  EXPECT_EQ(recording, before);
}

TEST(ForgetBefore, NothingIsLeftAfterItsEnd) {
  Recording recording = recorded();
  forget_before(recording, 50);
  EXPECT_EQ(recording.meta.end, 50);
  EXPECT_TRUE(recording.tracks[0].at.empty());
  EXPECT_TRUE(recording.tracks[0].find(Metric::kFan)->absent.empty());
}

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
