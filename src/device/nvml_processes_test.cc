// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_processes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/nvml_fake.h"
#include "device/nvml_reader.h"

namespace headroom {
namespace {

constexpr Nanos kStart = 100 * kSecond;

struct ListsBench {
  explicit ListsBench(FakeNvml& nvml) {
    NvmlReaderOptions options;
    options.clock_offset = [] { return Nanos{0}; };
    options.describe = [this](std::int64_t pid) -> std::optional<Process> {
      described.push_back(pid);
      if (pid >= 9000) return std::nullopt;  // a process of another pid namespace
      Process process;
      process.pid = pid;
      process.start = 5 * kSecond;
      process.comm = "python";
      process.in_job = in_job;
      return process;
    };
    auto opened = NvmlReader::open(nvml.api(), std::move(options));
    EXPECT_TRUE(opened);
    reader = std::move(*opened);
  }
  void tick(int count = 1) {
    for (int i = 0; i < count; ++i, at += kSecond) reader->read(at, sink);
  }
  const Track* track(const std::string& pid_and_start) {
    const auto& recording = sink.recording();
    const auto source = recording.find(SourceKind::kGpuProcess, reader->devices()[0].uuid + "/" + pid_and_start);
    return source ? &recording.tracks[static_cast<std::size_t>(*source)] : nullptr;
  }
  std::string context(const std::string& pid_and_start) {
    const auto& recording = sink.recording();
    const auto source = recording.find(SourceKind::kGpuProcess, reader->devices()[0].uuid + "/" + pid_and_start);
    return source ? recording.sources[static_cast<std::size_t>(*source)].attrs.at("context") : "none";
  }

  std::unique_ptr<NvmlReader> reader;
  MemorySink sink;
  std::vector<std::int64_t> described;
  bool in_job = false;
  Nanos at = kStart;
};

nvml::ProcessInfo process(unsigned pid, unsigned long long memory = 1ULL << 30U) { return {pid, memory, 0, 0}; }

TEST(NvmlProcesses, AreDescribedOnceAndSeenAtEveryRead) {
  FakeNvml nvml({FakeGpu{}, FakeGpu{}});
  nvml.gpus[1].uuid += "b";
  nvml.gpus[0].compute = {process(11)};
  nvml.gpus[1].compute = {process(11), process(12)};
  ListsBench bench(nvml);
  bench.tick(15);
  EXPECT_THAT(bench.described, testing::ElementsAre(11, 12));
  ASSERT_NE(bench.track("11/5000000000"), nullptr);
  EXPECT_EQ(bench.track("11/5000000000")->at.size(), 15U);
  EXPECT_EQ(bench.track("11/5000000000")->find(Metric::kProcessGpuMemory)->at(0), 1 << 30);
  const auto known = bench.sink.recording().find(SourceKind::kProcess, "11/5000000000");
  ASSERT_TRUE(known);
  EXPECT_EQ(bench.sink.recording().sources[static_cast<std::size_t>(*known)].attrs.count("in_job"), 0U)
      << "the host's reader may have said true";
}

TEST(NvmlProcesses, APidUsedAgainIsAnotherProcess) {
  FakeNvml nvml({FakeGpu{}});
  nvml.gpus[0].compute = {process(11)};
  ListsBench bench(nvml);
  bench.tick(2);
  nvml.gpus[0].compute.clear();
  bench.tick(2);
  nvml.gpus[0].compute = {process(11)};
  bench.tick(2);
  EXPECT_THAT(bench.described, testing::ElementsAre(11, 11));
  EXPECT_EQ(bench.track("11/5000000000")->at.size(), 4U);
}

TEST(NvmlProcesses, WithoutADescriptionTheyAreSeenAllTheSame) {
  FakeNvml nvml({FakeGpu{}});
  nvml.gpus[0].compute = {process(9001)};
  ListsBench bench(nvml);
  bench.tick(3);
  ASSERT_NE(bench.track("9001/0"), nullptr);
  EXPECT_EQ(bench.track("9001/0")->at.size(), 3U);
  EXPECT_EQ(bench.described.size(), 1U);
}

TEST(NvmlProcesses, KernelsOfNobodyWhoCanBeSeenAreSaidOnce) {
  struct Case {
    std::vector<nvml::ProcessInfo> compute;
    nvml::Return code;
    const char* says;
  };
  for (const auto& [compute, code, says] : std::vector<Case>{
           {{}, nvml::kSuccess, "lists no process"},
           {{process(9001)}, nvml::kSuccess, "can be seen here"},
           {{process(9001), process(11)}, nvml::kSuccess, nullptr},
           {{}, nvml::kNotSupported, "gives no list of processes"},
           {{}, nvml::kUnknown, nullptr},
       }) {
    FakeNvml nvml({FakeGpu{}});
    nvml.gpus[0].compute = compute;
    if (code != nvml::kSuccess) nvml.gpus[0].errors["compute_processes"] = code;
    ListsBench bench(nvml);
    bench.tick(2);
    EXPECT_TRUE(bench.sink.recording().events.empty()) << "a utilisation outlives the process by a second";
    bench.tick(10);
    const auto& events = bench.sink.recording().events;
    ASSERT_EQ(events.size(), says == nullptr ? 0U : 1U);
    if (says == nullptr) continue;
    EXPECT_THAT(events[0].attrs.at("text"), testing::HasSubstr(says));
  }
}

TEST(NvmlProcesses, AnIdleGpuWithoutAListIsNoQuestion) {
  FakeNvml nvml({FakeGpu{}});
  nvml.gpus[0].util = 0;
  ListsBench bench(nvml);
  bench.tick(20);
  EXPECT_TRUE(bench.sink.recording().events.empty());
}

TEST(NvmlProcesses, TheDesktopIsGraphicsAndAProcessWithBothIsCompute) {
  FakeNvml nvml({FakeGpu{}});
  nvml.gpus[0].graphics = {process(20), process(21)};
  nvml.gpus[0].compute = {process(21), process(22)};
  nvml.gpus[0].mps = {process(22)};
  ListsBench bench(nvml);
  bench.tick(12);
  EXPECT_EQ(bench.context("20/5000000000"), "graphics");
  EXPECT_EQ(bench.context("21/5000000000"), "compute");
  EXPECT_EQ(bench.context("22/5000000000"), "mps");
  const auto& recording = bench.sink.recording();
  const auto& gpu = recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kGpu, nvml.gpus[0].uuid))];
  EXPECT_EQ(gpu.find(Metric::kComputeProcesses)->at(0), 2);
  EXPECT_EQ(gpu.find(Metric::kGraphicsProcesses)->at(0), 1);
}

TEST(NvmlProcesses, ScrambledDriversAreReadThroughTheOlderList) {
  FakeNvml nvml({FakeGpu{}});
  nvml.driver = "535.54.03";
  nvml.gpus[0].compute = {process(11)};
  ListsBench bench(nvml);
  bench.tick(2);
  EXPECT_EQ(nvml.calls["compute_processes"], 0);
  EXPECT_EQ(nvml.calls["compute_processes_v2"], 2);
  ASSERT_NE(bench.track("11/5000000000"), nullptr);
  EXPECT_EQ(bench.sink.recording().events.at(0).kind, "note");
}

TEST(NvmlProcesses, ManyProcessesGrowTheBuffer) {
  FakeNvml nvml({FakeGpu{}});
  for (unsigned pid = 1; pid <= 300; ++pid) nvml.gpus[0].compute.push_back(process(pid));
  ListsBench bench(nvml);
  bench.tick();
  EXPECT_NE(bench.track("300/5000000000"), nullptr);
}

TEST(NvmlProcesses, NoPermissionIsNotAnEmptyGpu) {
  FakeNvml nvml({FakeGpu{}});
  nvml.gpus[0].errors["compute_processes"] = nvml::kNoPermission;
  ListsBench bench(nvml);
  bench.tick();
  const auto& recording = bench.sink.recording();
  const auto& gpu = recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kGpu, nvml.gpus[0].uuid))];
  EXPECT_EQ(gpu.find(Metric::kComputeProcesses)->at(0), Reading<std::int64_t>(tl::unexpected(Absent::kNoPermission)));
}

TEST(NvmlProcesses, OnlyPlausibleUseOfListedProcessesCounts) {
  FakeNvml nvml({FakeGpu{}});
  nvml.gpus[0].compute = {process(11), process(12), process(13)};
  const auto stamp = [](Nanos at) { return static_cast<unsigned long long>(at / kMicrosecond); };
  const Nanos now = kStart - 10 * kMillisecond;
  nvml.gpus[0].use = {
      {11, stamp(now - 100 * kMillisecond), 20, 5, 0, 0},
      {11, stamp(now), 30, 6, 0, 0},                       // the newest row counts
      {12, stamp(now), 4294967295U, 101, 0, 0},            // senseless
      {13, stamp(kStart - 3600 * kSecond), 99, 99, 0, 0},  // stale
      {77, stamp(now), 50, 50, 0, 0},                      // not on this GPU any more
      {13, stamp(kStart + 3600 * kSecond), 98, 98, 0, 0},  // from the future
  };
  ListsBench bench(nvml);
  bench.tick();
  EXPECT_EQ(bench.track("11/5000000000")->find(Metric::kProcessSmUtil)->at(0), 3000);
  EXPECT_EQ(bench.track("11/5000000000")->find(Metric::kProcessMemoryUtil)->at(0), 600);
  EXPECT_EQ(bench.track("12/5000000000")->find(Metric::kProcessSmUtil)->at(0),
            Reading<std::int64_t>(tl::unexpected(Absent::kGarbage)));
  EXPECT_EQ(bench.track("13/5000000000")->find(Metric::kProcessSmUtil)->at(0),
            Reading<std::int64_t>(tl::unexpected(Absent::kNoData)));
  EXPECT_EQ(bench.track("77/5000000000"), nullptr);
  bench.tick(2);
  EXPECT_EQ(bench.track("11/5000000000")->find(Metric::kProcessSmUtil)->at(1),
            Reading<std::int64_t>(tl::unexpected(Absent::kNotSampled)));
  EXPECT_EQ(bench.track("11/5000000000")->find(Metric::kProcessSmUtil)->at(2),
            Reading<std::int64_t>(tl::unexpected(Absent::kNoData)))
      << "nothing new since: the driver's NOT_FOUND";
}

}  // namespace
}  // namespace headroom
