// SPDX-License-Identifier: Apache-2.0
#include "fleet/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

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

Slice slice(Nanos begin, Nanos end, Account account) {
  return {.begin = begin * kSecond, .end = end * kSecond, .account = account};
}
Nanos time(const Coverage::Counted& counted, Account account) {
  return counted.accounts[static_cast<std::size_t>(account)] / kSecond;
}

TEST(Coverage, WhatNoOtherFileHasCounts) {
  Coverage coverage({}, {});
  const auto a =
      coverage.count("GPU-1", {slice(0, 6, Account::kUseful), slice(6, 10, Account::kInput)}, 100 * kSecond, "a");
  EXPECT_EQ(time(a, Account::kUseful), 6);
  EXPECT_EQ(time(a, Account::kInput), 4);
  EXPECT_EQ(a.elsewhere, 0);
  const auto later = coverage.count("GPU-1", {slice(0, 5, Account::kUseful)}, 110 * kSecond, "b");
  EXPECT_EQ(time(later, Account::kUseful), 5);
  const auto other = coverage.count("GPU-2", {slice(0, 5, Account::kUseful)}, 100 * kSecond, "c");
  EXPECT_EQ(time(other, Account::kUseful), 5);
}

TEST(Coverage, TheSameTimeOfAGpuCountsOnceByUnixTime) {
  Coverage coverage({}, {});
  (void)coverage.count("GPU-1", {slice(0, 10, Account::kUseful)}, 100 * kSecond, "a");
  EXPECT_EQ(coverage.left("GPU-1", 95 * kSecond, 115 * kSecond), 10 * kSecond);
  const auto b =
      coverage.count("GPU-1", {slice(0, 20, Account::kInput)}, 95 * kSecond, "b");  // boots have clocks of their own
  EXPECT_EQ(time(b, Account::kInput), 10);
  EXPECT_EQ(b.elsewhere, 10 * kSecond);
  EXPECT_EQ(b.with.at("a"), 10 * kSecond);
  const auto c = coverage.count("GPU-1", {slice(0, 20, Account::kInput)}, 95 * kSecond, "c");
  EXPECT_EQ(sum_of(c.accounts), 0);
  EXPECT_EQ(c.with.at("a"), 10 * kSecond);
  EXPECT_EQ(c.with.at("b"), 10 * kSecond);
}

TEST(Coverage, WithoutAnIdentityNothingMeets) {
  Coverage coverage({}, {});
  (void)coverage.count("", {slice(0, 10, Account::kUseful)}, 0, "a");
  EXPECT_EQ(time(coverage.count("", {slice(0, 10, Account::kUseful)}, 0, "b"), Account::kUseful), 10);
  EXPECT_EQ(coverage.left("", 0, 10 * kSecond), 10 * kSecond);
}

TEST(Coverage, OfASharedGpuTheOthersKernelsAreTheirsAndWaitsCountOnce) {
  Coverage coverage({}, {});
  const auto a = coverage.count(
      "GPU-1", {slice(0, 4, Account::kUseful), slice(4, 7, Account::kForeign), slice(7, 10, Account::kInput)}, 0, "a");
  EXPECT_EQ(sum_of(a.accounts), 7 * kSecond);
  EXPECT_EQ(a.foreign, 3 * kSecond);
  const auto b = coverage.count(
      "GPU-1", {slice(0, 4, Account::kForeign), slice(4, 8, Account::kUseful), slice(8, 10, Account::kInput)}, 0, "b");
  EXPECT_EQ(time(b, Account::kUseful), 3) << "no more than the other one saw of others";
  EXPECT_EQ(time(b, Account::kInput), 0);
  EXPECT_EQ(b.elsewhere, 3 * kSecond);
}

TEST(Coverage, OutsideOfWhatWasAskedForNothingCounts) {
  Coverage coverage(102 * kSecond, 106 * kSecond);
  EXPECT_EQ(coverage.left("GPU-1", 100 * kSecond, 110 * kSecond), 4 * kSecond);
  const auto a =
      coverage.count("GPU-1", {slice(0, 3, Account::kUseful), slice(3, 10, Account::kInput)}, 100 * kSecond, "a");
  EXPECT_EQ(time(a, Account::kUseful), 1);
  EXPECT_EQ(time(a, Account::kInput), 3);
  EXPECT_EQ(a.outside, 6 * kSecond);
  EXPECT_EQ(a.elsewhere, 0);
  const auto late = coverage.count("GPU-1", {slice(0, 3, Account::kUseful)}, 200 * kSecond, "b");
  EXPECT_EQ(sum_of(late.accounts), 0);
  EXPECT_EQ(late.outside, 3 * kSecond);
}

TEST(Coverage, NoGpuCountsLongerThanTimeGoesOnAndEveryFilesTimeIsSomewhere) {
  constexpr std::array kOf{Account::kUseful, Account::kForeign, Account::kInput, Account::kNoTask, Account::kDiscarded};
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto up_to = [&](int most) { return static_cast<Nanos>(std::uniform_int_distribution(0, most)(random)); };
    Coverage coverage(seed % 3 == 0 ? std::optional(30 * kSecond) : std::nullopt, std::nullopt);
    Nanos counted = 0;
    for (int file = 0; file < 8; ++file) {
      std::vector<Slice> slices;
      Nanos at = up_to(50), length = 0;
      const Nanos begin = at;
      for (Nanos i = up_to(5); i >= 0; --i) {
        const Nanos next = at + 1 + up_to(20);
        slices.push_back(slice(at, next, kOf[static_cast<std::size_t>(up_to(4))]));
        at = next;
      }
      length = (at - begin) * kSecond;
      const auto one = coverage.count("GPU-1", slices, 0, std::to_string(file));
      Nanos with = 0;
      for (const auto& [path, ns] : one.with) with += ns;
      EXPECT_EQ(with, one.elsewhere);
      EXPECT_EQ(sum_of(one.accounts) + one.foreign + one.elsewhere + one.outside, length);
      counted += sum_of(one.accounts);
    }
    EXPECT_LE(counted, 200 * kSecond);
    EXPECT_LE(counted, 200 * kSecond - coverage.left("GPU-1", 0, 200 * kSecond));
  }
}

}  // namespace

}  // namespace headroom::fleet
