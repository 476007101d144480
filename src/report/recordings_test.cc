// SPDX-License-Identifier: Apache-2.0
#include "report/recordings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

ShelfEntry closed() {
  ShelfEntry entry{.path = "/s/a.hrec", .name = "a.hrec", .bytes = 1000};
  RecordingSummary summary{.state = FileState::kClosed, .devices = 2, .losses = 1};
  summary.meta.id = "0123456789abcdef";
  summary.meta.origin = "run";
  summary.meta.stop_reason = "job_ended";
  summary.meta.command = {"python3", "a b.py"};
  summary.meta.start = 5 * kSecond;
  summary.meta.end = 65 * kSecond;
  summary.meta.start_realtime = 1'763'648'103 * kSecond + 250 * kMillisecond;
  summary.meta.exit_code = 0;
  entry.summary = summary;
  return entry;
}

ShelfEntry unreadable() {
  return {.path = "/s/b\xff.hrec", .name = "b\xff.hrec", .bytes = 24, .problem = "no recording"};
}

TEST(RecordJson, IsOneLine) {
  EXPECT_EQ(
      to_json(Recorded{.path = "/s/a.hrec", .duration = kSecond, .gpus = 2, .processes = {7}, .stop_reason = "x"}),
      R"({"duration_ns":1000000000,"gpus":2,"path":"/s/a.hrec","processes":[7],"schema":"headroom.record/1",)"
      "\"stop_reason\":\"x\"}\n");
}

TEST(RecordingsJson, SaysWhatIsThereAndWhyAFileCannotBeRead) {
  EXPECT_EQ(to_json(ShelfListing{"/s", "nfs", {closed(), unreadable()}}), R"({
  "schema": "headroom.recordings/1",
  "directory": "/s",
  "network_filesystem": "nfs",
  "bytes": 1024,
  "recordings": [
    {
      "path": "/s/a.hrec",
      "name": "a.hrec",
      "bytes": 1000,
      "state": "closed",
      "id": "0123456789abcdef",
      "origin": "run",
      "start": "2025-11-20T14:15:03.250000Z",
      "start_ns": 1763648103250000000,
      "duration_ns": 60000000000,
      "command": [
        "python3",
        "a b.py"
      ],
      "devices": 2,
      "stop_reason": "job_ended",
      "exit_code": 0,
      "lost": 1
    },
    {
      "path": "/s/b)"
                                                                          "\ufffd"
                                                                          R"(.hrec",
      "name": "b)"
                                                                          "\ufffd"
                                                                          R"(.hrec",
      "bytes": 24,
      "problem": "no recording"
    }
  ]
}
)");
}

TEST(RecordingsJson, WhatIsNotKnownIsNull) {
  ShelfEntry entry = closed();
  entry.summary->state = FileState::kRecording;
  entry.summary->meta.start_realtime = 0;
  entry.summary->meta.exit_code.reset();
  entry.summary->meta.end = 0;  // an import that knew no time
  const auto json = nlohmann::json::parse(to_json(ShelfListing{"/s", "", {entry}}))["recordings"][0];
  EXPECT_EQ(json["state"], "recording");
  EXPECT_TRUE(json["start"].is_null());
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_EQ(json["duration_ns"], 0);
}

TEST(PruneJson, NamesWhatWentAndWhatStayed) {
  const PruneReport report{.removed = {unreadable()}, .kept = {closed()}, .problems = {"remove c: busy"}};
  const auto json = nlohmann::json::parse(to_json(report, DryRun::kYes));
  EXPECT_EQ(json, nlohmann::json::parse(R"({"schema": "headroom.recordings-prune/1", "dry_run": true,
    "removed": ["b\ufffd.hrec"], "removed_bytes": 24, "kept": ["a.hrec"], "kept_bytes": 1000,
    "problems": ["remove c: busy"]})"));
  EXPECT_EQ(nlohmann::json::parse(to_json(report, DryRun::kNo))["dry_run"], false);
}

TEST(ImportJson, CountsRowsOfGpusOnlyAndSaysWhatWasMended) {
  MemorySink sink;
  const SourceId gpu = sink.add_source(
      {.kind = SourceKind::kGpu, .key = "GPU-1", .attrs = {{"index", "3"}, {"name", "NVIDIA RTX A6000"}}});
  const SourceId host = sink.add_source({.kind = SourceKind::kHost, .key = "host"});
  for (const Nanos at : {10, 20, 30}) sink.add_row(gpu, at, {});
  sink.add_row(host, 10, {});
  Recording recording = sink.take();
  recording.meta.origin = "import:dmon";
  recording.meta.start = 0, recording.meta.end = 30, recording.meta.interval = 10;
  recording.losses = {{.what = "torn_row", .count = 2, .severity = Severity::kDataLoss, .detail = "line 7"}};
  EXPECT_EQ(gpu_rows(not_packed(recording)), 3U);
  EXPECT_EQ(nlohmann::json::parse(import_to_json(not_packed(recording), "/s/a.hrec")), nlohmann::json::parse(R"({
    "schema": "headroom.import/1", "recording": "/s/a.hrec", "origin": "import:dmon", "rows": 3, "start_ns": 0,
    "end_ns": 30, "interval_ns": 10,
    "devices": [{"uuid": "GPU-1", "index": 3, "name": "NVIDIA RTX A6000", "rows": 3}],
    "losses": [{"what": "torn_row", "count": 2, "severity": "data_loss", "detail": "line 7"}]})"));
}

}  // namespace
}  // namespace headroom::report
