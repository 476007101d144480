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
      EXPECT_EQ(view.waits.at(look.waits_for).targets, std::vector{target});
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

// Rows of a connection: when, and what it had received by then.
Recording connections(double born, const std::vector<std::pair<double, std::int64_t>>& rows) {
  RecordingBuilder builder(10);
  builder.sleeping_in(WaitChannel::kSocket).process(100, 1, born, 10, 0.1);
  builder.waits_for(100, {WaitKind::kConnection, "10.0.0.5:443"});
  Recording recording = builder.build();
  Track& track = recording.tracks[static_cast<std::size_t>(recording.all(SourceKind::kProcessWaits).front())];
  Column sent{Metric::kConnectionSent, {}, {}}, received{Metric::kConnectionReceived, {}, {}};
  for (const auto& [at, bytes] : rows) {
    track.at.push_back(recording.meta.start + static_cast<Nanos>(at * 1e9));
    sent.values.push_back(1);
    received.values.push_back(bytes);
  }
  track.columns = {sent, received};
  return recording;
}

double received(const Recording& recording) {
  const JobView view = job_view(recording);
  return view.waits.begin()->second.received.value_or(-1);
}

TEST(NamedWaits, WhatCameOverAConnectionIsCountedBetweenLooks) {
  EXPECT_EQ(received(connections(0, {{1, 100}, {2, 250}, {3, 250}})), 250);
  EXPECT_EQ(received(connections(-5, {{1, 100}, {2, 250}, {3, 250}})), 150) << "it may have been open before";
  EXPECT_EQ(received(connections(0, {{1, 100}, {2, 40}, {3, 60}})), 160) << "another one to the same place";
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
