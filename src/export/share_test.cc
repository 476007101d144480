// SPDX-License-Identifier: Apache-2.0
#include "export/share.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/regular_file.h"
#include "base/testing.h"
#include "diagnose/explain.h"
#include "export/jsonl.h"
#include "model/events.h"
#include "model/notes.h"
#include "stacks/frame.h"

namespace headroom {
namespace {

TEST(Share, KeepsNothingThatTellsWhoRanWhat) {
  MemorySink sink;
  sink.set_meta({.id = "0123456789abcdef",
                 .origin = "run",
                 .host = "private-host",
                 .boot_id = "private-boot",
                 .command = {"private-command"},
                 .cwd = "/private",
                 .start = 0,
                 .end = 9,
                 .extra = {{"x", "private-extra"}}});
  const SourceId gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {{"index", "0"}}});
  sink.add_source({SourceKind::kProcess,
                   "7/1",
                   kNoSource,
                   {{"pid", "7"}, {"cmdline", "private-argv"}, {"user", "private-user"}, {"uid", "4711"}}});
  sink.add_source(
      {SourceKind::kProcess,
       "8/1",
       kNoSource,
       {{"pid", "8"}, {"cmdline", "/private/python3 -c from multiprocessing.resource_tracker import main;main(5)"}}});
  sink.add_source({SourceKind::kCgroup, "/private.slice", kNoSource, {}});
  sink.add_source({SourceKind::kMarks, "7/1/7/output:1", kNoSource, {{"file", "private.log"}}});
  sink.add_row(gpu, 1, std::array{Cell{Metric::kPower, 250'000, std::nullopt}});
  sink.add_event({1, std::nullopt, "job_start", kNoSource, {{"argv", "private-argv"}, {"pid", "7"}}});
  for (const char* task : {"private-a", "private-b", "private-a"})
    sink.add_event({2, std::nullopt, "attempt_start", kNoSource, {{"task", task}, {"group", "private-group"}}});
  sink.add_event(to_event(events::Note{.text = std::string(kNoteException) + "KeyError: private", .line = {}}, 3));
  sink.add_event({3, std::nullopt, "parameter", kNoSource, {{"name", "data"}, {"value", "/private/data"}}});
  const Recording shared = to_share(sink.take());
  std::string text;
  ASSERT_TRUE(write_jsonl(shared, [&](std::string_view block) -> Result<void> {
    text += block;
    return {};
  }));
  EXPECT_EQ(text.find("private"), std::string::npos) << text;
  EXPECT_EQ(text.find("4711"), std::string::npos) << text;
  EXPECT_NE(text.find("resource_tracker"), std::string::npos) << "it tells nothing of who ran what";
  EXPECT_NE(text.find("\"power_watts\":250"), std::string::npos) << text;
  EXPECT_EQ(shared.events[1].attrs, shared.events[3].attrs);
  EXPECT_NE(shared.events[1].attrs, shared.events[2].attrs);
}

TEST(Share, KeepsStacksWithoutTheirFolders) {
  MemorySink sink;
  const SourceId thread = sink.add_source({SourceKind::kPythonThread, "7/1/7", kNoSource, {}});
  const std::array frames{sink.intern("main (/home/private/a/train.py:1)"),
                          sink.intern("main (/home/private/b/train.py:1)"),
                          sink.intern("f (/home/private/v/lib/python3.11/site-packages/mpmath/libmp/x.py:1)"),
                          sink.intern("f (/opt/private/site-packages/torch/x.py:1)"), sink.intern("no file")};
  sink.add_list_row(thread, {.at = 1, .list = sink.intern_list(frames)});
  const Recording shared = to_share(sink.take());
  EXPECT_EQ(shared.texts, (std::vector<std::string>{"main (train.py:1)", "main (other/train.py:1)",
                                                    "f (/lib/python3.11/site-packages/mpmath/libmp/x.py:1)",
                                                    "f (/site-packages/torch/x.py:1)", "no file"}));
  for (std::size_t i : {2U, 3U}) EXPECT_TRUE(stacks::is_library(stacks::frame_of(shared.texts[i]))) << "as before";
}

std::vector<std::string> answer_of(const Recording& recording) {
  std::vector<std::string> lines;
  const Explanation e = explain(recording);
  for (const Finding& finding : e.findings) lines.push_back(fmt::format("{}: {} ns", finding.title, finding.cost()));
  return lines;
}

TEST(Share, IsExplainedAsTheRecordingItself) {
  for (const char* name : {"python_stacks", "h200_copies", "h200_one_block"}) {
    const auto text =
        read_regular(in_checkout(fmt::format("tests/golden/{}/run.hrec.jsonl", name)), std::size_t{64} << 20);
    ASSERT_TRUE(text) << name;
    const auto recording = read_jsonl(*text);
    ASSERT_TRUE(recording) << name;
    EXPECT_EQ(answer_of(to_share(*recording)), answer_of(*recording)) << name;
  }
}

TEST(Share, KeepsWaitsWithoutAddressesAndPaths) {
  MemorySink sink;
  const SourceId waits = sink.add_source({SourceKind::kProcessWaits, "7/1", kNoSource, {}});
  for (const auto* text :
       {"connection 10.0.0.5:443", "connection 10.0.0.6:443", "file /home/private/x", "pipe pids=9 cat"})
    sink.add_list_row(waits, {.at = 1, .list = sink.intern_list(std::array{sink.intern(text)})});
  EXPECT_EQ(to_share(sink.take()).texts,
            (std::vector<std::string>{"connection host 1", "connection host 2", "file file 1", "pipe pids=9 cat"}));
}

}  // namespace
}  // namespace headroom
