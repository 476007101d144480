// SPDX-License-Identifier: Apache-2.0
// Sets of causes: what evidence takes out of one, and what stays in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/named_causes.h"
#include "model/notes.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using testing::cell;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::SizeIs;

const std::string kMain = "<module> (/u/train.py:1)";
const std::string kFind = "_find_and_load (<frozen importlib._bootstrap>:1)";
const std::string kPackages = "/usr/lib/python3/dist-packages/";

// 20 seconds of start-up, then kernels to the end; `stacks` by when they end.
Explanation starts(const std::vector<std::pair<double, std::vector<std::string>>>& stacks) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t <= 20 ? 0.0 : 0.99; }).process(7, 1, 0, 100, 0.9).context(7, 0, 1, 100);
  double from = 0;
  for (const auto& [until, frames] : stacks) builder.stacks(7, std::exchange(from, until), until, frames);
  return explain(builder.build());
}

TEST(Sets, AStartWhoseStacksAreInNoCompilerLoads) {
  const Finding without = starts({}).findings.front();
  EXPECT_THAT(without.candidates, ElementsAre(Cause::kStartupLoad, Cause::kCompileWarmup));
  const Finding imports =
      starts({{20, {kMain, kFind, "<module> (" + kPackages + "torch/__init__.py:1)"}}}).findings.front();
  EXPECT_EQ(imports.cause, Cause::kStartupLoad);
  EXPECT_EQ(imports.confidence, Confidence::kHigh);
  EXPECT_THAT(imports.told_apart_from, Contains(HasSubstr("compiling: no compiler ran")));
  const Finding unknown = starts({{20, {kMain, "prepare (/u/train.py:9)"}}}).findings.front();
  EXPECT_EQ(unknown.cause, Cause::kStartupLoad);
  EXPECT_EQ(unknown.confidence, Confidence::kMedium) << "it may be a compiler that no rule knows";
}

TEST(Sets, WhatCompilesAndWhatLoadsAreTwoFindings) {
  const Explanation e = starts({{8, {kMain, kFind, "<module> (" + kPackages + "torch/__init__.py:1)"}},
                                {20, {kMain, "compile_fx (" + kPackages + "torch/_inductor/compile_fx.py:1)"}}});
  ASSERT_GE(e.findings.size(), 2U);
  EXPECT_EQ(e.findings[0].cause, Cause::kCompileWarmup);
  EXPECT_NEAR(seconds(e.findings[0].cost()), 12, 1.1);
  EXPECT_EQ(e.findings[1].cause, Cause::kStartupLoad);
  EXPECT_NEAR(seconds(e.findings[1].cost()), 8, 1.1);
  // Neither gains what the other costs: what is imported is told, and compilers were seen.
  EXPECT_NEAR(e.findings[0].gain->high, 100.0 / 88, 0.03);
  EXPECT_NEAR(e.findings[1].gain->high, 100.0 / 92, 0.03);
}

Explanation retries(const std::vector<double>& said) {
  RecordingBuilder builder(80);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.5, 20) < 3 ? 0.0 : 1.0; });
  for (int i = 0; i < 4; ++i)
    builder.process(100 + i, 1, 20 * i, 20 * i + 20, 0.9).context(100 + i, 0, 20 * i + 2, 20 * i + 19);
  for (const double when : said)
    builder.sink().add_event(
        to_event(events::Note{.text = std::string(kNoteOutOfMemory) + "CUDA out of memory", .line = {}},
                 RecordingBuilder::at(when)));
  builder.meta().exit_code = 1;
  return explain(builder.build());
}

TEST(Sets, RetriesThatEachSayThatMemoryRanOutAreNoSweep) {
  const Finding told = retries({19, 39, 59, 79}).findings.front();
  EXPECT_EQ(told.cause, Cause::kOomRestartLoop);
  EXPECT_THAT(told.evidence, Contains(HasSubstr("says 4 times")));
  EXPECT_NEAR(seconds(told.cost()), 9, 3) << "the first start was no retry";
  EXPECT_FALSE(retries({79}).findings.front().cause) << "one of them may have failed for want of memory";
}

Finding held(std::optional<int> exit_code, double cores = 0.3) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t <= 30 ? 1.0 : 0.0; }).process(7, 1, 0, 60, cores).context(7, 0, 0, 60);
  builder.meta().exit_code = exit_code;
  return explain(builder.build()).findings.front();
}

TEST(Sets, WhatEndedByItselfAndWellDidNotHang) {
  EXPECT_EQ(held(0).cause, Cause::kUnreleasedAfterWork);
  EXPECT_THAT(held(0).told_apart_from, Contains(HasSubstr("a hang: the job then ended by itself")));
  for (const std::optional<int> other : {std::optional<int>(), std::optional(137)})
    EXPECT_THAT(held(other).candidates, Contains(Cause::kHang));
}

TEST(Sets, WhoHoldsAGpuAndDoesNothingIsAsleep) {
  EXPECT_TRUE(held(0, 0.001).asleep);
  EXPECT_FALSE(held(0).asleep) << "it works on the CPU";
}

// Kernels for 0.7 of each second, in the rest the process is in a function that nobody knows.
struct Part {
  double cpu = 0.01, delay = 0;
  WaitChannel wait = WaitChannel::kPoll;
  std::vector<std::string> frames{kMain, "hand_over (/u/train.py:9)"};
  std::optional<double> copied_per_second;
  std::string cmdline = "python3 train.py";
  double interval = 1;
};
Explanation rest(const Part& h) {
  RecordingBuilder builder(60, h.interval);
  builder.gpu(0, [](double) { return 0.7; }).sleeping_in(h.wait);
  builder.process({7, 1, 0, 60, h.cpu, true, {cell(Metric::kRunDelay, static_cast<std::int64_t>(h.delay * 1e9))}});
  builder.context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.7, {kMain, "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.7, i + 1, h.frames);
  }
  Recording recording = builder.build();
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    if (recording.sources[i].kind == SourceKind::kProcess) recording.sources[i].attrs["cmdline"] = h.cmdline;
    if (recording.sources[i].kind != SourceKind::kGpu || !h.copied_per_second) continue;
    Column column{Metric::kPcieRx, {}, {}};
    for (const Nanos at : recording.tracks[i].at)
      column.values.push_back(static_cast<std::int64_t>(*h.copied_per_second * seconds(at - recording.meta.start)));
    recording.tracks[i].columns.push_back(std::move(column));
  }
  return explain(recording);
}

// The driver's counter has 32 bits: at 8 GB/s it says little, and by chance hardly anything.
TEST(Sets, BytesOverPcieAreTakenFromGpmWhereItTellsThem) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(7, 1, 0, 60, 1).context(7, 0, 0, 60);
  Recording recording = builder.build();
  Track& track = recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kGpu, "GPU-0"))];
  Column counter{Metric::kPcieRx, {}, {}}, rate{Metric::kPcieRxRate, {}, {}};
  constexpr std::int64_t kWrap = std::int64_t{1} << 32;
  for (const Nanos at : track.at) {
    counter.values.push_back(static_cast<std::int64_t>(8.6e9 * seconds(at - recording.meta.start)) % kWrap);
    rate.values.push_back(8'600'000'000);
  }
  track.columns.push_back(counter);
  const auto copied = [&] {
    double bytes = 0;
    const Analysis a = analyze(recording);
    for (const CopiedBytes& some : a.gpus.front().copied.value()) bytes += some.bytes;
    return bytes;
  };
  const double by_counter = copied();
  EXPECT_GT(by_counter, 0) << "a fall is one wrap at the fewest";
  EXPECT_LT(by_counter, 59 * 4.3e9);
  recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kGpu, "GPU-0"))].columns.push_back(rate);
  EXPECT_NEAR(copied(), 59 * 8.6e9, 1e9);
}

// 60 s, of which the GPU is idle for 18; 15 GB came to it, and take 5 s at 3 GB/s.
TEST(Sets, ACauseWhoseBytesAreCountedHasALimitOfItsOwn) {
  const auto first = [](double bytes) {
    return rest({.wait = WaitChannel::kFutex, .copied_per_second = bytes, .interval = 0.2}).findings.front();
  };
  const Finding some = first(0.25e9);
  ASSERT_THAT(some.candidates, AllOf(Contains(Cause::kPageableCopies), Contains(Cause::kLoggingUpload)));
  const OwnLimit* copies = some.limit_of(Cause::kPageableCopies);
  ASSERT_NE(copies, nullptr) << some.bound;
  EXPECT_NEAR(copies->high, 60.0 / 55, 0.01);
  EXPECT_GT(some.gain.value().high, 1.3);
  EXPECT_EQ(some.limit_of(Cause::kLoggingUpload), nullptr);
  EXPECT_THAT(some.bound, HasSubstr("; 1.09x if the cause is copies from pageable memory, and if what came over PCIe "
                                    "took no time: 5.0 s at 3 GB/s"));
  const Finding enough = first(1e9);
  EXPECT_EQ(enough.limit_of(Cause::kPageableCopies), nullptr) << "20 s: " << enough.bound;
  EXPECT_TRUE(rest({.wait = WaitChannel::kFutex}).findings.front().limits.empty()) << "nobody counted them";
  EXPECT_TRUE(rest({.wait = WaitChannel::kFutex, .copied_per_second = 0.25e9}).findings.front().limits.empty())
      << "the counter may have come round in a second";
}

// Of each second's 0.3 without a kernel it can have run for 0.16, and once for 0.1 that readings may lie apart.
TEST(Sets, CodeCostsNoMoreThanItRan) {
  const Finding some = rest({.cpu = 0.16}).findings.front();
  const OwnLimit* code = some.limit_of(Cause::kHostGraphBuilding);
  ASSERT_NE(code, nullptr) << some.title << ": " << some.bound;
  EXPECT_NEAR(code->high, 60.0 / (60 - 9.6), 0.01);
  EXPECT_GT(some.gain.value().high, code->high);
  EXPECT_THAT(some.bound, HasSubstr("code of its main thread took no time: it ran, or wanted to, for 9.5 s"));
  EXPECT_EQ(rest({.cpu = 0.3}).findings.front().limit_of(Cause::kHostGraphBuilding), nullptr) << "it ran all along";
}

// Its main thread wanted a core for 0.1 s of each second and ran for 0.02; the GPU was idle for 0.3.
TEST(Sets, AWantOfCoresCostsNoMoreThanTheMainThreadWantedOne) {
  const Explanation e = rest({.cpu = 0.02, .delay = 0.1});
  const Finding* set = find(e, Cause::kCpuOversubscribed);
  ASSERT_NE(set, nullptr);
  ASSERT_FALSE(set->cause) << set->title;
  const OwnLimit* cores = set->limit_of(Cause::kCpuOversubscribed);
  ASSERT_NE(cores, nullptr) << set->bound;
  EXPECT_NEAR(cores->high, 1 / (1 - 0.1 - 0.25 * 0.02), 0.02);
  EXPECT_EQ(std::count_if(e.limits.begin(), e.limits.end(),
                          [](const OwnLimit& one) { return one.cause == Cause::kCpuOversubscribed; }),
            1);
}

TEST(Sets, StacksThatNameUnknownCodeExcludeNothingThatItMayWaitFor) {
  const Finding asleep = rest({.wait = WaitChannel::kFutex}).findings.front();
  EXPECT_THAT(asleep.title, HasSubstr("waits on a lock: hand_over (train.py)"));
  EXPECT_THAT(asleep.candidates, AllOf(Contains(Cause::kPageableCopies), Contains(Cause::kLoggingUpload)));
}

TEST(Sets, WhatSpeaksForACauseIsSaidAndPutsItBeforeTheOthers) {
  const auto place = [](const Finding& finding, Cause cause) {
    return std::find(finding.candidates.begin(), finding.candidates.end(), cause) - finding.candidates.begin();
  };
  const Finding sends = rest({.wait = WaitChannel::kSocket}).findings.front();
  ASSERT_EQ(sends.speaks_for.size(), sends.candidates.size());
  EXPECT_EQ(sends.candidates.front(), Cause::kLoggingUpload);
  EXPECT_EQ(sends.speaks_for.front(), "it was seen asleep on a connection");
  const Finding runs = rest({.cpu = 0.3}).findings.front();
  EXPECT_EQ(runs.candidates.front(), Cause::kHostGraphBuilding);
  EXPECT_EQ(runs.speaks_for.front(),
            "its main thread ran long enough to fill most of this time; its stacks are in its own code")
      << runs.evidence.front();
  EXPECT_LT(place(runs, Cause::kInputInMainProcess), place(runs, Cause::kSyncPoints)) << "no stack waits for kernels";
  const Finding sleeps = rest({.wait = WaitChannel::kSleep}).findings.front();
  EXPECT_LT(place(sleeps, Cause::kBurstyInput), place(sleeps, Cause::kLoggingUpload)) << "a timer sends nothing";
}

TEST(Sets, AHelperThatWorksWhileItSleepsMayPrepareItsData) {
  const auto asleep = [](std::optional<double> helper_cpu) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.7; }).sleeping_in(WaitChannel::kPipe);
    builder.process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
    if (helper_cpu) builder.process(8, 7, 0, 60, *helper_cpu);
    for (int i = 0; i < 60; ++i) {
      builder.stacks(7, i, i + 0.7, {kMain, "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.7, i + 1, {kMain, "read (/u/sources.py:9)"});
    }
    return explain(builder.build()).findings.front().candidates;
  };
  EXPECT_THAT(asleep(0.3), AllOf(SizeIs(4), Contains(Cause::kInputTooFewWorkers)));
  EXPECT_THAT(asleep(0.001), Contains(Cause::kInputTooFewWorkers)) << "it may wait for a server itself";
  EXPECT_THAT(asleep(std::nullopt), Not(Contains(Cause::kInputTooFewWorkers)));
}

TEST(Sets, WhoWasSeenAtATerminalWaitsForSomebodyWhateverItsStacksSay) {
  const Finding asked = rest({.wait = WaitChannel::kTerminal}).findings.front();
  EXPECT_EQ(asked.cause, Cause::kInteractiveHoldingGpu) << asked.title;
  EXPECT_THAT(asked.title, HasSubstr("somebody at a terminal"));
  EXPECT_THAT(asked.advice, HasSubstr("let the GPU go"));
}

TEST(Sets, CopiesAreInItByTheBytesThatCameOverPcie) {
  EXPECT_TRUE(is_likeliest(rest({.copied_per_second = 1.4e9}).findings.front(), Cause::kPageableCopies));
  const Finding none = rest({.wait = WaitChannel::kFutex, .copied_per_second = 1e6}).findings.front();
  EXPECT_THAT(none.candidates, Not(Contains(Cause::kPageableCopies)));
  EXPECT_THAT(none.told_apart_from, Contains(HasSubstr("copies: hardly any bytes")));
}

TEST(Sets, AWaitForACoreCountsByTheIdleTimeThatItMayExplain) {
  EXPECT_THAT(rest({.cpu = 0.3, .delay = 0.12}).findings.front().candidates, Contains(Cause::kCpuOversubscribed));
  EXPECT_THAT(rest({.cpu = 0.3, .delay = 0.03}).findings.front().candidates, Not(Contains(Cause::kCpuOversubscribed)));
}

TEST(Sets, WhatRanForAPartOfTheTimeOnlyMaySleepInTheRest) {
  const Finding part = rest({.cpu = 0.12}).findings.front();
  EXPECT_THAT(part.candidates, AllOf(SizeIs(4), Contains(Cause::kSlowStorage), Contains(Cause::kHostGraphBuilding)));
  EXPECT_THAT(part.evidence, Contains(HasSubstr("for as long as 40 % of this time at most")));
  EXPECT_THAT(rest({.cpu = 0.3}).findings.front().candidates, Not(Contains(Cause::kSlowStorage)));
}

// That it may have slept is left out of a set of four: nothing that was seen speaks for it.
TEST(Sets, WhoHardlyRanAndWantedACoreAtSomeTimeIsNamedWithWhatWasSeen) {
  EXPECT_THAT(rest({.cpu = 0.02, .delay = 0.18}).findings.front().candidates,
              AllOf(SizeIs(4), Contains(Cause::kCpuOversubscribed), Contains(Cause::kHostGraphBuilding)));
  EXPECT_THAT(rest({.cpu = 0.1, .delay = 0.12}).findings.front().candidates, Not(Contains(Cause::kLoggingUpload)));
}

TEST(Sets, ForwardAndBackwardAreNoLoaderAndNoGraph) {
  const Finding launches = rest({.cpu = 0.3, .frames = {kMain, "Net.forward (/u/net.py:9)"}}).findings.front();
  EXPECT_EQ(launches.title,
            "The GPU waits for code of the framework that computes on the CPU, or launches short kernels one by one: "
            "Net.forward (net.py)")
      << "no kernel runs beside it";
  EXPECT_THAT(launches.candidates, AllOf(Contains(Cause::kLaunchBound), Not(Contains(Cause::kInputInMainProcess))));
}

TEST(Sets, ANotebookAtItsPromptWaitsForSomebodyAndOneInACellMay) {
  const std::string notebook = "python3 -m ipykernel_launcher -f kernel.json";
  const std::string loop = "_run_once (/usr/lib/python3.11/asyncio/base_events.py:1)";
  const std::vector<std::string> prompt{"start (" + kPackages + "ipykernel/kernelapp.py:1)", loop,
                                        "select (/usr/lib/python3.11/selectors.py:4)"};
  EXPECT_EQ(rest({.frames = prompt, .cmdline = notebook}).findings.front().cause, Cause::kInteractiveHoldingGpu);
  EXPECT_NE(rest({.frames = prompt}).findings.front().cause, Cause::kInteractiveHoldingGpu);
  const Finding cell = rest({.cmdline = notebook}).findings.front();
  EXPECT_FALSE(cell.cause);
  EXPECT_THAT(cell.candidates, Contains(Cause::kInteractiveHoldingGpu));
}

TEST(Sets, WhoWaitsForACoreAfterItsKernelsHasNoSyncPointTooMany) {
  const std::vector<std::string> sync{kMain, "synchronize (" + kPackages + "torch/cuda/__init__.py:1)"};
  EXPECT_EQ(rest({.delay = 0.45, .frames = sync}).findings.front().cause, Cause::kCpuOversubscribed);
  EXPECT_THAT(rest({.delay = 0.12, .frames = sync}).findings.front().candidates,
              AllOf(Contains(Cause::kSyncPoints), Contains(Cause::kCpuOversubscribed)));
}

TEST(Sets, OneProcessAloneCannotBeOnAWrongGpu) {
  const auto first = [](int processes) {
    RecordingBuilder builder(100);
    builder.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; });
    for (int i = 0; i < processes; ++i)
      builder.process(100 + i, 1, 52 * i, processes == 1 ? 100 : 48 + 52 * i, 0.9)
          .context(100 + i, 0, 52 * i, processes == 1 ? 100 : 48 + 52 * i);
    for (const Finding& finding : explain(builder.build()).findings)
      if (finding.title == "GPU 1 did nothing while GPU 0 worked") return finding;
    return Finding{};
  };
  EXPECT_EQ(first(1).cause, Cause::kMoreGpusThanUseful);
  EXPECT_THAT(first(2).candidates, Contains(Cause::kWrongGpuAssignment));
}

TEST(Sets, SeveralProcessesOnOneOfTwoGpusMayHaveHadMoreThatFailedUnseen) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; });
  for (int i = 0; i < 2; ++i) builder.process(100 + i, 1, 0, 100, 0.9).context(100 + i, 0, 0, 100);
  Recording recording = builder.build();
  for (Source& source : recording.sources)  // not all by the same mask
    if (source.kind == SourceKind::kProcess && attr(source, "pid") == "101") source.attrs["cuda_visible_devices"] = "0";
  const Explanation e = explain(recording);
  const auto idle = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.title == "GPU 1 did nothing while GPU 0 worked";
  });
  ASSERT_NE(idle, e.findings.end());
  EXPECT_EQ(idle->cause, Cause::kWrongGpuAssignment);
  EXPECT_EQ(idle->confidence, Confidence::kMedium);
  EXPECT_THAT(idle->advice, HasSubstr("if each had one, see in their output whether those for GPU 1 failed"));
}

TEST(Sets, WhoComputesBesideOthersWhileAGpuStandsFreeIsOnTheWrongOne) {
  const Explanation e = explain(RecordingBuilder(100)
                                    .gpu(0, [](double) { return 1.0; })
                                    .gpu(1, [](double) { return 0.0; })
                                    .process(100, 1, 0, 100, 0.9)
                                    .context(100, 0, 0, 100, 0.5)
                                    .process({900, 1, 0, 100, 0.9, false})
                                    .context(900, 0, 0, 100, 0.5)
                                    .build());
  const auto idle = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.title == "GPU 1 did nothing while GPU 0 worked";
  });
  ASSERT_NE(idle, e.findings.end());
  EXPECT_EQ(idle->candidates.front(), Cause::kWrongGpuAssignment);
  EXPECT_THAT(idle->told_apart_from, Not(Contains(HasSubstr("wrong assignment"))));
  EXPECT_THAT(idle->advice, HasSubstr("CUDA_VISIBLE_DEVICES=GPU-1"));
}

// A log of readings in which no list of processes is.
Explanation readings(double length, int gpus, const std::function<double(double)>& utilisation) {
  RecordingBuilder builder(length);
  for (int gpu = 0; gpu < gpus; ++gpu) builder.gpu(gpu, utilisation);
  Recording recording = builder.build();
  for (Track& track : recording.tracks)
    std::erase_if(track.columns, [](const Column& column) { return column.metric == Metric::kComputeProcesses; });
  return explain(recording);
}

TEST(Sets, OfReadingsAloneNothingIsLeftOutThatAnIdleGpuMayWaitFor) {
  const auto first = [](int gpus) { return readings(60, gpus, [](double) { return 0.5; }).findings.front(); };
  EXPECT_THAT(first(1).candidates, AllOf(Contains(Cause::kPageableCopies), Contains(Cause::kEpochWorkerRestart),
                                         Contains(Cause::kInteractiveHoldingGpu), Not(Contains(Cause::kStraggler))));
  EXPECT_THAT(first(2).candidates, AllOf(Contains(Cause::kStraggler), Contains(Cause::kOneProcessImbalance)));
}

TEST(Sets, OfReadingsAloneNothingSpeaksForACause) {
  const Finding finding = readings(60, 1, [](double) { return 0.5; }).findings.front();
  EXPECT_GT(finding.candidates.size(), 1U);
  EXPECT_TRUE(finding.speaks_for.empty());
}

TEST(Sets, IdleTimeInAndBetweenPhasesTooLittleForTwoFindingsMakesOne) {
  const Explanation e = readings(400, 1, [](double t) { return std::fmod(t - 0.01, 100) < 4 ? 0.0 : 0.965; });
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings.front().title, "Why the GPU was idle cannot be told from this recording alone");
}

TEST(Sets, ARunInWhichTheDriversListsStayedEmptyNeverUsedItsGpu) {
  const auto first = [](double length) {
    return explain(RecordingBuilder(length).gpu(0, [](double) { return 0.0; }).build()).findings;
  };
  ASSERT_FALSE(first(30).empty());
  EXPECT_EQ(first(30).front().cause, Cause::kJobNeverUsesGpu);
  EXPECT_TRUE(first(3).empty()) << "it may not have come to that";
  EXPECT_FALSE(readings(30, 1, [](double) { return 0.0; }).findings.front().cause) << "no list was read";
}

// It ended before the driver's list would have held it: neither a kernel nor an unused GPU is claimed.
TEST(Sets, ARunThatEndedAsItOpenedAGpuMayHaveUsedIt) {
  RecordingBuilder died(8);
  died.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 8, 1).no_gpu_until(100, 5.5, 6);
  const Explanation e = explain(died.build());
  EXPECT_THAT(e.headline, Not(HasSubstr("unused")));
  std::vector<std::string> titles;
  for (const Finding& finding : e.findings) titles.push_back(finding.title);
  EXPECT_THAT(titles, Contains("Start-up: no kernel was seen after it"));
  EXPECT_THAT(titles, Contains("Whether the job used the GPU before it ended is not known"));
}

TEST(Sets, ARunThatNeverHadAFileOfAGpuOpenNeverUsedOneHoweverShortItWas) {
  const auto findings = [](std::optional<double> opened) {
    RecordingBuilder short_run(3);
    short_run.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 3, 1);
    return explain(short_run.no_gpu_until(100, opened ? *opened - 0.1 : 2.9, opened).build()).findings;
  };
  ASSERT_FALSE(findings(std::nullopt).empty());
  const Finding never = findings(std::nullopt).front();
  EXPECT_EQ(never.cause, Cause::kJobNeverUsesGpu);
  EXPECT_THAT(never.evidence, Contains("none of its processes ever had a file of the GPUs' driver open"));
  for (const Finding& finding : findings(2)) EXPECT_NE(finding.cause, Cause::kJobNeverUsesGpu) << "it opened one";
}

}  // namespace
}  // namespace headroom
