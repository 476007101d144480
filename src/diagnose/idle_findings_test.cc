// SPDX-License-Identifier: Apache-2.0
// What the host did while a GPU was idle, and the findings that follow from it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/claims.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "diagnose/words.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using testing::cell;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::RecordingBuilder;

// Sets a state of a process's rows.
void set(Recording& recording, std::int64_t pid, Metric metric, std::int64_t value) {
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    if (recording.sources[i].kind != SourceKind::kProcess || process_of(recording.sources[i]).pid != pid) continue;
    Track& track = recording.tracks[i];
    std::erase_if(track.columns, [&](const Column& old) { return old.metric == metric; });
    track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), value), {}});
  }
}

// One job whose GPU is idle for half of the time, perhaps with a worker.
Recording half_idle(double cpu, std::vector<Cell> extra = {}, std::optional<double> worker = {}) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.5; }).process({100, 1, 0, 100, cpu, true, std::move(extra)});
  builder.context(100, 0, 0, 100);
  if (worker) builder.process(101, 100, 0, 100, *worker);
  return builder.build();
}

TEST(IdleFindings, AProcessThatReadsItsDataItselfWaitsForStorage) {
  Recording recording = half_idle(0.1, {cell(Metric::kReadBytes, 50'000'000)});
  set(recording, 100, Metric::kProcessState, 'D');
  set(recording, 100, Metric::kWaitChannel, static_cast<std::int64_t>(WaitChannel::kDisk));
  const Explanation e = explain(recording);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].cause, Cause::kSlowStorage);
  EXPECT_THAT(e.findings[0].advice, Not(HasSubstr("there are 0")));
  EXPECT_THAT(e.findings[0].told_apart_from, Not(Contains(HasSubstr("storage"))));
}

TEST(IdleFindings, WorkersAsleepOnAConnectionWaitForStorageFarAway) {
  Recording recording = half_idle(0.1, {}, 0.02);
  set(recording, 101, Metric::kWaitChannel, static_cast<std::int64_t>(WaitChannel::kSocket));
  const Explanation e = explain(recording);
  EXPECT_GT(e.ledger.total(Account::kInput), 45 * kSecond);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].cause, Cause::kSlowStorage);
}

TEST(IdleFindings, WorkersOneAfterTheOtherAreStartedAnewAndNotAddedUp) {
  RecordingBuilder builder(100);
  const auto starts = [](double t) { return std::fmod(t - 0.01, 20) < 4 ? 0.0 : 1.0; };
  builder.gpu(0, starts).process(100, 1, 0, 100, 0.1).context(100, 0, 0, 100);
  for (int i = 0; i < 5; ++i) builder.process(101 + i, 100, 20 * i, 20 * i + 19.5, 0.8);
  const Recording recording = builder.build();
  const Explanation e = explain(recording);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].cause, Cause::kEpochWorkerRestart);
  EXPECT_NEAR(seconds(e.findings[0].cost()), 16, 1);
  EXPECT_THAT(e.findings[0].evidence, Contains(HasSubstr("4 worker processes took the place")));
  const Analysis a = analyze(recording);
  EXPECT_EQ(a.host.helpers, 1U);
  EXPECT_NEAR(a.host.helper_cpu, 0.8, 0.1);
}

// Environments in lock step, of which one is slow: nothing can be read ahead, and more of them do not help.
TEST(IdleFindings, OneWorkerThatDoesItAllIsNamed) {
  const auto said = [](double others) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.5; }).process(100, 1, 0, 60, 0.02).context(100, 0, 0, 60);
    builder.process(101, 100, 0, 60, 0.7);
    for (int i = 0; i < 3; ++i) builder.process(102 + i, 100, 0, 60, others);
    const Explanation e = explain(builder.build());
    const Finding* finding = find(e, Cause::kBurstyInput);
    return finding ? fmt::format("{} {}", fmt::join(finding->evidence, "; "), finding->advice) : e.headline;
  };
  EXPECT_THAT(said(0.02), AllOf(HasSubstr("92 % of what they used then is one's, process 101"),
                                HasSubstr("see what process 101 does that the others do not")));
  EXPECT_THAT(said(0.3), AllOf(HasSubstr("on average they are fast enough"), Not(HasSubstr("process 101"))));
}

TEST(IdleFindings, ChildrenTooShortToBeSeenCountByWhatTheirParentWaitedFor) {
  const Explanation e = explain(half_idle(0.1, {cell(Metric::kChildrenCpu, 400'000'000)}));
  EXPECT_GT(e.ledger.total(Account::kInput), 45 * kSecond);
  const Finding* finding = find(e, Cause::kInputInMainProcess);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("used 0.4 cores")));
}

TEST(IdleFindings, AnotherThreadOfTheProcessIsNotCalledQuiet) {
  Recording recording = half_idle(0.05);
  recording.meta.missing_tiers = {{'Y', "not asked for"}};  // it may be a program in Python
  for (std::size_t i = 0; i < recording.sources.size(); ++i)
    for (Column& column : recording.tracks[i].columns)
      if (recording.sources[i].kind == SourceKind::kProcess && column.metric == Metric::kCpuUser)
        for (std::int64_t& value : column.values) value *= 18;
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kGilContention);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->claims, Not(IsEmpty()));
  EXPECT_EQ(finding->claims[0].account, Account::kHostCode);
  for (const Finding& one : e.findings) EXPECT_THAT(one.told_apart_from, Not(Contains(HasSubstr("host code"))));
}

TEST(IdleFindings, SomebodyAtATerminal) {
  Recording recording = half_idle(0.02);
  set(recording, 100, Metric::kWaitChannel, static_cast<std::int64_t>(WaitChannel::kTerminal));
  const Explanation e = explain(recording);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].cause, Cause::kInteractiveHoldingGpu);
}

TEST(IdleFindings, AQuietJobHasAWideSetAndABoundThatHoldsForAllOfIt) {
  const Explanation e = explain(half_idle(0.02));
  ASSERT_FALSE(e.findings.empty());
  const Finding& finding = e.findings[0];
  EXPECT_FALSE(finding.cause);
  for (const Cause cause :
       {Cause::kLoggingUpload, Cause::kSlowStorage, Cause::kInputInMainProcess, Cause::kBurstyInput})
    EXPECT_THAT(finding.candidates, Contains(cause));
  EXPECT_THAT(finding.candidates, Not(Contains(Cause::kGilContention)))
      << "threads that do not run contend for nothing";
  ASSERT_TRUE(finding.gain);
  EXPECT_NEAR(finding.gain->high, 2, 0.1);
}

TEST(IdleFindings, OfProcessesWithAGpuEachTheSlowerMayKeepTheFasterWaiting) {
  const auto names_a_slow_rank = [](double other) {
    RecordingBuilder builder(100, 0.5);
    builder.gpu(0, [](double) { return 0.35; }).gpu(1, [=](double) { return other; });
    builder.process(100, 1, 0, 100, 0.01).context(100, 0, 0, 100);
    builder.process(200, 1, 0, 100, 0.01).context(200, 1, 0, 100);
    const Explanation e = explain(builder.build());
    return !e.findings.empty() && !e.findings[0].candidates.empty() &&
           e.findings[0].candidates.front() == Cause::kStraggler;
  };
  EXPECT_TRUE(names_a_slow_rank(0.86));
  EXPECT_FALSE(names_a_slow_rank(0.35));
}

TEST(IdleFindings, LongPausesOnTheCpuAreNotTakenForSteps) {
  RecordingBuilder builder(100, 0.5);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.01, 10) < 2 ? 0.0 : 1.0; });
  builder.process(100, 1, 0, 100, 1).context(100, 0, 0, 100);
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].candidates.front(), Cause::kValidation);
  EXPECT_THAT(e.findings[0].candidates, Contains(Cause::kDuplicatePreprocessing));
  EXPECT_THAT(e.findings[0].candidates, Contains(Cause::kHostGraphBuilding));
}

TEST(IdleFindings, AnInstallBeforeAnyContextHasAFindingOfItsOwn) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t > 35 ? 1.0 : 0.0; }).process(90, 1, 0, 100, 0.01);
  builder.process(91, 90, 0, 30, 0.9).process(100, 90, 30, 100, 0.9).context(100, 0, 31, 100);
  Recording recording = builder.build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess && process_of(source).pid == 91) source.attrs["comm"] = "pip";
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kEnvironmentInstall);
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(seconds(finding->cost()), 30, 1);
  ASSERT_TRUE(finding->gain);
  EXPECT_NEAR(finding->gain->high, 100.0 / 70, 0.03);
}

TEST(IdleFindings, CompilersAtTheStartExplainIt) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t > 30 ? 1.0 : 0.0; }).process(100, 1, 0, 100, 0.1).context(100, 0, 1, 100);
  builder.process(101, 100, 5, 25, 0.9);
  Recording recording = builder.build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess && process_of(source).pid == 101) source.attrs["comm"] = "cicc";
  const Explanation e = explain(recording);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].cause, Cause::kCompileWarmup);
}

TEST(IdleFindings, OneRankOnTheCpuKeepsTheOtherWaiting) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.4; }).gpu(1, [](double) { return 0.4; });
  builder.process(100, 1, 0, 100, 0.9).context(100, 0, 0, 100).process(101, 1, 0, 100, 0.05).context(101, 1, 0, 100);
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings[0].candidates.front(), Cause::kStraggler);
  ASSERT_TRUE(e.findings[0].gain);
  EXPECT_NEAR(e.findings[0].gain->high, 2.5, 0.1) << "both GPUs wait for the same process";
}

TEST(IdleFindings, WhatRecursIsSaidOfWhatClaimsItOnly) {
  RecordingBuilder builder(1260);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.01, 420) < 360 ? 0.95 : 0.0; });
  const Recording recording = builder.build();
  const Analysis a = analyze(recording);
  const auto idle = [&](double until) {
    return diagnose::claim(a, [&](std::size_t, const Slice& slice) {
      return !is_busy(slice.account) && slice.end <= RecordingBuilder::at(until);
    });
  };
  EXPECT_THAT(diagnose::recurrences(a, idle(1260)), ElementsAre(HasSubstr("3 times")));
  EXPECT_THAT(diagnose::recurrences(a, idle(500)), IsEmpty()) << "one of three";
  EXPECT_THAT(diagnose::recurrences(a, {}), IsEmpty());
}

// The pauses of the finding that comes first, in a job that begins to compute after three seconds.
std::vector<std::string> pauses_told(const std::function<bool(double)>& idle) {
  RecordingBuilder builder(420);
  builder.gpu(0, [&](double t) { return t <= 3 || idle(t) ? 0.0 : 0.95; });
  const Analysis a = analyze(builder.build());
  return diagnose::recurrences(a, diagnose::claim(a, [](std::size_t, const Slice& slice) {
                                 return !is_busy(slice.account) && slice.begin >= RecordingBuilder::at(10);
                               }));
}

TEST(IdleFindings, TheStartOfAJobIsNoPauseThatRecurs) {
  const auto in = [](double from, double to) { return [=](double t) { return from < t && t <= to; }; };
  EXPECT_THAT(pauses_told(in(25, 325)), IsEmpty()) << "one pause of five minutes";
  EXPECT_THAT(pauses_told([&](double t) { return in(50, 110)(t) || in(200, 260)(t); }),
              ElementsAre(HasSubstr("for 1:00 at a time, 2 times")));
  EXPECT_THAT(pauses_told([&](double t) { return in(50, 60)(t) || in(200, 260)(t); }),
              ElementsAre(HasSubstr(" at a time on average, 2 times")))
      << "these are not alike";
}

}  // namespace
}  // namespace headroom
