// SPDX-License-Identifier: Apache-2.0
// Machines as they are: what the driver or the log does not say is not said by a report either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "analyze/testing.h"
#include "base/human.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/losses.h"

namespace headroom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::RecordingBuilder;

// A job whose GPU computes, on a machine whose driver lists `listed`.
Recording contained(const std::function<void(RecordingBuilder&)>& listed) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 100, 0.9);
  listed(builder);
  return builder.build();
}

TEST(Machines, WithoutAProcessListNobodySaysThatTheJobNeverUsedAGpu) {
  for (const auto& listed : {std::function([](RecordingBuilder&) {}),
                             std::function([](RecordingBuilder& b) { b.context(31'337, 0, 0, 100); })}) {
    const Explanation e = explain(contained(listed));
    EXPECT_EQ(find(e, Cause::kJobNeverUsesGpu), nullptr);
    const Finding* unknown = find(e, Cause::kOwnersUnknown);
    ASSERT_NE(unknown, nullptr);
    EXPECT_EQ(unknown, &e.findings.front());
    EXPECT_THAT(unknown->advice, HasSubstr("--pid=host"));
    EXPECT_NEAR(seconds(e.ledger.total(Account::kUseful)), 90, 0.1);
    for (const LedgerEntry& entry : e.ledger.entries) EXPECT_EQ(entry.confidence, Confidence::kLow);
    EXPECT_THAT(e.headline, HasSubstr("Whose kernels they were is unknown"));
    EXPECT_EQ(find(e, Cause::kForeignTenant), nullptr);
    EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  }
}

TEST(Machines, AShortJobIsNotToldThatItIsInAContainer) {
  RecordingBuilder builder(2);
  builder.gpu(0, [](double) { return 0.9; }).process(100, 1, 0, 2, 0.9);
  const Explanation e = explain(builder.build());
  const Finding* unknown = find(e, Cause::kOwnersUnknown);
  ASSERT_NE(unknown, nullptr);
  EXPECT_THAT(unknown->title, HasSubstr("short job"));
  EXPECT_THAT(unknown->advice, Not(HasSubstr("container")));
}

TEST(Machines, ProcessesOneAfterTheOtherNeedNoSecondGpu) {
  const auto told = [](double second_from) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.8; }).gpu(1, [](double) { return 0.0; }).process(50, 1, 0, 60, 0.0);
    builder.process(100, 50, 0, 28, 0.9).context(100, 0, 1, 27);
    builder.process(101, 50, second_from, 60, 0.9).context(101, 0, second_from + 1, 60);
    const Explanation e = explain(builder.build());
    const Finding* finding = find(e, Cause::kWrongGpuAssignment);
    return finding != nullptr && finding->cause.has_value();
  };
  EXPECT_TRUE(told(5));
  EXPECT_FALSE(told(30));
}

TEST(Machines, AListWithSomebodyInItIsBelieved) {
  const Explanation e = explain(contained([](RecordingBuilder& builder) {
    builder.process({900, 1, 0, 100, 0.9, false}).context(900, 0, 0, 100);
  }));
  EXPECT_EQ(find(e, Cause::kOwnersUnknown), nullptr);
  EXPECT_NE(find(e, Cause::kJobNeverUsesGpu), nullptr) << "somebody else's kernels";
}

TEST(Machines, AJobWithoutAGpuIsToldWhatToCheck) {
  RecordingBuilder builder(30);
  builder.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 30, 1).meta().command = {"python3", "train.py"};
  const Explanation e = explain(builder.build());
  ASSERT_THAT(e.findings, Not(IsEmpty()));
  EXPECT_EQ(e.findings.front().cause, Cause::kJobNeverUsesGpu);
  for (const char* word : {"torch.cuda.is_available()", "CUDA build", "CUDA_VISIBLE_DEVICES"})
    EXPECT_THAT(e.findings.front().advice, HasSubstr(word));
}

TEST(Machines, OfAJobThatRanBeforeItWasWatchedNothingIsNever) {
  const auto watched = [](bool holds) {
    RecordingBuilder builder(30);
    builder.gpu(0, [](double) { return 0.0; }).process(100, 1, -600, 30, 0.01);
    if (holds) builder.context(100, 0, 0, 30);
    builder.meta().origin = "record";
    return explain(builder.build());
  };
  const Explanation hung = watched(true), other = watched(false);
  EXPECT_EQ(hung.findings.at(0).title, "The job held a GPU and ran no kernel in the 30.0 s that were watched");
  EXPECT_FALSE(hung.findings[0].cause);
  EXPECT_THAT(hung.findings[0].candidates, Contains(Cause::kHang));
  EXPECT_THAT(hung.findings[0].advice, Not(HasSubstr("is_available")));
  EXPECT_EQ(other.findings.at(0).title, "The job was on no GPU in the 30.0 s that were watched");
  for (const Explanation* e : {&hung, &other}) EXPECT_THAT(everything(*e), Not(HasSubstr("never")));
}

TEST(Machines, WhatRanBeforeItWasWatchedIsNotStartingUp) {
  const auto live = [](double began) {
    RecordingBuilder builder(30);
    builder.gpu(0, [](double) { return 0.0; }).process(100, 1, began, 30, 0.01);
    builder.process({200, 1, 0, 30, 0.01, false}).context(200, 0, 0, 30);  // the driver's lists are there
    builder.meta().stop_reason = "";
    return explain(builder.build()).ledger;
  };
  EXPECT_EQ(live(0).total(Account::kStartup), 30 * kSecond) << "its first kernel may still come";
  EXPECT_EQ(live(-600).total(Account::kStartup), 0);
}

TEST(Machines, AContextWithoutAKernelIsItsOwnFindingAndGainsNothing) {
  for (const double length : {4, 60}) {
    const Explanation e = explain(RecordingBuilder(length)
                                      .gpu(0, [](double) { return 0.0; })
                                      .process(100, 1, 0, length, 0.9)
                                      .context(100, 0, 1, length)
                                      .build());
    ASSERT_EQ(e.findings.size(), 1U) << everything(e);
    EXPECT_EQ(e.findings[0].cause, Cause::kJobNeverUsesGpu);
    EXPECT_EQ(e.findings[0].title, "The job held GPU 0 and never ran a kernel on it");
    for (const ClaimedPiece& piece : e.findings[0].claims) EXPECT_EQ(piece.device, 0U);
    EXPECT_FALSE(e.findings[0].gain);
    EXPECT_FALSE(e.bound);
  }
}

TEST(Machines, AFewSecondsOfARunningJobTellNothingOfTheRest) {
  const auto watched = [](double length, double util, double job_from = -100, const char* stop = "duration") {
    RecordingBuilder builder(length);
    builder.meta().origin = "record";
    builder.meta().stop_reason = stop;
    builder.gpu(0, [=](double) { return util; }).process(100, 1, job_from, length, 0.01).context(100, 0, 0, length);
    return explain(builder.build());
  };
  for (const double util : {0.0, 0.98}) {
    const Explanation e = watched(4, util);
    EXPECT_THAT(e.headline,
                HasSubstr("of the 4.0 s that were watched. That tells nothing of the time before and after"));
    EXPECT_TRUE(e.findings.empty()) << e.findings[0].title;
    EXPECT_FALSE(e.bound);
    for (const HealthCheck& one : e.health) EXPECT_NE(one.good, Answer::kYes) << one.check;
    EXPECT_EQ(check(e, "progress").good, Answer::kUnknown);
    EXPECT_FALSE(watched(60, util).findings.empty());
  }
  const Explanation waits = watched(4, 0.4);
  ASSERT_FALSE(waits.findings.empty()) << "what it waited for then is seen";
  for (const Finding& finding : waits.findings) {
    EXPECT_EQ(finding.confidence, Confidence::kLow) << finding.title;
    EXPECT_FALSE(finding.gain) << finding.title;
    EXPECT_FALSE(names(finding, Cause::kHang)) << finding.title;
  }
  EXPECT_NE(find(watched(4, 0.98, 0, "job_ended"), Cause::kHealthy), nullptr) << "all of its life was seen";
}

TEST(Machines, ARestartAfterEveryCrashIsNoHealthyJob) {
  RecordingBuilder builder(100);
  builder.gpu(
      0, [](double t) { return std::fmod(t - 0.5, 25) < 3 ? 0.0 : 1.0; }, 47.0 * (1 << 30));
  for (int i = 0; i < 4; ++i)
    builder.process(100 + i, 1, 25 * i, 25 * i + 25, 0.9).context(100 + i, 0, 25 * i + 1, 25 * i + 24);
  builder.meta().exit_code = 1;
  const Explanation e = explain(builder.build());
  const Finding* finding = find(e, Cause::kOomRestartLoop);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->evidence, Contains("the job ended with exit code 1"));
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  // Busy throughout, and failed for whatever reason: not healthy.
  RecordingBuilder failed(100);
  failed.gpu(0, [](double) { return 0.98; }).process(100, 1, 0, 100, 0.9).context(100, 0, 0, 100);
  failed.meta().exit_code = 3;
  EXPECT_EQ(find(explain(failed.build()), Cause::kHealthy), nullptr);
}

TEST(Machines, ClocksCostWhatTheDriverCountedAndOnlyWhileKernelsRan) {
  Recording recording = RecordingBuilder(20)
                            .gpu(0, [](double t) { return t <= 15.5 ? 1.0 : 0.0; })
                            .process(100, 1, 0, 20, 0.9)
                            .context(100, 0, 0, 20)
                            .build();
  const auto gpu = static_cast<std::size_t>(recording.all(SourceKind::kGpu)[0]);
  recording.sources[gpu].attrs["sm_clock_max_mhz"] = "2000";
  Track& track = recording.tracks[gpu];
  Column counter{Metric::kEventHwThermal, {}, {}}, clock{Metric::kSmClock, {}, {}};
  for (const Nanos at : track.at) {
    const double t = seconds(at - recording.meta.start);
    counter.values.push_back(static_cast<std::int64_t>(std::min(t, 10.0) * 1e9));
    clock.values.push_back(t <= 10.5 ? 1000 : t <= 14.5 ? 2000 : 210);  // of an idle GPU before its utilisation falls
  }
  track.columns.push_back(counter);
  track.columns.push_back(clock);
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(seconds(finding->cost()), 4.5, 0.3) << "half of the clock, in the 9 s between readings";
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("SM clock 1000 MHz")));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("the driver counted 9.0 s of 14.0 s")));
  ASSERT_TRUE(finding->gain);
  EXPECT_GT(finding->gain->high, 1.25) << "kernels that end sooner are no idle time that could not go";
}

TEST(Machines, OthersKernelsAreClaimedOnce) {
  const Explanation e = explain(RecordingBuilder(100)
                                    .gpu(0, [](double) { return 1.0; })
                                    .process(100, 1, 0, 100, 0.9)
                                    .context(100, 0, 0, 100, 0.5)
                                    .process({900, 1, 0, 100, 0.9, false})
                                    .context(900, 0, 0, 100, 0.5)
                                    .build());
  const Finding* tenant = find(e, Cause::kForeignTenant);
  ASSERT_NE(tenant, nullptr);
  ASSERT_TRUE(tenant->gain);
  EXPECT_NEAR(tenant->gain->high, 2, 0.05);
  EXPECT_EQ(e.findings.size(), 1U);
  EXPECT_THAT(everything(e), Not(HasSubstr("record the job itself")));
  ASSERT_TRUE(e.bound);
  EXPECT_THAT(e.bound->condition, HasSubstr("others"));
}

TEST(Machines, TasksThatStillRunAreNotThrownAway) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t <= 50.5 ? 0.9 : 0.0; }).queue(0, 9);
  builder.task("a", 100, {0}, 0, 20).task({"b", 101, {0}, 20, 60, 0, ""});
  builder.meta().stop_reason = "";
  Recording recording = builder.build();
  for (Track& track : recording.tracks)  // the last seconds were not written yet
    while (!track.at.empty() && track.at.back() > RecordingBuilder::at(50)) {
      track.at.pop_back();
      for (Column& column : track.columns) column.values.pop_back();
    }
  const Explanation live = explain(recording);
  EXPECT_EQ(live.ledger.total(Account::kDiscarded), 0);
  EXPECT_NEAR(seconds(live.ledger.total(Account::kUnderWay)), 27, 1);
  EXPECT_EQ(find(live, Cause::kWastedTrials), nullptr);
  EXPECT_EQ(find(live, Cause::kRecordingLosses), nullptr);
  EXPECT_EQ(live.ledger.total(Account::kUnobserved), 0);
  EXPECT_THAT(live.headline, HasSubstr("So far"));
  ASSERT_TRUE(live.batch);
  EXPECT_EQ(live.batch->not_succeeded, 0);
  recording.meta.stop_reason = "recovered";
  EXPECT_GT(explain(recording).ledger.total(Account::kDiscarded), 0) << "a batch that was killed did lose it";
}

}  // namespace
}  // namespace headroom
