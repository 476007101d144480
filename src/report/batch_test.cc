// SPDX-License-Identifier: Apache-2.0
#include "report/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace headroom::report {
namespace {

using testing::HasSubstr;
using testing::Not;

BatchSummary summary() {
  BatchSummary s;
  s.tasks = {.total = 4, .succeeded = 3, .failed = 1};
  s.attempts = 4;
  s.wall_seconds = 50;
  s.journal = "w.batch/journal.sqlite";
  return s;
}

Explanation explanation() {
  Explanation e;
  e.path = "/state/one.hrec";
  Ledger& l = e.ledger;
  l.end = 50 * kSecond;
  l.devices.resize(2);
  l.devices[0].uuid = "GPU-a";
  l.devices[1].uuid = "GPU-b";
  l.devices[1].index = 1;
  l.tasks = {"w0", "w1"};
  const auto add = [&](Account account, std::size_t device, Nanos s, std::int32_t task) {
    LedgerEntry entry;
    entry.account = account;
    entry.device = device;
    entry.ns = s * kSecond;
    entry.task = task;
    l.entries.push_back(entry);
  };
  add(Account::kUseful, 0, 50, 0);
  add(Account::kDiscarded, 1, 20, 1);
  add(Account::kTaskWaiting, 1, 5, -1);
  add(Account::kNoTask, 1, 25, -1);
  e.batch = BatchTimes{.attempts = 4, .not_succeeded = 1, .tail = 25 * kSecond, .tail_lost = 25 * kSecond};
  Finding finding;
  finding.cause = Cause::kTailImbalance;
  finding.title = "The last tasks ran while other GPUs had nothing left to do";
  finding.claims = {{1, 25 * kSecond, 50 * kSecond, Account::kNoTask}};
  e.findings = {finding};
  return e;
}

TEST(BatchReport, TheEndShowsTheLedgerOfAllGpus) {
  TextOptions options;
  options.recording = "last";
  const std::string text = to_text(summary(), {.resume = "headroom batch w.toml"}, explanation(), options);
  EXPECT_THAT(text, HasSubstr("4 tasks in 50.0 s: 3 succeeded, 1 failed"));
  EXPECT_THAT(text, HasSubstr("\nGPU 1  "));
  EXPECT_THAT(text, HasSubstr(" 50.0 s = 100 %\n"));
  EXPECT_THAT(text, HasSubstr("100.0 %     50.0 s\n"));  // computing, on GPU 0
  EXPECT_THAT(text, HasSubstr("discarded work "));
  EXPECT_THAT(text, HasSubstr("\n1. The last tasks ran while other GPUs had nothing left to do"));
  EXPECT_THAT(text, HasSubstr("costs 25.0 s"));
  EXPECT_THAT(text, HasSubstr("Next: headroom why last --full\n"));
  EXPECT_THAT(text, HasSubstr("Go on with: headroom batch w.toml\n"));
  for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(BatchReport, WithoutARecordingThereIsNoLedger) {
  const std::string text = to_text(summary(), {}, std::nullopt, {});
  EXPECT_EQ(text, to_text(summary(), {}, TextOptions{}));
  EXPECT_THAT(text, Not(HasSubstr("= 100 %")));
  const auto json = nlohmann::json::parse(to_json(summary(), {}));
  for (const char* name : {"ledger", "tail_seconds", "discarded_device_seconds", "task_waiting_device_seconds"}) {
    ASSERT_TRUE(json.contains(name)) << name;
    EXPECT_TRUE(json[name].is_null()) << name;
  }
}

TEST(BatchReport, TheJsonHoldsTheLedgerByTask) {
  const auto json = nlohmann::json::parse(to_json(summary(), {}, explanation()));
  EXPECT_EQ(json["tail_seconds"], 25.0);
  EXPECT_EQ(json["discarded_device_seconds"], 20.0);
  EXPECT_EQ(json["task_waiting_device_seconds"], 5.0);
  const auto& ledger = json["ledger"];
  EXPECT_EQ(ledger["budget_ns"], 100 * kSecond);
  std::int64_t sum = 0;
  for (const auto& account : ledger["accounts"]) sum += account["ns"].get<std::int64_t>();
  EXPECT_EQ(sum, ledger["budget_ns"]);
  EXPECT_EQ(ledger["accounts"][1]["task"], "w1");
  EXPECT_EQ(ledger["accounts"][1]["cause"], "discarded");
  EXPECT_TRUE(ledger["accounts"][2]["task"].is_null());
}

BatchSummary packed(std::int64_t alone, bool history) {
  BatchSummary s = summary();
  s.tasks.succeeded = 20, s.tasks.failed = 0;
  for (const char* device : {"GPU-a", "GPU-b"})
    s.packing.push_back({.device = device,
                         .concurrency = 5,
                         .work_per_second = 2.8,
                         .one_per_gpu_work_per_second = 0.7,
                         .one_per_gpu_error_ratio = 0.05,
                         .one_per_gpu_attempts = alone,
                         .one_per_gpu_from_history = history});
  return s;
}

std::string said(const BatchSummary& of) {
  std::string text = to_text(of, {}, {});
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

TEST(BatchReport, FailedTasksAreNoFaultOfThePacking) {
  BatchSummary slower = packed(3, false);
  for (auto& packing : slower.packing) packing.work_per_second = 0.4;
  slower.tasks.failed = 12;
  EXPECT_THAT(said(slower), ::testing::Not(HasSubstr("0.54x")));
  slower.tasks.failed = 0;
  EXPECT_THAT(said(slower), HasSubstr("did 0.54x to 0.60x the work"));
}

// Tasks whose kernels run 59 % of the time alone, twelve on two GPUs: all kernels one after the other gain 1.7x.
TEST(BatchReport, PackingGainsNoMoreThanKernelsThatTakeTurnsLeave) {
  BatchSummary turns = packed(0, true);
  for (auto& packing : turns.packing) packing.work_per_second = 0.7 * 1.65, packing.alone_busy_ratio = 0.59;
  EXPECT_THAT(said(turns), HasSubstr("did 1.57x to 1.69x the work of one per GPU"));
  for (auto& packing : turns.packing) packing.work_per_second = 0.7 * 3.8;
  EXPECT_THAT(
      said(turns),
      HasSubstr("cannot be told: against the tasks that ran alone it would be 3.6x or more, and more than 1.69x "
                "is not possible (alone, its kernels run 59 % of the time)"));
}

TEST(BatchReport, ThePackingSaysOnWhatItsGainRests) {
  EXPECT_THAT(said(packed(3, false)),
              HasSubstr("Packing 5.0 tasks per GPU did 3.8x to 4.2x the work of one per GPU (measured "
                        "on 3 tasks that ran alone)."));
  EXPECT_THAT(said(packed(1, true)), HasSubstr("(measured on 1 task that ran alone and in earlier batches)"));
  EXPECT_THAT(said(packed(0, true)), HasSubstr("(measured in earlier batches)"));
  BatchSummary some_failed = packed(3, false);
  some_failed.tasks.failed = 2;
  EXPECT_THAT(said(some_failed), HasSubstr("(measured on 3 tasks that ran alone, without the 2 that failed)"));
  BatchSummary impossible = packed(0, true);
  for (auto& packing : impossible.packing) packing.work_per_second = 0.7 * 5.6;
  EXPECT_THAT(said(impossible),
              HasSubstr("Packing 5.0 tasks per GPU; what that gained cannot be told: against the tasks that ran alone "
                        "it would be 5.3x or more, and more than 5.0x is not possible"));
  for (auto& packing : impossible.packing) packing.work_per_second = 0.7 * 5.1;
  EXPECT_THAT(said(impossible), HasSubstr("did 4.9x to 5.0x the work of one per GPU")) << "within its interval";
  BatchSummary stopped = packed(1, false);
  stopped.tasks.succeeded = 1;
  EXPECT_THAT(said(stopped),
              HasSubstr("; what that gained was not measured: no task that shared a GPU has succeeded."));
  BatchSummary unknown = packed(0, false);
  for (auto& packing : unknown.packing) {
    packing.one_per_gpu_work_per_second.reset();
    packing.one_per_gpu_unknown = "none of them had a GPU to itself";
  }
  EXPECT_THAT(said(unknown), HasSubstr("; what that gained was not measured: none of them had a GPU to itself. "
                                       "The same batch once with --no-pack --fresh would tell."));
}

TEST(Show, OneThatDiedBeforeAnybodyLookedSaysSo) {
  NamedAttempt named{.task = "t"};
  named.attempt = {.gpu_uuids = {"GPU-a"}, .start = kSecond, .end = kSecond + 24 * kMillisecond, .exit_code = 3};
  named.attempt.outcome = AttemptOutcome::kFailed;
  const std::string text = to_text(named, {});
  EXPECT_THAT(text, HasSubstr("placement     unseen: no look at the driver's lists found it in its 24 ms\n"));
  EXPECT_THAT(text, Not(HasSubstr("GPU memory")));
}

TEST(Show, WhatNeverRanTookNoTimeAndHadNoPlace) {
  NamedAttempt named{.task = "t"};
  named.attempt = {.gpu_uuids = {"GPU-a"}, .start = kSecond, .end = kSecond + 2 * kMillisecond};
  named.attempt.outcome = AttemptOutcome::kNotStarted;
  const std::string text = to_text(named, {});
  EXPECT_THAT(text, HasSubstr("could not be started"));
  EXPECT_THAT(text, Not(HasSubstr("placement")));
  EXPECT_THAT(text, Not(HasSubstr("took")));
}

}  // namespace
}  // namespace headroom::report
