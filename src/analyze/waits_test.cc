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

}  // namespace
}  // namespace headroom
