// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "device/nvml_fake.h"
#include "device/nvml_reader.h"

// For tests: a reader on fake GPUs, ticked by hand.
namespace headroom {

inline constexpr Nanos kOffset = -1'000'000 * kSecond;  // boot time minus wall clock
inline constexpr Nanos kStart = 100 * kSecond;          // of the recording, boot time
// A driver's stamp, in microseconds of the wall clock, of an instant on the recording's clock.
inline unsigned long long stamp(Nanos at) { return static_cast<unsigned long long>((at - kOffset) / kMicrosecond); }

inline FakeGpu modern() {
  FakeGpu gpu;
  gpu.set_field(nvml::kFieldPowerAverage, 250'000);
  gpu.set_field(nvml::kFieldPowerInstant, 251'000);
  gpu.set_field(nvml::kFieldEnergy, 5'000'000);
  for (const auto id : {nvml::kFieldPowerCap, nvml::kFieldSyncBoost, nvml::kFieldSwThermal, nvml::kFieldHwThermal,
                        nvml::kFieldPowerBrake}) {
    gpu.set_field(id, 1'500'000'000);
  }
  gpu.set_field(nvml::kFieldPcieTxBytes, 1000);
  gpu.set_field(nvml::kFieldPcieRxBytes, 2000);
  gpu.set_field(nvml::kFieldNvlinkTx, 3);
  gpu.set_field(nvml::kFieldMemoryTemp, 61);
  return gpu;
}

struct Bench {
  explicit Bench(FakeNvml& nvml, NvmlReaderOptions options = {}) {
    if (!options.clock_offset) options.clock_offset = [] { return kOffset; };
    options.sys_root = "/nonexistent";
    auto opened = NvmlReader::open(nvml.api(), std::move(options));
    EXPECT_TRUE(opened);
    reader = std::move(*opened);
  }
  void tick(int count = 1, Nanos interval = kSecond) {
    for (int i = 0; i < count; ++i, at += interval) reader->read(at, sink);
  }
  // The last reading of `metric` of that source.
  Reading<std::int64_t> last(SourceKind kind, const std::string& key, Metric metric) {
    const Recording& recording = sink.recording();
    const auto source = recording.find(kind, key);
    if (!source) return tl::unexpected(Absent::kNotSampled);
    const Track& track = recording.tracks[static_cast<std::size_t>(*source)];
    const Column* column = track.find(metric);
    if (column == nullptr) return tl::unexpected(Absent::kNotSampled);
    for (std::size_t row = track.at.size(); row-- > 0;) {
      const auto reading = column->at(row);
      if (reading || reading.error() != Absent::kNotSampled) return reading;
    }
    return tl::unexpected(Absent::kNotSampled);
  }
  Reading<std::int64_t> gpu(Metric metric) { return last(SourceKind::kGpu, reader->devices()[0].uuid, metric); }
  std::vector<std::string> events() {
    std::vector<std::string> kinds;
    for (const auto& event : sink.recording().events) kinds.push_back(event.kind);
    return kinds;
  }

  std::unique_ptr<NvmlReader> reader;
  MemorySink sink;
  Nanos at = kStart;
};

inline Reading<std::int64_t> no(Absent why) { return tl::unexpected(why); }

}  // namespace headroom
