// SPDX-License-Identifier: Apache-2.0
#include "fleet/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/entities.h"

namespace headroom::fleet {
namespace {

using ::testing::ElementsAre;

// A job of 100 s on GPUs that each waited for input from 60 s on.
struct MadeJob {
  explicit MadeJob(std::size_t gpus = 1) {
    recording.meta.origin = e.meta.origin = "run";
    e.path = "job.hrec";
    e.meta.host = "box";
    e.meta.cwd = "/home/alice/bert";
    e.meta.command = {"python3", "train.py"};
    e.meta.start = 1000 * kSecond;
    e.meta.start_realtime = 5000 * kSecond;
    e.ledger.begin = 1000 * kSecond;
    e.ledger.end = 1100 * kSecond;
    Process root{.pid = 7, .user = "alice"};
    root.in_job = true;
    recording.sources.push_back({SourceKind::kProcess, "7/0", kNoSource, to_attrs(root)});
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
      Device device;
      device.uuid = "GPU-" + std::to_string(gpu);
      device.name = "A100";
      e.ledger.devices.push_back(device);
      e.slices.push_back({});
      slice(gpu, 0, 60, Account::kUseful);
      slice(gpu, 60, 100, Account::kInput);
    }
  }
  void slice(std::size_t gpu, Nanos begin, Nanos end, Account account) {
    e.slices[gpu].push_back({.begin = (1000 + begin) * kSecond, .end = (1000 + end) * kSecond, .account = account});
  }
  Finding& finding(std::optional<Cause> cause, std::size_t gpu, Nanos begin, Nanos end, Account account) {
    Finding made{.cause = cause, .title = cause ? "what it is" : "one of these"};
    made.claims = {{gpu, (1000 + begin) * kSecond, (1000 + end) * kSecond, account, -1}};
    if (!cause) made.candidates = {Cause::kSlowStorage, Cause::kBurstyInput};
    e.findings.push_back(std::move(made));
    return e.findings.back();
  }
  // Of the finding, as a plan has it.
  void promise(std::size_t finding, double low, double high) {
    Option option{.id = "change", .finding = finding, .gain = {low, high, ""}};
    told.options.push_back(option);
    told.after.push_back({{"change"}, {low, high, ""}});
  }
  [[nodiscard]] FleetJob row(Coverage& coverage) const { return job_of(recording, e, told, coverage); }
  [[nodiscard]] FleetJob row() const {
    Coverage coverage({}, {});
    return row(coverage);
  }

  Recording recording;
  Explanation e;
  Plan told;
};

Nanos time(const FleetJob& job, Account account) { return job.accounts[static_cast<std::size_t>(account)] / kSecond; }

TEST(FleetJob, KnowsWhoHeldWhatAndWhereItWent) {
  const FleetJob row = MadeJob(2).row();
  EXPECT_THAT(row.names, ElementsAre("alice", "/home/alice/bert", "job.hrec", "python3 train.py", "box", "A100"));
  EXPECT_EQ(row.gpus, 2U);
  EXPECT_EQ(row.held(), 200 * kSecond);
  EXPECT_EQ(time(row, Account::kInput), 80);
  EXPECT_EQ(row.back_high, 0) << "nothing was found";
}

TEST(FleetJob, WhatAPlanGainsIsOfAllGpusThatItHolds) {
  MadeJob job(2);
  job.finding(Cause::kInputTooFewWorkers, 0, 60, 100, Account::kInput);
  job.promise(0, 1.25, 2.0);
  const FleetJob row = job.row();
  EXPECT_EQ(row.back_low, 40 * kSecond);
  EXPECT_EQ(row.back_high, 100 * kSecond);
  ASSERT_EQ(row.losses.size(), 1U);
  EXPECT_EQ(row.losses[0].cost, 40 * kSecond);
  EXPECT_EQ(row.losses[0].at_most, 100 * kSecond);
}

TEST(FleetJob, OfASetNothingIsKnownToComeBack) {
  MadeJob job;
  Finding& set = job.finding(std::nullopt, 0, 60, 100, Account::kInput);
  set.gain = Gain{1, 1.6, ""};
  keep_what_is_told(job.e);
  EXPECT_THAT(job.e.findings[0].candidates, ElementsAre(Cause::kHealthy)) << "against which there is no fix";
  EXPECT_TRUE(fixes_of(Cause::kHealthy).empty());
  EXPECT_FALSE(job.e.findings[0].gain);
  const FleetJob row = job.row();
  EXPECT_EQ(row.back_high, 0);
  EXPECT_EQ(row.undecided, 40 * kSecond);
  EXPECT_EQ(row.losses[0].at_most, 0);
}

TEST(FleetJob, APartOfASetWhoseCauseIsToldIsNotUndecided) {
  MadeJob job;
  job.finding(std::nullopt, 0, 60, 100, Account::kInput);
  job.finding(Cause::kSlowStorage, 0, 60, 70, Account::kInput).part_of = 0;
  EXPECT_EQ(job.row().undecided, 30 * kSecond);
}

TEST(FleetJob, AGpuThatItNeverUsesComesBackWholeButNothingIsPromisedOfIt) {
  MadeJob job(2);
  job.e.slices[1].clear();
  job.slice(1, 0, 100, Account::kNotUsed);
  job.finding(Cause::kMoreGpusThanUseful, 1, 0, 100, Account::kNotUsed);
  job.finding(Cause::kInputTooFewWorkers, 0, 60, 100, Account::kInput);
  job.promise(1, 1.0, 2.0);
  const FleetJob row = job.row();
  EXPECT_EQ(row.held(), 200 * kSecond);
  EXPECT_EQ(row.back_low, 0);
  EXPECT_EQ(row.back_high, 150 * kSecond) << "that GPU whole, half of the other";
}

TEST(FleetJob, AGpuOnWhichOthersAloneRanIsNotItsOwn) {
  MadeJob job(2);
  job.e.slices[1].clear();
  job.slice(1, 0, 50, Account::kForeign);
  job.slice(1, 50, 100, Account::kNotUsed);
  job.finding(Cause::kMoreGpusThanUseful, 1, 50, 100, Account::kNotUsed);
  const FleetJob row = job.row();
  EXPECT_EQ(row.gpus, 1U);
  EXPECT_EQ(row.held(), 100 * kSecond);
  EXPECT_EQ(row.back_high, 0);
  EXPECT_TRUE(row.losses.empty());
}

TEST(FleetJob, OthersKernelsOnItsGpuAreNotItsTime) {
  MadeJob job;
  job.e.slices[0].clear();
  job.slice(0, 0, 60, Account::kUseful);
  job.slice(0, 60, 100, Account::kForeign);
  const FleetJob row = job.row();
  EXPECT_EQ(row.held(), 60 * kSecond);
  EXPECT_EQ(row.foreign, 40 * kSecond);
}

TEST(FleetJob, OfAWholeBoxAGpuThatNobodyHasIsNotHeld) {
  MadeJob job;
  job.recording = {};
  job.e.meta.origin = "record";
  job.slice(0, 100, 150, Account::kNoTask);
  job.e.ledger.end += 50 * kSecond;
  EXPECT_EQ(job.row().held(), 100 * kSecond);
  job.e.meta.origin = "batch";
  EXPECT_EQ(job.row().held(), 150 * kSecond) << "a batch has its GPUs until it ends";
}

TEST(FleetJob, WhatAnotherFileCountsPromisesNothing) {
  Coverage coverage({}, {});
  MadeJob job;
  job.finding(Cause::kInputTooFewWorkers, 0, 60, 100, Account::kInput);
  job.promise(0, 1.25, 2.0);
  (void)coverage.count("GPU-0", {{.begin = 5000 * kSecond, .end = 5090 * kSecond, .account = Account::kUseful}}, 0,
                       "other.hrec");
  const FleetJob row = job.row(coverage);
  EXPECT_EQ(row.held(), 10 * kSecond);
  EXPECT_EQ(row.elsewhere, 90 * kSecond);
  EXPECT_EQ(row.counted_with, "other.hrec");
  EXPECT_EQ(row.losses.at(0).cost, 10 * kSecond);
  EXPECT_EQ(row.back_low, 0);
  EXPECT_EQ(row.back_high, 10 * kSecond) << "no more than what counts";
}

TEST(FleetJob, WithoutADateNothingTellsWhetherTwoFilesHaveTheSameTime) {
  MadeJob job;
  EXPECT_FALSE(job.row().overlap_unknown);
  job.e.meta.start_realtime = 0;
  EXPECT_TRUE(job.row().overlap_unknown);
}

}  // namespace
}  // namespace headroom::fleet
