// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <set>

#include "analyze/testing_profile.h"
#include "analyze/testing_random.h"
#include "base/human.h"
#include "diagnose/explain.h"
#include "model/job_variables.h"
#include "model/observations.h"
#include "plan/projections.h"
#include "plan/rank.h"
#include "plan/step_model.h"
#include "plan/testing.h"

namespace headroom {
namespace {

using planning::Change;
using planning::simulate;
using planning::step_model;
using planning::StepModel;
using testing::explained;
using testing::loader_bound;
using testing::option;
using testing::readings;
using testing::RecordingBuilder;
using testing::sleeping_in;

// To import PyTorch runs the modules of its loader, and the bodies of their classes.
TEST(Plan, ALoaderIsWhatCallsIntoItAndNotWhatImportsIt) {
  const std::string data = " (/x/site-packages/torch/utils/data/dataloader.py:9)";
  Recording recording;
  recording.meta.tiers = "NPY";
  recording.texts = {"<module>" + data, "DataLoader" + data, "load (/u/train.py:3)"};
  EXPECT_EQ(loader_of(recording), Loader::kOther);
  for (const std::string& call : {"_next_data" + data, "_SingleProcessDataLoaderIter._next_data" + data}) {
    recording.texts.back() = call;
    EXPECT_EQ(loader_of(recording), Loader::kDataLoader) << call;
  }
}

TEST(Plan, TwoFindingsThatMoreWorkersEndHaveOneOptionForBoth) {
  Explanation e = explained(loader_bound(0.3, 12, 2));
  Finding other = e.findings.at(0);
  ASSERT_EQ(other.cause, Cause::kInputTooFewWorkers);
  other.cause = Cause::kInputInMainProcess;
  e.findings.insert(e.findings.begin() + 1, other);
  const Plan p = plan(e);
  EXPECT_EQ(option(p, "start_loader_workers"), nullptr);
  EXPECT_THAT(option(p, "more_loader_workers")->gain.more, ::testing::HasSubstr("in finding 2 as well"));
  e.findings[0].confidence = Confidence::kLow;
  ASSERT_NE(option(plan(e), "start_loader_workers"), nullptr) << "the surer one tells of it";
}

TEST(Plan, MoreWorkersAreBoundedByTheCpuTimeOfLoadingAndTheCores) {
  const Explanation e = explained(loader_bound(0.3, 12, 2));
  const Plan p = plan(e);
  const Option* more = option(p, "more_loader_workers");
  ASSERT_NE(more, nullptr) << e.headline;
  // 190 CPU-seconds of loading by 2; kernels take 30 s, so some 7 workers are needed, and 12 cores carry them.
  EXPECT_GT(more->gain.high, 2.0);
  EXPECT_LE(more->gain.high, e.bound->speedup_high + 1e-9);
  EXPECT_LT(more->gain.low, more->gain.high);
  EXPECT_THAT(more->apply, ::testing::HasSubstr("num_workers="));
  EXPECT_EQ(info(more->safety).name, "moderate");
  for (const std::string& text : {more->verify, more->undo, more->why_safe, more->effort, more->apply})
    EXPECT_NE(text, "");
}

TEST(Plan, CoresCarryMoreWorkersThatUseAPartOfOneEach) {
  const Explanation e = explained(loader_bound(0.3, 2, 1.35, 2, 0.35));
  EXPECT_THAT(e.findings.at(0).advice, ::testing::Not(::testing::HasSubstr("carry no more workers")));
  const Plan p = plan(e);
  const Option* more = option(p, "more_loader_workers");
  ASSERT_NE(more, nullptr);
  EXPECT_THAT(more->apply, ::testing::HasSubstr("num_workers=6")) << "some 2 cores for workers of 0.35";
  EXPECT_EQ(option(plan(explained(loader_bound(0.3, 2, 1.9, 2, 0.7))), "more_loader_workers"), nullptr);
}

// They may use more than they leave one worker, as nothing keeps it from taking its share.
TEST(Plan, OthersUsedTheCoresThatTheFindingSaysTheyUsed) {
  Explanation e = explained(loader_bound(0.3, 12, 2));
  e.host = HostTime{.usable_cores = 2, .busy_cores = 2, .helpers = 1, .owner_cores = 0.1, .helper_cores = 0.4};
  const Plan p = plan(e);
  const Option* more = option(p, "more_loader_workers");
  ASSERT_NE(more, nullptr);
  EXPECT_THAT(more->gain.more, ::testing::HasSubstr("on 1.9 cores, 1.5 of which others used meanwhile"));
}

TEST(Plan, ALowEndSaysOfWhatItIsAHalf) {
  Explanation e = explained(loader_bound(0.3, 12, 2));
  const Plan alone = plan(e);
  EXPECT_THAT(option(alone, "more_loader_workers")->gain.more,
              ::testing::HasSubstr(fmt::format("low end: half of the {} of finding 1 is saved",
                                               human_duration(e.findings.at(0).cost()))));
  e.host = HostTime{.usable_cores = 4, .busy_cores = 3.5, .helpers = 2, .owner_cores = 0.02, .helper_cores = 1.9};
  const Plan beside = plan(e);
  EXPECT_THAT(option(beside, "more_loader_workers")->gain.more,
              ::testing::HasSubstr("low end: half of what it saves while others use as many cores"));
}

// They need hardly a core while they wait, and the store may answer more of them.
TEST(Plan, WorkersThatWaitForAConnectionMayAskForMoreAtATime) {
  RecordingBuilder recording(100, 0.5);
  recording.gpu(0, [](double t) { return t < 1 ? 0.0 : 0.3; }).machine(2, 0.1).sleeping_in(WaitChannel::kSocket);
  recording.process(100, 1, 0, 100, 0.02);
  for (int i = 0; i < 3; ++i) recording.process(101 + i, 100, 0.5, 100, 0.02);
  recording.context(100, 0, 0.5, 100, 0.3);
  const Explanation e = explained(recording.build());
  EXPECT_EQ(e.findings.at(0).title, "The GPU waits for data that comes over a connection");
  EXPECT_THAT(e.findings.at(0).advice, ::testing::StartsWith("more requests at a time: more workers than the 3 "));
  PlanRequest request;
  for (const std::optional<int> asked : {std::optional<int>(), std::optional(16)}) {
    request.workers = asked;
    const Plan p = plan(e, request);
    const Option* more = option(p, "more_requests");
    ASSERT_NE(more, nullptr);
    EXPECT_GT(more->gain.high, 3) << "0.3 of each second have kernels";
    EXPECT_EQ(option(p, "more_loader_workers"), nullptr) << "it would be the same";
  }
  EXPECT_THAT(option(plan(e, request), "more_requests")->apply, ::testing::HasSubstr("16"));
  EXPECT_EQ(option(plan(explained(loader_bound(0.3, 12, 2))), "more_requests"), nullptr);
}

// A thread of 0.9 cores that makes a batch while kernels run, too: one process instead of it gains what the interpreter
// took, two are what it needs.
TEST(Plan, AThreadThatFeedsTheMainOneIsAWorker) {
  const auto planned = [](double threads_cpu, int cores) {
    RecordingBuilder builder(100);
    builder.gpu(0, [](double) { return 0.4; })
        .machine(cores, threads_cpu)
        .sleeping_in(WaitChannel::kFutex, threads_cpu);
    builder.process(7, 1, 0, 100, 0.01).context(7, 0, 0, 100);
    for (int i = 0; i < 100; ++i) {
      builder.stacks(7, i, i + 0.4, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.4, i + 1, {"train (/u/train.py:1)", "Queue.get (/usr/lib/python3.11/queue.py:1)"});
    }
    builder.stacks({7, 0, 100, {"run (/u/data.py:1)", "decode (/u/data.py:9)"}, 8, threads_cpu > 0.5});
    return plan(explained(builder.build()));
  };
  const Plan busy = planned(0.9, 8), alone = planned(0.9, 1), asleep = planned(0.02, 8);
  const Option* more = option(busy, "more_loader_workers");
  ASSERT_NE(more, nullptr);
  EXPECT_THAT(more->apply,
              ::testing::HasSubstr("it can be made ahead of the kernels that need it: let 3 processes load"));
  EXPECT_NEAR(more->gain.high, 2.5, 0.1) << "0.4 of each second have kernels";
  ASSERT_NE(option(busy, "cheaper_samples"), nullptr);
  EXPECT_THAT(option(busy, "cheaper_samples")->verify, ::testing::StartsWith("time per step")) << "it has no workers";
  EXPECT_EQ(option(alone, "more_loader_workers"), nullptr) << "one core carries no more than that thread";
  more = option(asleep, "more_loader_workers");
  ASSERT_NE(more, nullptr);
  EXPECT_THAT(more->apply, ::testing::HasSubstr("let more threads wait at a time"));
  EXPECT_THAT(more->verify, ::testing::Not(::testing::HasSubstr("num_workers")));
}

TEST(Plan, NoWorkersAreAdvisedThatTheCoresDoNotCarry) {
  const Explanation e = explained(loader_bound(0.3, 2, 2));
  const Plan p = plan(e);
  EXPECT_EQ(option(p, "more_loader_workers"), nullptr) << "two cores are full with two workers";
  EXPECT_THAT(e.findings.at(0).advice, ::testing::HasSubstr("the 2 usable ones carry no more workers"));
  EXPECT_THAT(explained(loader_bound(0.3, 12, 2)).findings.at(0).advice,
              ::testing::StartsWith("more loader workers ("));
  PlanRequest request;
  request.workers = 16;
  const Plan asked = plan(e, request);
  const Option* more = option(asked, "more_loader_workers");
  ASSERT_NE(more, nullptr);
  EXPECT_LT(more->gain.high, 1.1);
}

TEST(Plan, WithFasterKernelsTheLoaderIsTheLimitAgain) {
  StepModel model{.seconds = 100, .least = 50, .kernels = 50};
  model.loading = 160;
  model.workers = 2;
  EXPECT_DOUBLE_EQ(simulate(model, {}), 100);
  const Change batch{.mechanism = Mechanism::kEnlarges, .factor = 4};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{batch}), 80) << "160 CPU-seconds by 2 workers";
  const Change workers{.mechanism = Mechanism::kLoads, .workers = 4};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{batch, workers}), 50) << "the kernels";
  model.cores = 3;
  EXPECT_NEAR(simulate(model, std::array{batch, workers}), 160.0 / 3, 1e-9);
}

TEST(Plan, EqualSharesAreAsLongAsTheirMean) {
  RecordingBuilder uneven(100);
  uneven.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.3; });
  uneven.process(100, 1, 0, 100, 0.5).context(100, 0, 0, 100).context(100, 1, 0, 100);
  const Plan p = plan(explained(uneven.build()));
  const Option* equal = option(p, "one_process_per_gpu");
  ASSERT_NE(equal, nullptr);
  EXPECT_NEAR(equal->gain.high, 0.9 / 0.6, 0.02);
  EXPECT_EQ(equal->gain.low, 1) << "whether the work can be split is not recorded";
}

TEST(Plan, NothingIsPromisedThatNoEvidenceShows) {
  RecordingBuilder recording(120);
  std::vector<std::pair<double, std::string>> phases;
  for (int epoch = 0; epoch < 4; ++epoch)
    phases.insert(phases.end(), {{30.0 * epoch, "train"}, {30.0 * epoch + 20, "validate"}});
  recording.gpu(0, [](double t) { return std::fmod(t - 0.001, 30) < 20 ? 1.0 : 0.0; });
  recording.process(100, 1, 0, 120, 0.99).context(100, 0, 0, 120).marks(100, "marks", phases);
  const Explanation e = explained(recording.build());
  ASSERT_EQ(e.findings.at(0).cause, Cause::kValidation);
  const Plan p = plan(e);
  const Option *larger = option(p, "larger_eval_batch"), *less = option(p, "validate_less");
  ASSERT_NE(larger, nullptr);
  ASSERT_NE(less, nullptr);
  EXPECT_EQ(larger->title, "Run the validation on the GPU") << "no kernel runs in it, whatever the batch";
  EXPECT_THAT(larger->apply, ::testing::HasSubstr("hardly a kernel ran in it"));
  EXPECT_EQ(larger->gain.low, 1) << "it may be code on the CPU";
  EXPECT_NEAR(larger->gain.high, 1.5, 0.1) << "all of it might go";
  EXPECT_THAT(larger->gain.words(), ::testing::HasSubstr("nothing here shows how much of that"));
  EXPECT_NEAR(less->gain.high, 120.0 / 100, 0.03);
  EXPECT_NEAR(less->gain.low, 120.0 / 110, 0.03) << "half of the half that was seen";
  EXPECT_THAT(less->gain.words(), ::testing::HasSubstr("at most half of all that goes"));
  EXPECT_THAT(less->gain.words(), ::testing::HasSubstr("low end: a quarter of the 40.0 s of finding 1 is saved"));
  PlanRequest request;
  request.history = {{Cause::kValidation, 3, 0.6, 0.9}};
  EXPECT_GT(option(plan(e, request), "larger_eval_batch")->gain.low, 1.1) << "outcomes show it";
}

TEST(Plan, WhatIsNotRunHasNoKernelsEither) {
  RecordingBuilder recording(120);
  std::vector<std::pair<double, std::string>> phases;
  for (int epoch = 0; epoch < 4; ++epoch)
    phases.insert(phases.end(), {{30.0 * epoch, "train"}, {30.0 * epoch + 20, "validate"}});
  recording.gpu(0, [](double t) { return std::fmod(t - 0.001, 30) < 20 ? 1.0 : 0.2; });
  recording.process(100, 1, 0, 120, 0.99).context(100, 0, 0, 120).marks(100, "marks", phases);
  const Explanation e = explained(recording.build());
  const Plan p = plan(e);
  const Option *less = option(p, "validate_less"), *larger = option(p, "larger_eval_batch");
  ASSERT_NE(less, nullptr);
  ASSERT_NE(larger, nullptr);
  EXPECT_NEAR(less->gain.high, 120.0 / 100, 0.03) << "half of 40 s, kernels and all";
  EXPECT_GT(less->gain.high, 120.0 / (120 - seconds(e.findings.at(0).cost()) / 2) + 0.02) << "more than is claimed";
  EXPECT_THAT(less->gain.words(), ::testing::HasSubstr("the kernels and the other time of these phases"));
  EXPECT_EQ(larger->title, "A larger batch for validation, its metrics on the GPU");
  EXPECT_NEAR(larger->gain.high, 120.0 / 80, 0.07) << "nothing tells how long the kernels of larger batches take";
}

// Where no kernel runs in the phases, their other time is idle time as well.
TEST(Plan, WhatIsNotRunKeepsTheKernelsThatAreElsewhere) {
  RecordingBuilder recording(120);
  std::vector<std::pair<double, std::string>> phases;
  for (int epoch = 0; epoch < 4; ++epoch)
    phases.insert(phases.end(), {{30.0 * epoch, "train"}, {30.0 * epoch + 20, "validate"}});
  recording.gpu(0, [](double t) { return std::fmod(t - 0.001, 30) < 20 ? 1.0 : 0.0; });
  recording.process(100, 1, 0, 120, 0.99).context(100, 0, 0, 120).marks(100, "marks", phases);
  Explanation e = explained(recording.build());
  const auto idle = std::find_if(e.ledger.entries.begin(), e.ledger.entries.end(), [](const LedgerEntry& entry) {
    return entry.account == Account::kValidationHost && entry.phase >= 0;
  });
  ASSERT_NE(idle, e.ledger.entries.end());
  LedgerEntry other = *idle;
  other.account = Account::kUnexplained;
  other.ns = 5 * kSecond;
  idle->ns -= other.ns;
  e.ledger.entries.push_back(other);
  const Plan p = plan(e);
  const Option* larger = option(p, "larger_eval_batch");
  ASSERT_NE(larger, nullptr);
  EXPECT_LE(larger->gain.high, e.bound->speedup_high + 1e-9);
  EXPECT_THAT(larger->gain.words(), ::testing::HasSubstr("its high end has the other time of these phases, too"));
}

// The idle time of each validation begins before its mark does: kernels of the training are none of a validation's.
TEST(Plan, WhatAValidationLeavesInThePhaseBeforeItDoesNotMakeThatOneItsOwn) {
  RecordingBuilder recording(120);
  std::vector<std::pair<double, std::string>> phases;
  for (int epoch = 0; epoch < 4; ++epoch)
    phases.insert(phases.end(), {{30.0 * epoch, "train"}, {30.0 * epoch + 20, "validate"}});
  recording.gpu(0, [](double t) { return std::fmod(t - 0.001, 30) < 19.5 ? 1.0 : 0.0; });
  recording.process(100, 1, 0, 120, 0.99).context(100, 0, 0, 120).marks(100, "marks", phases);
  const Plan p = plan(explained(recording.build()));
  const Option *less = option(p, "validate_less"), *larger = option(p, "larger_eval_batch");
  ASSERT_NE(less, nullptr);
  ASSERT_NE(larger, nullptr);
  EXPECT_LT(larger->gain.high, 120.0 / 75);
  EXPECT_LT(less->gain.high, 120.0 / 95);
}

// Stacks see the validation before its mark does: most idle time of the epoch's phase is then the validation's.
TEST(Plan, KernelsOfAnEpochAreNotThoseOfItsValidation) {
  RecordingBuilder recording(120);
  std::vector<std::pair<double, std::string>> phases;
  recording.gpu(0, [](double t) { return std::fmod(t - 0.001, 30) < 24 ? 1.0 : 0.0; });
  recording.process(100, 1, 0, 120, 0.99).context(100, 0, 0, 120);
  for (double at = 0; at < 120; at += 30) {
    phases.insert(phases.end(), {{at, "epoch"}, {at + 27, "validate"}});
    recording.stacks(100, at, at + 24, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    recording.stacks(100, at + 24, at + 30, {"train (/u/train.py:1)", "validate (/u/train.py:9)"});
  }
  const Plan p = plan(explained(recording.marks(100, "marks", phases).build()));
  const Option *less = option(p, "validate_less"), *larger = option(p, "larger_eval_batch");
  ASSERT_NE(less, nullptr);
  ASSERT_NE(larger, nullptr);
  EXPECT_NEAR(larger->gain.high, 120.0 / 96, 0.06) << "all 24 s, and what lies at their edges";
  EXPECT_NEAR(less->gain.high, 120.0 / 108, 0.03);
}

TEST(Plan, AGpuThatIsNotUsedKeepsNoTimeOfTheJob) {
  const auto workers = [](bool second) {
    RecordingBuilder recording(100, 0.5);
    recording.gpu(0, [](double t) { return t < 1 ? 0.0 : 0.3; });
    if (second) recording.gpu(1, [](double) { return 0.0; });
    recording.machine(12, 2).process(100, 1, 0, 100, 0.02);
    for (int i = 0; i < 2; ++i) recording.process(101 + i, 100, 0.5, 100, 0.95);
    const Plan p = plan(explained(recording.context(100, 0, 0.5, 100, 0.3).build()));
    const Option* more = option(p, "more_loader_workers");
    return more ? more->gain.high : 0;
  };
  EXPECT_GT(workers(false), 2);
  EXPECT_NEAR(workers(true), workers(false), 0.01);
}

TEST(Plan, WorkersThatAreThereAlreadyAreNotMore) {
  const auto asked = [](std::int64_t workers, int cores, bool said = true) {
    PlanRequest request;
    request.workers = workers;
    Explanation e = explained(loader_bound(0.3, cores, 1.9));
    if (said) e.said.parameters = {{"num_workers", "2"}};
    const Plan made = plan(e, request);
    const Option* more = option(made, "more_loader_workers");
    return more ? *more : Option{};
  };
  EXPECT_EQ(asked(2, 12).title, "Stay with 2 loader workers");
  EXPECT_FALSE(asked(2, 12).promises);
  EXPECT_THAT(asked(16, 2).apply, ::testing::HasSubstr("the job has 2 already; 16 workers would share 2 usable cores"));
  EXPECT_THAT(asked(2, 12, false).apply, ::testing::HasSubstr("if the 2 processes that it started load its data"));
  EXPECT_EQ(asked(4, 12).title, "More loader workers");
  EXPECT_TRUE(asked(4, 12).promises);
}

TEST(Plan, FewerGpusGainNothingForTheJob) {
  RecordingBuilder recording(60);
  recording.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; });
  recording.process(100, 1, 0, 60, 0.5).context(100, 0, 0, 60);
  const Plan p = plan(explained(recording.build()));
  const Option* fewer = option(p, "fewer_gpus");
  ASSERT_NE(fewer, nullptr);
  EXPECT_FALSE(fewer->promises);
  EXPECT_THAT(fewer->gain.words(), ::testing::StartsWith("none for this job"));
}

TEST(Plan, ARunIsNotToldToBeRecordedOnceMoreAsItWas) {
  RecordingBuilder builder(0.9, 0.5);
  builder.gpu(0, [](double) { return 0.5; }).process(100, 1, 0.1, 0.9, 0.1).context(100, 0, 0.1, 0.9);
  builder.meta().tiers = "N";
  const SourceId gpu = *builder.sink().recording().find(SourceKind::kGpu, "GPU-0");
  const SourceId ring = builder.sink().add_source({SourceKind::kGpuUtilRing, "GPU-0", gpu, {}});
  for (int i = 1; i <= 9; ++i)
    builder.sink().add_row(ring, RecordingBuilder::at(0.1 * i),
                           std::array{testing::cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, 0.5))});
  const Explanation e = explained(builder.build());
  const Plan p = plan(e);
  const Option* observe = option(p, "observe");
  ASSERT_NE(observe, nullptr);
  EXPECT_EQ(observe->apply, e.findings.at(0).advice);
  EXPECT_THAT(observe->apply, ::testing::HasSubstr("-i 100ms"));
}

TEST(Plan, StacksThatWereAskedForAndAreNotThereAreNotAskedForAgain) {
  const auto observed = [](const std::string& origin, std::vector<MissingTier> missing) {
    Explanation e = explain(RecordingBuilder(10, 0.5).gpu(0, [](double) { return 0.3; }).build());
    e.meta.tiers = "NP";
    e.meta.origin = origin;
    e.meta.missing_tiers = std::move(missing);
    e.findings.resize(1);
    e.findings[0].cause.reset();
    e.findings[0].claims = {{.device = 0, .begin = RecordingBuilder::at(2), .end = RecordingBuilder::at(3)}};
    e.findings[0].candidates = {Cause::kGilContention, Cause::kSlowStorage};
    const Plan made_plan = plan(e);
    const Option* made = option(made_plan, "observe");
    return made ? made->apply : "";
  };
  EXPECT_THAT(observed("run", {{'Y', "not wanted (--stacks 0)"}}), ::testing::HasSubstr("--stacks 0"));
  EXPECT_THAT(observed("import:csv", {}), ::testing::HasSubstr("--stacks 20 -- CMD"));
  EXPECT_THAT(observed("run", {}), ::testing::HasSubstr(kNativeStacks));
}

TEST(Plan, AHangOfAJobThatIsOverIsLookedAtInTheNextRun) {
  const auto how = [](bool over) {
    Explanation e = explained(RecordingBuilder(10, 0.5).gpu(0, [](double) { return 0.3; }).build());
    e.meta.stop_reason = over ? "job_ended" : "";
    e.findings.resize(1);
    e.findings[0].cause = Cause::kHang;
    const Plan made = plan(e);
    const Option* hang = option(made, "end_the_hang");
    return hang ? hang->apply : "";
  };
  EXPECT_THAT(how(false), ::testing::StartsWith("headroom stacks --pid PID"));
  EXPECT_THAT(how(true), ::testing::StartsWith("in the next run, headroom stacks --pid PID"));
}

TEST(Plan, AProgramWithoutPythonIsAdvisedWhatItHas) {
  Explanation e = sleeping_in(0.5);
  e.meta.origin = "run";
  e.meta.tiers = "NP";
  e.meta.command = {"./train"};
  e.findings[0].candidates = {Cause::kInputInMainProcess, Cause::kSyncPoints,         Cause::kPageableCopies,
                              Cause::kLaunchBound,        Cause::kEpochWorkerRestart, Cause::kHostGraphBuilding};
  const Plan native = plan(e);
  for (const Option& one : native.options)
    for (const std::string& text : {one.title, one.apply, one.verify, one.undo})
      for (const char* word : {"DataLoader", "torch", "num_workers", ".item()", "collate_fn", "headroom stacks"})
        EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(word))) << one.id;
  ASSERT_NE(option(native, "fewer_syncs"), nullptr);
  EXPECT_THAT(option(native, "fewer_syncs")->apply, ::testing::HasSubstr("cudaStreamSynchronize"));
  EXPECT_THAT(option(native, "start_loader_workers")->apply, ::testing::HasSubstr("threads or processes load"));
  e.meta.tiers = "NPY";
  EXPECT_THAT(option(plan(e), "fewer_syncs")->apply, ::testing::HasSubstr(".item()"));
}

// Of a set of many causes those that one look tells stand together, and each of them has its look.
TEST(Plan, ChangesForASetStandByTheLookThatChoosesAmongThem) {
  Explanation e = sleeping_in(0.5);
  e.findings[0].candidates = {Cause::kInputTooFewWorkers, Cause::kLoggingUpload,      Cause::kSlowStorage,
                              Cause::kGilContention,      Cause::kInputInMainProcess, Cause::kPageableCopies};
  const Plan p = plan(e);
  const Option* observe = option(p, "observe");
  ASSERT_NE(observe, nullptr);
  std::vector<std::string> looks;  // as they follow each other, each run of the same once
  std::size_t changes = 0;
  for (const Option& one : p.options) {
    if (!one.cause || one.candidates.empty()) continue;
    ++changes;
    const std::string look = step_of_observation(*one.cause, e.findings[*one.finding], e.meta);
    EXPECT_THAT(observe->apply, ::testing::HasSubstr(look)) << one.id;
    if (looks.empty() || looks.back() != look) looks.push_back(look);
  }
  EXPECT_EQ(std::set<std::string>(looks.begin(), looks.end()).size(), looks.size()) << ::testing::PrintToString(looks);
  EXPECT_LT(looks.size(), changes) << "else this shows nothing";
}

TEST(Plan, WhatAGainTakesBeyondItsClaimsIsNotOnlyOfTheLoop) {
  StepModel model{.seconds = 62, .least = 6, .kernels = 6};
  model.parts = {{0b01, 18, false, true}, {0b10, 19, false, true}, {0b100, 17, true, false}};
  model.findings = {{.seconds = 18, .most = 37}, {.seconds = 19, .most = 37}, {.seconds = 17, .most = 17}};
  model.input = 37;
  model.outside = 17;
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 0}}), 25) << "the other wait may have its cause";
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 1}}), 25);
}

// Of 10 s of other time that the first gain counts, the second finding claims 6.
TEST(Plan, OtherTimeThatAGainCountsIsSavedOnce) {
  StepModel model{.seconds = 60, .least = 6, .kernels = 6};
  model.parts = {{0b01, 20, true, false}, {0b10, 6, true, false, 0b01}};
  model.findings = {{.seconds = 20, .most = 30}, {.seconds = 6, .most = 6}};
  model.outside = 26;
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 0}}), 30);
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 0}, Change{.finding = 1}}), 30);
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 1}, Change{.finding = 0}}), 30);
  model.parts[1].counted_by = 0;
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 0}, Change{.finding = 1}}), 24);
}

// Two workers load for 45 s of 60 s, whatever cores there are: the plan and the finding say one figure.
TEST(Plan, WhatLoadsBoundsTheFindingAndItsOptionAlike) {
  RecordingBuilder builder(60);
  builder.machine(2, 2).gpu(0, [](double) { return 0.3; }).process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
  for (const std::int64_t pid : {8, 9}) {
    builder.process({pid, 7, 0, 60, 0.75, true, {testing::cell(Metric::kRunDelay, 210'000'000)}});
    builder.waits_for(pid, {WaitKind::kPipe, "python3", {7}});
  }
  const Explanation e = explained(builder.build());
  ASSERT_EQ(e.findings.at(0).cause, Cause::kCpuOversubscribed);
  const Plan p = plan(e);
  const Option* cores = option(p, "fewer_threads");
  ASSERT_NE(cores, nullptr);
  EXPECT_NEAR(cores->gain.high, e.findings[0].gain->high, 1e-6);
  const std::string words = cores->gain.words();
  EXPECT_EQ(words.find("what loads"), words.rfind("what loads")) << words;
  EXPECT_THAT(words, ::testing::HasSubstr("; what loads (2 processes) takes 45.0 s"));
}

// The loader keeps the loop at 40 s; of the 10 s outside of it that the gain counts, all may go.
TEST(Plan, WhatIsCountedOutsideOfTheLoopGoesWhateverTheLoaderTakes) {
  StepModel model{.seconds = 60, .least = 6, .kernels = 6};
  model.parts = {{0b01, 40, false, true}, {0b10, 10, true, false, 0b01}};
  model.findings = {{.seconds = 40, .most = 20, .input = true}, {.seconds = 10, .most = 10, .outside = true}};
  model.input = 40, model.outside = 10;
  model.loading = 40, model.workers = 1;
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 0}}), 40);
}

// Of two findings that cost 3 s and 2.8 s, and save nearly the same, the larger one stands first.
TEST(Plan, WhatCostsMoreStandsBeforeWhatSavesNearlyAsMuch) {
  Explanation e = sleeping_in(1);
  e.findings.push_back(e.findings[0]);
  const std::array causes{Cause::kCheckpointSync, Cause::kValidation};
  for (std::size_t i = 0; i < 2; ++i) {
    Finding& finding = e.findings[i];
    finding.cause = causes[i];
    finding.candidates.clear();
    finding.code.reset();
    finding.claims.resize(1);
    finding.claims[0].begin = RecordingBuilder::at(i == 0 ? 1 : 5);
    finding.claims[0].end = RecordingBuilder::at(i == 0 ? 4 : 7.8);
    finding.claims[0].account = i == 0 ? Account::kCheckpoint : Account::kValidationHost;
    finding.gain = Gain{1, i == 0 ? 1.40 : 1.45, "if it did not wait"};
  }
  const Plan near = plan(e);
  ASSERT_GE(near.options.size(), 2U);
  EXPECT_EQ(near.options[0].cause, Cause::kCheckpointSync);
  e.findings[0].gain->high = 1.1;
  const Plan far = plan(e);
  EXPECT_EQ(far.options[0].cause, Cause::kValidation) << "that saves far more";
}

TEST(Plan, TheLikeliestCauseStandsFirstWhereItSavesNearlyAsMuch) {
  Explanation e = sleeping_in(0.4);
  e.findings[0].code.reset();
  e.findings[0].candidates = {Cause::kLaunchBound, Cause::kCpuOversubscribed};
  const auto first = [&] {
    const Plan p = plan(e);
    for (const Option& one : p.options)
      if (one.cause) return *one.cause;
    return Cause::kHealthy;
  };
  EXPECT_EQ(first(), Cause::kLaunchBound) << "though less load is safe, and changes no code";
  e.findings[0].limits = {{Cause::kLaunchBound, 1.1, "if code of its main thread took no time"}};
  EXPECT_EQ(first(), Cause::kCpuOversubscribed);
  e.findings[0].cause = Cause::kLaunchBound;
  e.findings[0].candidates.clear();
  e.findings[0].less_likely = {Cause::kCpuOversubscribed};
  EXPECT_EQ(first(), Cause::kLaunchBound) << "it is the likeliest by far";
}

// The wait is for what a child makes: made faster, that keeps nobody waiting.
TEST(Plan, WhoWaitsForALoaderThatIsMadeFasterIsNotBoundedByIt) {
  Explanation e = sleeping_in(1);
  e.findings[0].cause = Cause::kInputTooFewWorkers;
  e.findings[0].candidates.clear();
  e.findings[0].less_likely = {Cause::kBurstyInput};
  for (ClaimedPiece& piece : e.findings[0].claims) piece.account = Account::kHostCode;
  e.ledger.entries.emplace_back();
  e.ledger.entries.back().account = Account::kInput;
  e.ledger.entries.back().ns = kSecond;
  e.host = HostTime{.usable_cores = 2, .helpers = 1, .owner_cores = 0.1, .helper_cores = 0.9};
  const auto high = [&] { return option(plan(e), "named_code")->gain.high; };
  EXPECT_LT(high(), 1.9) << "what loads takes 9 s of 10 s";
  e.findings[0].mostly_waits = true;
  EXPECT_NEAR(high(), 2, 1e-4);
}

// The first change promises nothing of the time of which the second promises half.
TEST(Plan, WhatIsPromisedAloneIsPromisedBesideWhatPromisesNothing) {
  StepModel model{.seconds = 100, .least = 10, .kernels = 10};
  model.parts = {{0b01, 20, false, false}, {0b10, 20, false, false}};
  model.findings = {{.seconds = 20, .most = 20}, {.seconds = 20, .most = 20}};
  std::vector<planning::Candidate> candidates(3);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].option.id = std::to_string(i);
    candidates[i].change.finding = i / 2;
    candidates[i].least = i == 0 ? 0 : 0.5;
  }
  planning::give_gains(model, candidates);
  const std::vector<OptionsTogether> steps = planning::together(model, candidates);
  ASSERT_EQ(steps.size(), 2U) << "the second takes away nothing that the first does not";
  EXPECT_DOUBLE_EQ(steps[0].gain.low, 1);
  EXPECT_DOUBLE_EQ(steps[1].gain.low, 100.0 / 90) << "half of the other 20 s";
  EXPECT_DOUBLE_EQ(steps[1].gain.high, 100.0 / 60);
}

TEST(Plan, SaysOfUnevenGpusWhatTheFindingSays) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.8; }).gpu(1, [](double) { return 0.2; });
  builder.process(100, 1, 0, 100, 0.5).context(100, 0, 0, 100).context(100, 1, 0, 100);
  const Explanation e = explained(builder.build());
  ASSERT_EQ(e.findings.at(0).cause, Cause::kOneProcessImbalance);
  const Plan p = plan(e);
  const auto spread = std::find_if(p.options.begin(), p.options.end(),
                                   [](const Option& one) { return one.cause == Cause::kOneProcessImbalance; });
  ASSERT_NE(spread, p.options.end());
  EXPECT_GT(spread->gain.high, e.bound->speedup_high) << "that one leaves the kernels where they are";
  EXPECT_NEAR(spread->gain.high, e.findings[0].gain->high, 0.01);
}

// GPU 1 computes without a pause, GPU 0 waits for it: another time for the exchange shortens nothing.
TEST(Plan, WhoExchangesAtAnotherTimeKeepsTheKernelsOfTheBusiestGpu) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.3; }).gpu(1, [](double) { return 0.99; });
  builder.process(7, 1, 0, 60, 0.02).process(8, 1, 0, 60, 0.02).context(7, 0, 0, 60).context(8, 1, 0, 60);
  builder.stacks(7, 0, 60,
                 {"train (/u/train.py:1)", "exchange (/u/train.py:7)",
                  "Connection.recv (/usr/lib/python3.11/multiprocessing/connection.py:1)"});
  builder.stacks(8, 0, 60, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
  const Explanation e = explained(builder.build());
  ASSERT_EQ(e.findings.at(0).cause, Cause::kStraggler);
  ASSERT_GT(e.findings[0].gain->high, 1.3) << "by equal shares of the kernels";
  const Plan p = plan(e);
  bool even = false;
  for (const Option& option : p.options) {
    even |= option.cause == Cause::kStraggler && option.gain.high > 1.3;
    EXPECT_TRUE(option.cause != Cause::kExposedCommunication || option.gain.high <= e.bound->speedup_high + 1e-9);
  }
  EXPECT_TRUE(even);
}

// Loading that waits, for a disk or a server, is done by more workers than there are cores.
TEST(Plan, OfLoadingThatSleepsCoresAreNoBound) {
  const auto planned = [](double cpu, std::optional<int> workers) {
    RecordingBuilder builder(100);
    builder.gpu(0, [](double) { return 0.2; }).machine(2, 1.0).process(7, 1, 0, 100, cpu).context(7, 0, 0, 100);
    for (int i = 0; i < 100; ++i) {
      builder.stacks(7, i, i + 0.2, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
      builder.stacks(7, i + 0.2, i + 1,
                     {"train (/u/train.py:1)", "_next_data (/x/site-packages/torch/utils/data/dataloader.py:1)",
                      "collate (/u/train.py:9)"});
    }
    PlanRequest request;
    request.workers = workers;
    const Plan p = plan(explained(builder.build()), request);
    const auto found = std::find_if(p.options.begin(), p.options.end(),
                                    [](const Option& one) { return one.id == "start_loader_workers"; });
    return found == p.options.end() ? Option{} : *found;
  };
  for (const std::optional<int> workers : {std::optional<int>(), std::optional(6)}) {
    EXPECT_GT(planned(0.02, workers).gain.high, 4) << "0.2 of each second have kernels";
    EXPECT_NEAR(planned(0.9, workers).gain.high, 100.0 / 42, 0.05) << "0.8 of each second by two cores";
  }
  EXPECT_THAT(planned(0.02, 6).apply, ::testing::HasSubstr("num_workers=6"));
  EXPECT_THAT(planned(0.02, {}).apply, ::testing::HasSubstr("num_workers=5"));
}

// A job that sleeps while others compute gains nothing where they go: their kernels show no more than a bound.
TEST(Plan, KernelsOfOthersShowNoLeastGain) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 1.0; }).process(7, 1, 0, 100, 0.05).context(7, 0, 0, 100, 0.2);
  builder.process({50, 1, 0, 100, 0.1, false}).context(50, 0, 0, 100, 0.8);
  const Explanation e = explained(builder.build());
  const Plan p = plan(e);
  const auto own =
      std::find_if(p.options.begin(), p.options.end(), [](const Option& one) { return one.id == "own_gpu"; });
  ASSERT_NE(own, p.options.end());
  EXPECT_GT(own->gain.high, 1.3);
  EXPECT_EQ(own->gain.low, 1);
}

TEST(Plan, TimeThatTwoFindingsClaimIsSavedOnce) {
  StepModel model{.seconds = 100, .least = 20, .kernels = 20};
  model.parts = {{0b01, 30, false, false}, {0b11, 10, false, false}, {0b10, 20, false, false}};
  model.findings = {{.seconds = 40, .most = 40}, {.seconds = 30, .most = 30}};
  const Change one{.finding = 0}, two{.finding = 1};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{one}), 60);
  EXPECT_DOUBLE_EQ(simulate(model, std::array{two}), 70);
  EXPECT_DOUBLE_EQ(simulate(model, std::array{one, two}), 40) << "not 30";
}

TEST(Plan, WhatGoesOnBesideTheLoopNeedsALoopThatLastsAsLong) {
  StepModel model{.seconds = 100, .least = 10, .kernels = 10};
  model.parts = {{0b1, 60, false, false}};
  model.findings = {{.seconds = 60, .most = 60}};
  const Change hide{.mechanism = Mechanism::kOverlaps, .finding = 0}, remove{.finding = 0};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{hide}), 50) << "one half beside the other";
  EXPECT_DOUBLE_EQ(simulate(model, std::array{remove}), 40);
}

TEST(Plan, TasksBesideEachOtherHaveTheSameKernels) {
  StepModel model{.seconds = 46, .least = 15, .kernels = 15};
  model.parts = {{0b1, 30, true, false}};
  model.findings = {{.seconds = 30, .most = 29, .outside = true}};
  const Change one_process{.finding = 0}, packs{.mechanism = Mechanism::kPacks, .factor = 4};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{one_process}), 17);
  EXPECT_DOUBLE_EQ(simulate(model, std::array{packs}), 15) << "not 11.5";
  EXPECT_DOUBLE_EQ(simulate(model, std::array{one_process, packs}), 15);
}

TEST(Plan, WorkersTakeOverOnlyWhatNoOtherChangeLetsGo) {
  StepModel model{.seconds = 15, .least = 3, .kernels = 3};
  model.parts = {{0b1, 12, false, false}};
  model.findings = {{.seconds = 12, .most = 12}};
  const Change loads{.mechanism = Mechanism::kLoads, .finding = 0, .workers = 1}, remove{.finding = 0};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{loads}), 12);
  EXPECT_DOUBLE_EQ(simulate(model, std::array{remove}), 3);
  EXPECT_DOUBLE_EQ(simulate(model, std::array{remove, loads}), 3);
}

TEST(Plan, ALineThroughTwoBatchSizesBoundsALargerOne) {
  const Explanation e = explained(readings(100, [](double) { return 0.11; }));
  PlanRequest request;
  request.batch = {32, 128};
  const Plan by_bound = plan(e, request);
  ASSERT_NE(option(by_bound, "larger_batch"), nullptr);
  EXPECT_NEAR(option(by_bound, "larger_batch")->gain.high, 4, 1e-9) << "four times the batch, at most four times";
  EXPECT_EQ(option(by_bound, "larger_batch")->gain.low, 1);
  request.step_times = {{32, 0.110}, {64, 0.130}};  // t(b) = 0.09 + 0.000625 b
  const Plan by_line = plan(e, request);
  EXPECT_NEAR(option(by_line, "larger_batch")->gain.high, (0.110 / 32) / (0.170 / 128), 1e-6);
  EXPECT_GT(option(by_line, "larger_batch")->gain.low, 1);
  EXPECT_EQ(by_bound.options.front().id, "observe") << "several causes look the same";
}

TEST(Plan, ABatchThatDoesNotFitIsNotAdvised) {
  const Explanation e = explained(readings(
      100, [](double) { return 0.11; }, 45e9));  // of 48 GiB
  PlanRequest request;
  request.batch = {32, 128};
  const Plan p = plan(e, request);
  const Option* larger = option(p, "larger_batch");
  ASSERT_NE(larger, nullptr);
  EXPECT_LT(larger->gain.high, 1.25);
  EXPECT_THAT(larger->gain.words(), ::testing::HasSubstr("the memory"));
}

TEST(Plan, HistoryNarrowsTheInterval) {
  const Explanation e = explained(loader_bound(0.3, 12, 2));
  PlanRequest request;
  request.history = {{Cause::kInputTooFewWorkers, 8, 0.7, 0.9}};
  const Plan before = plan(e), after = plan(e, request);
  const Option *old = option(before, "more_loader_workers"), *now = option(after, "more_loader_workers");
  EXPECT_GT(now->gain.low, old->gain.low);
  EXPECT_EQ(now->gain.high, old->gain.high) << "the bound is this recording's, not the history's";
  EXPECT_EQ(now->outcomes, 8);
  EXPECT_EQ(option(after, "cheaper_samples")->outcomes, 0) << "no low end of it rests on that history";
}

TEST(Plan, NothingToDoIsSaid) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.97; });
  recording.process(100, 1, 0, 100, 0.3).context(100, 0, 0, 100, 0.97);
  Recording built = recording.build();
  const Explanation e = explained(built);
  const Plan p = plan(e);
  EXPECT_THAT(p.nothing, ::testing::StartsWith("Healthy"));
  EXPECT_THAT(p.options, ::testing::IsEmpty());
  built.meta.exit_code = 1;
  EXPECT_THAT(plan(explained(built)).nothing, ::testing::StartsWith("What the job computed before it failed"));
}

TEST(Plan, AsManyTasksPerGpuAsThereWereGainNothing) {
  Explanation e = explained(RecordingBuilder(40).gpu(0, [](double) { return 0.3; }).build());
  e.findings.clear();
  e.bound = Bound{3, "if the GPUs were always busy"};
  e.batch = BatchTimes{.attempts = 12, .room = 9.0, .at_once = 4.5};
  const Plan as_before = plan(e, {.tasks = 4}), more = plan(e, {.tasks = 9});
  const Option* same = option(as_before, "more_tasks_per_gpu");
  ASSERT_NE(same, nullptr);
  EXPECT_EQ(same->gain.high, 1);
  EXPECT_EQ(same->gain.condition, "4.5 tasks ran at once on each GPU already, on average");
  ASSERT_NE(option(more, "more_tasks_per_gpu"), nullptr);
  EXPECT_NEAR(option(more, "more_tasks_per_gpu")->gain.high, 2, 1e-6);
}

TEST(Plan, OfALogThatGoesOnTheTimeIsTheJobs) {
  const auto log = [](double length) {
    return explained(readings(length, [](double t) { return t > 700 ? 0.0 : std::fmod(t, 25) < 17 ? 0.92 : 0.0; }));
  };
  const Explanation cut = log(700), whole = log(1200);
  EXPECT_EQ(planning::time_of_job(cut), cut.ledger.span());
  EXPECT_NEAR(seconds(planning::time_of_job(whole)), 692, 10) << "its last kernel";
  const Plan plan = headroom::plan(whole, {});
  EXPECT_NEAR(plan.seconds, 692, 10);
  for (const Option& one : plan.options) EXPECT_LT(one.gain.high, 2) << one.id;
}

TEST(Plan, CopiesBetweenGpusAreNoExchangeOfGradients) {
  testing::Profile profile{.device = {}, .thread = {}, .kernels = 1, .length = 500};
  for (Nanos at = 0; at < 500; at += 100) {
    profile.device.push_back({at, {"kernel"}});
    profile.device.push_back({at + 60, {"copy between GPUs"}});
  }
  const Plan p = plan(explained(profile.build()));
  const Option* copies = option(p, "overlap_communication");
  ASSERT_NE(copies, nullptr);
  EXPECT_EQ(copies->title, "Copy between GPUs while kernels run, or less");
  EXPECT_THAT(copies->apply, ::testing::HasSubstr("micro-batches"));
  EXPECT_THAT(copies->apply + copies->why_safe, ::testing::Not(::testing::HasSubstr("gradient")));
}

}  // namespace
}  // namespace headroom
