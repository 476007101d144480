// SPDX-License-Identifier: Apache-2.0
// What makes one cause of a set: each observation, and the recordings next to it in which it is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using testing::cell;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RecordingBuilder;

const Frames kPads{"train (/u/train.py:1)", "pad (/u/train.py:30)"};

// 20 seconds of start-up, of which the process holds its GPU from `held` on, and in each of which it reads so many
// bytes from files; a program that it has started uses the CPU.
Finding starts(double held, std::int64_t reads, double child_cpu = 0, const std::string& child = "bash") {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return t <= 20 ? 0.0 : 0.99; });
  builder.process({7, 1, 0, 100, 0.9, true, {cell(Metric::kReadChars, reads)}}).context(7, 0, held, 100);
  if (child_cpu > 0) builder.process(8, 7, 1, 19, child_cpu);
  Recording recording = builder.build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess && source.attrs["pid"] == "8") source.attrs["comm"] = child;
  return explain(recording).findings.front();
}

TEST(Singles, AStartBeforeItsProcessIsOnAGpuLoadsWhereItBringsInBytesAsImportsDo) {
  constexpr std::int64_t kImports = 200'000'000, kCompiles = 10'000'000;
  const Finding loads = starts(18, kImports);
  EXPECT_EQ(loads.cause, Cause::kStartupLoad);
  EXPECT_EQ(loads.confidence, Confidence::kLow);
  EXPECT_THAT(loads.evidence, Contains(HasSubstr("for 100 % of the CPU time that was used meanwhile files were read")));
  EXPECT_THAT(loads.evidence, Contains(AllOf(HasSubstr("17.0 s"), HasSubstr("was not on it yet"))));
  const auto both = ElementsAre(Cause::kStartupLoad, Cause::kCompileWarmup);
  EXPECT_THAT(starts(18, kCompiles).candidates, both) << "a compiler may run inside the process, as Numba's does";
  EXPECT_THAT(starts(5, kImports).candidates, both) << "on the GPU, it may compile for it";
  EXPECT_THAT(starts(18, kImports, 0.3).candidates, both) << "nobody knows what that program does";
  EXPECT_EQ(starts(18, kImports, 0.9, "ptxas").cause, Cause::kCompileWarmup);
}

TEST(Singles, ATaskOfABatchThatIsNotYetOnItsGpuLoads) {
  const auto tasks = [](std::int64_t grows) {
    RecordingBuilder builder(40);
    builder.gpu(0, [](double t) { return std::fmod(t - 0.01, 20) < 10 ? 0.0 : 0.99; }).queue(0, 1).queue(20, 0);
    for (const int task : {0, 1}) {
      const double begin = 20.0 * task;
      builder.process({7 + task, 1, begin, begin + 20, 0.2, true, {cell(Metric::kRss, grows)}});
      builder.context(7 + task, 0, begin + 9, begin + 20).attempt(task ? "b" : "a", 7 + task, {0}, begin, begin + 20);
    }
    return explain(builder.build()).findings.front();
  };
  EXPECT_EQ(tasks(40'000'000).cause, Cause::kStartupLoad) << "of the fifth of a core that it used, imports";
  EXPECT_THAT(tasks(2'000'000).candidates, ElementsAre(Cause::kStartupLoad, Cause::kCompileWarmup));
}

// Kernels for 0.7 of each second. The process waits for them for `waits` of it, and is in its own code for the rest.
Finding waits_for_a_core(double delay, double waits = 0.85) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; });
  builder.process({7, 1, 0, 60, 0.05, true, {cell(Metric::kRunDelay, static_cast<std::int64_t>(delay * 1e9))}});
  builder.context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) builder.stacks(7, i, i + waits, kKernels).stacks(7, i + waits, i + 1, kPads);
  return explain(builder.build()).findings.front();
}

// Waits of half a second at 10 looks a second: the scheduler counts each when it is over.
TEST(Singles, AWaitForACoreThatIsLongerThanALookIsWholeAndSoIsThatBeforeTheFirstKernel) {
  RecordingBuilder builder(60, 0.1);
  builder.gpu(0, [](double t) { return t > 20 && std::fmod(t - 0.001, 0.6) < 0.1 ? 1.0 : 0.0; });
  builder.process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
  Recording recording = builder.build();
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    if (recording.sources[i].kind != SourceKind::kProcess) continue;
    Track& track = recording.tracks[i];
    Column counted{Metric::kRunDelay, {}, {}};
    for (std::size_t row = 0; row < track.at.size(); ++row)
      counted.values.push_back(static_cast<std::int64_t>(row / 6) * 500'000'000);
    track.columns.push_back(counted);
  }
  const Explanation e = explain(recording);
  const Finding& first = e.findings.front();
  EXPECT_EQ(first.cause, Cause::kCpuOversubscribed) << e.headline;
  ASSERT_TRUE(first.gain);
  EXPECT_GT(first.gain->high, 5.5) << "five of six looks, in the start-up, too";
}

TEST(Singles, IdleTimeThatIsMostlyAWaitForACoreIsThatWhateverCodeItLiesIn) {
  const Finding waits = waits_for_a_core(0.18);
  EXPECT_EQ(waits.cause, Cause::kCpuOversubscribed);
  EXPECT_THAT(waits.title, HasSubstr("waits for a CPU core: pad (train.py)"));
  EXPECT_THAT(waits.evidence,
              Contains(AllOf(HasSubstr("no core for 18 % of the time"), HasSubstr("idle meanwhile, of 30 % in all"))));
  EXPECT_NEAR(waits.gain->high, 1 / (1 - 0.18 - 0.05 / 4), 0.01) << "what it needs of a core it needs anyhow";
  EXPECT_FALSE(waits_for_a_core(0.12).cause) << "its own code may be the larger part";
  EXPECT_FALSE(waits_for_a_core(0.18, 0.7).cause) << "its GPU is never idle where it waits for kernels: they queue";
  EXPECT_FALSE(waits_for_a_core(0.18, 0.3).cause) << "it may have waited while its kernels ran";
}

TEST(Singles, AWaitForACoreBesideAThreadWithTheInterpreterNamesThatThread) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; }).sleeping_in(WaitChannel::kFutex, 0.4);
  builder.process({7, 1, 0, 60, 0.02, true, {cell(Metric::kRunDelay, 200'000'000)}}).context(7, 0, 0, 60);
  const Frames burns{"run (/u/train.py:1)", "count (/u/train.py:40)"};
  for (int i = 0; i < 60; ++i) builder.stacks(7, i, i + 1, kKernels).stacks({7, 1.0 * i, i + 1.0, burns, 1, true});
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_EQ(first.cause, Cause::kCpuOversubscribed);
  EXPECT_THAT(first.evidence, Contains(HasSubstr("had the interpreter (GIL) in 100 %")));
  EXPECT_THAT(first.advice, HasSubstr("count (train.py) first"));
}

// One process with kernels for these shares of the time on two GPUs, which waits for them.
Finding feeds(double first, double second) {
  RecordingBuilder builder(60);
  builder.gpu(0, [=](double) { return first; }).gpu(1, [=](double) { return second; });
  builder.process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60).context(7, 1, 0, 60).stacks(7, 0, 60, kKernels);
  return explain(builder.build()).findings.front();
}

TEST(Singles, GpusThatComputeAtOnceDoNotTakeTurns) {
  const Finding uneven = feeds(0.98, 0.75);
  EXPECT_EQ(uneven.cause, Cause::kOneProcessImbalance);
  EXPECT_THAT(uneven.title, HasSubstr("at once, and one of them is done before another"));
  const Finding in_turn = feeds(0.55, 0.4);
  EXPECT_THAT(in_turn.candidates, ElementsAre(Cause::kOneProcessImbalance, Cause::kMoreGpusThanUseful));
}

// Two processes with a GPU each and kernels for 0.3 of each second; the first then waits for the second, which is at
// `second` and uses as much of a core.
Finding late_rank(const Frames& first, const Frames& second, double cores) {
  RecordingBuilder builder(60);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double) { return 0.3; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, cores).context(7, 0, 0, 60).context(8, 1, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.3, kKernels).stacks(7, i + 0.3, i + 1, first);
    builder.stacks(8, i, i + 0.3, kKernels).stacks(8, i + 0.3, i + 1, second);
  }
  return explain(builder.build()).findings.front();
}

TEST(Singles, AProcessThatTheOthersAreSeenToWaitForIsAStraggler) {
  for (const double cores : {0.02, 0.7}) {
    const Finding late = late_rank(kReceives, kPads, cores);
    EXPECT_EQ(late.cause, Cause::kStraggler) << late.title;
    EXPECT_THAT(late.evidence, Contains(HasSubstr("pad (train.py)")));
  }
  EXPECT_FALSE(late_rank(kPads, kPads, 0.7).cause) << "nothing says that they wait for one another";
  EXPECT_FALSE(late_rank(kReceives, kReceives, 0.02).cause) << "they wait alike";
}

// Kernels for 30 of 50 seconds, then the main thread sleeps until the job ends.
Finding sleeps_at_the_end(const Frames& frames, std::optional<int> exit_code, WaitChannel wait = WaitChannel::kFutex,
                          const std::string& command = "python3", WaitChannel parent = WaitChannel::kChild,
                          double other_threads = 0) {
  RecordingBuilder builder(50);
  builder.gpu(0, [](double t) { return t <= 30 ? 1.0 : 0.0; }).sleeping_in(parent).process(6, 1, 0, 50, 0);
  builder.sleeping_in(wait, other_threads).process(7, 6, 0, 50, 0.001).context(7, 0, 0, 50);
  builder.stacks(7, 0, 30, kKernels).stacks(7, 30, 50, frames);
  builder.meta().exit_code = exit_code;
  if (!frames.empty()) builder.meta().tiers += "Y";
  Recording recording = builder.build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess && source.attrs["pid"] == "6") source.attrs["comm"] = command;
  return explain(recording).findings.front();
}

TEST(Singles, AJobOnALockThatNobodyInItCouldLetGoOfUntilSomebodyEndsItHangs) {
  const Frames lock{"finish (/u/train.py:9)", "Event.wait (/usr/lib/python3.11/threading.py:604)"};
  const Finding hangs = sleeps_at_the_end(lock, 137);
  EXPECT_EQ(hangs.cause, Cause::kHang);
  EXPECT_EQ(hangs.confidence, Confidence::kLow);
  EXPECT_THAT(hangs.title, HasSubstr("hardly anything of it ran"));
  EXPECT_THAT(hangs.advice, HasSubstr("in the next run, headroom stacks --pid PID")) << "this one's process is gone";
  EXPECT_EQ(sleeps_at_the_end(lock, 124, WaitChannel::kFutex, "timeout").cause, Cause::kHang);
  EXPECT_FALSE(sleeps_at_the_end(lock, 124).cause) << "of any other program 124 is a code like another";
  EXPECT_FALSE(sleeps_at_the_end(lock, 1).cause) << "it ended by itself";
  const auto either = ElementsAre(Cause::kHang, Cause::kUnreleasedAfterWork);
  const Finding serves = sleeps_at_the_end(lock, 137, WaitChannel::kFutex, "python3", WaitChannel::kChild, 1e-6);
  EXPECT_THAT(serves.candidates, either) << "another thread may wait for requests, as a server's does";
  EXPECT_THAT(sleeps_at_the_end(lock, 137, WaitChannel::kFutex, "python3", WaitChannel::kPoll).candidates, either)
      << "so may what started it";
  EXPECT_EQ(sleeps_at_the_end(lock, 0).cause, Cause::kUnreleasedAfterWork);
  const Finding calls = sleeps_at_the_end({"finish (/u/train.py:9)"}, 137);
  EXPECT_THAT(calls.candidates, either) << "what that line calls in C has no frame";
  EXPECT_THAT(calls.title, HasSubstr("waited after its last kernel until it was ended"));
}

}  // namespace
}  // namespace headroom
