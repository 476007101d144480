// SPDX-License-Identifier: Apache-2.0
#include "model/packed_recording.h"

#include <gtest/gtest.h>

#include "model/bounds.h"

namespace headroom {
namespace {

constexpr Nanos kBegin = 1'700'000'000 * kSecond;

// Rows of two GPUs, a second apart, the second's without one value; and a mark beside them.
Recording sample() {
  Recording recording;
  recording.meta = {.origin = "import:test", .start = kBegin, .end = kBegin + 3 * kSecond, .interval = kSecond};
  for (const char* key : {"gpu0", "gpu1"}) recording.sources.push_back({SourceKind::kGpu, key, kNoSource, {}});
  recording.sources.push_back({SourceKind::kMarks, "log/phase", kNoSource, {{"via", "table"}}});
  const std::vector<Nanos> at{kBegin + kSecond, kBegin + 2 * kSecond, kBegin + 3 * kSecond};
  recording.tracks.push_back({at, {{Metric::kGpuUtil, {9'000, 0, 8'000}, {}}}});
  recording.tracks.push_back(
      {at, {{Metric::kGpuUtil, {100, 0, 300}, {0, static_cast<std::uint8_t>(Absent::kNoData), 0}}}});
  recording.tracks.push_back({{}, {}, {{kBegin, 0, 1}}});
  recording.texts = {"train"};
  recording.lists = {{0}};
  return recording;
}

PackedRecording packed(Recording recording) {
  PackedRecording packed;
  for (std::size_t i = 0; i < 2; ++i) {
    Track& track = recording.tracks[i];
    PackedTrack& rows = packed.packed.emplace_back();
    for (const Nanos at : track.at) rows.at.push_back(at);
    for (const Column& column : track.columns) {
      PackedColumn& values = rows.columns.emplace_back(PackedColumn{column.metric, {}, column.absent});
      for (const std::int64_t value : column.values) values.values.push_back(value);
    }
    track = {};
  }
  packed.recording = std::move(recording);
  return packed;
}

TEST(PackedRecording, IsTheRecordingThatItIsUnpackedTo) {
  EXPECT_EQ(unpacked(packed(sample())), sample());
  EXPECT_EQ(unpacked(not_packed(sample())), sample());
}

TEST(PackedRecording, IsReplayedAsTheRecordingItIs) {
  MemorySink rows, packed_rows;
  replay(sample(), rows);
  replay(packed(sample()), packed_rows);
  EXPECT_EQ(packed_rows.take(), rows.take());
}

TEST(PackedRecording, IsKeptInBoundsAsTheRecordingItIs) {
  const auto expect_kept = [](const Recording& wild, bool stays_packed) {
    PackedRecording kept = packed(wild);
    keep_in_bounds(kept);
    EXPECT_EQ(!kept.packed.empty(), stays_packed);
    EXPECT_EQ(kept.rows_of(0), kept.packed.empty() ? kept.recording.tracks[0].at.size() : 3U);
    Recording wanted = wild;
    keep_in_bounds(wanted);
    EXPECT_EQ(unpacked(std::move(kept)), wanted);
  };
  expect_kept(sample(), true);
  Recording wild = sample();
  wild.tracks[1].columns[0].values[2] = 20'000;  // 200 %
  expect_kept(wild, false);
  wild = sample();
  wild.tracks[0].at.back() = kLatest + 5;
  expect_kept(wild, false);
  wild = sample();
  wild.meta.end = kLatest + 5;
  expect_kept(wild, false);
}

}  // namespace
}  // namespace headroom
