// SPDX-License-Identifier: Apache-2.0
#include "analyze/waits.h"

#include <gtest/gtest.h>

#include "analyze/testing.h"

namespace headroom {
namespace {

using testing::cell;
using testing::RecordingBuilder;

const std::vector<Activity>& looks_of(const Recording& recording, const JobView& view, std::int64_t pid) {
  for (std::size_t i = 0; i < recording.sources.size(); ++i)
    if (recording.sources[i].kind == SourceKind::kProcess && process_of(recording.sources[i]).pid == pid)
      return view.did[i];
  throw std::out_of_range("no such process");
}

TEST(NamedWaits, InPollAThreadWaitsForWhatItPolls) {
  struct Case {
    WaitTarget target;
    WaitChannel channel;
  };
  for (const auto& [target, channel] : {Case{{WaitKind::kConnection, "10.0.0.5:443"}, WaitChannel::kSocket},
                                        Case{{WaitKind::kPipe, "ffmpeg", {7}}, WaitChannel::kPipe},
                                        Case{{WaitKind::kTerminal, "/dev/pts/3"}, WaitChannel::kTerminal},
                                        Case{{WaitKind::kDevice, "/dev/nvidia0"}, WaitChannel::kPoll}}) {
    RecordingBuilder builder(10);
    builder.sleeping_in(WaitChannel::kPoll).process(100, 1, 0, 10, 0.1).waits_for(100, target);
    const Recording recording = builder.build();
    const JobView view = job_view(recording);
    ASSERT_FALSE(looks_of(recording, view, 100).empty());
    for (const Activity& look : looks_of(recording, view, 100)) {
      EXPECT_EQ(look.wait, channel) << to_text(target);
      EXPECT_EQ(view.waits.at(look.waits_for), std::vector{target});
    }
  }
}

TEST(NamedWaits, AThreadThatRunsWaitsForNothing) {
  RecordingBuilder builder(10);
  builder.sleeping_in(WaitChannel::kRunning).process(100, 1, 0, 10, 0.9).waits_for(100, {WaitKind::kFile, "/data/x"});
  const Recording recording = builder.build();
  const JobView view = job_view(recording);
  for (const Activity& look : looks_of(recording, view, 100)) EXPECT_EQ(look.waits_for, kNoList);
}

TEST(NamedWaits, WhatCameOverAConnectionIsOfTheLookAtItsEnd) {
  RecordingBuilder builder(10);
  builder.sleeping_in(WaitChannel::kSocket).process(100, 1, 0, 10, 0.1);
  builder.waits_for(100, {WaitKind::kConnection, "10.0.0.5:443"}, 1, 100);
  const Recording recording = builder.build();
  const JobView view = job_view(recording);
  for (const Activity& look : looks_of(recording, view, 100)) {
    EXPECT_EQ(look.received, 100) << seconds(look.end);
    EXPECT_EQ(look.sent, 1);
  }
}

TEST(NamedWaits, WhatANewerProgramWroteIsNotKnown) {
  RecordingBuilder builder(10);
  builder.sleeping_in(WaitChannel::kPoll).process(100, 1, 0, 10, 0.1).waits_for(100, {WaitKind::kFile, "/data/x"});
  Recording recording = builder.build();
  for (std::string& text : recording.texts) text = "wormhole to nowhere";
  const JobView view = job_view(recording);
  EXPECT_TRUE(view.waits.empty());
  for (const Activity& look : looks_of(recording, view, 100)) EXPECT_EQ(look.waits_for, kNoList);
}

TEST(JobView, ItsCoresAreThoseOfTheProcessesOnTheGpuAndOfWhatTheyStarted) {
  const auto cores = [](const std::string& owner, double worker_until, const std::string& worker) {
    RecordingBuilder builder(60);
    builder.machine(8, 1).gpu(0, [](double) { return 0.9; }).process(5, 1, 0, 60, 0);
    builder.process(7, 5, 0, 60, 0.9).context(7, 0, 0, 60);
    if (worker_until > 0) builder.process(20, 7, 0, worker_until, 0.5);
    Recording recording = builder.build();
    for (Source& source : recording.sources) {
      if (source.kind != SourceKind::kProcess) continue;
      if (attr(source, "pid") == "7" && !owner.empty()) source.attrs["cpus_allowed"] = owner;
      if (attr(source, "pid") == "20" && !worker.empty()) source.attrs["cpus_allowed"] = worker;
    }
    return job_view(recording).usable_cores;
  };
  EXPECT_EQ(cores("", 0, ""), 8);
  EXPECT_EQ(cores("3", 0, ""), 1);
  EXPECT_EQ(cores("3", 60, "4-5"), 3) << "its workers may run elsewhere";
  EXPECT_EQ(cores("3", 60, ""), 8) << "where they may is not known";
  EXPECT_EQ(cores("3", 2, ""), 1) << "too short to be asked";
  EXPECT_EQ(cores("0-63", 0, ""), 8) << "no more than there are";
}

}  // namespace
}  // namespace headroom
