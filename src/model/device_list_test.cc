// SPDX-License-Identifier: Apache-2.0
#include "model/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(DeviceList, HoldsTheLatestValueOrTheReason) {
  MemorySink sink;
  const Device device{.uuid = "GPU-1", .index = 1, .name = "A6000", .memory_total_bytes = 48};
  const auto gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, to_attrs(device)});
  sink.add_row(gpu, 10,
               std::vector<Cell>{{Metric::kGpuUtil, 4000, std::nullopt}, {Metric::kFan, 0, Absent::kNotSupported}});
  sink.add_row(gpu, 20, std::vector<Cell>{{Metric::kGpuUtil, 0, Absent::kNoData}});
  sink.add_event({20, std::nullopt, "note", gpu, {{"text", "MIG is enabled"}}});
  const DeviceList list = device_list_of(sink.take());
  ASSERT_EQ(list.devices.size(), 1U);
  EXPECT_EQ(list.devices[0].device, device);
  EXPECT_EQ(list.devices[0].reading(Metric::kGpuUtil), Reading<std::int64_t>(4000));
  EXPECT_EQ(list.devices[0].reading(Metric::kFan), Reading<std::int64_t>(tl::unexpected(Absent::kNotSupported)));
  EXPECT_EQ(list.devices[0].reading(Metric::kPower), Reading<std::int64_t>(tl::unexpected(Absent::kNotSampled)));
  EXPECT_THAT(list.notes, testing::ElementsAre("MIG is enabled"));
}

TEST(DeviceList, NamesTheProcessesThatAreKnown) {
  MemorySink sink;
  const auto other = sink.add_source({SourceKind::kGpu, "GPU-2", kNoSource, {{"index", "1"}}});
  const auto gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {{"index", "0"}}});
  sink.add_source(
      {SourceKind::kProcess, "9/5", kNoSource, to_attrs(Process{.pid = 9, .user = "ann", .comm = "python"})});
  const auto known = sink.add_source({SourceKind::kGpuProcess, "GPU-1/9/5", gpu,
                                      to_attrs(GpuContext{.pid = 9, .kind = ContextKind::kMps, .start = 5})});
  sink.add_source({SourceKind::kGpuProcess, "GPU-1/3/0", gpu, to_attrs(GpuContext{.pid = 3})});
  sink.add_source({SourceKind::kGpuProcess, "GPU-2/9/5", other, to_attrs(GpuContext{.pid = 9, .start = 5})});
  sink.add_row(known, 1, std::vector<Cell>{{Metric::kProcessGpuMemory, 77, std::nullopt}});
  const DeviceList list = device_list_of(sink.take());
  ASSERT_EQ(list.devices.size(), 2U);
  EXPECT_EQ(list.devices[0].device.uuid, "GPU-1") << "in the order of the index";
  ASSERT_EQ(list.devices[0].processes.size(), 2U);
  EXPECT_EQ(list.devices[0].processes[0].name, "") << "3 could not be looked at";
  EXPECT_EQ(list.devices[0].processes[1].user, "ann");
  EXPECT_EQ(list.devices[0].processes[1].kind, ContextKind::kMps);
  EXPECT_EQ(list.devices[0].processes[1].memory_bytes, Reading<std::int64_t>(77));
  EXPECT_EQ(list.devices[1].processes.size(), 1U);
}

}  // namespace
}  // namespace headroom
