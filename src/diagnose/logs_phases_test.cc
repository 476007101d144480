// SPDX-License-Identifier: Apache-2.0
// Logs of GPUs alone: idle phases, kernels that wait, and what could be gained.
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
using ::testing::Not;

TEST(LogPhases, KernelsThatOnlyWaitAreNoHealthyJob) {
  const auto rank = [](double t) { return t <= 100 ? LogRow{1.0, 0.4, 350, 12e9} : LogRow{1.0, 0, 82, 12e9}; };
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

TEST(LogPhases, KernelsThatWaitForAnotherGpuAreNoBound) {
  const auto waits = [](double t) { return std::fmod(t, 20) < 5; };
  const auto late = [&](double t) { return waits(t) ? LogRow{0.0, 0.0, 64, 9e9} : LogRow{0.97, 0.5, 250, 9e9}; };
  const auto rank = [&](double t) { return waits(t) ? LogRow{1.0, 0.0, 78, 9e9} : LogRow{0.97, 0.5, 250, 9e9}; };
  const Explanation e = explain(log_of_gpus({late, rank, rank, rank}, 400));
  const Finding* finding = find(e, Cause::kStraggler);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding, &e.findings.front());
  EXPECT_THAT(finding->title, HasSubstr("Kernels on GPUs 1 to 3 only waited for GPU 0 in 19 % of the GPU time"));
  ASSERT_TRUE(finding->gain);
  EXPECT_NEAR(finding->gain->high, 1.33, 0.05) << finding->bound;
  EXPECT_NEAR(seconds(finding->cost()), 400, 20);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("at a time, every 20.0 s")));
  ASSERT_TRUE(e.bound);
  EXPECT_NEAR(e.bound->speedup_high, 1.37, 0.05);
  EXPECT_THAT(e.headline, HasSubstr("kernels only waited for another GPU"));
  EXPECT_THAT(explain(log_of_gpus({late, rank, rank, rank, rank, rank, rank, rank}, 400)).headline,
              HasSubstr("The 8 GPUs had kernels for "))
      << "and did not compute all that time";
  // The log may end in a wait like those before it; what waits for longer hangs.
  for (const double length : {400.0, 385.0})
    EXPECT_NEAR(explain(log_of_gpus({late, rank, rank, rank}, length)).findings.front().gain->high, 1.37, 0.03)
        << length;
  // One that idles for a moment of it is not late.
  const auto moment = [&](double t) { return t == 4 ? LogRow{0.0, 0.0, 64, 9e9} : rank(t); };
  EXPECT_THAT(everything(explain(log_of_gpus({late, rank, rank, moment}, 400))), Not(HasSubstr("GPUs 0 and 3 had no")));
  // They work while it idles: nobody waits.
  const auto works = [](double) { return LogRow{0.97, 0.5, 250, 9e9}; };
  EXPECT_THAT(everything(explain(log_of_gpus({late, works, works, works}, 400))), Not(HasSubstr("only waited")));
  // Without the power the activity of the SMs tells, and the bandwidth of the memory.
  const auto active = [&](double t) {
    const bool spins = waits(t);
    return LogRow{.util = 0.99, .memory = 9e9, .sm_active = spins ? 0.12 : 0.8, .dram_active = spins ? 0.0 : 0.4};
  };
  const Explanation by_activity = explain(log_of_gpus({late, active, active}, 400));
  const Finding* spins = find(by_activity, Cause::kStraggler);
  ASSERT_NE(spins, nullptr);
  EXPECT_THAT(spins->evidence, Contains(HasSubstr("showed a kernel with SMs active 12 % of the time and untouched "
                                                  "memory; with SMs active 80 % of the time where kernels work")));
  // All wait at the same time: for whom, nothing shows.
  EXPECT_THAT(everything(explain(log_of_gpus({rank, rank}, 400))), Not(HasSubstr("only waited for")));
}

TEST(LogPhases, KernelsThatHardlyWorkOnAllGpusAtOnceAreNoHealthyJob) {
  const auto waits = [](double t) { return std::fmod(t, 30) < 6; };
  const auto rank = [&](double t) { return waits(t) ? LogRow{1.0, 0.0, 171, 9e9} : LogRow{0.98, 0.5, 595, 9e9}; };
  const Explanation e = explain(log_of_gpus({rank, rank, rank, rank}, 600));
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  const Finding* low = find(e, Cause::kStraggler);
  ASSERT_NE(low, nullptr) << everything(e);
  EXPECT_EQ(low->title, "Kernels on GPUs 0 to 3 hardly worked in 20 % of the GPU time, on all at the same times");
  EXPECT_THAT(low->evidence, Contains(HasSubstr("showed a kernel at 171 W and untouched memory; at 595 W where")));
  EXPECT_THAT(low->evidence, Contains("as a rule 6.0 s at a time, every 30.0 s"));
  ASSERT_TRUE(low->gain && e.bound);
  EXPECT_NEAR(low->gain->high, 1.25, 0.03);
  EXPECT_GE(e.bound->speedup_high, low->gain->high);
  EXPECT_THAT(e.headline, HasSubstr("In 20 % of it kernels hardly worked."));
  // Of one GPU of a job on several machines, too; its power alone tells nothing.
  EXPECT_THAT(everything(explain(log_of_gpus({rank}, 600))), HasSubstr("Kernels on GPU 0 hardly worked in 20 %"));
  const auto small = [&](double t) { return waits(t) ? LogRow{1.0, {}, 171, 9e9} : LogRow{0.98, {}, 595, 9e9}; };
  EXPECT_THAT(everything(explain(log_of_gpus({small, small}, 600))), Not(HasSubstr("hardly worked")));
  // At times of its own each may do what it likes.
  const auto other = [&](double t) { return rank(t + 12); };
  EXPECT_THAT(everything(explain(log_of_gpus({rank, other}, 600))), Not(HasSubstr("on all at the same times")));
}

TEST(LogPhases, KernelsThatWaitAreFoundByTheirPowerAlone) {
  const auto waits = [](double t) { return std::fmod(t, 20) < 5; };
  const auto late = [&](double t) { return waits(t) ? LogRow{0.0, {}, 64, 9e9} : LogRow{0.97, {}, 250, 9e9}; };
  const auto rank = [&](double t) { return waits(t) ? LogRow{1.0, {}, 78, 9e9} : LogRow{0.97, {}, 250, 9e9}; };
  const Explanation e = explain(log_of_gpus({late, rank}, 400));
  const Finding* finding = find(e, Cause::kStraggler);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->title, HasSubstr("Kernels on GPU 1 only waited for GPU 0"));
  EXPECT_THAT(everything(e), Not(HasSubstr("untouched memory"))) << "it was not read";
  // Of one GPU little power is not enough: its kernels may be small.
  const auto falls = [](double t) { return t <= 200 ? LogRow{1.0, {}, 250, 9e9} : LogRow{1.0, {}, 78, 9e9}; };
  EXPECT_THAT(everything(explain(log_of_gpus({falls}, 400))), Not(HasSubstr("only waited")));
}

TEST(LogPhases, WhatOneGpuDoesWhileAllOthersWaitIsTold) {
  const auto alone = [](double t) { return std::fmod(t, 50) < 10; };
  const auto first = [](double) { return LogRow{0.97, 0.5, 250, 9e9}; };
  const auto rank = [&](double t) { return alone(t) ? LogRow{1.0, 0.0, 78, 9e9} : LogRow{0.97, 0.5, 250, 9e9}; };
  const Explanation e = explain(log_of_gpus({first, rank, rank, rank}, 400));
  const Finding* finding = find(e, Cause::kValidation);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->title, HasSubstr("Kernels on GPUs 1 to 3 only waited in"));
  EXPECT_THAT(finding->title, HasSubstr("while GPU 0 alone worked"));
  ASSERT_TRUE(finding->gain);
  EXPECT_NEAR(finding->gain->high, 1 / (1 - 0.2 * 0.75), 0.03);
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  // A single other one may have another job.
  const std::string of_two = everything(explain(log_of_gpus({first, rank}, 400)));
  EXPECT_THAT(of_two, Not(HasSubstr("alone worked")));
  EXPECT_THAT(of_two, Not(HasSubstr("only waited")));
  EXPECT_THAT(of_two,
              HasSubstr("Kernels on GPU 1 hardly worked in 9.9 % of the GPU time while GPU 0 did: they may have"));
  EXPECT_THAT(of_two, HasSubstr("if both are one job's"));
  EXPECT_THAT(everything(explain(log_of_gpus({first, rank, first}, 400))), Not(HasSubstr("alone worked")));
}

TEST(LogPhases, IdlePhasesLastAsLongAsTheirSumSays) {
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

TEST(LogPhases, BurstsBetweenReadingsMakeTheBoundWiderAndAreNamed) {
  const auto bursty = [](double t) { return working(std::fmod(t, 4) < 1 ? 1.0 : 0.0); };
  const Explanation e = explain(log_of_gpus({bursty}, 40));
  ASSERT_TRUE(e.bound);
  EXPECT_GT(e.bound->speedup_high, 4.5) << "the readings alone say 4";
  EXPECT_THAT(everything(e), HasSubstr("give or take"));
  const Explanation steady = explain(log_of_gpus({[](double) { return working(0.25); }}, 40));
  EXPECT_NEAR(steady.bound->speedup_high, 4, 0.01);
}

TEST(LogPhases, BurstsThatAreTooShortForAPhaseAreTold) {
  const auto with = [](double burst) {
    return everything(explain(log_of_gpus({[=](double t) {
                                            const double at = std::fmod(t, 100);
                                            return working(at < 40 ? 0.9 : at >= 60 && at < 62 ? burst : 0.0);
                                          }},
                                          600)));
  };
  EXPECT_THAT(with(0.4), HasSubstr("GPU 0 is hardly busy (1.6 % on average) for "));
  EXPECT_THAT(with(0.0), HasSubstr("GPU 0 is idle for "));
}

TEST(LogPhases, WaitsThatAreHardlyBusyAreNoPartOfWorkThatIsNotFull) {
  const auto gpu = [](double t) {
    const int second = static_cast<int>(t), noise = second * 7 % 5;
    return working(second % 24 >= 20 ? 0.03 + 0.01 * noise : 0.83 + 0.02 * noise);
  };
  const std::string text = everything(explain(log_of_gpus({gpu}, 348)));
  EXPECT_THAT(text, HasSubstr("4.0 s at a time, 14 times, every 24.0 s"));
  EXPECT_THAT(text, Not(HasSubstr("bursts"))) << "it draws all along";
}

TEST(LogPhases, GpusThatDifferAsTwoJobsDoHaveABoundOfEach) {
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

TEST(LogPhases, AReadingThatIsALittleAboveIdleDoesNotEndAnIdlePhase) {
  const auto with = [](double most) {
    return everything(explain(log_of_gpus(
        {[=](double t) { return working(std::fmod(t, 40) < 30 ? 0.7
                                        : std::fmod(t, 3) < 1 ? most
                                                              : 0.01); }}, 400)));
  };
  EXPECT_THAT(with(0.08), HasSubstr("10 times, every 40.0 s"));
  EXPECT_THAT(with(0.01), HasSubstr("10 times, every 40.0 s"));
}

TEST(LogPhases, StallsOfUnevenLengthAreALoadersBeforeTheyAreAValidations) {
  const auto with = [](double least, double most) {
    return explain(log_of_gpus({[=](double t) {
                                 const double round = std::floor(t / 35),
                                              length = least + (most - least) * std::fmod(round * 0.618, 1);
                                 return working(t - 35 * round < length ? 0.0 : 0.95);
                               }},
                               1500));
  };
  const Explanation uneven = with(3, 15), even = with(9, 9);
  const Finding* finding = find(uneven, Cause::kBurstyInput);
  ASSERT_TRUE(finding && finding->candidates.size() > 4);
  EXPECT_EQ(finding->candidates[0], Cause::kBurstyInput);
  EXPECT_EQ(finding->candidates[1], Cause::kSlowStorage);
  EXPECT_THAT(everything(uneven), HasSubstr("nine of ten of these phases last from 4.0 s to 15.0 s"));
  ASSERT_TRUE(find(even, Cause::kValidation));
  EXPECT_EQ(find(even, Cause::kValidation)->candidates.front(), Cause::kValidation);
  EXPECT_THAT(everything(even), Not(HasSubstr("these phases last")));
}

TEST(LogPhases, KernelsThatWaitAreFoundByTheTrafficOfTheirMemoryAlone) {
  const auto waits = [](double t) { return std::fmod(t, 20) < 5; };
  const auto late = [&](double t) { return waits(t) ? LogRow{0.0, 0.0, {}, 9e9} : LogRow{0.97, 0.4, {}, 9e9}; };
  const auto rank = [&](double t) { return waits(t) ? LogRow{1.0, 0.0, {}, 9e9} : LogRow{0.97, 0.4, {}, 9e9}; };
  const Explanation e = explain(log_of_gpus({late, rank, rank}, 400));
  const Finding* finding = find(e, Cause::kStraggler);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->title, HasSubstr("Kernels on GPUs 1 and 2 only waited for GPU 0"));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("showed a kernel with memory traffic 0 % of the time; with memory "
                                                    "traffic 40 % of the time where kernels work")));
  ASSERT_TRUE(finding->gain);
  EXPECT_NEAR(finding->gain->high, 1.33, 0.05) << finding->bound;
  // Beside GPUs that work, or where it is little anyway, the traffic alone tells nothing.
  const auto works = [](double) { return LogRow{0.97, 0.4, {}, 9e9}; };
  EXPECT_THAT(everything(explain(log_of_gpus({works, rank, rank}, 400))), Not(HasSubstr("only waited")));
  EXPECT_THAT(everything(explain(log_of_gpus({rank, rank, rank}, 400))), Not(HasSubstr("hardly worked")));
  const auto little = [&](double t) { return waits(t) ? LogRow{1.0, 0.0, {}, 9e9} : LogRow{0.97, 0.05, {}, 9e9}; };
  EXPECT_THAT(everything(explain(log_of_gpus({late, little, little}, 400))), Not(HasSubstr("only waited")));
}

TEST(LogPhases, WhatSeveralGpusWaitForAtOnceIsNotCalledNoFault) {
  const auto low = [](double t) { return working(std::fmod(t, 40) < 6 ? 0.0 : 0.95); };
  const std::string text = everything(explain(log_of_gpus({low, low}, 400)));
  EXPECT_THAT(text, HasSubstr("in phases that recur"));
  EXPECT_THAT(text, Not(HasSubstr("not a fault")));
}

TEST(LogPhases, LongWaitsThatRecurAreNoPatternAndMayBeALoader) {
  const auto with = [](double idle) {
    return explain(log_of_gpus({[=](double t) { return working(std::fmod(t, 40) < idle ? 0.0 : 0.95); }}, 400));
  };
  EXPECT_THAT(everything(with(30)), Not(HasSubstr("not a fault")));
  EXPECT_NE(find(with(30), Cause::kInputTooFewWorkers), nullptr);
  EXPECT_THAT(everything(with(30)), Not(HasSubstr("hardly waits")));
  EXPECT_THAT(everything(with(6)), HasSubstr("a pattern, not a fault"));
}

TEST(LogPhases, EachGpuOfALogMayHaveAJobOfItsOwn) {
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

TEST(LogPhases, AnIdlePhaseEndsWithTheKernelsThatInterruptIt) {
  const auto bursts = [](double t) {
    const double at = std::fmod(t, 26);
    return LogRow{at >= 1 && at < 5 ? (at < 2 || at >= 4 ? 0.45 : 0.9) : 0.0, 0.1, 200, 9e9};
  };
  const Explanation e = explain(log_of_gpus({bursts, bursts}, 600));
  EXPECT_THAT(everything(e), HasSubstr("Each of GPUs 0 and 1 idles in phases that recur"));
  EXPECT_THAT(everything(e), HasSubstr("is idle for 22.0 s at a time, 23 times, every 26.0 s"));
  EXPECT_THAT(everything(e), Not(HasSubstr("mostly idle")));
}

TEST(LogPhases, APhaseThatTheLogCutsOffIsCountedAsSuch) {
  const auto log = [](double length) {
    const auto pauses = [](double t) { return working(std::fmod(t, 60) < 20 ? 0.0 : 0.95); };
    return everything(explain(log_of_gpus({[=](double t) { return pauses(t + 40); }}, length)));
  };
  EXPECT_THAT(log(600 - 20), HasSubstr(", 10 times, every 1:00"));
  EXPECT_THAT(log(600 + 28), HasSubstr(", 11 times (one of them cut off), every 1:00"));
}

TEST(LogPhases, ShortPausesMayBeALoaderThatReadsAhead) {
  const auto first = [](double period, double pause) {
    const Explanation e =
        explain(log_of_gpus({[=](double t) { return working(std::fmod(t, period) < pause ? 0.0 : 0.97); }}, 1200));
    return std::pair(e.findings.front().candidates, everything(e));
  };
  const auto [causes, words] = first(40, 12);
  EXPECT_THAT(causes, Contains(Cause::kInputTooFewWorkers));
  EXPECT_THAT(words, Not(HasSubstr("a loader too slow for every step")));
  EXPECT_THAT(first(240, 60).second, HasSubstr("a loader too slow for every step"));
}

TEST(LogPhases, ARhythmOfAFewReadingsIsToldThoughItsCauseIsNot) {
  const auto log = [](double period, double idle) {
    return everything(
        explain(log_of_gpus({[=](double t) { return working(std::fmod(t, period) < idle ? 0.01 : 0.95); }}, 600)));
  };
  EXPECT_THAT(log(5, 2),
              HasSubstr("GPU 0: it goes in rounds of 5 readings (5.0 s), 119 of them: in most 2 show hardly a"));
  EXPECT_THAT(log(60, 20), Not(HasSubstr("goes in rounds"))) << "phases are told as such";
}

TEST(LogPhases, GpusThatAreHardlyUsedMayShareOne) {
  const auto log = [](double busy, double memory) {
    const auto full = [](double) { return LogRow{0.97, 0.4, 300, 66e9}; };
    const auto hardly = [=](double t) { return LogRow{std::fmod(t, 25) < 1 ? busy : 0.0, 0.1, 80, memory}; };
    Recording recording = log_of_gpus({full, full, hardly, hardly}, 600);
    for (Source& source : recording.sources)
      if (source.kind == SourceKind::kGpu) source.attrs["memory_total_bytes"] = "85899345920";
    return everything(explain(recording));
  };
  const std::string text = log(0.9, 3.4e9);
  EXPECT_THAT(text, HasSubstr("if GPUs 2 and 3 do other work than the rest, let that share one GPU"));
  EXPECT_THAT(
      text, HasSubstr("GPUs 0 and 1: 61.5 GiB of 80.0 GiB at most; GPUs 2 and 3: 3242 MiB of 80.0 GiB at most; that"));
  EXPECT_THAT(log(0.9, 60e9), Not(HasSubstr("share one GPU"))) << "together they do not fit";
}

TEST(LogPhases, APhaseThatIsHardlyBusyIsToldWithItsLengthAndPace) {
  const auto weak = [](double t) {
    return working(std::fmod(t, 180) < 26 ? (std::fmod(t, 2) < 1 ? 0.02 : 0.12) : 0.97);
  };
  const std::string text = everything(explain(log_of_gpus({weak}, 900)));
  EXPECT_THAT(text, HasSubstr("GPU 0 is mostly idle ("));
  EXPECT_THAT(text, HasSubstr(" on average) for 25.8 s at a time, 5 times, every 3:00"));
}

TEST(LogPhases, ReadingsThatFallAsDiceDoMakeNoPhases) {
  for (int seed = 0; seed < 20; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::normal_distribution<double> level(0.64, 0.2);
    const auto noise = [&](double) { return working(std::clamp(level(random), 0.0, 1.0)); };
    const auto rare = [&](double) { return working(level(random) > 0.83 ? 0.35 : 0.0); };
    for (const auto& readings : {std::function<LogRow(double)>(noise), std::function<LogRow(double)>(rare)})
      EXPECT_THAT(everything(explain(log_of_gpus({readings}, 500))), Not(HasSubstr("phases that recur"))) << seed;
  }
}

TEST(LogPhases, WhatCouldBeGainedIsCountedUntilTheJobHadEnded) {
  const auto until = [](double end) {
    return [=](double t) {
      return t <= end ? LogRow{std::fmod(t, 7) < 1 ? 0.3 : 0.9, {}, {}, 9e9} : LogRow{0.0, {}, {}, 1e6};
    };
  };
  const Explanation whole = explain(log_of_gpus({until(600)}, 600)), cut = explain(log_of_gpus({until(600)}, 1200));
  ASSERT_TRUE(whole.bound && cut.bound);
  EXPECT_NEAR(cut.bound->speedup_high, whole.bound->speedup_high, 0.01);
  EXPECT_THAT(cut.bound->condition, HasSubstr(", counted over the 10:00 until the GPU fell quiet"));
  EXPECT_THAT(everything(cut), HasSubstr("whatever the cause, at most " + human_factor(whole.bound->speedup_high)));
  EXPECT_GT(explain(log_of_gpus({until(600), until(1200)}, 1200)).bound->speedup_high, 1.2) << "the other goes on";
}

TEST(LogPhases, AGpuThatIsHardlyUsedIsNoSlowJob) {
  const auto log = [](double busy, double period) {
    return explain(log_of_gpus({[=](double t) {
                                 return LogRow{std::fmod(t, period) < 1 ? busy : 0.0, 0.0, 21, 412e6};
                               }},
                               1200));
  };
  const Explanation desktop = log(0.01, 17);
  EXPECT_EQ(desktop.findings.front().title, "Hardly a kernel was seen in the recorded time");
  EXPECT_THAT(everything(desktop), HasSubstr("use the GPU or give it back"));
  EXPECT_THAT(everything(desktop), Not(HasSubstr("a batch k times larger")));
  EXPECT_EQ(find(desktop, Cause::kInputTooFewWorkers), nullptr);
  EXPECT_NE(find(log(0.9, 17), Cause::kInputTooFewWorkers), nullptr) << "1 s in 17 is a job";
}

TEST(LogPhases, GpusThatStandFreeUntilOthersAreGivenBackAreOfJobsInTurn) {
  const auto works = [](double) { return LogRow{0.96, 0.4, 300, 20e9}; };
  const auto nobody = [](double) { return LogRow{0.0, 0.0, 60, 2e6}; };
  const auto first = [&](double t) { return t <= 300 ? works(t) : nobody(t); };
  const auto later = [&](double t) { return t <= 300 ? nobody(t) : works(t); };
  const Explanation e = explain(log_of_gpus({first, first, later, later}, 600));
  EXPECT_THAT(everything(e),
              HasSubstr("GPUs 2 and 3 stood free until GPUs 0 and 1 had been given back: jobs that ran in "
                        "turn"));
  EXPECT_THAT(e.headline, HasSubstr("GPUs 2 and 3 stood free until GPUs 0 and 1 had been given back."));
  EXPECT_THAT(everything(e), Not(HasSubstr("came before the first work")));
  EXPECT_THAT(everything(e), HasSubstr(human_factor(2.0) + " at most, if both had begun together"));
  // Alone, or beside one that goes on, it may be a job that starts.
  EXPECT_THAT(everything(explain(log_of_gpus({later}, 600))), Not(HasSubstr("stood free until")));
  EXPECT_THAT(everything(explain(log_of_gpus({works, later}, 600))), Not(HasSubstr("stood free until")));
}

TEST(LogPhases, BytesThatCameMeanwhileMakeCopiesTheFirstGuess) {
  const auto rests = [](double t) { return LogRow{std::fmod(t, 26) < 4 ? 0.9 : 0.0, 0.1, 200, 9e9}; };
  Recording recording = log_of_gpus({rests}, 600);
  Track& track = recording.tracks[0];
  track.columns.push_back(
      {Metric::kPcieRxRate, std::vector<std::int64_t>(track.at.size(), from_unit(Metric::kPcieRxRate, 12e9)), {}});
  const Explanation e = explain(recording);
  EXPECT_EQ(e.findings.front().candidates.front(), Cause::kPageableCopies);
  EXPECT_THAT(everything(e), HasSubstr(human_bytes(12'000'000'000) + "/s came over PCIe in the readings of that time"))
      << "as the log says, however much of that time the GPU was idle";
}

TEST(LogPhases, GpusOfThreeLevelsAreThreeGroups) {
  const auto at = [](double util) { return [=](double) { return LogRow{util, 0.3, 200, 4e9}; }; };
  const Explanation e =
      explain(log_of_gpus({at(0.96), at(0.96), at(0.96), at(0.47), at(0.47), at(0.07), at(0.07), at(0.07)}, 240));
  const Finding* open = find(e, Cause::kInputTooFewWorkers);
  ASSERT_NE(open, nullptr);
  EXPECT_THAT(open->evidence,
              Contains("GPUs 5 to 7 were busy for 7.0 % of the time, GPUs 3 and 4 for 47 %, GPUs 0 to 2 "
                       "for 96 %: they differ, as several jobs do"));
  EXPECT_THAT(open->bound,
              HasSubstr("if GPUs 3 and 4 have a job of their own, at most 2.1x for that, 14x for one on GPUs 5 to 7"));
  EXPECT_THAT(open->advice, HasSubstr("if GPUs 5 to 7 do other work than the rest, let that share one GPU"));
}

TEST(LogPhases, AJobThatEndedOnOneGpuIsJudgedByTheTimeUntilThen) {
  const auto until = [](double busy, double end) {
    return [=](double t) {
      return t <= end ? LogRow{std::fmod(t, 7) < 1 ? busy / 3 : busy, {}, {}, 9e9} : LogRow{0.0, {}, {}, 1e6};
    };
  };
  const std::string text = everything(explain(log_of_gpus({until(0.95, 1200), until(0.6, 600)}, 1200)));
  EXPECT_THAT(text, HasSubstr("GPU 1 was busy for 54 % of the time until 09:03:20, GPU 0 for 86 %"));
  EXPECT_THAT(text, HasSubstr("if GPU 1 has a job of its own, at most 1.8"));
  EXPECT_THAT(text, HasSubstr("x for that, counted over the 10:00 until GPU 1 fell quiet; if one job uses all"));
  EXPECT_THAT(everything(explain(log_of_gpus({until(0.95, 1200), until(0.95, 600)}, 1200))),
              Not(HasSubstr("has a job of its own")))
      << "while it ran it was as busy as the other";
  Recording of_two = log_of_gpus({until(0.95, 1200), until(0.6, 600)}, 1200);
  of_two.meta.extra = {{"users.0", "ann python"}, {"users.1", "bob train"}};
  EXPECT_THAT(everything(explain(of_two)),
              HasSubstr("x for the job on GPU 1, counted over the 10:00 until GPU 1 fell quiet, 1.1"));
}

TEST(LogPhases, WaitsOnADesktopRecurThoughNoReadingIsZero) {
  const auto log = [](double low) {
    return everything(explain(log_of_gpus({[=](double t) {
                                            const double at = std::fmod(t, 50);
                                            return working(at < 30 ? 0.95 : low + 0.01 * std::fmod(at, 3));
                                          }},
                                          900)));
  };
  EXPECT_THAT(log(0.055), HasSubstr("GPU 0 idles in phases that recur"));
  EXPECT_THAT(log(0.055), HasSubstr("for 20.0 s at a time, 17 times"));
  EXPECT_THAT(log(0.055), HasSubstr(", every 50.0 s"));
}

TEST(LogPhases, WaitsOfAJobRecurWhateverFollowsItsEnd) {
  const auto job = [](double t) {
    return t <= 700 ? LogRow{std::fmod(t, 25) < 17 ? 0.92 : 0.0, {}, {}, 18e9} : LogRow{0.0, {}, {}, 1e6};
  };
  const std::string text = everything(explain(log_of_gpus({job}, 1200)));
  EXPECT_THAT(text, HasSubstr("the job on it had ended"));
  EXPECT_THAT(text, HasSubstr("GPU 0 is idle for 8.0 s at a time, 28"));
  EXPECT_THAT(text, HasSubstr(" times, every 25.0 s"));
}

TEST(LogPhases, WhereAnotherIsLateEachTimeNoneIsNamed) {
  const auto rank = [](int turn) {
    return [=](double t) {
      if (std::fmod(t, 50) < 40) return LogRow{0.97, 0.5, 250, 9e9};
      return static_cast<int>(t / 50) % 2 == turn ? LogRow{0.0, 0.0, 64, 9e9} : LogRow{1.0, 0.0, 78, 9e9};
    };
  };
  const std::string text = everything(explain(log_of_gpus({rank(0), rank(1), rank(2), rank(2)}, 800)));
  EXPECT_THAT(text, HasSubstr("only waited for another GPU"));
  EXPECT_THAT(text, HasSubstr("if none was ever late"));
  EXPECT_THAT(text, HasSubstr("see what the process of a GPU does while that has no kernel"));
}

TEST(LogPhases, AGpuWithADesktopAloneIsNoJob) {
  const auto log = [](double busy, double memory) {
    const auto full = [](double) { return LogRow{0.96, 0.4, 300, 20e9}; };
    const auto desktop = [=](double t) { return LogRow{std::fmod(t, 3) < 1 ? busy : 0.0, 0.0, 30, memory}; };
    return everything(explain(log_of_gpus({full, desktop}, 600)));
  };
  EXPECT_THAT(log(0.03, 430e6),
              HasSubstr("if nothing but a desktop is on GPU 1 (410 MiB in use at most), use it or give it back"));
  EXPECT_THAT(log(0.03, 4e9), Not(HasSubstr("desktop")));
  EXPECT_THAT(log(0.3, 430e6), Not(HasSubstr("desktop")));
}

TEST(LogPhases, AServersMemoryIsToldWhereItWaits) {
  const auto server = [](double t) {
    return LogRow{
        (t > 240 && t < 262) || (t > 380 && t < 431) || (t > 690 && t < 744) || (t > 900 && t < 913) ? 0.85 : 0.0,
        {},
        {},
        40e9};
  };
  const std::string text = everything(explain(log_of_gpus({server}, 1240)));
  EXPECT_THAT(text, HasSubstr("GPU 0: 37.3 GiB of 48.0 GiB at most"));
  EXPECT_THAT(text, HasSubstr("if a server or a session waits there for requests, let others share the GPU"));
}

}  // namespace
}  // namespace headroom
