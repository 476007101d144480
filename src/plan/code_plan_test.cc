// SPDX-License-Identifier: Apache-2.0
// Changes of code that stacks name, and of what a start loads.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/job_variables.h"
#include "model/observations.h"
#include "plan/plan.h"
#include "plan/step_model.h"
#include "plan/testing.h"

namespace headroom {
namespace {

using testing::explained;
using testing::option;
using testing::RecordingBuilder;
using testing::sleeping_in;

TEST(Plan, ACauseOfASetGainsNoMoreThanItCanHaveCost) {
  Explanation e = sleeping_in(0.9);
  e.findings[0].candidates = {Cause::kLoggingUpload, Cause::kPageableCopies};
  e.findings[0].limits = {{Cause::kPageableCopies, 1.1, "if what came over PCIe took no time: 0.9 s at 3 GB/s"}};
  const auto gain = [&](std::string_view id) {
    const Plan p = plan(e);
    const Option* found = option(p, id);
    return found ? found->gain : Gain{};
  };
  EXPECT_NEAR(gain("pin_memory").high, 1.1, 1e-4);
  EXPECT_EQ(gain("pin_memory").words(),
            "if the cause is copies from pageable memory, and if what came over PCIe took no time: 0.9 s at 3 GB/s");
  EXPECT_GT(gain("log_beside").high, 1.9) << "the other one's is the finding's";
}

// A cache that is full by now: what made the GPU wait lies in the first half of the time.
TEST(Plan, OfWhatIsOverItIsSaidThatLaterTimeMayGainNothing) {
  Explanation e = sleeping_in(0.9);
  const auto words = [&] { return option(plan(e), "log_beside")->gain.words(); };
  EXPECT_THAT(words(), ::testing::Not(::testing::HasSubstr("may gain nothing")));
  e.findings[0].claims.resize(1);
  e.findings[0].claims[0].end = RecordingBuilder::at(4);
  EXPECT_THAT(words(), ::testing::HasSubstr("what comes later may gain nothing"));
}

// Each of two findings leaves room for all bytes that came in its readings, and these are the same ones.
TEST(Plan, TwoFindingsOfOneCauseGainTogetherNoMoreThanItCanHaveCostInTheRun) {
  Explanation e = sleeping_in(0.9);
  e.findings[0].candidates = {Cause::kPageableCopies, Cause::kLoggingUpload};
  e.findings.push_back(e.findings[0]);
  for (ClaimedPiece& piece : e.findings[1].claims)
    piece.begin += RecordingBuilder::at(5) - RecordingBuilder::at(0),
        piece.end = std::min(RecordingBuilder::at(9), piece.end + RecordingBuilder::at(5) - RecordingBuilder::at(0));
  std::erase_if(e.findings[1].claims, [](const ClaimedPiece& piece) { return piece.end <= piece.begin; });
  e.findings[1].gain->high = 1.4;
  const Plan without = plan(e);
  const Option* copies = option(without, "pin_memory");
  ASSERT_NE(copies, nullptr);
  EXPECT_GT(copies->gain.high, 1.9) << copies->gain.words();
  e.limits = {{Cause::kPageableCopies, 1.25, "if what came over PCIe took no time: 2 s at 3 GB/s"}};
  const Plan within = plan(e);
  EXPECT_NEAR(option(within, "pin_memory")->gain.high, 1.25, 1e-4);
  EXPECT_EQ(option(within, "pin_memory")->gain.words(),
            "if the cause is copies from pageable memory, and if what came over PCIe took no time: 2 s at 3 GB/s; in "
            "finding 2 as well");
}

TEST(Plan, CodeThatStacksNameCanBeChangedWhateverOfASetItIs) {
  const Plan p = plan(sleeping_in(0.9));
  const Option* code = option(p, "named_code");
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->title, "Change the code itself: send (train.py)");
  EXPECT_EQ(code->apply, "make that code cheaper") << "as the finding says";
  EXPECT_FALSE(code->cause) << "an outcome of it says nothing of one cause";
  EXPECT_EQ(code->gain.low, 1);
  EXPECT_GT(code->gain.high, 1);
  EXPECT_EQ(p.options[0].id, "named_code") << "where the time goes is known";
  EXPECT_EQ(p.options[1].id, "observe");
  const auto look = [](Cause cause) {
    RecordingMeta meta;
    meta.origin = "run", meta.tiers = "NPY", meta.stop_reason = "job_ended";
    return fmt::format("{}: {}", info(cause).words, step_of_observation(cause, Finding{}, meta));
  };
  EXPECT_EQ(p.options[1].apply, look(Cause::kLoggingUpload) + "; " + look(Cause::kSlowStorage));
  EXPECT_EQ(option(plan(sleeping_in(0.5)), "named_code"), nullptr) << "no place has most of it";
  Explanation unsure = sleeping_in(0.9);
  unsure.findings[0].code.reset();
  EXPECT_EQ(option(plan(unsure), "named_code"), nullptr) << "which place has most of it is not known";
  Explanation twice = sleeping_in(0.9);
  twice.findings.push_back(twice.findings[0]);
  for (ClaimedPiece& piece : twice.findings[1].claims) piece.begin += 5 * kSecond, piece.end += 5 * kSecond;
  const Plan both = plan(twice);
  code = option(both, "named_code");
  ASSERT_NE(code, nullptr);
  EXPECT_THAT(code->gain.words(), ::testing::EndsWith("; in finding 2 as well"));
  EXPECT_GT(code->gain.high, option(p, "named_code")->gain.high);
  Explanation partly = twice;
  std::swap(partly.findings[1].claims[0].where, partly.findings[1].claims[1].where);
  EXPECT_EQ(option(plan(partly), "named_code"), nullptr) << "its change would gain more than the bound of the first";
  twice.ledger.places = {"send (t.py) called by train (t.py)", "other (t.py)", "send (t.py) called by score (t.py)"};
  for (ClaimedPiece& piece : twice.findings[1].claims) piece.where = 2;
  const Plan apart = plan(twice);
  code = option(apart, "named_code");
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->title, "Change the code itself: send (t.py) called by train (t.py)");
  EXPECT_THAT(code->gain.words(), ::testing::EndsWith("; what send (t.py) costs other callers is not counted"));
}

TEST(Plan, WhatRunsOnceIsNothingThatComesWithEachEpoch) {
  Explanation e = sleeping_in(0.9);
  e.findings[0].candidates = {Cause::kHostGraphBuilding, Cause::kValidation, Cause::kEpochEndHostWork};
  e.findings[0].role.recurs = Recurs::kAtTimes;
  EXPECT_NE(option(plan(e), "larger_eval_batch"), nullptr);
  e.findings[0].role.recurs = Recurs::kOnce;
  const Plan p = plan(e);
  for (const char* id : {"larger_eval_batch", "overlap_epoch_end"}) EXPECT_EQ(option(p, id), nullptr) << id;
  EXPECT_NE(option(p, "cache_prepared"), nullptr);
}

TEST(Plan, BesideNamedCodeNothingIsAdvisedForWhichNothingSpeaks) {
  Explanation e = sleeping_in(0.9);
  e.findings[0].candidates = {Cause::kSlowStorage, Cause::kLoggingUpload};
  EXPECT_NE(option(plan(e), "log_beside"), nullptr) << "nothing was observed of any";
  e.findings[0].speaks_for = {"data came over a connection", ""};
  EXPECT_EQ(option(plan(e), "log_beside"), nullptr);
  EXPECT_NE(option(plan(e), "local_data"), nullptr);
  std::swap(e.findings[0].candidates[0], e.findings[0].candidates[1]);
  e.findings[0].speaks_for = {"", "data came over a connection"};
  EXPECT_NE(option(plan(e), "log_beside"), nullptr) << "it is the likeliest";
  e.findings[0].candidates = {Cause::kSlowStorage, Cause::kLoggingUpload};
  e.findings[0].speaks_for = {"data came over a connection", ""};
  e.findings[0].code.reset();
  EXPECT_NE(option(plan(e), "log_beside"), nullptr) << "no place has most of it";
}

TEST(Plan, AChangeOfCodeOfASetGainsNoMoreThanThatCodeHas) {
  Explanation e = sleeping_in(0.6);
  e.findings[0].candidates = {Cause::kHostGraphBuilding, Cause::kInputInMainProcess, Cause::kLaunchBound};
  const Plan p = plan(e);
  const Option *code = option(p, "named_code"), *prepared = option(p, "cache_prepared");
  ASSERT_NE(code, nullptr);
  ASSERT_NE(prepared, nullptr);
  EXPECT_NEAR(prepared->gain.high, code->gain.high, 1e-4);
  EXPECT_THAT(prepared->gain.more,
              ::testing::EndsWith("send (train.py) has 60 % of that time, and no other code is counted"));
  EXPECT_LE(option(p, "start_loader_workers")->gain.high, code->gain.high + 1e-4);
  EXPECT_GT(option(p, "fewer_launches")->gain.high, code->gain.high + 0.1) << "it is no matter of that code";
}

// Without a wait in each step the same code runs beside the kernels, one step after another.
TEST(Plan, WhoNeverSynchronisesHidesNoMoreCodeThanThereAreKernels) {
  Explanation e = sleeping_in(0.9);
  e.findings[0].candidates = {Cause::kSyncPoints, Cause::kLoggingUpload};
  const Plan p = plan(e);
  const Option* fewer = option(p, "fewer_syncs");
  ASSERT_NE(fewer, nullptr);
  const double all = seconds(e.ledger.span()), kernels = seconds(e.ledger.busy(0));
  ASSERT_LT(kernels, seconds(e.findings[0].cost()));
  EXPECT_NEAR(fewer->gain.high, all / (all - kernels), 1e-4);
  EXPECT_THAT(fewer->gain.words(),
              ::testing::EndsWith("; the host's code takes as long as now, and beside it run 3.0 s of kernels"));
  for (ClaimedPiece& piece : e.findings[0].claims) piece.account = Account::kSync;
  EXPECT_NEAR(option(plan(e), "fewer_syncs")->gain.high, 2, 1e-4) << "it is no code: all of it may go";
}

// A start of which stacks tell the parts: as shares of its five seconds.
Explanation starting_with(std::vector<std::pair<std::string, double>> parts) {
  Explanation e = sleeping_in(1);
  Finding& finding = e.findings[0];
  finding.cause = Cause::kStartupLoad;
  finding.candidates.clear();
  finding.code.reset();
  finding.claims.clear();
  finding.confidence = Confidence::kHigh;
  e.meta.command = {"python3", "train.py"};
  e.ledger.places.clear();
  double at = 1;
  for (const auto& [place, share] : parts) {
    e.ledger.places.push_back(place);
    const auto where = static_cast<std::int32_t>(e.ledger.places.size()) - 1;
    finding.claims.push_back({.device = 0,
                              .begin = RecordingBuilder::at(at),
                              .end = RecordingBuilder::at(at + 5 * share),
                              .account = Account::kStartup,
                              .where = where});
    at += 5 * share;
  }
  return e;
}

TEST(Plan, AChangeOfAStartGainsNoMoreThanWhatItIsAbout) {
  Explanation e = starting_with({{"import torch", 0.4}, {"imports", 0.2}, {"load_table (train.py)", 0.4}});
  const Plan imports = plan(e);
  ASSERT_NE(option(imports, "faster_startup"), nullptr);
  EXPECT_EQ(option(imports, "faster_startup")->title, "Import less at the start, or once for several runs");
  EXPECT_NEAR(option(imports, "faster_startup")->gain.high, 10.0 / 7, 1e-4) << "of 5 s 60 %";
  EXPECT_THAT(option(imports, "faster_startup")->gain.words(), ::testing::HasSubstr("; imports are 60 % of that time"));
  e = starting_with({{"load_table (train.py)", 0.8}, {"import torch", 0.2}});
  e.findings[0].code = 0;
  const Plan code = plan(e);
  EXPECT_THAT(option(code, "faster_startup")->apply, ::testing::HasSubstr("keep what load_table (train.py) makes"));
  EXPECT_NEAR(option(code, "faster_startup")->gain.high, 10.0 / 6, 1e-4) << "of 5 s 80 %";
  EXPECT_THAT(option(code, "faster_startup")->gain.words(), ::testing::HasSubstr("; that code has 80 % of that time"));
  e = starting_with({{"load_table (train.py)", 0.4}, {"import torch", 0.4}, {"other (train.py)", 0.2}});
  const Plan both = plan(e);
  EXPECT_EQ(option(both, "faster_startup")->title, "Keep what every start makes or loads");
  EXPECT_THAT(option(both, "faster_startup")->apply,
              ::testing::StartsWith("keep what load_table (train.py) and other (train.py) make or bring"));
  EXPECT_NEAR(option(both, "faster_startup")->gain.high, 10.0 / 7, 1e-4) << "of 5 s 60 %";
  e = starting_with({{"load_table (train.py)", 0.1}, {"import torch", 0.4}, {"other (train.py)", 0.5}});
  const Plan rest = plan(e);
  EXPECT_THAT(option(rest, "faster_startup")->apply, ::testing::StartsWith("import late")) << "and all the rest";
  EXPECT_NEAR(option(rest, "faster_startup")->gain.high, 2, 1e-4);
}

TEST(Plan, WhatNoStackTellsOfAStartMayBeOfItToo) {
  Explanation e = starting_with({{"import torch", 0.6}, {"load_table (train.py)", 0.1}, {"", 0.3}});
  e.findings[0].claims.back().where = -1;
  const Plan p = plan(e);
  EXPECT_NEAR(option(p, "faster_startup")->gain.high, 10.0 / 5.5, 1e-4) << "of 5 s 90 %";
  EXPECT_THAT(option(p, "faster_startup")->gain.words(),
              ::testing::HasSubstr("; imports are 60 % of that time, and of 30 % no stack tells"));
}

TEST(Plan, OfAStartThatSleepsNothingIsKept) {
  Explanation e = starting_with({{"wait_for_lock (train.py)", 1}});
  e.findings[0].code = 0;
  EXPECT_EQ(option(plan(e), "faster_startup")->title, "Keep what every start makes or loads");
  for (bool Finding::*sleeps : {&Finding::asleep, &Finding::mostly_waits}) {
    Explanation waits = e;
    waits.findings[0].*sleeps = true;
    const Plan p = plan(waits);
    ASSERT_NE(option(p, "faster_startup"), nullptr);
    EXPECT_EQ(option(p, "faster_startup")->title, "Shorten the wait in wait_for_lock (train.py)");
    EXPECT_THAT(option(p, "faster_startup")->apply, ::testing::StartsWith("begin what it waits for there earlier"));
    EXPECT_THAT(option(p, "faster_startup")->why_safe, ::testing::Not(::testing::HasSubstr("the same data")));
  }
}

// What a finding advises against a wait for the disk is an option: of its causes none may be that.
TEST(Plan, CodeThatWritesIsNamed) {
  Explanation e = sleeping_in(0.9);
  for (ClaimedPiece& piece : e.findings[0].claims) piece.account = Account::kCheckpoint;
  e.findings[0].candidates = {Cause::kCpuOversubscribed, Cause::kCheckpointSync};
  e.findings[0].advice = "wait for the disk (fsync) less often";
  const Plan p = plan(e);
  const Option* code = option(p, "named_code");
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->title, "Change the code itself: send (train.py)");
  EXPECT_EQ(code->apply, e.findings[0].advice);
  EXPECT_THAT(code->why_safe, ::testing::HasSubstr("a crash may lose"));
}

TEST(Plan, AWaitForCoresThatOtherThreadsMayHaveHadIsNotBoundedByTheMainOnes) {
  Explanation e = sleeping_in(0.5);
  e.findings[0].candidates = {Cause::kHostGraphBuilding, Cause::kCpuOversubscribed};
  e.findings[0].speaks_for = {"", "its main thread waited for a core"};
  const auto words = [&] { return option(plan(e), "fewer_threads")->gain.words(); };
  EXPECT_THAT(words(), ::testing::HasSubstr("its main thread's own wait for a core is no bound"));
  e.limits = {{Cause::kCpuOversubscribed, 1.5, "if its main thread had a core of its own"}};
  EXPECT_THAT(words(), ::testing::Not(::testing::HasSubstr("is no bound")));
  e.limits.clear();
  e.findings[0].limits = {{Cause::kCpuOversubscribed, 1.5, "if its main thread had a core of its own"}};
  EXPECT_THAT(words(), ::testing::Not(::testing::HasSubstr("is no bound")));
}

TEST(Plan, FewerThreadsAreToBeTriedWhereTheyFillTheCores) {
  Explanation e = sleeping_in(0.9);
  e.host = HostTime{.usable_cores = 2, .busy_cores = 2.0, .owner_cores = 2};
  e.findings[0].cause = Cause::kCpuOversubscribed;
  e.findings[0].candidates.clear();
  const auto apply = [&] { return option(plan(e), "fewer_threads")->apply; };
  const auto verify = [&] { return option(plan(e), "fewer_threads")->verify; };
  EXPECT_THAT(apply(), ::testing::HasSubstr("to be tried: no more threads than cores (OMP_NUM_THREADS=1"));
  EXPECT_THAT(verify(), ::testing::HasSubstr("headroom probe --vary threads=1,2 -- env OMP_NUM_THREADS={threads} CMD"));
  EXPECT_NE(option(plan(e), "fewer_threads")->safety, Safety::kSafe) << "it may be slower";
  Explanation others = e;
  others.findings[0].no_threads_to_save = true;
  EXPECT_THAT(option(plan(others), "fewer_threads")->apply, ::testing::Not(::testing::HasSubstr("threads")));
  EXPECT_EQ(option(plan(others), "fewer_threads")->safety, Safety::kSafe);
  keep_job_variables({{"OMP_NUM_THREADS", "1"}}, e.meta);
  EXPECT_THAT(apply(), ::testing::Not(::testing::HasSubstr("threads")));
  EXPECT_THAT(verify(), ::testing::Not(::testing::HasSubstr("probe")));
}

TEST(Plan, WhatRanOutOfMemoryIsToldToTakeLessBeforeAnythingElse) {
  Explanation e = sleeping_in(0.9);
  Finding memory;
  memory.cause = Cause::kMemoryLimited;
  memory.confidence = Confidence::kHigh;
  memory.advice = "a smaller batch";
  memory.bound = "not a matter of speed";
  e.findings.insert(e.findings.begin(), memory);
  EXPECT_EQ(plan(e).options.front().id, "less_memory");
  e.findings.front().confidence = Confidence::kLow;
  EXPECT_NE(plan(e).options.front().id, "less_memory") << "it may have failed for another reason";
}

TEST(Plan, CodeAfterTheLastKernelMayBeChanged) {
  RecordingBuilder recording(60);
  recording.gpu(0, [](double t) { return t < 40 ? 1.0 : 0.0; }).process(7, 1, 0, 60, 0.95).context(7, 0, 0, 60);
  recording.stacks(7, 0, 40, {"main (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
  recording.stacks(7, 40, 60, {"main (/u/train.py:1)", "bootstrap (/u/train.py:9)"});
  recording.meta().exit_code = 0;
  const Explanation e = explained(recording.build());
  ASSERT_EQ(e.findings.front().cause, Cause::kUnreleasedAfterWork);
  const Plan made = plan(e);
  const Option* code = option(made, "named_code");
  ASSERT_NE(code, nullptr);
  EXPECT_THAT(code->title, ::testing::HasSubstr("bootstrap (train.py)"));
  EXPECT_NEAR(code->gain.high, 60.0 / 40, 0.1);
  EXPECT_EQ(code->verify, "time from the last kernel to the end of the process");
}

// The first 30 of 90 s: 8 of 10 in code that reads, then all from memory.
TEST(Plan, WhatIsLoadedInAPartOfTheRunTakesThatPartAsLongBesideIt) {
  RecordingBuilder recording(90);
  recording.machine(4, 1).gpu(0, [](double t) { return t <= 30 ? 0.2 : 1.0; }).process(7, 1, 0, 90, 0.9);
  recording.context(7, 0, 0, 90);
  for (int i = 0; i < 30; ++i) {
    recording.stacks(7, i, i + 0.2, {"main (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    recording.stacks(7, i + 0.2, i + 1, {"main (/u/train.py:1)", "load_sample (/u/train.py:9)"});
  }
  recording.stacks(7, 30, 90, {"main (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
  const Plan made = plan(explained(recording.build()));
  const Option* workers = option(made, "start_loader_workers");
  ASSERT_NE(workers, nullptr);
  EXPECT_NEAR(workers->gain.high, 90.0 / (90 - 12), 0.03) << "one worker takes 18 of 24 s, beside 6 s of kernels";
  EXPECT_THAT(workers->gain.words(), ::testing::HasSubstr("needed within the first 2"));
}

}  // namespace
}  // namespace headroom
