// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_rings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "device/nvml_bench.h"

namespace headroom {
namespace {

nvml::Sample sample(Nanos at, unsigned value) {
  nvml::Sample one{stamp(at), {}};
  one.value.ui = value;
  return one;
}

TEST(NvmlRings, SamplesAreStoredOnceAtTheirOwnInstants) {
  FakeNvml nvml({modern()});
  auto& ring = nvml.gpus[0].rings[nvml::kGpuUtilizationSamples];
  Bench bench(nvml);
  for (int second = 0; second < 8; ++second) {
    for (int sixth = 0; sixth < 6; ++sixth) {
      ring.push_back(sample(bench.at - kSecond + (sixth + 1) * kSecond / 6, static_cast<unsigned>(10 * sixth)));
    }
    bench.tick();
  }
  const auto& recording = bench.sink.recording();
  const auto source = recording.find(SourceKind::kGpuUtilRing, nvml.gpus[0].uuid);
  ASSERT_TRUE(source);
  const Track& track = recording.tracks[static_cast<std::size_t>(*source)];
  // From the first tick on: the five samples before it are not this recording's. Drained in each of the first seconds.
  EXPECT_EQ(track.at.size(), 1U + 7 * 6);
  EXPECT_EQ(track.at.front(), kStart);
  EXPECT_TRUE(std::is_sorted(track.at.begin(), track.at.end()));
  EXPECT_EQ(track.find(Metric::kGpuUtil)->values[1], 0);
  EXPECT_EQ(track.find(Metric::kGpuUtil)->values[2], 1000);
  EXPECT_EQ(recording.sources[static_cast<std::size_t>(*source)].parent,
            *recording.find(SourceKind::kGpu, nvml.gpus[0].uuid));
}

TEST(NvmlRings, AYoungRecordingHasTheFineReadingsAtOnceAndAnOlderOneSeldom) {
  FakeNvml nvml({modern()});
  auto& ring = nvml.gpus[0].rings[nvml::kGpuUtilizationSamples];
  Bench bench(nvml);
  std::vector<std::size_t> there;  // after each second
  for (int second = 0; second < 20; ++second) {
    ring.push_back(sample(bench.at, 10));
    bench.tick();
    const auto& recording = bench.sink.recording();
    const auto source = recording.find(SourceKind::kGpuUtilRing, nvml.gpus[0].uuid);
    there.push_back(source ? recording.tracks[static_cast<std::size_t>(*source)].at.size() : 0);
  }
  for (std::size_t second = 0; second < 10; ++second) EXPECT_EQ(there[second], second + 1);
  EXPECT_EQ(std::set(there.begin() + 10, there.end()).size(), 4U) << "every three seconds";
}

TEST(NvmlRings, TheLastLookLeavesNothingOut) {
  FakeNvml nvml({modern()});
  Bench bench(nvml);
  bench.tick(12);
  nvml.gpus[0].rings[nvml::kGpuUtilizationSamples].push_back(sample(bench.at - 1000, 50));
  bench.at -= kSecond / 2;
  bench.reader->ask_all();
  bench.at += kSecond / 10;
  bench.tick();
  EXPECT_EQ(bench.last(SourceKind::kGpuUtilRing, nvml.gpus[0].uuid, Metric::kGpuUtil), 5000);
}

TEST(NvmlRings, HistoryBeforeTheFirstTickCountsFromSince) {
  FakeNvml nvml({modern()});
  nvml.gpus[0].rings[nvml::kGpuUtilizationSamples] = {sample(kStart - 5 * kSecond, 1), sample(kStart - 2 * kSecond, 2),
                                                      sample(kStart - kSecond, 3)};
  NvmlReaderOptions options;
  options.since = kStart - 3 * kSecond;
  Bench bench(nvml, options);
  bench.tick();
  const auto& recording = bench.sink.recording();
  EXPECT_EQ(recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kGpuUtilRing, nvml.gpus[0].uuid))]
                .at.size(),
            2U);
}

TEST(NvmlRings, AClockStepNeitherRepeatsNorStopsSamples) {
  for (const Nanos step : {-3600 * kSecond, 3600 * kSecond}) {
    FakeNvml nvml({modern()});
    Nanos offset = kOffset;
    NvmlReaderOptions options;
    options.clock_offset = [&] { return offset; };
    Bench bench(nvml, options);
    auto& ring = nvml.gpus[0].rings[nvml::kGpuUtilizationSamples];
    for (int second = 0; second < 20; ++second) {
      if (second == 9) offset += step;
      nvml::Sample one = sample(bench.at - 1000, 30);
      one.time_stamp = static_cast<unsigned long long>((bench.at - kMillisecond - offset) / kMicrosecond);
      ring.push_back(one);
      bench.tick();
    }
    const auto& recording = bench.sink.recording();
    const auto& track =
        recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kGpuUtilRing, nvml.gpus[0].uuid))];
    EXPECT_TRUE(std::is_sorted(track.at.begin(), track.at.end()));
    EXPECT_GE(track.at.size(), 15U) << step;
    EXPECT_LE(track.at.size(), 20U) << step;
  }
}

TEST(NvmlRings, GarbageIsMarkedAndStrangeStampsAreCounted) {
  FakeNvml nvml({modern()});
  NvmlReaderOptions options;
  options.since = kStart - 10 * kSecond;
  nvml.gpus[0].rings[nvml::kGpuUtilizationSamples] = {sample(kStart - kSecond, 4294967295U),
                                                      sample(kStart + 3600 * kSecond, 5)};
  nvml.gpus[0].rings[nvml::kGpuUtilizationSamples].push_back({~0ULL, {}});
  Bench bench(nvml, options);
  bench.tick();
  EXPECT_EQ(bench.last(SourceKind::kGpuUtilRing, nvml.gpus[0].uuid, Metric::kGpuUtil), no(Absent::kGarbage));
  ASSERT_EQ(bench.sink.recording().losses.size(), 1U);
  EXPECT_EQ(bench.sink.recording().losses[0].what, "gpu_util_ring_time_stamp");
  EXPECT_EQ(bench.sink.recording().losses[0].count, 2);
}

TEST(NvmlRings, AnOverrunIsALoss) {
  FakeNvml nvml({modern()});
  Bench bench(nvml);
  auto& ring = nvml.gpus[0].rings[nvml::kTotalPowerSamples];
  ring.push_back(sample(kStart, 100'000));
  bench.tick();
  ring.clear();
  for (int i = 0; i < 120; ++i) ring.push_back(sample(kStart + (i + 1) * 10 * kMillisecond, 100'000));
  bench.tick(3);
  ASSERT_EQ(bench.sink.recording().losses.size(), 1U);
  EXPECT_EQ(bench.sink.recording().losses[0].what, "gpu_power_ring_overrun");
}

}  // namespace
}  // namespace headroom
