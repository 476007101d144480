// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/nvml_bench.h"

namespace headroom {

std::int64_t allocations();  // how often this program has called operator new (allocations_test.cc replaces it)

namespace {

class NullSink final : public RecordingSink {
 public:
  SourceId add_source(const Source&) override { return next_++; }
  void add_row(SourceId, Nanos, std::span<const Cell> cells) override { cells_ += cells.size(); }
  TextId intern(std::string_view /*text*/) override { return 0; }
  ListId intern_list(std::span<const TextId> /*texts*/) override { return 0; }
  void add_list_row(SourceId /*source*/, const ListRow& /*row*/) override {}
  void add_event(const Event&) override {}
  void add_loss(const Loss&) override {}
  void set_meta(const RecordingMeta&) override {}
  [[nodiscard]] std::size_t cells() const { return cells_; }

 private:
  SourceId next_ = 0;
  std::size_t cells_ = 0;
};

TEST(NvmlReader, NothingIsAllocatedAfterTheFirstTicks) {
  FakeNvml nvml({modern(), modern()});
  nvml.gpus[1].uuid += "b";
  nvml.gpus[0].gpm = true;
  nvml.gpus[0].gpm_values = {{nvml::kGpmSm, 37.5}};
  for (unsigned pid = 1; pid <= 8; ++pid) nvml.gpus[0].compute.push_back({pid, 1, 0, 0});
  auto& ring = nvml.gpus[0].rings[nvml::kTotalPowerSamples];
  for (int i = 0; i < 6000; ++i) ring.push_back({stamp(kStart + i * 20 * kMillisecond), {}});
  NvmlReaderOptions options;
  options.clock_offset = [] { return kOffset; };
  auto reader = NvmlReader::open(nvml.api(), std::move(options));
  ASSERT_TRUE(reader);
  NullSink sink;
  Nanos at = kStart;
  for (int i = 0; i < 61; ++i, at += kSecond) (*reader)->read(at, sink);
  const std::size_t cells = sink.cells();
  const std::int64_t before = allocations();
  for (int i = 0; i < 60; ++i, at += kSecond) (*reader)->read(at, sink);
  EXPECT_GT(before, 0) << "they are counted";
  EXPECT_EQ(allocations() - before, 0);
  EXPECT_GT(sink.cells(), cells + 60 * 2 * 20);
}

}  // namespace
}  // namespace headroom
