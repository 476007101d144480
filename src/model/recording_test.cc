// SPDX-License-Identifier: Apache-2.0
#include "model/recording.h"

#include <gtest/gtest.h>

#include "model/entities.h"

namespace headroom {
namespace {

Cell cell(Metric metric, std::int64_t value) { return {metric, value, std::nullopt}; }
Cell absent(Metric metric, Absent why) { return {metric, 0, why}; }

TEST(MemorySink, AbsentIsNotZero) {
  MemorySink sink;
  const SourceId gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  sink.add_row(gpu, 10, std::array{cell(Metric::kPower, 0)});
  sink.add_row(gpu, 20, std::array{absent(Metric::kPower, Absent::kDeviceLost)});
  const Column* power = sink.recording().tracks[0].find(Metric::kPower);
  ASSERT_NE(power, nullptr);
  EXPECT_EQ(power->at(0), 0);
  EXPECT_EQ(power->at(1).error(), Absent::kDeviceLost);
}

TEST(MemorySink, AbsentInTheFirstRowIsNotZeroEither) {
  MemorySink sink;
  const auto gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  sink.add_row(gpu, 0, std::vector<Cell>{{Metric::kFan, 0, Absent::kNotSupported}});
  const auto* fan = sink.recording().tracks[0].find(Metric::kFan);
  ASSERT_NE(fan, nullptr);
  EXPECT_FALSE(fan->has(0));
}

TEST(MemorySink, LateAndMissingColumnsAreNotSampled) {
  MemorySink sink;
  const SourceId gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  sink.add_row(gpu, 10, std::array{cell(Metric::kPower, 5)});
  sink.add_row(gpu, 20, std::array{cell(Metric::kGpuUtil, 7)});
  const Track& track = sink.recording().tracks[0];
  EXPECT_EQ(track.find(Metric::kPower)->at(1).error(), Absent::kNotSampled);
  EXPECT_EQ(track.find(Metric::kGpuUtil)->at(0).error(), Absent::kNotSampled);
  EXPECT_EQ(track.find(Metric::kGpuUtil)->at(1), 7);
}

TEST(MemorySink, TheSameSourceKeepsItsIdAndMergesItsFacts) {
  MemorySink sink;
  const SourceId first = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {{"index", "0"}}});
  EXPECT_EQ(sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {{"given", "true"}}}), first);
  EXPECT_EQ(sink.recording().sources[0].attrs, (Attrs{{"index", "0"}, {"given", "true"}}));
}

TEST(Replay, GivesTheSameRecordingBack) {
  MemorySink sink;
  const SourceId gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {{"index", "0"}}});
  const SourceId ring = sink.add_source({SourceKind::kGpuUtilRing, "GPU-1", gpu, {}});
  for (int i = 0; i < 5; ++i) {
    sink.add_row(gpu, i * 1000, std::array{cell(Metric::kGpuUtil, i), absent(Metric::kFan, Absent::kNotSupported)});
    sink.add_row(ring, i * 1000 + 500, std::array{cell(Metric::kGpuUtil, 2 * i)});
  }
  sink.add_event({1500, std::nullopt, "note", gpu, {{"text", "x"}}});
  sink.add_loss({"late_tick", 2, Severity::kNotice, ""});
  const Recording original = sink.take();
  MemorySink copy;
  replay(original, copy);
  EXPECT_EQ(copy.take(), original);
}

TEST(Metrics, NamesAreUniqueAndFound) {
  for (const auto& metric : metrics()) EXPECT_EQ(metric_of(metric.name), metric.id) << metric.name;
  EXPECT_FALSE(metric_of("gpu_usage"));
}

TEST(Metrics, FixedPointRoundTrips) {
  EXPECT_EQ(from_unit(Metric::kPower, 590.0), 590'000);
  EXPECT_DOUBLE_EQ(to_unit(Metric::kGpuUtil, 1140), 0.114);
  EXPECT_EQ(from_unit(Metric::kMemoryUsed, 1e30), std::numeric_limits<std::int64_t>::max());
}

TEST(Entities, AttrsAreInverse) {
  Device device{.uuid = "GPU-1", .index = 1, .name = "A6000", .pci_bus_id = "0:1:0", .memory_total_bytes = 48};
  device.power_limit_watts = 300.5;
  device.given = false;
  EXPECT_EQ(device_of({SourceKind::kGpu, "GPU-1", kNoSource, to_attrs(device)}), device);
  Process process{.pid = 7, .ppid = 1, .uid = 0, .user = "u", .start = 5, .comm = "python3", .in_job = true};
  process.cuda_visible_devices = "";  // set and empty: no device at all
  process.exit_code = 137;
  process.rank = 3;
  EXPECT_EQ(process_of({SourceKind::kProcess, "7/5", kNoSource, to_attrs(process)}), process);
  EXPECT_EQ(process_of({SourceKind::kProcess, "7/5", kNoSource, to_attrs(process)}).cuda_visible_devices, "");
}

TEST(Entities, AProcessIsCalledByItsNumberWhereItHasOne) {
  EXPECT_EQ(process_name(4711, std::nullopt), "process 4711");
  EXPECT_EQ(process_name(4711, std::nullopt, "GPU 3"), "process 4711 (GPU 3)");
  EXPECT_EQ(process_name(4711, 3), "rank 3 (process 4711)");
  EXPECT_EQ(process_name(4711, 3, "node07 GPU 3"), "rank 3 (process 4711, node07 GPU 3)");
}

}  // namespace
}  // namespace headroom
