// SPDX-License-Identifier: Apache-2.0
#include "batch/session_recorder.h"

#include <gmock/gmock.h>

#include "device/nvml_bench.h"
#include "model/recording.h"

namespace headroom::batch {
namespace {

using ::testing::ElementsAre;

// The first look may be late by seconds (a slow disk, no core for the recorder); tasks run meanwhile.
TEST(SessionRecorder, KernelsBeforeTheFirstLookAreInTheRecording) {
  FakeNvml nvml({modern()});
  NvmlReaderOptions with;
  with.clock_offset = [] { return Nanos{0}; };
  with.sys_root = "/nonexistent";
  auto reader = NvmlReader::open(nvml.api(), std::move(with));
  ASSERT_TRUE(reader);
  SessionOptions session;
  session.interval = kMillisecond;
  session.meta.start = boottime_now() - 2 * kSecond;
  for (const Nanos at :
       {session.meta.start - kSecond, session.meta.start + kSecond / 2, session.meta.start + kSecond}) {
    nvml::Sample sample{static_cast<unsigned long long>(at / kMicrosecond), {}};
    sample.value.ui = 70;
    nvml.gpus[0].rings[nvml::kGpuUtilizationSamples].push_back(sample);
  }
  Recording closed;
  session.open_recording = [&closed]() -> Result<OpenRecording> {
    auto sink = std::make_unique<MemorySink>();
    MemorySink* raw = sink.get();
    return OpenRecording{.sink = std::move(sink),
                         .path = "memory",
                         .close = [&closed, raw]() -> Result<void> {
                           closed = raw->take();
                           return {};
                         },
                         .failure = [] { return std::optional<Error>(); }};
  };
  session.source('P').open = [] { return Result<OpenSource>(OpenSource()); };
  auto loop = Loop::create();
  ASSERT_TRUE(loop);
  Nanos first = 0;
  SessionRecorder recorder({.loop = **loop,
                            .session = std::move(session),
                            .gpus = std::move(*reader),
                            .given = {nvml.gpus[0].uuid},
                            .on_snapshot =
                                [&](const Snapshot& now) {
                                  if (now.gpus.empty()) return;
                                  first = now.at;
                                  (*loop)->stop();
                                },
                            .on_trouble = [](const Error& error) { ADD_FAILURE() << error.what; }});
  (*loop)->run();
  const SessionResult result = recorder.finish({.at = boottime_now(), .stop_reason = "job_ended"});
  EXPECT_FALSE(result.error) << result.error->what;
  const auto ring = closed.find(SourceKind::kGpuUtilRing, nvml.gpus[0].uuid);
  ASSERT_TRUE(ring);
  const Track& track = closed.tracks[static_cast<std::size_t>(*ring)];
  EXPECT_LT(track.at.back(), first);
  ASSERT_NE(track.find(Metric::kGpuUtil), nullptr);
  EXPECT_THAT(track.find(Metric::kGpuUtil)->values, ElementsAre(7000, 7000));
}

}  // namespace
}  // namespace headroom::batch
