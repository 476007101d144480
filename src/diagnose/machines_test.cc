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

using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::RecordingBuilder;

std::string everything(const Explanation& e) {
  std::string text = e.headline;
  for (const Finding& finding : e.findings) {
    text += "\n" + finding.title + "\n" + finding.bound + "\n" + finding.advice;
    for (const auto* list : {&finding.evidence, &finding.told_apart_from})
      for (const std::string& line : *list) text += "\n" + line;
  }
  for (const HealthCheck& one : e.health) text += "\n" + one.evidence;
  return text;
}

// What a log says of one GPU per second.
struct Row {
  std::optional<double> util = std::nullopt, memory_util = std::nullopt, watts = std::nullopt, memory = std::nullopt;
  Absent why = Absent::kNotSupported;
  std::optional<double> sm_active = std::nullopt, dram_active = std::nullopt;
};

Recording log_of_gpus(std::vector<std::function<Row(double)>> gpus, double length) {
  RecordingBuilder builder(length);
  builder.meta().origin = "import:nvidia-smi";
  builder.meta().tiers = "N";
  int index = 0;
  for (const auto& gpu : gpus) {
    Device device;
    device.index = index;
    device.uuid = "GPU-" + std::to_string(index++);
    device.memory_total_bytes = std::int64_t{48} << 30;
    const SourceId id = builder.sink().add_source({SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)});
    for (double t = 1; t <= length; ++t) {
      const Row row = gpu(t);
      const auto read = [&](Metric metric, const std::optional<double>& value) -> Cell {
        if (value) return cell(metric, from_unit(metric, *value));
        return {metric, 0, row.why};
      };
      builder.sink().add_row(
          id, RecordingBuilder::at(t),
          std::array{read(Metric::kGpuUtil, row.util), read(Metric::kMemoryUtil, row.memory_util),
                     read(Metric::kPower, row.watts), read(Metric::kMemoryUsed, row.memory),
                     read(Metric::kSmActive, row.sm_active), read(Metric::kDramActive, row.dram_active)});
    }
  }
  return builder.build();
}

Row working(double util) { return {util, 0.4, 350, 12e9}; }

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
  const Explanation e = explain(contained(
      [](RecordingBuilder& builder) { builder.process(900, 1, 0, 100, 0.9, false).context(900, 0, 0, 100); }));
  EXPECT_EQ(find(e, Cause::kOwnersUnknown), nullptr);
  EXPECT_NE(find(e, Cause::kJobNeverUsesGpu), nullptr) << "somebody else's kernels";
}

TEST(Machines, AJobWithoutAGpuIsToldWhatToCheck) {
  const Explanation e =
      explain(RecordingBuilder(30).gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 30, 1).build());
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
    builder.process(200, 1, 0, 30, 0.01, false).context(200, 0, 0, 30);  // the driver's lists are there
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

TEST(Machines, WhatNoReadingCoversIsNeitherIdleNorBusyAndBoundsNothing) {
  const Explanation e = explain(log_of_gpus({[](double t) {
                                              return t <= 60 ? working(0.9) : Row{{}, {}, 200, 12e9};
                                            }},
                                            120));
  EXPECT_THAT(e.headline, HasSubstr("at least 45 % of 2:00; for 50 % no reading says what it did"));
  const Finding* open = find(e, Cause::kLaunchBound);
  ASSERT_NE(open, nullptr);
  ASSERT_TRUE(open->gain);
  EXPECT_GT(open->gain->high, 2.1) << "54 s of kernels in 120 s: the rest may have been idle";
  EXPECT_THAT(open->bound, HasSubstr("the 1:00 that no reading covers taken as idle, too"));
  ASSERT_TRUE(e.bound);
  EXPECT_GE(e.bound->speedup_high, open->gain->high);
  const Finding* gap = find(e, Cause::kRecordingLosses);
  ASSERT_NE(gap, nullptr);
  EXPECT_THAT(gap->evidence, Contains(HasSubstr("the log has no value of the utilisation")));
  EXPECT_THAT(gap->would_overturn, Not(HasSubstr("headroom doctor")));
}

TEST(Machines, OneStretchWithoutKernelsIsNotAboutSteps) {
  const Explanation late = explain(log_of_gpus({[](double t) { return working(t <= 60 ? 0.0 : 1.0); }}, 120));
  const Finding* open = find(late, Cause::kStartupLoad);
  ASSERT_NE(open, nullptr) << late.headline;
  EXPECT_EQ(find(late, Cause::kLaunchBound), nullptr);
  EXPECT_EQ(find(late, Cause::kBatchTooSmall), nullptr);
  EXPECT_THAT(everything(late), Not(HasSubstr("batch")));
  const Explanation half = explain(log_of_gpus({[](double) { return working(0.5); }}, 120));
  EXPECT_NE(find(half, Cause::kLaunchBound), nullptr);
  EXPECT_NE(find(half, Cause::kBatchTooSmall), nullptr);
}

TEST(Machines, UtilisationThatIsNotReportedIsNeitherZeroNorAGap) {
  const Explanation e = explain(log_of_gpus({[](double) { return Row{{}, {}, 200, 12e9}; }}, 120));
  const Finding* finding = find(e, Cause::kUtilisationNotReported);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost(), e.ledger.total(Account::kUnobserved));
  EXPECT_EQ(find(e, Cause::kRecordingLosses), nullptr);
  EXPECT_THAT(everything(e), Not(HasSubstr("0 %")));
  EXPECT_THAT(everything(e), Not(HasSubstr("no kernel ran")));
  EXPECT_EQ(check(e, "runs_on_gpu").good, Answer::kUnknown);
  EXPECT_THAT(e.headline, HasSubstr("not reported"));
  // One of two: the headline is about the other.
  const Explanation half = explain(log_of_gpus({working, [](double) { return Row{{}, {}, 200, 12e9}; }}, 120));
  EXPECT_THAT(half.headline, HasSubstr("GPU 1 reported no utilisation"));
}

TEST(Machines, ALogThatWasNotAskedForUtilisationTellsWhatItHas) {
  Recording log = log_of_gpus({[](double) { return Row{{}, {}, 200, 12e9}; }}, 120);
  for (Track& track : log.tracks)
    std::erase_if(track.columns, [](const Column& column) { return column.metric == Metric::kGpuUtil; });
  const Explanation e = explain(log);
  EXPECT_THAT(e.headline, HasSubstr("the log has no column of utilisation"));
  const Finding* finding = find(e, Cause::kUtilisationNotReported);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("power 200 W on average, 200 to 200 W, 24,000 J in 2:00")));
  EXPECT_THAT(finding->advice, HasSubstr("utilization.gpu"));
  EXPECT_THAT(everything(e), Not(HasSubstr("MIG")));
}

TEST(Machines, AFewReadingsTellNothingButThemselves) {
  const Explanation one = explain(log_of_gpus({[](double) { return working(0.65); }}, 1));
  EXPECT_THAT(one.headline, HasSubstr("The log has 1 reading of the GPU. That tells nothing"));
  EXPECT_TRUE(one.findings.empty());
  EXPECT_FALSE(one.bound);
  const auto idle = [](double) { return Row{0.0, 0.0, 20, 1e9}; };
  EXPECT_THAT(explain(log_of_gpus({[](double) { return working(0.65); }, idle}, 1)).headline,
              HasSubstr("1 reading of each of 2 GPUs"));
  EXPECT_EQ(explain(log_of_gpus({idle}, 600)).headline, "No kernel was seen in 10:00.");
  const Explanation start = explain(log_of_gpus({[](double t) { return Row{0.0, 0.0, 20, 1e6 + 1e8 * t}; }}, 8));
  EXPECT_THAT(start.headline, HasSubstr("as at the start of a job"));
  EXPECT_EQ(find(start, Cause::kHang), nullptr);
  EXPECT_THAT(explain(log_of_gpus({[](double) { return working(0.65); }}, 10)).headline,
              Not(HasSubstr("tells nothing")));
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

TEST(Machines, ALargerBatchFitsWhereMostOfTheMemoryIsFree) {
  const auto with = [](double bytes) {
    return everything(explain(log_of_gpus({[=](double) { return Row{0.5, 0.2, 200, bytes}; }}, 120)));
  };
  EXPECT_THAT(with(12e9),
              HasSubstr("a larger batch fits (3.8 times, if all of it grows with it; 10 % kept for fragments)"));
  EXPECT_THAT(with(5e6), HasSubstr("a larger batch fits (more than 100 times"));
  EXPECT_THAT(with(45e9), Not(HasSubstr("larger batch fits")));
}

TEST(Machines, ALostGpuIsAFindingWithTheTimeAndTheDriversWord) {
  const Explanation e =
      explain(log_of_gpus({[](double t) {
                            return t <= 60 ? Row{0.9, 0.4, 350, 12e9} : Row{.why = Absent::kDeviceLost};
                          }},
                          120));
  const Finding* lost = find(e, Cause::kDeviceLost);
  ASSERT_NE(lost, nullptr);
  EXPECT_THAT(lost->title, HasSubstr("The driver lost GPU 0 at "));
  EXPECT_THAT(lost->evidence, Contains(HasSubstr("GPU is lost")));
  EXPECT_NEAR(seconds(lost->cost()), 60, 1);
  EXPECT_EQ(find(e, Cause::kRecordingLosses), nullptr) << "the same time is not a gap as well";
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
}

TEST(Machines, KernelsThatOnlyWaitAreNoHealthyJob) {
  const auto rank = [](double t) { return t <= 100 ? Row{1.0, 0.4, 350, 12e9} : Row{1.0, 0, 82, 12e9}; };
  const Explanation e = explain(log_of_gpus({rank, rank}, 300));
  const Finding* stalled = find(e, Cause::kExposedCommunication);
  ASSERT_NE(stalled, nullptr);
  EXPECT_EQ(stalled->candidates.front(), Cause::kHang);
  EXPECT_NEAR(seconds(stalled->cost()), 400, 2);
  ASSERT_TRUE(stalled->gain);
  EXPECT_NEAR(stalled->gain->high, 3, 0.05);
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  EXPECT_THAT(e.headline, HasSubstr("only waited"));
}

TEST(Machines, KernelsThatWaitForAnotherGpuAreNoBound) {
  const auto waits = [](double t) { return std::fmod(t, 20) < 5; };
  const auto late = [&](double t) { return waits(t) ? Row{0.0, 0.0, 64, 9e9} : Row{0.97, 0.5, 250, 9e9}; };
  const auto rank = [&](double t) { return waits(t) ? Row{1.0, 0.0, 78, 9e9} : Row{0.97, 0.5, 250, 9e9}; };
  const Explanation e = explain(log_of_gpus({late, rank, rank, rank}, 400));
  const Finding* finding = find(e, Cause::kStraggler);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding, &e.findings.front());
  EXPECT_THAT(finding->title, HasSubstr("Kernels on GPUs 1 to 3 only waited for GPU 0 in 19 % of the GPU time"));
  ASSERT_TRUE(finding->gain);
  EXPECT_NEAR(finding->gain->high, 1.33, 0.05) << finding->bound;
  EXPECT_NEAR(seconds(finding->cost()), 400, 20);
  ASSERT_TRUE(e.bound);
  EXPECT_NEAR(e.bound->speedup_high, 1.37, 0.05);
  EXPECT_THAT(e.headline, HasSubstr("kernels only waited for another GPU"));
  // The log may end in a wait like those before it; what waits for longer hangs.
  for (const double length : {400.0, 385.0})
    EXPECT_NEAR(explain(log_of_gpus({late, rank, rank, rank}, length)).findings.front().gain->high, 1.37, 0.03)
        << length;
  // One that idles for a moment of it is not late.
  const auto moment = [&](double t) { return t == 4 ? Row{0.0, 0.0, 64, 9e9} : rank(t); };
  EXPECT_THAT(everything(explain(log_of_gpus({late, rank, rank, moment}, 400))), Not(HasSubstr("GPUs 0 and 3 had no")));
  // They work while it idles: nobody waits.
  const auto works = [](double) { return Row{0.97, 0.5, 250, 9e9}; };
  EXPECT_THAT(everything(explain(log_of_gpus({late, works, works, works}, 400))), Not(HasSubstr("only waited")));
  // Without the power the activity of the SMs tells, and the bandwidth of the memory.
  const auto active = [&](double t) {
    const bool spins = waits(t);
    return Row{.util = 0.99, .memory = 9e9, .sm_active = spins ? 0.12 : 0.8, .dram_active = spins ? 0.0 : 0.4};
  };
  const Explanation by_activity = explain(log_of_gpus({late, active, active}, 400));
  const Finding* spins = find(by_activity, Cause::kStraggler);
  ASSERT_NE(spins, nullptr);
  EXPECT_THAT(spins->evidence, Contains(HasSubstr("showed a kernel with SMs active 12 % of the time and untouched "
                                                  "memory; with SMs active 80 % of the time where kernels work")));
  // All wait at the same time: for whom, nothing shows.
  EXPECT_THAT(everything(explain(log_of_gpus({rank, rank}, 400))), Not(HasSubstr("only waited for")));
}

TEST(Machines, KernelsThatWaitAreFoundByTheirPowerAlone) {
  const auto waits = [](double t) { return std::fmod(t, 20) < 5; };
  const auto late = [&](double t) { return waits(t) ? Row{0.0, {}, 64, 9e9} : Row{0.97, {}, 250, 9e9}; };
  const auto rank = [&](double t) { return waits(t) ? Row{1.0, {}, 78, 9e9} : Row{0.97, {}, 250, 9e9}; };
  const Explanation e = explain(log_of_gpus({late, rank}, 400));
  const Finding* finding = find(e, Cause::kStraggler);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->title, HasSubstr("Kernels on GPU 1 only waited for GPU 0"));
  EXPECT_THAT(everything(e), Not(HasSubstr("untouched memory"))) << "it was not read";
  // Of one GPU little power is not enough: its kernels may be small.
  const auto falls = [](double t) { return t <= 200 ? Row{1.0, {}, 250, 9e9} : Row{1.0, {}, 78, 9e9}; };
  EXPECT_THAT(everything(explain(log_of_gpus({falls}, 400))), Not(HasSubstr("only waited")));
}

TEST(Machines, WhatOneGpuDoesWhileAllOthersWaitIsTold) {
  const auto alone = [](double t) { return std::fmod(t, 50) < 10; };
  const auto first = [](double) { return Row{0.97, 0.5, 250, 9e9}; };
  const auto rank = [&](double t) { return alone(t) ? Row{1.0, 0.0, 78, 9e9} : Row{0.97, 0.5, 250, 9e9}; };
  const Explanation e = explain(log_of_gpus({first, rank, rank, rank}, 400));
  const Finding* finding = find(e, Cause::kValidation);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->title, HasSubstr("Kernels on GPUs 1 to 3 only waited in"));
  EXPECT_THAT(finding->title, HasSubstr("while GPU 0 alone worked"));
  ASSERT_TRUE(finding->gain);
  EXPECT_NEAR(finding->gain->high, 1 / (1 - 0.2 * 0.75), 0.03);
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  // A single other one may have another job.
  EXPECT_THAT(everything(explain(log_of_gpus({first, rank}, 400))), Not(HasSubstr("alone worked")));
  EXPECT_THAT(everything(explain(log_of_gpus({first, rank, first}, 400))), Not(HasSubstr("alone worked")));
}

TEST(Machines, ALogThatEndsWithoutKernelsIsNotDeniedToHang) {
  const auto stops = [](double memory_after) {
    return [=](double t) { return t <= 150 ? Row{0.98, 0.49, 354, 12e9} : Row{0, 0, 60, memory_after}; };
  };
  const Explanation hangs = explain(log_of_gpus({stops(12e9), stops(12e9)}, 300));
  const Finding* finding = find(hangs, Cause::kHang);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding, &hangs.findings.front());
  EXPECT_THAT(finding->candidates, ::testing::ElementsAre(Cause::kHang, Cause::kUnreleasedAfterWork));
  EXPECT_THAT(everything(hangs), Not(HasSubstr("a hang: ")));
  EXPECT_EQ(find(hangs, Cause::kBatchTooSmall), nullptr) << "nobody was still feeding it";
  const Explanation ended = explain(log_of_gpus({stops(100e6)}, 300));
  EXPECT_EQ(ended.findings.front().candidates.front(), Cause::kMonitoringMostlyElse);
  const Explanation gone = explain(log_of_gpus({stops(1e6)}, 300));
  EXPECT_EQ(gone.findings.front().cause, Cause::kMonitoringMostlyElse) << "what hangs has a context";
  EXPECT_THAT(gone.findings.front().candidates, ::testing::IsEmpty());
}

TEST(Machines, ADesktopThatGoesOnIsNoJob) {
  const auto desktop = [](double memory_after) {
    return [=](double t) {
      return t <= 150 ? Row{std::fmod(t, 3) < 1 ? 0.3 : 0.8, {}, {}, 9e9}
                      : Row{std::fmod(t, 20) < 1 ? 0.03 : 0.0, {}, {}, memory_after};
    };
  };
  const Explanation ended = explain(log_of_gpus({desktop(0.8e9)}, 400));
  EXPECT_THAT(everything(ended), HasSubstr("Hardly a kernel ran any more, and the memory was given back"));
  EXPECT_THAT(everything(ended), HasSubstr("GPU 0: busy for 0.2 % of the time from"));
  EXPECT_THAT(everything(ended), Not(HasSubstr("at the last kernel"))) << "the desktop's kernels came later";
  EXPECT_THAT(ended.headline, HasSubstr("at the end hardly a kernel ran any more"));
  EXPECT_THAT(ended.findings.front().candidates, Not(Contains(Cause::kHang))) << "what hangs keeps its memory";
  EXPECT_THAT(everything(explain(log_of_gpus({desktop(9e9)}, 400))), Not(HasSubstr("given back")));
}

TEST(Machines, ADesktopThatIsUsedIsNoJobEither) {
  const auto desktop = [](double util, double memory_after) {
    return everything(explain(log_of_gpus(
        {[=](double t) {
          return t <= 150 ? Row{0.9, {}, {}, 8e9} : Row{util * (0.3 + std::fmod(t, 5) / 5), {}, {}, memory_after};
        }},
        400)));
  };
  EXPECT_THAT(desktop(0.07, 1.2e9), HasSubstr("the memory was given back: the job had probably ended"));
  EXPECT_THAT(desktop(0.07, 3e9), Not(HasSubstr("given back"))) << "a job may do as much with as much";
  EXPECT_THAT(desktop(0.3, 1.2e9), Not(HasSubstr("given back")));
  const std::string video = desktop(0.2, 1.2e9);
  EXPECT_THAT(video, HasSubstr("Far fewer kernels ran, and the memory was given back: the job had probably ended"));
  EXPECT_THAT(video, HasSubstr("at the end far fewer kernels ran"));
  EXPECT_THAT(video, Not(HasSubstr("phases that recur")));
  EXPECT_THAT(desktop(0.2, 3e9), Not(HasSubstr("given back")));
}

TEST(Machines, MemoryThatGrowsWithoutAKernelIsAStart) {
  const auto grows_until = [](double full) {
    return explain(log_of_gpus({[=](double t) { return Row{0.0, 0.0, 20, 1e6 + 3e9 * std::min(1.0, t / full)}; }}, 60));
  };
  const Explanation start = grows_until(50);
  EXPECT_THAT(everything(start), HasSubstr("grew from 58 MiB to 2861 MiB, as at the start of a job"));
  ASSERT_EQ(start.findings.size(), 1U);
  EXPECT_EQ(start.findings[0].candidates.front(), Cause::kStartupLoad);
  EXPECT_EQ(find(start, Cause::kHang), nullptr);
  const Explanation stands = grows_until(10);
  EXPECT_NE(find(stands, Cause::kHang), nullptr) << "it may hang in its start";
  EXPECT_EQ(find(stands, Cause::kUnreleasedAfterWork), nullptr) << "no work was seen";
}

TEST(Machines, MemoryThatHasStoppedGrowingDoesNotFillUp) {
  const auto grows_until = [](double full) {
    return everything(explain(log_of_gpus({[=](double t) {
                                            return Row{0.9, 0.4, 300, 1e9 + 6e8 * std::min(full, t) + 1e6 * t};
                                          }},
                                          60)));
  };
  EXPECT_THAT(grows_until(60), HasSubstr("at this pace"));
  EXPECT_THAT(grows_until(51), Not(HasSubstr("at this pace")));
  const auto begins_late = [](double t) { return Row{0.9, 0.4, 300, 1e9 + 1.5e9 * std::max(0.0, t - 40) + 1e6 * t}; };
  EXPECT_THAT(everything(explain(log_of_gpus({begins_late}, 60))), Not(HasSubstr("at this pace")));
}

TEST(Machines, AKernelOrTwoInAStartAreNoWork) {
  const auto grows = [](double util) {
    return explain(
        log_of_gpus({[=](double t) {
                      return Row{std::fmod(t, 5) < 1 ? util : 0.0, 0.0, 20, 1e6 + 3e9 * std::min(1.0, t / 50)};
                    }},
                    60));
  };
  const Explanation start = grows(0.01);
  ASSERT_EQ(start.findings.size(), 1U) << everything(start);
  EXPECT_THAT(start.findings[0].title, HasSubstr("Hardly a kernel was seen"));
  EXPECT_EQ(start.findings[0].candidates.front(), Cause::kStartupLoad);
  EXPECT_FALSE(start.findings[0].gain) << "nothing shows how fast it would be";
  EXPECT_NE(find(grows(0.9), Cause::kInputTooFewWorkers), nullptr) << "it works already";
}

TEST(Machines, SeveralProcessesOfALogAreToldWhateverIsFound) {
  for (const double util : {0.5, 1.0}) {
    Recording log = log_of_gpus({[=](double) { return working(util); }}, 120);
    log.meta.extra["processes"] = "41 python 30 %, 42 train 20 %";
    EXPECT_THAT(explain(log).headline, HasSubstr("several processes, with these mean shares of the SMs: 41 python"));
  }
}

TEST(Machines, IdlePhasesLastAsLongAsTheirSumSays) {
  const auto bursts = [](double t) { return working(std::fmod(t, 25) < 3 || std::fmod(t, 67) < 4 ? 0.9 : 0.0); };
  const Explanation e = explain(log_of_gpus({bursts}, 400));
  int idle_phases = 0;
  for (const Phase& phase : e.phases) {
    if (phase.name != "idle") continue;
    ++idle_phases;
    EXPECT_GT(phase.gpu_util_ratio.value_or(0), 0.0) << "windows that a burst ends in";
    const double idle = seconds(phase.total) * (1 - phase.gpu_util_ratio.value_or(0));
    const std::string each = human_duration(static_cast<Nanos>(1e9 * idle / static_cast<double>(phase.count)));
    EXPECT_THAT(everything(e), HasSubstr("is idle for " + each + " at a time"));
  }
  EXPECT_EQ(idle_phases, 1);
}

TEST(Machines, ALogWithoutAKernelSaysNothingOfLoadersAndBatches) {
  const Explanation e = explain(log_of_gpus({[](double) { return Row{0.0, 0.0, 60, 12e9}; }}, 300));
  ASSERT_EQ(e.findings.size(), 1U);
  EXPECT_EQ(e.findings[0].candidates.front(), Cause::kJobNeverUsesGpu);
  EXPECT_FALSE(e.findings[0].gain);
}

TEST(Machines, LessEvidenceWidensTheSet) {
  const Explanation e = explain(log_of_gpus({[](double t) { return working(std::fmod(t, 3) < 1 ? 0.2 : 0.4); }}, 300));
  const Finding* finding = find(e, Cause::kInputTooFewWorkers);
  ASSERT_NE(finding, nullptr);
  for (const Cause cause : {Cause::kInputInMainProcess, Cause::kSlowStorage, Cause::kSyncPoints, Cause::kGilContention,
                            Cause::kLoggingUpload, Cause::kCheckpointSync, Cause::kValidation, Cause::kLaunchBound})
    EXPECT_THAT(finding->candidates, Contains(cause));
  EXPECT_NE(finding->confidence, Confidence::kHigh);
}

TEST(Machines, BurstsBetweenReadingsMakeTheBoundWiderAndAreNamed) {
  const auto bursty = [](double t) { return working(std::fmod(t, 4) < 1 ? 1.0 : 0.0); };
  const Explanation e = explain(log_of_gpus({bursty}, 40));
  ASSERT_TRUE(e.bound);
  EXPECT_GT(e.bound->speedup_high, 4.5) << "the readings alone say 4";
  EXPECT_THAT(everything(e), HasSubstr("give or take"));
  const Explanation steady = explain(log_of_gpus({[](double) { return working(0.25); }}, 40));
  EXPECT_NEAR(steady.bound->speedup_high, 4, 0.01);
}

TEST(Machines, AnUnusedGpuIsANoteAtTheEndAndNotInTheHeadlinesShare) {
  const Explanation e = explain(log_of_gpus({[](double) { return working(0.9); },
                                             [](double) {
                                               return Row{0, 0, 60, 3e6};
                                             }},
                                            300));
  EXPECT_THAT(e.headline, HasSubstr("GPU 0 was busy for 90 %"));
  EXPECT_THAT(e.headline, HasSubstr("GPU 1 was never used"));
  EXPECT_EQ(e.findings.back().candidates.front(), Cause::kMoreGpusThanUseful);
  EXPECT_THAT(everything(e), Not(HasSubstr("GPU 1: ")));
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

TEST(Machines, ACapBelowTheLimitOnACoolGpuIsNotToldToCoolOrToRaiseIt) {
  const auto advice = [](double watts, double heat) {
    Recording recording = log_of_gpus({[=](double) { return Row{1.0, 0.4, watts, 12e9}; }}, 120);
    recording.sources[0].attrs["sm_clock_max_mhz"] = "1410";
    recording.sources[0].attrs["power_limit_watts"] = "400";
    Track& track = recording.tracks[0];
    const auto all = [&](Metric metric, double value) {
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    };
    all(Metric::kEventReasons, static_cast<double>(kReasonSwPowerCap)), all(Metric::kSmClock, 800),
        all(Metric::kTemperature, heat);
    const Explanation e = explain(recording);
    const Finding* finding = find(e, Cause::kThrottling);
    return finding ? finding->advice : "nothing";
  };
  EXPECT_THAT(advice(240, 61), HasSubstr("something else caps its power"));
  EXPECT_THAT(advice(395, 61), HasSubstr("a higher power limit"));
  EXPECT_THAT(advice(240, 90), HasSubstr("cooling"));
}

TEST(Machines, ACapThatCameLaterIsJudgedByThePowerThen) {
  const auto gpu = [](bool capped) {
    return [=](double t) { return Row{1.0, 0.4, capped && t > 60 ? 214.0 : 340.0, 12e9}; };
  };
  Recording recording = log_of_gpus({gpu(false), gpu(true)}, 300);
  for (const std::size_t i : {0U, 1U}) {
    recording.sources[i].attrs["sm_clock_max_mhz"] = "1900";
    recording.sources[i].attrs["power_limit_watts"] = "350";
    Track& track = recording.tracks[i];
    Column reasons{Metric::kEventReasons, {}, {}}, clock{Metric::kSmClock, {}, {}};
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      const bool capped = i == 0 || row > 60;
      reasons.values.push_back(capped ? kReasonSwPowerCap : 0);
      clock.values.push_back(from_unit(Metric::kSmClock, !capped ? 1890 : i == 0 ? 1590 : 1290));
    }
    track.columns.push_back(reasons), track.columns.push_back(clock);
    track.columns.push_back({Metric::kTemperature, std::vector<std::int64_t>(track.at.size(), 66), {}});
  }
  const std::string text = everything(explain(recording));
  EXPECT_THAT(text, HasSubstr("GPU 0 runs below its clocks (power cap)"));
  EXPECT_THAT(text, HasSubstr("GPU 1 runs below its clocks (power cap)"));
  EXPECT_THAT(text, HasSubstr("214 W then, of a limit of 350 W: neither that nor heat explains the clocks"));
  EXPECT_THAT(text, HasSubstr("a higher power limit (nvidia-smi -pl, as root), where its maximum is higher"));
}

TEST(Machines, GpusOfOneFindingWithOtherFiguresAreNotTheSame) {
  const auto text = [](double second) {
    const auto gpu = [](double) { return Row{0.98, 0.4, 395, 9e9}; };
    Recording recording = log_of_gpus({gpu, gpu}, 300);
    for (const std::size_t i : {0U, 1U}) {
      recording.sources[i].attrs["sm_clock_max_mhz"] = "1410";
      Track& track = recording.tracks[i];
      const auto all = [&](Metric metric, double value) {
        track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
      };
      all(Metric::kEventReasons, static_cast<double>(kReasonSwPowerCap)), all(Metric::kTemperature, 47);
      all(Metric::kSmClock, i == 0 ? 960 : second);
    }
    return everything(explain(recording));
  };
  EXPECT_THAT(text(960), HasSubstr("the same of GPU 1"));
  EXPECT_THAT(text(800), HasSubstr("likewise GPU 1, with other figures"));
  EXPECT_THAT(text(800), Not(HasSubstr("the same of")));
}

TEST(Machines, ALogsTimesAreItsOwn) {
  Recording recording = log_of_gpus({[](double t) { return t <= 150 ? working(1.0) : Row{0.0, {}, {}, 1e6}; }}, 300);
  const std::string utc = everything(explain(recording));
  recording.meta.extra["utc_offset_seconds"] = "3600";
  EXPECT_THAT(utc, HasSubstr("from 08:55:50 on"));
  EXPECT_THAT(everything(explain(recording)), HasSubstr("from 09:55:50 on"));
  recording.meta.extra["utc_offset_seconds"] = "9223372036854775807";
  EXPECT_EQ(everything(explain(recording)), utc);
}

TEST(Machines, BurstsThatAreTooShortForAPhaseAreTold) {
  const auto with = [](double burst) {
    return everything(explain(log_of_gpus({[=](double t) {
                                            const double at = std::fmod(t, 100);
                                            return working(at < 40 ? 0.9 : at >= 60 && at < 62 ? burst : 0.0);
                                          }},
                                          600)));
  };
  EXPECT_THAT(with(0.4), HasSubstr("GPU 0 is idle but for short bursts for "));
  EXPECT_THAT(with(0.0), HasSubstr("GPU 0 is idle for "));
}

TEST(Machines, WhatTheDriverTakesItselfIsNobody) {
  const auto of = [](double bytes) {
    return explain(log_of_gpus({[=](double) { return Row{0.0, 0.0, 20, bytes}; }}, 120));
  };
  const Explanation nobody = of(1 << 20), held = of(4e9);
  ASSERT_FALSE(nobody.findings.empty());
  EXPECT_THAT(everything(nobody), HasSubstr("1 MiB in use at most: no program had a context"));
  EXPECT_EQ(find(nobody, Cause::kUnreleasedAfterWork), nullptr);
  EXPECT_NE(find(nobody, Cause::kJobNeverUsesGpu), nullptr);
  EXPECT_NE(find(held, Cause::kUnreleasedAfterWork), nullptr);
}

TEST(Machines, GpusThatDifferAsTwoJobsDoHaveABoundOfEach) {
  const auto at = [](double util) { return [=](double) { return working(util); }; };
  const Explanation e = explain(log_of_gpus({at(0.06), at(0.06), at(0.97), at(0.97)}, 240));
  const Finding* open = find(e, Cause::kInputTooFewWorkers);
  ASSERT_NE(open, nullptr);
  EXPECT_THAT(open->bound, HasSubstr("if GPUs 0 and 1 have a job of their own, at most 17x for that"));
  EXPECT_THAT(open->bound, HasSubstr("if one job uses all, at most 1.0"));
  EXPECT_THAT(everything(explain(log_of_gpus({at(0.92), at(0.70), at(0.35)}, 240))),
              HasSubstr("GPU 2 was busy for 35 % of the time, GPUs 0 and 1 for 70 % to 92 %"));
  EXPECT_THAT(
      everything(explain(log_of_gpus({at(0.95), at(0.23), at(0.05)}, 240))),
      HasSubstr("if GPU 1 has a job of its own, at most 4.3x for that, 20x for one on GPU 2; if one job uses all"));
  const Explanation alike = explain(log_of_gpus({at(0.6), at(0.7)}, 240));
  EXPECT_THAT(everything(alike), Not(HasSubstr("two jobs")));
}

TEST(Machines, AReadingThatIsALittleAboveIdleDoesNotEndAnIdlePhase) {
  const auto with = [](double most) {
    return everything(explain(log_of_gpus(
        {[=](double t) { return working(std::fmod(t, 40) < 30 ? 0.7
                                        : std::fmod(t, 3) < 1 ? most
                                                              : 0.01); }}, 400)));
  };
  EXPECT_THAT(with(0.08), HasSubstr("10 times, every 40.0 s"));
  EXPECT_THAT(with(0.01), HasSubstr("10 times, every 40.0 s"));
}

TEST(Machines, LongWaitsThatRecurAreNoPatternAndMayBeALoader) {
  const auto with = [](double idle) {
    return explain(log_of_gpus({[=](double t) { return working(std::fmod(t, 40) < idle ? 0.0 : 0.95); }}, 400));
  };
  EXPECT_THAT(everything(with(30)), Not(HasSubstr("not a fault")));
  EXPECT_NE(find(with(30), Cause::kInputTooFewWorkers), nullptr);
  EXPECT_THAT(everything(with(30)), Not(HasSubstr("hardly waits")));
  EXPECT_THAT(everything(with(6)), HasSubstr("a pattern, not a fault"));
}

TEST(Machines, ClocksThatFallWithHeatAreFoundWithoutReasons) {
  const auto with = [](double clock, double heat) {
    Recording recording = log_of_gpus({[](double) { return working(0.98); }}, 600);
    Track& track = recording.tracks[0];
    Column clocks{Metric::kSmClock, {}, {}}, temperature{Metric::kTemperature, {}, {}};
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      clocks.values.push_back(from_unit(Metric::kSmClock, row < 200 ? 1700 : clock));
      temperature.values.push_back(from_unit(Metric::kTemperature, row < 200 ? 60 : heat));
    }
    track.columns.push_back(clocks), track.columns.push_back(temperature);
    return explain(recording);
  };
  const Explanation hot = with(900, 92);
  const Finding* finding = find(hot, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << hot.headline;
  EXPECT_THAT(finding->title, HasSubstr("while it is hot"));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("SM clock 900 MHz while it was hot, 1700 MHz before")));
  EXPECT_THAT(finding->advice, Not(HasSubstr("power limit"))) << "it would become hotter";
  EXPECT_EQ(find(hot, Cause::kHealthy), nullptr);
  EXPECT_EQ(find(with(900, 60), Cause::kThrottling), nullptr) << "cool: somebody set them, or the work changed";
  EXPECT_EQ(find(with(1650, 92), Cause::kThrottling), nullptr);
}

TEST(Machines, ClocksThatFallWithThePowerAreNotHealthy) {
  const auto with = [](double clock, double power, double heat, int period = 1000) {
    Recording recording = log_of_gpus({[=](double t) {
                                        return Row{0.98, 0.4, std::fmod(t, period) < 200 ? 231 : power, 9e9};
                                      }},
                                      600);
    Track& track = recording.tracks[0];
    Column clocks{Metric::kSmClock, {}, {}}, temperature{Metric::kTemperature, {}, {}};
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      const bool fast = std::fmod(static_cast<double>(row), period) < 200;
      clocks.values.push_back(from_unit(Metric::kSmClock, fast ? 1695 : clock));
      temperature.values.push_back(from_unit(Metric::kTemperature, fast ? 66 : heat));
    }
    track.columns.push_back(clocks), track.columns.push_back(temperature);
    return explain(recording);
  };
  const Explanation e = with(435, 74, 49);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->title, HasSubstr("(why was not logged)"));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("SM clock 435 MHz for 6:3")));
  EXPECT_THAT(finding->advice, AllOf(HasSubstr("clocks_event_reasons.active"), Not(HasSubstr("cooling"))));
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  EXPECT_EQ(find(with(1400, 200, 60), Cause::kThrottling), nullptr) << "clocks vary";
  EXPECT_EQ(find(with(900, 240, 60), Cause::kThrottling), nullptr) << "more power is drawn";
}

TEST(Machines, ABrakeOfPowerIsNotCooledAndOneOfSeveralGpusHasAGainOfItsOwn) {
  Recording recording = log_of_gpus({[](double) {
                                       return Row{0.98, 0.4, 281, 9e9};
                                     },
                                     [](double) {
                                       return Row{0.98, 0.4, 141, 9e9};
                                     }},
                                    300);
  for (const std::size_t gpu : {0U, 1U}) {
    recording.sources[gpu].attrs["sm_clock_max_mhz"] = "1410";
    Track& track = recording.tracks[gpu];
    const auto all = [&](Metric metric, double value) {
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    };
    all(Metric::kEventReasons, gpu == 1 ? static_cast<double>(kReasonHwPowerBrake) : 0.0);
    all(Metric::kSmClock, gpu == 1 ? 795 : 1395), all(Metric::kTemperature, 44);
  }
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->advice, AllOf(HasSubstr("power supply"), Not(HasSubstr("cooling")), Not(HasSubstr("-pl"))));
  EXPECT_THAT(finding->bound, HasSubstr("1.74x at most, for the compute-bound share"));
}

TEST(Machines, OneSlowGpuOfEightIsTold) {
  const auto gpu = [](double) { return Row{0.98, 0.4, 330, 9e9}; };
  Recording recording = log_of_gpus(std::vector<std::function<Row(double)>>(8, gpu), 300);
  for (std::size_t i = 0; i < 8; ++i) {
    recording.sources[i].attrs["sm_clock_max_mhz"] = "1410";
    Track& track = recording.tracks[i];
    const auto all = [&](Metric metric, double value) {
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    };
    const bool capped = i == 2;
    all(Metric::kEventReasons, capped ? static_cast<double>(kReasonSwPowerCap) : 0.0);
    all(Metric::kSmClock, capped ? 960 : 1410), all(Metric::kTemperature, 47);
  }
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->title, HasSubstr("GPU 2"));
  EXPECT_THAT(finding->bound, HasSubstr("1.45x at most")) << "the others may wait for it in kernels";
}

TEST(Machines, EachGpuOfALogMayHaveAJobOfItsOwn) {
  const auto busy = [](double share) {
    return [=](double t) { return working(std::fmod(t, 10) < 3 ? share / 2 : share); };
  };
  const Explanation two = explain(log_of_gpus({busy(0.75), busy(0.98)}, 600));
  const Finding* idle = find(two, Cause::kInputTooFewWorkers);
  ASSERT_NE(idle, nullptr);
  EXPECT_THAT(idle->bound,
              HasSubstr("if GPU 0 has a job of its own, at most 1.59x for that; if one job uses all, at most 1.22x"));
  EXPECT_THAT(idle->evidence, Contains("GPU 0 was busy for 64 % of the time, GPU 1 for 83 %"));
  EXPECT_THAT(two.bound->condition, HasSubstr("if one job uses all these GPUs, "));
  const Explanation alike = explain(log_of_gpus({busy(0.75), busy(0.78)}, 600));
  EXPECT_THAT(everything(alike) + alike.bound->condition, Not(HasSubstr("one job uses all")));
}

TEST(Machines, AnIdlePhaseEndsWithTheKernelsThatInterruptIt) {
  const auto bursts = [](double t) {
    const double at = std::fmod(t, 26);
    return Row{at >= 1 && at < 5 ? (at < 2 || at >= 4 ? 0.45 : 0.9) : 0.0, 0.1, 200, 9e9};
  };
  const Explanation e = explain(log_of_gpus({bursts, bursts}, 600));
  EXPECT_THAT(everything(e), HasSubstr("Each of GPUs 0 and 1 idles in phases that recur"));
  EXPECT_THAT(everything(e), HasSubstr("is idle for 22.0 s at a time, 23 times, every 26.0 s"));
  EXPECT_THAT(everything(e), Not(HasSubstr("mostly idle")));
}

TEST(Machines, APhaseThatIsHardlyBusyIsToldWithItsLengthAndPace) {
  const auto weak = [](double t) {
    return working(std::fmod(t, 180) < 26 ? (std::fmod(t, 2) < 1 ? 0.02 : 0.12) : 0.97);
  };
  const std::string text = everything(explain(log_of_gpus({weak}, 900)));
  EXPECT_THAT(text, HasSubstr("GPU 0 is mostly idle ("));
  EXPECT_THAT(text, HasSubstr(" on average) for 25.8 s at a time, 5 times, every 3:00"));
}

TEST(Machines, ReadingsThatFallAsDiceDoMakeNoPhases) {
  for (int seed = 0; seed < 20; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::normal_distribution<double> level(0.64, 0.2);
    const auto noise = [&](double) { return working(std::clamp(level(random), 0.0, 1.0)); };
    const auto rare = [&](double) { return working(level(random) > 0.83 ? 0.35 : 0.0); };
    for (const auto& readings : {std::function<Row(double)>(noise), std::function<Row(double)>(rare)})
      EXPECT_THAT(everything(explain(log_of_gpus({readings}, 500))), Not(HasSubstr("phases that recur"))) << seed;
  }
}

TEST(Machines, WhatCouldBeGainedIsCountedUntilTheJobHadEnded) {
  const auto until = [](double end) {
    return [=](double t) {
      return t <= end ? Row{std::fmod(t, 7) < 1 ? 0.3 : 0.9, {}, {}, 9e9} : Row{0.0, {}, {}, 1e6};
    };
  };
  const Explanation whole = explain(log_of_gpus({until(600)}, 600)), cut = explain(log_of_gpus({until(600)}, 1200));
  ASSERT_TRUE(whole.bound && cut.bound);
  EXPECT_NEAR(cut.bound->speedup_high, whole.bound->speedup_high, 0.01);
  EXPECT_THAT(cut.bound->condition, HasSubstr(", counted over the 10:00 until the GPU fell quiet"));
  EXPECT_THAT(everything(cut), HasSubstr("whatever the cause, at most " + human_factor(whole.bound->speedup_high)));
  EXPECT_GT(explain(log_of_gpus({until(600), until(1200)}, 1200)).bound->speedup_high, 1.2) << "the other goes on";
}

TEST(Machines, BytesThatCameMeanwhileMakeCopiesTheFirstGuess) {
  const auto rests = [](double t) { return Row{std::fmod(t, 26) < 4 ? 0.9 : 0.0, 0.1, 200, 9e9}; };
  Recording recording = log_of_gpus({rests}, 600);
  Track& track = recording.tracks[0];
  track.columns.push_back(
      {Metric::kPcieRxRate, std::vector<std::int64_t>(track.at.size(), from_unit(Metric::kPcieRxRate, 12e9)), {}});
  const Explanation e = explain(recording);
  EXPECT_EQ(e.findings.front().candidates.front(), Cause::kPageableCopies);
  EXPECT_THAT(everything(e), HasSubstr("GiB/s came over PCIe meanwhile"));
}

TEST(Machines, OthersKernelsAreClaimedOnce) {
  const Explanation e = explain(RecordingBuilder(100)
                                    .gpu(0, [](double) { return 1.0; })
                                    .process(100, 1, 0, 100, 0.9)
                                    .context(100, 0, 0, 100, 0.5)
                                    .process(900, 1, 0, 100, 0.9, false)
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
  builder.task("a", 100, {0}, 0, 20).task("b", 101, {0}, 20, 60, 0, "");
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

TEST(Machines, WhatIsLeftOfAFindingSaysOfWhichPartItSpeaks) {
  // The start-up of a batch's tasks that failed belongs to what was thrown away, that of the others to the start-ups.
  const Explanation e = explain(log_of_gpus({working}, 10));
  for (const Finding& finding : e.findings) EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("count here"))));
}

TEST(Machines, LossesOfUnknownPlaceMakeEverythingLessSure) {
  Recording recording = log_of_gpus({[](double) { return working(0.3); }}, 100);
  const auto confidence = [&] { return explain(recording).findings.front().confidence; };
  EXPECT_EQ(confidence(), Confidence::kMedium);
  recording.losses.push_back(make_loss(LossKind::kDamagedChunk, 1, ""));
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kInputTooFewWorkers);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->confidence, Confidence::kLow);
  EXPECT_THAT(finding->evidence.back(), HasSubstr("somewhere in the recording"));
}

}  // namespace
}  // namespace headroom
