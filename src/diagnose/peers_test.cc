// SPDX-License-Identifier: Apache-2.0
// Processes that wait for one another: ranks, GPUs in turn, children.
#include <gmock/gmock.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using testing::RecordingBuilder;

const Frames kReduces{"train (/u/train.py:1)", "average (/u/train.py:9)",
                      "all_reduce (/x/site-packages/torch/distributed/distributed_c10d.py:1)"};
const Frames kInCode{"train (/u/train.py:1)", "exchange (/u/train.py:7)"};

// Process 7 has GPU 0 and kernels for 0.3 of each second, then `waits`; process 8 has GPU 1 and is at `works`
// meanwhile, with kernels for `busy` of each second.
Recording ranks(const Frames& waits, const Frames& works, double busy, int gpu_of_peer = 1, bool numbered = false) {
  RecordingBuilder builder(60);
  builder.gpu(0, [&](double) { return gpu_of_peer == 0 ? std::max(0.3, busy) : 0.3; });
  if (gpu_of_peer == 1) builder.gpu(1, [&](double) { return busy; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, 0.02);
  if (numbered) builder.rank(7, 0).rank(8, 1);
  builder.context(7, 0, 0, 60).context(8, gpu_of_peer, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.3, kKernels).stacks(7, i + 0.3, i + 1, waits);
    builder.stacks(8, i, i + 0.3, gpu_of_peer == 1 ? kReceives : works).stacks(8, i + 0.3, i + 1, works);
  }
  return builder.build();
}

TEST(Peers, AProcessThatReceivesFromABusyOneWaitsForThatOne) {
  const Explanation e = explain(ranks(kReceives, kKernels, 0.95));
  EXPECT_NEAR(seconds(e.ledger.total(Account::kPeers, 0)), 42, 2);
  const Finding& first = e.findings.front();
  EXPECT_THAT(first.title, AllOf(HasSubstr("waits for another process of the job"), EndsWith(": exchange (train.py)")));
  EXPECT_EQ(first.cause, Cause::kStraggler) << "the other one does not wait, as it would for the exchange itself";
  EXPECT_THAT(first.evidence, Contains(AllOf(HasSubstr("process 8 (GPU 1)"), HasSubstr("its own kernels"))));
  EXPECT_THAT(first.title, Not(HasSubstr("works on the CPU")));
  EXPECT_THAT(first.evidence, Contains(HasSubstr("the exchange itself takes each of them no longer")));
  EXPECT_THAT(first.advice, HasSubstr("process 8"));
  ASSERT_TRUE(first.gain);
  EXPECT_NEAR(first.gain->high, 60.0 / (60 - 44.0 / 2), 0.02)
      << "with equal shares each works as long as all on average";
  EXPECT_THAT(first.bound, HasSubstr("if each process got an equal share of these kernels"));
  EXPECT_THAT(e.headline, HasSubstr("for other processes of the job"));
}

TEST(Peers, AreNamedByTheirNumbersInTheJob) {
  const Finding first = explain(ranks(kReceives, kKernels, 0.95, 1, true)).findings.front();
  EXPECT_THAT(first.evidence, Contains(HasSubstr("meanwhile rank 1 (process 8, GPU 1) was not there yet")));
  EXPECT_THAT(first.advice, HasSubstr("see why rank 1 (process 8) takes longer"));
}

TEST(Peers, ACollectiveIsAWaitForOthersWhoeverTheyAre) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.3; }).process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) builder.stacks(7, i, i + 0.3, kKernels).stacks(7, i + 0.3, i + 1, kReduces);
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.title, EndsWith("another process of the job: average (train.py)"));
  EXPECT_THAT(first.candidates, ElementsAre(Cause::kExposedCommunication, Cause::kStraggler));
}

// Of each second both wait 0.6 s in the same exchange, and one of them 0.1 s more, for the other.
TEST(Peers, ASlowRankCostsNoMoreThanItIsAtWorkWhileTheOtherWaits) {
  RecordingBuilder builder(60);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double) { return 0.3; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, 0.02).context(7, 0, 0, 60).context(8, 1, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.3, kKernels).stacks(7, i + 0.3, i + 1, kReduces);
    builder.stacks(8, i, i + 0.3, kKernels).stacks(8, i + 0.3, i + 0.4, kInCode).stacks(8, i + 0.4, i + 1, kReduces);
  }
  const Finding first = explain(builder.build()).findings.front();
  EXPECT_THAT(first.candidates, Contains(Cause::kStraggler));
  const auto limit = std::find_if(first.limits.begin(), first.limits.end(),
                                  [](const OwnLimit& one) { return one.cause == Cause::kStraggler; });
  ASSERT_NE(limit, first.limits.end());
  EXPECT_GT(limit->high, 60.0 / (60 - 6)) << limit->condition;
  EXPECT_LT(limit->high, 60.0 / (60 - 9)) << limit->condition;
  EXPECT_THAT(limit->condition, HasSubstr("if both came to it at the same time"));
}

TEST(Peers, WhatStacksDoNotTellIsWidenedByWhatTheOtherDoesMeanwhile) {
  const Frames sleeps{"train (/u/train.py:1)", "rest (/u/train.py:20)"};
  const Finding first = explain(ranks(kInCode, sleeps, 0.3)).findings.front();
  EXPECT_THAT(first.title, HasSubstr("perhaps for another of its job"));
  EXPECT_THAT(first.candidates, IsSupersetOf({Cause::kStraggler, Cause::kExposedCommunication, Cause::kSlowStorage}));
  EXPECT_THAT(first.evidence, Contains(HasSubstr("process 8 (GPU 1)")));
}

TEST(Peers, TwoThatSleepAtOnceWaitForNoneOfThem) {
  const Finding first = explain(ranks(kInCode, kInCode, 0.3)).findings.front();
  EXPECT_THAT(first.candidates, Not(Contains(Cause::kStraggler)));
}

TEST(Peers, OfTwoOnOneGpuTheOneThatIsWaitedForIsNamed) {
  const Frames sleeps{"train (/u/train.py:1)", "rest (/u/train.py:20)"};
  const Explanation e = explain(ranks(kReceives, sleeps, 0.3, 0));
  EXPECT_EQ(e.ledger.total(Account::kPeers), 0);
  EXPECT_THAT(e.findings.front().title, EndsWith("rest (train.py)"));
}

TEST(Peers, AQueueOfALoaderThatWorksIsItsInput) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.3; }).gpu(1, [](double) { return 0.95; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, 0.02).process(9, 7, 0, 60, 0.9);
  builder.context(7, 0, 0, 60).context(8, 1, 0, 60);
  builder.stacks(7, 0, 60, kReceives).stacks(8, 0, 60, kKernels);
  EXPECT_EQ(explain(builder.build()).ledger.total(Account::kPeers), 0);
}

TEST(Peers, MarksNameAnExchange) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 10 ? 0.95 : 0.0; });
  builder.process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
  std::vector<std::pair<double, std::string>> phases;
  for (int i = 0; i < 3; ++i) phases.insert(phases.end(), {{i * 20, "train"}, {i * 20 + 10, "allreduce"}});
  const Explanation e = explain(builder.marks(7, "marks", phases).build());
  EXPECT_NEAR(seconds(e.ledger.total(Account::kPeers)), 30, 1);
  EXPECT_THAT(e.findings.front().candidates, Contains(Cause::kExposedCommunication));
}

// Two ranks with kernels for half of each 20 s; then one is at `works`, and the other one waits for it.
Explanation pauses_for_a_rank(const Frames& works, const Frames& waits = kReduces,
                              WaitChannel where = WaitChannel::kPoll) {
  RecordingBuilder builder(120);
  builder.sleeping_in(where);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double t) { return std::fmod(t - 0.001, 20) < 10 ? 0.95 : 0.0; });
  builder.process(7, 1, 0, 120, 0.02).process(8, 1, 0, 120, 0.02).context(7, 0, 0, 120).context(8, 1, 0, 120);
  for (int i = 0; i < 6; ++i) {
    const double begin = i * 20, middle = begin + 10, end = begin + 20;
    builder.stacks(7, begin, middle, kKernels).stacks(7, middle, end, waits);
    builder.stacks(8, begin, middle, kKernels).stacks(8, middle, end, works);
  }
  return explain(builder.build());
}

TEST(Peers, WhoWaitsForARankThatSavesOrValidatesWaitsForThat) {
  const Frames saves{"train (/u/train.py:1)", "save_checkpoint (/u/train.py:30)",
                     "save (/x/site-packages/torch/serialization.py:1)"};
  const Frames validates{"train (/u/train.py:1)", "validate (/u/train.py:40)"};
  for (const auto& [works, cause] : {std::pair{saves, Cause::kCheckpointSync}, {validates, Cause::kValidation}}) {
    const Explanation e = pauses_for_a_rank(works);
    const Finding& first = e.findings.front();
    EXPECT_EQ(first.cause, cause) << first.title;
    EXPECT_NEAR(seconds(first.cost()), 110, 4) << "both GPUs' time, and of the one that waits all but its end";
    EXPECT_THAT(first.title,
                EndsWith(cause == Cause::kValidation ? "validate (train.py)" : "save_checkpoint (train.py)"));
    EXPECT_THAT(first.evidence, Contains(HasSubstr("on GPU 0, wait for this one: 50.6 s")));
    for (const Finding& finding : e.findings) EXPECT_NE(finding.cause, Cause::kStraggler) << finding.title;
  }
}

// In code of its own, at a socket of which nothing tells who is at the other end.
TEST(Peers, WhoSleepsAtASocketWhileAnotherRankSavesIsCountedThere) {
  const Frames saves{"train (/u/train.py:1)", "save (/x/site-packages/torch/serialization.py:1)"};
  const Frames meets{"train (/u/train.py:1)", "meet (/u/train.py:50)"};
  const Explanation e = pauses_for_a_rank(saves, meets, WaitChannel::kSocket);
  EXPECT_EQ(e.findings.front().cause, Cause::kCheckpointSync) << everything(e);
  EXPECT_NEAR(seconds(e.findings.front().cost()), 110, 4);
  EXPECT_THAT(e.findings.front().evidence, Contains(HasSubstr("on GPU 0, sleep at a socket or a pipe, as who waits")));
  const Explanation timer = pauses_for_a_rank(saves, meets, WaitChannel::kSleep);
  EXPECT_LT(seconds(find(timer, Cause::kCheckpointSync)->cost()), 65) << "it may sleep for something else";
}

// Readings as coarse as several turns: both show half of the time.
TEST(Turns, OneProcessThatFeedsTwoGpusInTurnIsNotToldToSynchroniseLess) {
  RecordingBuilder builder(60);
  for (const int gpu : {0, 1}) builder.gpu(gpu, [](double) { return 0.49; });
  builder.process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60).context(7, 1, 0, 60).stacks(7, 0, 60, kKernels);
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  EXPECT_EQ(e.findings.front().title.substr(0, 56), "One process uses several GPUs, and they take turns: trai");
  EXPECT_EQ(e.findings.front().candidates.front(), Cause::kOneProcessImbalance);
  for (const Finding& finding : e.findings) {
    EXPECT_THAT(finding.candidates, Not(Contains(Cause::kSyncPoints)));
    EXPECT_THAT(finding.advice, Not(HasSubstr("synchronise")));
  }
}

TEST(Turns, OfOneGpuAloneSynchronisingIsStillTold) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.49; }).process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
  builder.stacks(7, 0, 60, kKernels);
  EXPECT_THAT(explain(builder.build()).findings.front().candidates, Contains(Cause::kSyncPoints));
}

// Kernels for 20 s; then the process sleeps in `wait` while the child works.
Explanation held_for_a_child(WaitChannel wait, double child_cpu) {
  RecordingBuilder builder(120);
  builder.gpu(0, [](double t) { return t <= 20 ? 1.0 : 0.0; }).sleeping_in(wait).process(7, 1, 0, 120, 0.001);
  builder.context(7, 0, 0, 120).process(9, 7, 20, 120, child_cpu);
  return explain(builder.build());
}

TEST(Children, WhoWaitsForAChildThatWorksDoesNotHang) {
  for (const WaitChannel wait : {WaitChannel::kFutex, WaitChannel::kPoll, WaitChannel::kChild}) {
    const Explanation e = held_for_a_child(wait, 0.9);
    EXPECT_EQ(e.ledger.total(Account::kHung), 0);
    const Finding& first = e.findings.front();
    EXPECT_EQ(first.cause, Cause::kUnreleasedAfterWork);
    EXPECT_THAT(first.title,
                HasSubstr(wait == WaitChannel::kChild ? "waited for process 9" : "process 9, a child of its process"));
    EXPECT_THAT(first.candidates, Not(Contains(Cause::kHang)));
  }
}

TEST(Children, WhoWaitsForAChildThatDoesNothingMayHang) {
  const Finding first = held_for_a_child(WaitChannel::kFutex, 0).findings.front();
  EXPECT_THAT(first.candidates, Contains(Cause::kHang));
}

TEST(Children, ThatHoldAGpuAndWorkAreNoHangEither) {
  RecordingBuilder builder(120);
  builder.gpu(0, [](double t) { return t <= 20 ? 1.0 : 0.0; }).gpu(1, [](double) { return 0.9; });
  builder.sleeping_in(WaitChannel::kFutex).process(7, 1, 0, 120, 0.001).process(9, 7, 20, 120, 0.5);
  builder.context(7, 0, 0, 120).context(9, 1, 20, 120);
  EXPECT_EQ(explain(builder.build()).ledger.total(Account::kHung), 0);
}

// Every 20 s a process waits for 10 s for a program, which uses that many cores. Or it does so beside one that lives
// on.
Finding pauses_for_a_program(double cores, bool lives_on = false) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 10 ? 1.0 : 0.0; });
  builder.process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
  if (lives_on) builder.process(9, 7, 0, 60, cores);
  for (int i = 0; i < 3; ++i) {
    if (!lives_on) builder.process(9 + i, 7, i * 20 + 10, i * 20 + 20, cores);
    builder.stacks(7, i * 20, i * 20 + 10, kKernels);
    builder.stacks(7, i * 20 + 10, i * 20 + 20,
                   {"main (/u/train.py:1)", "score (/u/train.py:9)", "run (/usr/lib/python3.11/subprocess.py:506)",
                    "Popen.wait (/usr/lib/python3.11/subprocess.py:1)"});
  }
  return explain(builder.build()).findings.front();
}

TEST(Children, APauseForAProgramNamesIt) {
  const Finding first = pauses_for_a_program(0.5);
  EXPECT_EQ(first.title,
            "The GPU waits while the training process waits for programs that it started: score (train.py), at some "
            "times only");
  EXPECT_EQ(pauses_for_a_program(0.5, true).title,
            "The GPU waits while the training process waits for a process that it started: score (train.py), at some "
            "times only")
      << "a loader's worker is not waited for";
  EXPECT_THAT(first.candidates, AllOf(Contains(Cause::kValidation), Not(Contains(Cause::kLoggingUpload))));
}

TEST(Children, AProgramThatWaitsItselfIsWaitedForAllTheSame) {
  const Finding first = pauses_for_a_program(0);
  EXPECT_EQ(first.title,
            "The GPU waits while the training process waits for a process that it started: score (train.py), at some "
            "times only");
  EXPECT_THAT(first.candidates, AllOf(Contains(Cause::kValidation), Contains(Cause::kSlowStorage)));
}

// As at the start, where it is found by its name, too; a short one that no look met is not known.
TEST(Children, ACompilerThatIsWaitedForCompiles) {
  const auto first = [](const std::string& comm) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 10 ? 1.0 : 0.0; });
    builder.process(7, 1, 0, 60, 0.01).context(7, 0, 0, 60);
    for (int i = 0; i < 3; ++i) {
      builder.process(20 + i, 7, i * 20 + 10, i * 20 + 20, 0.9);
      builder.stacks(7, i * 20, i * 20 + 10, kKernels);
      builder.stacks(7, i * 20 + 10, i * 20 + 20,
                     {"main (/u/train.py:1)", "build (/u/train.py:9)", "run (/usr/lib/python3.11/subprocess.py:506)",
                      "Popen.wait (/usr/lib/python3.11/subprocess.py:1)"});
    }
    Recording recording = builder.build();
    for (Source& source : recording.sources)
      if (source.kind == SourceKind::kProcess && source.attrs["ppid"] == "7") source.attrs["comm"] = comm;
    return explain(recording).findings.front();
  };
  const Finding compiles = first("cc1plus");
  EXPECT_EQ(compiles.cause, Cause::kCompileWarmup);
  EXPECT_EQ(compiles.title,
            "The GPU waits while the training process waits for a compiler that it started: build (train.py), at some "
            "times only");
  EXPECT_FALSE(first("ffmpeg").cause);
}

}  // namespace
}  // namespace headroom
