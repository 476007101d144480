// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/nvml_bench.h"

namespace headroom {
namespace {

TEST(NvmlReader, ReadsEveryMetricInItsStoredUnit) {
  FakeNvml nvml({modern()});
  nvml.gpus[0].gpm = true;
  nvml.gpus[0].gpm_values = {{nvml::kGpmSm, 37.5}, {nvml::kGpmPcieTx, 2.0}};
  Bench bench(nvml);
  bench.tick(6);
  EXPECT_EQ(bench.gpu(Metric::kGpuUtil), 4000);
  EXPECT_EQ(bench.gpu(Metric::kMemoryUtil), 2000);
  EXPECT_EQ(bench.gpu(Metric::kMemoryUsed), 3LL << 30);
  EXPECT_EQ(bench.gpu(Metric::kMemoryReserved), 512LL << 20);
  EXPECT_EQ(bench.gpu(Metric::kMemoryTotal), 80LL << 30);
  EXPECT_EQ(bench.gpu(Metric::kPower), 250'000);
  EXPECT_EQ(bench.gpu(Metric::kPowerInstant), 251'000);
  EXPECT_EQ(bench.gpu(Metric::kPowerLimit), 300'000);
  EXPECT_DOUBLE_EQ(to_unit(Metric::kEnergy, *bench.gpu(Metric::kEnergy)), 5000.0);
  EXPECT_DOUBLE_EQ(to_unit(Metric::kEventPowerCap, *bench.gpu(Metric::kEventPowerCap)), 1.5);
  EXPECT_EQ(bench.gpu(Metric::kPcieTx), 1000);
  EXPECT_EQ(bench.gpu(Metric::kNvlinkTx), 3072) << "the driver counts in KiB";
  EXPECT_EQ(bench.gpu(Metric::kNvlinkRx), no(Absent::kNotSupported));
  EXPECT_EQ(bench.gpu(Metric::kTemperature), 55);
  EXPECT_EQ(bench.gpu(Metric::kMemoryTemperature), 61);
  EXPECT_EQ(bench.gpu(Metric::kSmClock), 1200);
  EXPECT_EQ(bench.gpu(Metric::kFan), 30);
  EXPECT_EQ(bench.gpu(Metric::kPerformanceState), 0);
  EXPECT_EQ(bench.gpu(Metric::kComputeProcesses), 0);
  EXPECT_EQ(bench.gpu(Metric::kSmActive), 3750);
  EXPECT_EQ(bench.gpu(Metric::kPcieTxRate), 2 * 1048576);
  EXPECT_EQ(bench.gpu(Metric::kTensorActive), no(Absent::kNotSupported));
}

TEST(NvmlReader, FieldsAreAskedForAtTheirPaces) {
  for (const bool gpm : {false, true}) {
    FakeNvml nvml({modern()});
    nvml.gpus[0].gpm = gpm;
    Bench bench(nvml);
    bench.tick(10);
    bench.reader->ask_all();
    bench.tick();
    const Recording& recording = bench.sink.recording();
    const auto gpu = *recording.find(SourceKind::kGpu, bench.reader->devices()[0].uuid);
    const Track& track = recording.tracks[static_cast<std::size_t>(gpu)];
    const auto rows = [&](Metric metric) {
      std::string text;
      for (std::size_t row = 0; row < track.at.size(); ++row)
        if (track.find(metric)->has(row)) text += fmt::format("{} ", row);
      return text;
    };
    EXPECT_EQ(rows(Metric::kPower), "0 1 2 3 4 5 6 7 8 9 10 ");
    EXPECT_EQ(rows(Metric::kEventPowerCap), "0 2 4 6 8 10 ");
    EXPECT_EQ(rows(Metric::kPcieTx), gpm ? rows(Metric::kEventPowerCap) : rows(Metric::kPower));
    EXPECT_EQ(rows(Metric::kEnergy), "0 5 10 ");
  }
}

TEST(NvmlReader, EveryCallFailingStillGivesAReasonForEveryMetric) {
  const std::vector<std::pair<nvml::Return, Absent>> codes{{nvml::kNotSupported, Absent::kNotSupported},
                                                           {nvml::kNoPermission, Absent::kNoPermission},
                                                           {nvml::kUnknown, Absent::kError},
                                                           {nvml::kNotFound, Absent::kNoData}};
  for (const auto& [code, why] : codes) {
    FakeNvml nvml({modern()});
    Bench bench(nvml);
    nvml.gpus[0].errors["*"] = code;
    bench.tick(3);
    for (const auto metric : {Metric::kGpuUtil, Metric::kMemoryUtil, Metric::kMemoryUsed, Metric::kSmClock,
                              Metric::kTemperature, Metric::kComputeProcesses, Metric::kPower, Metric::kEnergy}) {
      EXPECT_EQ(bench.gpu(metric), no(why)) << info(metric).name << " " << code;
    }
  }
}

TEST(NvmlReader, WhatIsNotSupportedIsAskedForOnce) {
  FakeNvml nvml({modern()});
  nvml.gpus[0].errors["fan_speed"] = nvml::kNotSupported;
  nvml.gpus[0].errors["samples"] = nvml::kNotSupported;
  Bench bench(nvml);
  bench.tick(120);
  EXPECT_EQ(nvml.calls["fan_speed"], 1);
  EXPECT_EQ(nvml.calls["samples"], 2) << "one per ring";
  EXPECT_EQ(bench.gpu(Metric::kFan), no(Absent::kNotSupported));
}

TEST(NvmlReader, GarbageIsNotAValue) {
  FakeNvml nvml({modern()});
  auto& gpu = nvml.gpus[0];
  gpu.util = 4294967295U;
  gpu.memory_util = 101;
  gpu.temperature = 4294967295U;
  gpu.set_field(nvml::kFieldMemoryTemp, 9223372036854775794ULL);
  gpu.set_field(nvml::kFieldEnergy, ~0ULL);
  gpu.used = 100ULL << 40U;
  Bench bench(nvml);
  bench.tick();
  for (const auto metric : {Metric::kGpuUtil, Metric::kMemoryUtil, Metric::kTemperature, Metric::kMemoryTemperature,
                            Metric::kEnergy, Metric::kMemoryUsed}) {
    EXPECT_EQ(bench.gpu(metric), no(Absent::kGarbage)) << info(metric).name;
  }
}

TEST(NvmlReader, ImplausiblePowerStaysAReading) {
  FakeNvml nvml({modern()});
  nvml.gpus[0].set_field(nvml::kFieldPowerAverage, 590'000);
  nvml.gpus[0].limit_mw = 55'000;
  Bench bench(nvml);
  bench.tick();
  EXPECT_EQ(bench.gpu(Metric::kPower), 590'000) << "what to leave out is for the statistics to say";
}

TEST(NvmlReader, StaysWithinEightCallsPerGpuAndRefresh) {
  for (const bool gpm : {false, true}) {
    FakeNvml nvml({modern(), modern()});
    nvml.gpus[1].uuid += "b";
    for (auto& gpu : nvml.gpus) {
      gpu.gpm = gpm;
      gpu.compute.push_back({101, 1ULL << 30U, 0, 0});
      gpu.compute.push_back({102, 1ULL << 30U, 0, 0});
    }
    Bench bench(nvml);
    bench.tick(2);  // the first look asks for everything
    nvml.calls.clear();
    constexpr int kTicks = 600;
    bench.tick(kTicks);
    const double per_refresh = static_cast<double>(nvml.total_calls()) / (2.0 * kTicks);
    EXPECT_LE(per_refresh, 8.0) << (gpm ? "with GPM" : "without GPM");
    RecordProperty(gpm ? "calls_with_gpm" : "calls", fmt::format("{:.2f}", per_refresh));
    EXPECT_LE(nvml.calls["compute_processes"], 2 * kTicks);
    for (const char* seldom : {"graphics_processes", "mps_processes", "fan_speed", "link_width"}) {
      EXPECT_LE(nvml.calls[seldom], 2 * (kTicks / 10 + 1)) << seldom;
    }
  }
}

TEST(NvmlReader, WithoutFieldsStaysWithinEightCallsToo) {
  FakeNvml nvml({FakeGpu{}});
  nvml.gpus[0].compute.push_back({101, 1, 0, 0});
  Bench bench(nvml);
  bench.tick(2);
  nvml.calls.clear();
  bench.tick(600);
  EXPECT_LE(nvml.total_calls() / 600.0, 8.0);
  EXPECT_EQ(nvml.calls["field_values"], 0);
  EXPECT_EQ(bench.gpu(Metric::kPower), 123'456) << "by its own call";
  EXPECT_EQ(bench.gpu(Metric::kEnergy), 777);
}

TEST(NvmlReader, FastTicksDoNotMultiplyDearCalls) {
  FakeNvml nvml({modern()});
  nvml.gpus[0].compute.push_back({101, 1, 0, 0});
  Bench bench(nvml);
  bench.tick(300, 100 * kMillisecond);
  EXPECT_EQ(nvml.calls["utilization"], 300);
  EXPECT_EQ(nvml.calls["compute_processes"], 30);
  EXPECT_LE(nvml.calls["graphics_processes"], 4);
  const int power = 15, util = 10 + 7;  // every 2 s; every second of the first ten, then every 3 s
  EXPECT_LE(nvml.calls["samples"], power + util + 2 + 2) << "and how many the driver keeps, once each";
}

TEST(NvmlReader, LostGpuIsSaidOnceCostsOneCallASecondAndComesBack) {
  FakeNvml nvml({modern()});
  nvml.gpus[0].util = 0;
  Bench bench(nvml);
  bench.tick(2);
  nvml.gpus[0].errors["*"] = nvml::kGpuIsLost;
  bench.tick();
  nvml.calls.clear();
  bench.tick(10);
  EXPECT_EQ(nvml.total_calls() - nvml.calls["event_set_wait"], 10);
  EXPECT_EQ(bench.gpu(Metric::kGpuUtil), no(Absent::kDeviceLost));
  EXPECT_EQ(bench.gpu(Metric::kEnergy), no(Absent::kDeviceLost));
  EXPECT_THAT(bench.events(), testing::ElementsAre("device_lost"));
  nvml.gpus[0].errors.clear();
  bench.tick(2);
  EXPECT_THAT(bench.events(), testing::ElementsAre("device_lost", "device_back"));
  EXPECT_EQ(bench.gpu(Metric::kGpuUtil), 0);
}

TEST(NvmlReader, TheXidOfALossIsAskedForAtOnce) {
  FakeNvml nvml({modern()});
  Bench bench(nvml);
  bench.tick(2);
  nvml.gpus[0].errors["*"] = nvml::kGpuIsLost;
  nvml.events.push_back({reinterpret_cast<nvml::Device>(std::uintptr_t{1}), nvml::kEventXid, 79, 0, 0});
  bench.tick();
  EXPECT_THAT(bench.events(), testing::ElementsAre("device_lost", "xid"));
  EXPECT_EQ(bench.sink.recording().events[0].attrs.at("text"), "NVML_ERROR_GPU_IS_LOST");
}

TEST(NvmlReader, OnlyOneCallSayingLostDoesNotFlicker) {
  FakeNvml nvml({modern()});
  Bench bench(nvml);
  bench.tick(2);
  nvml.gpus[0].errors["compute_processes"] = nvml::kGpuIsLost;
  bench.tick(10);
  EXPECT_THAT(bench.events(), testing::ElementsAre("device_lost"));
}

TEST(NvmlReader, ReservedMemoryOfOldDriversIsNotKnownAndSaid) {
  FakeNvml nvml({modern()});
  NvmlApi api = nvml.api();
  api.memory_v2 = nullptr;
  auto reader = NvmlReader::open(api, {});
  ASSERT_TRUE(reader);
  MemorySink sink;
  (*reader)->read(kStart, sink);
  const auto recording = sink.take();
  const auto& track = recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kGpu, nvml.gpus[0].uuid))];
  EXPECT_EQ(track.find(Metric::kMemoryUsed)->at(0),
            static_cast<std::int64_t>(nvml.gpus[0].used + nvml.gpus[0].reserved));
  EXPECT_EQ(track.find(Metric::kMemoryReserved)->at(0), no(Absent::kNotSupported));
  ASSERT_EQ(recording.events.size(), 1U);
  EXPECT_THAT(recording.events[0].attrs.at("text"), testing::HasSubstr("reserved memory"));
}

TEST(NvmlReader, MigIsSaidAndItsUtilisationIsNotZero) {
  FakeNvml nvml({modern()});
  nvml.gpus[0].mig = 1;
  nvml.gpus[0].util = 0;
  nvml.gpus[0].compute.push_back({7, nvml::kMemoryNotAvailable, 1, 0});
  Bench bench(nvml);
  bench.tick(3);
  EXPECT_EQ(bench.reader->devices()[0].mig_mode, "enabled");
  EXPECT_EQ(bench.gpu(Metric::kGpuUtil), no(Absent::kNotSupported));
  EXPECT_EQ(bench.last(SourceKind::kGpuProcess, nvml.gpus[0].uuid + "/7/0", Metric::kProcessGpuMemory),
            no(Absent::kNotSupported));
  EXPECT_EQ(nvml.calls["process_utilization"] + nvml.calls["utilization"], 0);
  EXPECT_THAT(bench.events(), testing::Contains("note"));
}

TEST(NvmlReader, XidBecomesAnEvent) {
  FakeNvml nvml({modern()});
  Bench bench(nvml);
  nvml.events.push_back({reinterpret_cast<nvml::Device>(std::uintptr_t{1}), nvml::kEventXid, 79, 0, 0});
  bench.tick();
  ASSERT_EQ(bench.sink.recording().events.size(), 1U);
  EXPECT_EQ(bench.sink.recording().events[0].kind, "xid");
  EXPECT_EQ(bench.sink.recording().events[0].attrs.at("code"), "79");
}

TEST(NvmlReader, AGpuThatCannotBeOpenedIsNamedAndTheOthersAreRead) {
  FakeNvml nvml({modern(), modern()});
  nvml.gpus[0].errors["handle_by_index"] = nvml::kGpuIsLost;
  Bench bench(nvml);
  ASSERT_EQ(bench.reader->devices().size(), 1U);
  EXPECT_EQ(bench.reader->devices()[0].index, 1);
  ASSERT_EQ(bench.reader->unusable().size(), 1U);
  EXPECT_THAT(bench.reader->unusable()[0], testing::HasSubstr("GPU 0"));
}

TEST(NvmlReader, GpmSamplesAreGivenBack) {
  FakeNvml nvml({modern()});
  nvml.gpus[0].gpm = true;
  {
    Bench bench(nvml);
    bench.tick(3);
    EXPECT_EQ(nvml.gpm_samples_alive, 2);
  }
  EXPECT_EQ(nvml.gpm_samples_alive, 0);
}

}  // namespace
}  // namespace headroom
