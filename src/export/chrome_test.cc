// SPDX-License-Identifier: Apache-2.0
#include "export/chrome.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analyze/testing_random.h"
#include "diagnose/explain.h"
#include "export/slices.h"

namespace headroom {
namespace {

using headroom::testing::RecordingBuilder;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;

json trace_of(const Recording& recording) {
  std::string text;
  EXPECT_TRUE(write_chrome_trace(recording, explain(recording), [&](std::string_view block) {
    text += block;
    return Result<void>();
  }));
  return json::parse(text).at("traceEvents");
}

using TrackId = std::pair<std::int64_t, std::int64_t>;  // process and thread of the trace

// Nanoseconds: the times are exact decimals of microseconds.
std::int64_t ns(const json& micros) { return std::llround(micros.get<double>() * 1000); }

std::string overlap_in(const json& events) {
  std::map<TrackId, std::vector<std::tuple<std::int64_t, std::int64_t, std::string>>> tracks;
  for (const json& event : events)
    if (event["ph"] == "X") {
      const std::int64_t begin = ns(event["ts"]);
      tracks[{event["pid"], event["tid"]}].emplace_back(begin, -(begin + ns(event["dur"])), event["name"]);
    }
  for (auto& [id, slices] : tracks) {
    std::sort(slices.begin(), slices.end());
    std::vector<std::int64_t> open;
    for (const auto& [begin, minus_end, name] : slices) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      if (!open.empty() && -minus_end > open.back()) return name + " reaches out of the slice that it begins in";
      open.push_back(-minus_end);
    }
  }
  return "";
}

// What the rules of the Trace Event format and Perfetto's reader of it would object to; "" where nothing.
std::string fault_of(const json& events) {
  std::set<std::int64_t> groups;
  std::set<TrackId> threads;
  std::set<std::tuple<std::int64_t, std::string, std::int64_t>> counts;
  for (const json& event : events)
    if (event["ph"] == "M") {
      if (event["name"] == "process_name" && !groups.insert(event["pid"].get<std::int64_t>()).second)
        return "a process with two names";
      if (event["name"] == "thread_name") threads.emplace(event["pid"], event["tid"]);
    }
  for (const json& event : events) {
    const std::string phase = event["ph"];
    if (phase == "M") continue;
    if (!groups.contains(event["pid"].get<std::int64_t>())) return event.dump() + ": a process without a name";
    if (ns(event["ts"]) < 0) return event.dump() + ": before the beginning";
    if (phase == "C") {
      if (!event["args"]["value"].is_number()) return event.dump() + ": no number";
      if (!counts.emplace(event["pid"], event["name"], ns(event["ts"])).second) return event.dump() + ": counted twice";
      continue;
    }
    if (!threads.contains({event["pid"], event["tid"]})) return event.dump() + ": a thread without a name";
    if (event["tid"] == 0) return event.dump() + ": the idle thread";
    if (phase == "X" && ns(event["dur"]) < 0) return event.dump() + ": ends before it begins";
    if (phase == "i" && event["s"] != "g") return event.dump() + ": an instant of nothing";
    if (phase != "X" && phase != "i") return event.dump() + ": of no kind that is written";
  }
  return overlap_in(events);
}

std::vector<std::string> names_of(const json& events, const std::string& thread) {
  std::set<TrackId> tracks;
  for (const json& event : events)
    if (event["name"] == "thread_name" && event["args"]["name"] == thread) tracks.emplace(event["pid"], event["tid"]);
  std::vector<std::string> names;
  for (const json& event : events)
    if (event["ph"] != "M" && event["ph"] != "C" && tracks.contains({event["pid"], event["tid"]}))
      names.push_back(event["name"]);
  return names;
}

TEST(Lanes, WhatOverlapsIsApart) {
  EXPECT_THAT(lanes_of({{0, 10}, {5, 15}, {10, 20}, {15, 16}}), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(lanes_of({{0, 10}, {2, 8}, {3, 8}, {8, 10}}), ElementsAre(0, 0, 0, 0)) << "nested or one after the other";
  EXPECT_THAT(lanes_of({{0, 10}, {1, 11}, {2, 12}}), ElementsAre(0, 1, 2));
  EXPECT_THAT(lanes_of({{5, 5}, {5, 5}}), ElementsAre(0, 0)) << "without length";
}

TEST(Chrome, AnyRecordingIsATraceByTheRules) {
  std::mt19937 random(20261122);
  for (int i = 0; i < 150; ++i)
    ASSERT_EQ(fault_of(trace_of(headroom::testing::random_recording_or_batch(random))), "") << "recording " << i;
}

TEST(Chrome, TasksStandOnTheirGpusByName) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 1.0; }).gpu(1, [](double) { return 1.0; });
  builder.attempt({"lr=1", 10, {0}, 0, 8, "succeeded"}).attempt({"lr=2", 11, {0}, 4, 12, "failed"});
  builder.attempt({"both", 12, {0, 1}, 12, 20, ""}).attempt({"cpu", 13, {}, 1, 2, "succeeded"});
  const json events = trace_of(builder.build());
  EXPECT_EQ(fault_of(events), "");
  EXPECT_THAT(names_of(events, "tasks"), ::testing::UnorderedElementsAre("lr=1", "lr=2", "both", "both"));
  EXPECT_THAT(names_of(events, "tasks without a GPU"), ElementsAre("cpu"));
}

TEST(Chrome, FindingsAreInstantsWhereTheyBegin) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t > 50 ? 1.0 : 0.0; });
  builder.process(10, 1, 0, 100, 1.0).context(10, 0, 0, 100);
  const Recording recording = builder.build();
  const Explanation explanation = explain(recording);
  const json events = trace_of(recording);
  EXPECT_EQ(fault_of(events), "");
  ASSERT_FALSE(explanation.findings.empty());
  for (const Finding& finding : explanation.findings) {
    Nanos first = finding.claims.empty() ? explanation.ledger.begin : finding.claims.front().begin;
    for (const ClaimedPiece& piece : finding.claims) first = std::min(first, piece.begin);
    std::vector<std::int64_t> at;
    for (const json& event : events)
      if (event["ph"] == "i" && event["name"] == finding.title) at.push_back(ns(event["ts"]));
    EXPECT_THAT(at, Contains(first - recording.meta.start)) << finding.title;
  }
}

TEST(Chrome, ProcessesThatSharedANumberAndPidsOfNobodyHaveTracks) {
  Recording recording = RecordingBuilder(20)
                            .gpu(0, [](double) { return 1.0; })
                            .process(10, 1, 0, 12, 1.0)
                            .process((1 << 22) + 1, 1, 0, 20, 1.0)
                            .context(10, 0, 0, 12)
                            .build();
  const auto add = [&](Source source, double from, double to) {
    source.key += "/twin";
    recording.sources.push_back(std::move(source));
    recording.tracks.push_back({.at = {RecordingBuilder::at(from), RecordingBuilder::at(to)}, .columns = {}});
  };
  Process process = process_of(recording.sources[1]);
  process.start = RecordingBuilder::at(6), process.end = RecordingBuilder::at(20);
  Source twin = recording.sources[1];
  twin.attrs = to_attrs(process);
  add(twin, 6, 20);
  add(recording.sources[3], 6, 20);
  const json events = trace_of(recording);
  EXPECT_EQ(fault_of(events), "");
  EXPECT_EQ(names_of(events, "context of pid 10").size(), 2U);
}

TEST(Chrome, EventsThatLastMayOverlap) {
  Recording recording = RecordingBuilder(20).gpu(0, [](double) { return 1.0; }).build();
  for (const auto& [from, to] : {std::pair(1.0, 5.0), std::pair(3.0, 8.0), std::pair(9.0, 7.0)})
    recording.events.push_back(
        to_event(events::Note{.text = "stopped"}, RecordingBuilder::at(from), kNoSource, RecordingBuilder::at(to)));
  EXPECT_EQ(fault_of(trace_of(recording)), "");
}

}  // namespace
}  // namespace headroom
