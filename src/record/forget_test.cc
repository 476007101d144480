// SPDX-License-Identifier: Apache-2.0
#include "record/forget.h"

#include <gtest/gtest.h>

#include <array>

#include "record/recent.h"

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

}  // namespace
}  // namespace headroom
