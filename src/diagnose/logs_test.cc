// SPDX-License-Identifier: Apache-2.0
// Logs of GPUs alone: what a log does not say is not said by a report either.
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

TEST(Logs, WhatNoReadingCoversIsNeitherIdleNorBusyAndBoundsNothing) {
  const Explanation e = explain(log_of_gpus({[](double t) {
                                              return t <= 60 ? working(0.9) : LogRow{{}, {}, 200, 12e9};
                                            }},
                                            120));
  EXPECT_THAT(e.headline,
              HasSubstr("for 90 % of the 1:00 that readings cover; for 50 % of 2:00 no reading says what it did"));
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

TEST(Logs, OneStretchWithoutKernelsIsNotAboutSteps) {
  const Explanation late = explain(log_of_gpus({[](double t) { return working(t <= 60 ? 0.0 : 1.0); }}, 120));
  const Finding* open = find(late, Cause::kStartupLoad);
  ASSERT_NE(open, nullptr) << late.headline;
  EXPECT_EQ(find(late, Cause::kLaunchBound), nullptr);
  EXPECT_EQ(find(late, Cause::kBatchTooSmall), nullptr);
  EXPECT_THAT(everything(late), Not(HasSubstr("batch")));
  EXPECT_EQ(open->candidates.front(), Cause::kStartupLoad);
  EXPECT_THAT(open->evidence.front(), HasSubstr("of it came before the first work that was seen"));
  const Explanation half = explain(log_of_gpus({[](double) { return working(0.5); }}, 120));
  EXPECT_NE(find(half, Cause::kLaunchBound), nullptr);
  EXPECT_NE(find(half, Cause::kBatchTooSmall), nullptr);
  EXPECT_NE(find(half, Cause::kLaunchBound)->candidates.front(), Cause::kStartupLoad);
}

TEST(Logs, UtilisationThatIsNotReportedIsNeitherZeroNorAGap) {
  const Explanation e = explain(log_of_gpus({[](double) { return LogRow{{}, {}, 200, 12e9}; }}, 120));
  const Finding* finding = find(e, Cause::kUtilisationNotReported);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost(), e.ledger.total(Account::kUnobserved));
  EXPECT_EQ(find(e, Cause::kRecordingLosses), nullptr);
  EXPECT_THAT(everything(e), Not(HasSubstr("0 %")));
  EXPECT_THAT(everything(e), Not(HasSubstr("no kernel ran")));
  EXPECT_EQ(check(e, "runs_on_gpu").good, Answer::kUnknown);
  EXPECT_THAT(e.headline, HasSubstr("not reported"));
  // One of two: the headline is about the other.
  const Explanation half = explain(log_of_gpus({working, [](double) { return LogRow{{}, {}, 200, 12e9}; }}, 120));
  EXPECT_THAT(half.headline, HasSubstr("GPU 1 reported no utilisation"));
}

TEST(Logs, ALogThatWasNotAskedForUtilisationTellsWhatItHas) {
  Recording log = log_of_gpus({[](double) { return LogRow{{}, {}, 200, 12e9}; }}, 120);
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

TEST(Logs, AFewReadingsTellNothingButThemselves) {
  const Explanation one = explain(log_of_gpus({[](double) { return working(0.65); }}, 1));
  EXPECT_THAT(
      one.headline,
      HasSubstr(
          "The log has 1 reading of the GPU. GPU 0: utilisation 65 %, 11.2 GiB of 48.0 GiB of memory in use, 350 W. "
          "That tells nothing"));
  EXPECT_TRUE(one.findings.empty());
  EXPECT_FALSE(one.bound);
  const auto idle = [](double) { return LogRow{0.0, 0.0, 20, 1e9}; };
  EXPECT_THAT(explain(log_of_gpus({[](double) { return working(0.65); }, idle}, 1)).headline,
              HasSubstr("1 reading of each of 2 GPUs"));
  EXPECT_EQ(explain(log_of_gpus({idle}, 600)).headline, "No kernel was seen in 10:00.");
  const Explanation start = explain(log_of_gpus({[](double t) { return LogRow{0.0, 0.0, 20, 1e6 + 1e8 * t}; }}, 8));
  EXPECT_THAT(start.headline, HasSubstr("as at the start of a job"));
  EXPECT_EQ(find(start, Cause::kHang), nullptr);
  EXPECT_THAT(explain(log_of_gpus({[](double) { return working(0.65); }}, 10)).headline,
              Not(HasSubstr("tells nothing")));
}

TEST(Logs, OfOneReadingItsUtilisationMemoryAndPowerAreSaid) {
  EXPECT_THAT(
      explain(log_of_gpus({[](double) {
                            return LogRow{0.97, 0.4, 412, 27e9};
                          }},
                          1))
          .headline,
      HasSubstr(
          "has 1 reading of the GPU. GPU 0: utilisation 97 %, 25.1 GiB of 48.0 GiB of memory in use, 412 W. That "));
}

TEST(Logs, AGpuWhoseMemoryIsHeldWithoutAKernelMayBeAServers) {
  const Explanation e = explain(log_of_gpus({[](double) { return LogRow{0.0, 0.0, 31, 12e9}; }}, 600));
  const Finding* finding = find(e, Cause::kInteractiveHoldingGpu);
  ASSERT_TRUE(finding) << everything(e);
  EXPECT_THAT(finding->advice, HasSubstr("let others share the GPU, or give it back"));
  EXPECT_THAT(finding->advice, Not(HasSubstr("torch.cuda.is_available"))) << "somebody has a context there";
}

TEST(Logs, ALargerBatchFitsWhereMostOfTheMemoryIsFree) {
  const auto with = [](double bytes) {
    return everything(explain(log_of_gpus({[=](double) { return LogRow{0.5, 0.2, 200, bytes}; }}, 120)));
  };
  EXPECT_THAT(with(12e9),
              HasSubstr("a larger batch fits (3.8 times, if all of it grows with it; 10 % kept for fragments)"));
  EXPECT_THAT(with(5e6), HasSubstr("a larger batch fits (more than 100 times"));
  EXPECT_THAT(with(45e9), Not(HasSubstr("larger batch fits")));
}

TEST(Logs, ALostGpuIsAFindingWithTheTimeAndTheDriversWord) {
  const Explanation e =
      explain(log_of_gpus({[](double t) {
                            return t <= 60 ? LogRow{0.9, 0.4, 350, 12e9} : LogRow{.why = Absent::kDeviceLost};
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

TEST(Logs, TheDriversFlagOfAnIdleGpuIsToldWhereNothingElseIs) {
  Recording log = log_of_gpus({[](double) { return LogRow{{}, {}, 200, 12e9}; }}, 120);
  Track& track = log.tracks.front();
  std::erase_if(track.columns, [](const Column& column) { return column.metric == Metric::kGpuUtil; });
  Column reasons{Metric::kEventReasons, std::vector<std::int64_t>(120, 0), {}};
  std::fill_n(reasons.values.begin(), 30, kReasonGpuIdle);
  track.columns.push_back(std::move(reasons));
  const Explanation e = explain(log);
  EXPECT_THAT(find(e, Cause::kUtilisationNotReported)->evidence,
              Contains(HasSubstr("the driver called it idle in 30 of 120 readings (25 %)")));
  EXPECT_EQ(check(e, "clocks").good, Answer::kUnknown);
  EXPECT_EQ(check(e, "clocks").evidence, "no clock event reasons were read while it was seen busy");
}

TEST(Logs, JobsThatUsersTellApartHaveBoundsOfTheirOwn) {
  const auto at = [](double util) { return [=](double) { return LogRow{util, 0.4, 350, 20e9}; }; };
  Recording log = log_of_gpus({at(0.95), at(0.95), at(0.1), at(0)}, 120);
  log.meta.extra = {{"users.0", "alice python"}, {"users.1", "alice python"}, {"users.2", "bob vllm,eve"}};
  const Explanation e = explain(log);
  EXPECT_THAT(e.headline, HasSubstr("Processes in the log: alice python on GPUs 0 and 1; bob vllm and eve on GPU 2."));
  const Finding* open = find(e, Cause::kInputTooFewWorkers);
  ASSERT_NE(open, nullptr);
  EXPECT_THAT(open->bound, HasSubstr("x for the job on GPU 2, 1.0"));
  EXPECT_GT(open->gain->high, 9);
  ASSERT_TRUE(e.bound);
  EXPECT_GE(e.bound->speedup_high, open->gain->high);
  EXPECT_EQ(e.bound->condition.find("for the job on GPU 2, if the GPU work"), 0U) << e.bound->condition;
  EXPECT_THAT(everything(e), Not(HasSubstr("one job uses all")));
  EXPECT_THAT(everything(e), Not(HasSubstr("let the job use all")));
  EXPECT_EQ(find_single(e, Cause::kMoreGpusThanUseful)->advice, "run something else there");
  log.meta.extra.erase("users.2");
  EXPECT_THAT(everything(explain(log)), HasSubstr("if one job uses all")) << "whose GPU 2 is, nobody says";
  log.meta.extra["users.3"] = "bob vllm";
  log.meta.extra["users.2"] = "eve";
  EXPECT_THAT(find(explain(log), Cause::kInputTooFewWorkers)->bound, Not(HasSubstr("GPU 3"))) << "nothing ran there";
  EXPECT_THAT(everything(explain(log)), HasSubstr("see what the process there is for"));
  EXPECT_THAT(everything(explain(log)), Not(HasSubstr("names no process on GPU 3")));
  log.meta.extra["users.2"] = "alice python";
  EXPECT_THAT(everything(explain(log)), HasSubstr("if one job uses all")) << "one user's";
}

TEST(Logs, OfGpusThatHardlyWorkNoneCountsAsInUse) {
  const auto at = [](double util) { return [=](double) { return working(util); }; };
  const auto nobody = [](double) { return LogRow{0.0, 0.0, 40, 1e6}; };
  EXPECT_THAT(everything(explain(log_of_gpus({at(0.93), at(0.92), nobody, at(0.04)}, 240))),
              HasSubstr("with all of them in use 2.0x the work per second at most"));
}

TEST(Logs, MemoryIsThatOfTheFullestGpu) {
  const auto with = [](double memory) { return [=](double) { return LogRow{0.9, 0.4, 350, memory}; }; };
  Recording log = log_of_gpus({with(30e9), with(4e6)}, 120);
  EXPECT_THAT(check(explain(log), "memory").evidence, HasSubstr("GPU 0: 27.9 GiB of 48.0 GiB at most"));
  for (Source& source : log.sources) source.attrs.erase("memory_total_bytes");
  EXPECT_EQ(check(explain(log), "memory").evidence, "GPU 0: 27.9 GiB at most; the GPU's size was not recorded");
}

TEST(Logs, WhereMemoryIsFullNoLargerBatchIsPromised) {
  const auto says = [](double memory) {
    return everything(explain(log_of_gpus({[=](double) { return LogRow{0.5, 0.4, 350, memory}; }}, 120)));
  };
  EXPECT_THAT(says(20e9), HasSubstr("a batch k times larger gains at most"));
  EXPECT_THAT(says(50e9), HasSubstr("memory is nearly full, unless the job keeps more of it than it needs"));
  EXPECT_THAT(says(50e9), Not(HasSubstr("a batch k times larger")));
  EXPECT_THAT(says(47.5e9), HasSubstr("memory has too little room for a larger batch, unless the job keeps"))
      << "health calls that in order";
}

TEST(Logs, AShareOfTheTimeIsOfWhatWasRead) {
  const Explanation e = explain(log_of_gpus({[](double t) { return working(t <= 100 ? 0.9 : 0.4); },
                                             [](double t) {
                                               return t <= 195 ? working(0.9) : LogRow{{}, {}, 200, 12e9};
                                             }},
                                            200));
  EXPECT_THAT(e.headline, HasSubstr("GPU 1 90 %")) << "the 5 s without a reading are a fortieth of its time";
}

TEST(Logs, AGpuThatIsSeldomBusyAndHoldsItsMemoryMayBeAServers) {
  const auto log = [](double share, double least) {
    std::mt19937_64 random(7);
    std::vector<bool> busy;
    for (int i = 0; i < 600; ++i) busy.push_back(static_cast<double>(random() % 1000) < 1000 * share);
    return explain(log_of_gpus({[=](double t) {
                                 const bool now = busy[static_cast<std::size_t>(t) % busy.size()];
                                 return LogRow{now ? 0.9 : 0.0, now ? 0.4 : 0.0, now ? 250 : 60, t < 60 ? least : 19e9};
                               }},
                               600));
  };
  const Explanation serves = log(0.09, 19e9);
  const Finding* finding = find(serves, Cause::kInteractiveHoldingGpu);
  ASSERT_TRUE(finding) << everything(serves);
  EXPECT_EQ(finding->candidates.front(), Cause::kInteractiveHoldingGpu);
  EXPECT_THAT(finding->bound, HasSubstr("if a job computes there, whatever the cause, at most"));
  EXPECT_THAT(finding->bound, Not(HasSubstr("batch")));
  for (const std::string& line : finding->evidence) EXPECT_THAT(line, Not(HasSubstr("larger batch fits")));
  EXPECT_THAT(finding->evidence, ::testing::Contains(::testing::ContainsRegex("kernels ran in [0-9]+ bursts, with ")));
  EXPECT_THAT(finding->advice, HasSubstr("let others share the GPU, or give it back"));
  EXPECT_THAT(everything(log(0.4, 19e9)), Not(HasSubstr("if a job computes there"))) << "often enough";
  EXPECT_THAT(everything(log(0.09, 1e9)), Not(HasSubstr("if a job computes there"))) << "its memory came later";
}

TEST(Logs, ALogThatEndsWithoutKernelsIsNotDeniedToHang) {
  const auto stops = [](double memory_after) {
    return [=](double t) { return t <= 150 ? LogRow{0.98, 0.49, 354, 12e9} : LogRow{0, 0, 60, memory_after}; };
  };
  const Explanation hangs = explain(log_of_gpus({stops(12e9), stops(12e9)}, 300));
  const Finding* finding = find(hangs, Cause::kHang);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding, &hangs.findings.front());
  EXPECT_THAT(finding->candidates, ::testing::ElementsAre(Cause::kHang, Cause::kUnreleasedAfterWork));
  EXPECT_THAT(everything(hangs), Not(HasSubstr("a hang: ")));
  EXPECT_EQ(find(hangs, Cause::kBatchTooSmall), nullptr) << "nobody was still feeding it";
  const Explanation ended = explain(log_of_gpus({stops(100e6)}, 300));
  EXPECT_EQ(ended.findings.front().cause, Cause::kMonitoringMostlyElse) << "who holds the GPU keeps its memory";
  const Explanation gone = explain(log_of_gpus({stops(1e6)}, 300));
  EXPECT_EQ(gone.findings.front().cause, Cause::kMonitoringMostlyElse) << "what hangs has a context";
  EXPECT_THAT(gone.findings.front().candidates, ::testing::IsEmpty());
}

TEST(Logs, ADesktopThatGoesOnIsNoJob) {
  const auto desktop = [](double memory_after) {
    return [=](double t) {
      return t <= 150 ? LogRow{std::fmod(t, 3) < 1 ? 0.3 : 0.8, {}, {}, 9e9}
                      : LogRow{std::fmod(t, 20) < 1 ? 0.03 : 0.0, {}, {}, memory_after};
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

TEST(Logs, OneOfSeveralGpusThatFallsQuietIsNamed) {
  const auto until = [](double end) { return [=](double t) { return LogRow{t <= end ? 0.9 : 0.0, {}, {}, 9e9}; }; };
  const Explanation one = explain(log_of_gpus({until(600), until(240)}, 600));
  EXPECT_THAT(one.headline, HasSubstr("On GPU 1 at the end, for 6:00, hardly a kernel ran any more."));
  const Explanation both = explain(log_of_gpus({until(300), until(240)}, 600));
  EXPECT_THAT(both.headline, HasSubstr("For 55 % at the end hardly a kernel ran any more."));
}

TEST(Logs, AServerThatWaitsAfterItsRequestsAsBeforeThemIsNoHang) {
  const auto server = [](double before, double memory) {
    return explain(log_of_gpus({[=](double t) {
                                 const bool busy = t > before && t <= 900 && std::fmod(t, 100) < 60;
                                 return LogRow{busy ? 0.9 : 0.0, {}, {}, t < before ? memory : 20e9};
                               }},
                               1440));
  };
  EXPECT_THAT(everything(server(450, 20e9)), Not(HasSubstr("hangs")));
  EXPECT_THAT(everything(server(30, 20e9)), HasSubstr("hangs or holds the GPU")) << "it waited for less before";
  EXPECT_THAT(everything(server(450, 1e6)), HasSubstr("hangs or holds the GPU")) << "it was not there before";
}

TEST(Logs, MemoryThatHasComeToItsEndIsNotExtrapolated) {
  const auto log = [](double until) {
    return everything(explain(log_of_gpus({[=](double t) {
                                            return LogRow{0.9, {}, {}, 4e9 + 3e8 * std::min(t, until)};
                                          }},
                                          120)));
  };
  EXPECT_THAT(log(120), HasSubstr(" more each second: full in "));
  EXPECT_THAT(log(110), Not(HasSubstr("more each second")));
}

TEST(Logs, AProcessThatIsListedToTheEndHoldsTheGpuAndOneThatIsGoneHasEnded) {
  const auto with = [](const char* key) {
    Recording recording = log_of_gpus({[](double t) { return LogRow{t <= 240 ? 0.9 : 0.0, {}, {}, {}}; }}, 600);
    recording.meta.extra[key] = "301 python3";
    return explain(recording);
  };
  const Explanation gone = with("gone.0"), still = with("listed.0"), other = with("gone.1");
  EXPECT_EQ(gone.findings.front().cause, Cause::kMonitoringMostlyElse);
  EXPECT_THAT(gone.findings.front().title, HasSubstr("no process is listed on the GPU any more"));
  EXPECT_THAT(still.findings.front().candidates, Not(Contains(Cause::kMonitoringMostlyElse)));
  EXPECT_THAT(still.findings.front().title, HasSubstr("while its process was still listed"));
  EXPECT_THAT(other.findings.front().candidates, Contains(Cause::kMonitoringMostlyElse)) << "of another GPU";
}

TEST(Logs, ADesktopThatIsUsedIsNoJobEither) {
  const auto desktop = [](double util, double memory_after) {
    return everything(explain(log_of_gpus(
        {[=](double t) {
          return t <= 150 ? LogRow{0.9, {}, {}, 8e9} : LogRow{util * (0.3 + std::fmod(t, 5) / 5), {}, {}, memory_after};
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

TEST(Logs, ThePauseBetweenTwoJobsIsNeithersIdleTime) {
  const auto jobs = [](double pause, double memory, double util = 0.05) {
    return explain(log_of_gpus({[=](double t) {
                                 const bool between = t > 300 && t <= 300 + pause;
                                 return between
                                            ? LogRow{util, {}, {}, memory}
                                            : LogRow{std::fmod(t, 7) < 1 ? 0.3 : 0.9, {}, {}, t <= 300 ? 20e9 : 16e9};
                               }},
                               900));
  };
  const Explanation two = jobs(180, 1.5e9);
  const Finding* pause = find_single(two, Cause::kMonitoringMostlyElse);
  ASSERT_TRUE(pause) << everything(two);
  EXPECT_THAT(pause->title, HasSubstr("The memory was given back, and taken again 3:01 later"));
  EXPECT_NEAR(seconds(pause->cost()), 0.95 * 180, 5);
  EXPECT_THAT(everything(two), HasSubstr("GPU 0: 1431 MiB of its memory in use on average from"));
  EXPECT_THAT(everything(two), HasSubstr("18.6 GiB before and 14.9 GiB after"));
  const Finding* rest = find(two, Cause::kInputTooFewWorkers);
  ASSERT_TRUE(rest && rest->gain);
  EXPECT_LT(rest->gain->high, 1.2) << "the idle time of the jobs alone";
  EXPECT_THAT(everything(jobs(180, 8e9)), Not(HasSubstr("given back"))) << "a job that waits keeps its memory";
  EXPECT_THAT(everything(jobs(180, 1.5e9, 0.6)), Not(HasSubstr("given back"))) << "a small job, and no pause";
  EXPECT_THAT(everything(jobs(5, 1.5e9)), Not(HasSubstr("given back")));
}

TEST(Logs, MemoryThatGrowsWithoutAKernelIsAStart) {
  const auto grows_until = [](double full) {
    return explain(log_of_gpus({[=](double t) {
                                 return LogRow{0.0, 0.0, 20, 1e6 + 3e9 * std::min(1.0, t / full)};
                               }},
                               60));
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

TEST(Logs, MemoryThatHasStoppedGrowingDoesNotFillUp) {
  const auto grows_until = [](double full) {
    return everything(explain(log_of_gpus({[=](double t) {
                                            return LogRow{0.9, 0.4, 300, 1e9 + 6e8 * std::min(full, t) + 1e6 * t};
                                          }},
                                          60)));
  };
  EXPECT_THAT(grows_until(60), HasSubstr("at this pace"));
  EXPECT_THAT(grows_until(51), Not(HasSubstr("at this pace")));
  const auto begins_late = [](double t) {
    return LogRow{0.9, 0.4, 300, 1e9 + 1.5e9 * std::max(0.0, t - 40) + 1e6 * t};
  };
  EXPECT_THAT(everything(explain(log_of_gpus({begins_late}, 60))), Not(HasSubstr("at this pace")));
}

TEST(Logs, AKernelOrTwoInAStartAreNoWork) {
  const auto grows = [](double util) {
    return explain(
        log_of_gpus({[=](double t) {
                      return LogRow{std::fmod(t, 5) < 1 ? util : 0.0, 0.0, 20, 1e6 + 3e9 * std::min(1.0, t / 50)};
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

TEST(Logs, SeveralProcessesOfALogAreToldWhateverIsFound) {
  for (const double util : {0.5, 1.0}) {
    Recording log = log_of_gpus({[=](double) { return working(util); }}, 120);
    log.meta.extra["processes"] = "41 python 30 %, 42 train 20 %";
    EXPECT_THAT(explain(log).headline, HasSubstr("several processes, with these mean shares of the SMs: 41 python"));
  }
}

TEST(Logs, ALogWithoutAKernelSaysNothingOfLoadersAndBatches) {
  const Explanation e = explain(log_of_gpus({[](double) { return LogRow{0.0, 0.0, 60, 12e9}; }}, 300));
  ASSERT_EQ(e.findings.size(), 1U);
  EXPECT_EQ(e.findings[0].candidates.front(), Cause::kJobNeverUsesGpu);
  EXPECT_FALSE(e.findings[0].gain);
}

TEST(Logs, LessEvidenceWidensTheSet) {
  const Explanation e = explain(log_of_gpus({[](double t) { return working(std::fmod(t, 3) < 1 ? 0.2 : 0.4); }}, 300));
  const Finding* finding = find(e, Cause::kInputTooFewWorkers);
  ASSERT_NE(finding, nullptr);
  for (const Cause cause : {Cause::kInputInMainProcess, Cause::kSlowStorage, Cause::kSyncPoints, Cause::kGilContention,
                            Cause::kLoggingUpload, Cause::kCheckpointSync, Cause::kValidation, Cause::kLaunchBound})
    EXPECT_THAT(finding->candidates, Contains(cause));
  EXPECT_NE(finding->confidence, Confidence::kHigh);
}

TEST(Logs, AnUnusedGpuIsANoteAtTheEndAndNotInTheHeadlinesShare) {
  const Explanation e = explain(log_of_gpus({[](double) { return working(0.9); },
                                             [](double) {
                                               return LogRow{0, 0, 60, 3e6};
                                             }},
                                            300));
  EXPECT_THAT(e.headline, HasSubstr("GPU 0 was busy for 90 %"));
  EXPECT_THAT(e.headline, HasSubstr("GPU 1 was never used"));
  EXPECT_EQ(e.findings.back().candidates.front(), Cause::kMoreGpusThanUseful);
  EXPECT_THAT(everything(e), Not(HasSubstr("GPU 1: ")));
  const auto holds = [](double) { return LogRow{0, 0, 60, 20e9}; };
  EXPECT_THAT(everything(explain(log_of_gpus({[](double) { return working(0.9); }, holds, holds}, 300))),
              HasSubstr("GPUs 1 and 2: 18.6 GiB of memory and more each in use all the while: somebody holds it"));
}

TEST(Logs, ALogsTimesAreItsOwn) {
  Recording recording = log_of_gpus({[](double t) { return t <= 150 ? working(1.0) : LogRow{0.0, {}, {}, 1e6}; }}, 300);
  const std::string utc = everything(explain(recording));
  recording.meta.extra["utc_offset_seconds"] = "3600";
  EXPECT_THAT(utc, HasSubstr("from 08:55:50 on"));
  EXPECT_THAT(everything(explain(recording)), HasSubstr("from 09:55:50 on"));
  recording.meta.extra["utc_offset_seconds"] = "9223372036854775807";
  EXPECT_EQ(everything(explain(recording)), utc);
}

TEST(Logs, WhatTheDriverTakesItselfIsNobody) {
  const auto of = [](double bytes) {
    return explain(log_of_gpus({[=](double) { return LogRow{0.0, 0.0, 20, bytes}; }}, 120));
  };
  const Explanation nobody = of(1 << 20), held = of(4e9);
  ASSERT_FALSE(nobody.findings.empty());
  EXPECT_THAT(everything(nobody), HasSubstr("1 MiB in use at most: no program had a context"));
  EXPECT_EQ(find(nobody, Cause::kUnreleasedAfterWork), nullptr);
  EXPECT_NE(find(nobody, Cause::kJobNeverUsesGpu), nullptr);
  EXPECT_NE(find(held, Cause::kUnreleasedAfterWork), nullptr);
}

TEST(Logs, WhatIsLeftOfAFindingSaysOfWhichPartItSpeaks) {
  // The start-up of a batch's tasks that failed belongs to what was thrown away, that of the others to the start-ups.
  const Explanation e = explain(log_of_gpus({working}, 10));
  for (const Finding& finding : e.findings) EXPECT_THAT(finding.evidence, Not(Contains(HasSubstr("count here"))));
}

TEST(Logs, LossesOfUnknownPlaceMakeEverythingLessSure) {
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

TEST(Logs, GpusThatAreLowInTheSameReadingsAreSaidToBe) {
  const auto text = [](int shift) {
    const auto gpu = [](int from) {
      return [=](double t) { return working(static_cast<int>(t + from) % 20 < 4 ? 0.1 : 0.95); };
    };
    return everything(explain(log_of_gpus({gpu(0), gpu(shift), gpu(0)}, 400)));
  };
  EXPECT_THAT(text(0), HasSubstr("GPUs 0 to 2 are low in the same readings (80 of 80)"));
  const auto shortly = [](double t) { return working(std::fmod(t, 10) < 2 ? 0.01 : 0.95); };
  const Explanation e = explain(log_of_gpus({shortly, shortly}, 400));
  EXPECT_THAT(
      e.findings.front().evidence.front(),
      HasSubstr("GPUs 0 and 1 are low in the same readings (80 of 80), in rounds of 10 (10.0 s), 39 of them: in "
                "most 2 show hardly a kernel; what they wait for they have in common"));
  EXPECT_THAT(text(10), Not(HasSubstr("in the same readings"))) << "each at a time of its own";
}

TEST(Logs, OfPowerAloneTheGpuThatDiffersComesFirst) {
  const auto gpu = [](double watts) { return [=](double) { return LogRow{{}, {}, watts, 12e9}; }; };
  std::vector<std::function<LogRow(double)>> gpus(8, gpu(290));
  gpus[6] = gpu(95);
  const Explanation e = explain(log_of_gpus(gpus, 120));
  const Finding* finding = find(e, Cause::kUtilisationNotReported);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence.front(), HasSubstr("GPU 6 drew 95 W on average, the others 290 W"));
  gpus[6] = gpu(270);
  EXPECT_THAT(everything(explain(log_of_gpus(gpus, 120))), Not(HasSubstr("drew 270")));
}

TEST(Logs, TheBusyShareOfTheTimeInWhichMemoryWasTakenIsSaid) {
  const auto log = [](double begin, double end) {
    return explain(log_of_gpus({[=](double t) {
                                 const bool there = t > begin && t <= end;
                                 return LogRow{there ? 0.9 : 0.0, 0.4, 300, there ? 12e9 : 3e6};
                               }},
                               600));
  };
  EXPECT_THAT(log(300, 600).headline, HasSubstr("While memory was taken there (5:00 of 10:00), it was busy for 90 %"));
  EXPECT_THAT(log(0, 600).headline, Not(HasSubstr("While memory")));
}

TEST(Logs, AStretchThatTheLogCutOffIsNotInTheMeanOfThoseThatRecur) {
  // Idle for 20 s in each minute; the log begins 15 s into such a stretch.
  const Explanation e =
      explain(log_of_gpus({[](double t) { return working(std::fmod(t + 14.9, 60) < 20 ? 0.0 : 0.97); }}, 600));
  EXPECT_THAT(everything(e), HasSubstr("GPU 0 is idle for 20.")) << everything(e);
}

TEST(Logs, ALogThatNamesItsProcessesIsNotSaidToNameNone) {
  Recording recording = log_of_gpus({[](double) { return working(0.9); }}, 120);
  recording.meta.extra["named_processes"] = "41201 python (GPU 0)";
  const Explanation e = explain(recording);
  EXPECT_THAT(e.headline, HasSubstr("Processes in the log: 41201 python (GPU 0)."));
  EXPECT_THAT(everything(e), Not(HasSubstr("whose they were is not recorded")));
}

TEST(Logs, RoomForALargerBatchIsSaidOfTheGpuThatHasIt) {
  const auto gpu = [](double util, double memory) { return [=](double) { return LogRow{util, 0.4, 200, memory}; }; };
  const std::string text = everything(explain(log_of_gpus({gpu(0.97, 46e9), gpu(0.6, 9e9)}, 300)));
  EXPECT_THAT(text, HasSubstr("GPU 1: 8583 MiB of 48.0 GiB at most; that says a larger batch fits"));
  EXPECT_THAT(text, Not(HasSubstr("at most, GPU 1")));
}

TEST(Logs, AnEngineThatIsActiveForLessThanTheDriverCountsIsNoHealthyGpu) {
  const auto log = [](double engine, double util = 1.0) {
    return explain(
        log_of_gpus({[=](double) { return LogRow{.util = util, .memory = 9e9, .engine_active = engine}; }}, 300));
  };
  const Explanation e = log(0.62);
  const Finding* finding = find(e, Cause::kLaunchBound);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_EQ(finding->title,
            "GPU 0: its engine for kernels was active 62 % of the time, of which the driver counts 100 %");
  EXPECT_EQ(finding->confidence, Confidence::kLow);
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  EXPECT_NE(find(log(0.9), Cause::kHealthy), nullptr);
  EXPECT_THAT(everything(log(0.5, 0.6)), Not(HasSubstr("its engine for kernels")));
}

}  // namespace
}  // namespace headroom
