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

namespace headroom {
namespace {

using planning::Change;
using planning::simulate;
using planning::step_model;
using planning::StepModel;
using testing::RecordingBuilder;

// Of a Python program, unless it is said to be another one.
Explanation explained(Recording recording) {
  if (recording.meta.command.empty()) recording.meta.command = {"python3", "train.py"};
  return explain(recording);
}

const Option* option(const Plan& plan, std::string_view id) {
  for (const Option& one : plan.options)
    if (one.id == id) return &one;
  return nullptr;
}

// A log of one GPU: readings and nothing of processes.
Recording readings(double length, const std::function<double(double)>& util, double memory = 1e9) {
  MemorySink sink;
  Device device;
  device.uuid = "GPU-0";
  device.memory_total_bytes = std::int64_t{48} << 30;
  const SourceId id = sink.add_source({SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)});
  for (double t = 1; t <= length; t += 1)
    sink.add_row(id, RecordingBuilder::at(t),
                 std::array{testing::cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util(t))),
                            testing::cell(Metric::kMemoryUsed, static_cast<std::int64_t>(memory))});
  RecordingMeta meta;
  meta.start = RecordingBuilder::at(0);
  meta.end = RecordingBuilder::at(length);
  meta.interval = kSecond;
  meta.origin = "import:dmon";
  meta.tiers = "N";
  sink.set_meta(meta);
  return sink.take();
}

// One GPU, busy for `busy` of each second, and a job whose two loader workers run for the rest of the time.
Recording loader_bound(double busy, int cores, double cores_used, int workers = 2, double each = 0.95) {
  RecordingBuilder recording(100, 0.5);
  recording.gpu(0, [=](double t) { return t < 1 ? 0.0 : busy; });
  recording.machine(cores, cores_used);
  recording.process(100, 1, 0, 100, 0.02);
  for (int i = 0; i < workers; ++i) recording.process(101 + i, 100, 0.5, 100, each);
  recording.context(100, 0, 0.5, 100, busy);
  return recording.build();
}

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

// A job whose stacks are at one place while its GPU waits, on what nobody knows.
Explanation sleeping_in(double share) {
  Explanation e = explained(RecordingBuilder(10, 0.5).gpu(0, [](double) { return 0.3; }).build());
  e.meta.tiers = "NPY";
  e.findings.resize(1);
  Finding& finding = e.findings[0];
  finding.cause.reset();
  finding.candidates = {Cause::kLoggingUpload, Cause::kSlowStorage};
  finding.gain = Gain{1, 2, "if none of it kept the GPU waiting"};
  finding.advice = "make that code cheaper";
  e.ledger.places = {"send (train.py)", "other (train.py)"};
  const auto piece = [](double begin, double end, std::int32_t where) {
    return ClaimedPiece{.device = 0,
                        .begin = RecordingBuilder::at(begin),
                        .end = RecordingBuilder::at(end),
                        .account = Account::kHostCode,
                        .where = where};
  };
  finding.claims = {piece(1, 1 + 5 * share, 0), piece(1 + 5 * share, 6, 1)};
  finding.code = 0;
  return e;
}

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

ProbeReport probe(std::string parameter, ProbedTime now_over_best) {
  ProbeReport report{.parameter = std::move(parameter), .complete = 3};
  report.values = {{.value = "2", .level = ProbedTime{0.2, 0.19, 0.21}, .to_best = now_over_best},
                   {.value = "4", .level = ProbedTime{0.15, 0.14, 0.16}}};
  report.best = 1;
  return report;
}

TEST(Plan, WhatAProbeMeasuredOfWorkersIsBothEnds) {
  const Explanation e = explained(loader_bound(0.3, 12, 2));
  PlanRequest request;
  request.workers = 4;
  const Gain bound = option(plan(e, request), "more_loader_workers")->gain;
  request.probe = probe("num_workers", {1.3, 1.25, 1.35});
  const Gain measured = option(plan(e, request), "more_loader_workers")->gain;
  EXPECT_NEAR(measured.low, 1.25, 0.02);
  EXPECT_NEAR(measured.high, 1.35, 0.02);
  EXPECT_THAT(measured.words(), ::testing::HasSubstr("measured num_workers 2 and 4 in turn, 3 runs each"));
  request.probe = probe("num_workers", {30, 20, 40});
  EXPECT_NEAR(option(plan(e, request), "more_loader_workers")->gain.high, bound.high, 1e-6)
      << "no more than the recording allows";
  request.probe = probe("threads", {1.3, 1.25, 1.35});
  EXPECT_EQ(option(plan(e, request), "more_loader_workers")->gain, bound) << "of something else";
}

// Nobody saw a loader, and the one free core carries one worker: what four gave is known all the same.
TEST(Plan, AProbeOfWorkersIsBelievedWhereNothingWasSeenToWaitForThem) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.5; }).machine(2, 1.0);
  recording.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100, 0.5);
  recording.stacks(100, 0, 100, {"<module> (/u/train.py:1)", "forward (/u/torch/nn/modules/module.py:9)"});
  PlanRequest request;
  request.workers = 4;
  request.probe = probe("num_workers", {1.6, 1.55, 1.65});
  request.probe->values[0].value = "0";
  const Plan p = plan(explained(recording.build()), request);
  const Option* more = option(p, "start_loader_workers");
  ASSERT_NE(more, nullptr) << p.options.front().id << p.options.size();
  EXPECT_THAT(more->apply, ::testing::HasSubstr("num_workers=4"));
  EXPECT_NEAR(more->gain.low, 1.55, 0.05);
  EXPECT_NEAR(more->gain.high, 1.65, 0.05);
}

// Two workers that share a core with another program have one each when that is gone.
TEST(Plan, LessLoadOnTheCoresGivesThemToTheLoader) {
  StepModel model{.seconds = 100, .least = 20, .kernels = 20};
  model.loading = 80;
  model.workers = 2;
  model.cores = 1;
  model.parts = {{1, 60, false, true}, {0, 40, false, false}};
  model.findings = {{60, 60, false, true}};
  model.input = 60;
  const Change gone{.finding = 0, .frees = true};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{gone}), 40) << "80 CPU-seconds on two cores";
  EXPECT_DOUBLE_EQ(simulate(model, std::array{Change{.finding = 0}}), 80) << "while the other program runs";
}

TEST(Plan, WhatAProbeMeasuredOfBatchSizesIsBothEnds) {
  const Explanation e = explained(readings(100, [](double) { return 0.11; }));
  PlanRequest request;
  request.batch = {2, 4};
  request.probe = probe("batch_size", {1.5, 1.4, 1.6});
  const Gain measured = option(plan(e, request), "larger_batch")->gain;
  EXPECT_NEAR(measured.low, 1.4, 0.02);
  EXPECT_NEAR(measured.high, 1.6, 0.02);
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

TEST(Plan, ASweepIsProjectedAsARange) {
  const Recording built = readings(1300, [](double t) { return std::fmod(t, 420) <= 300 ? 1.0 : 0.0; });
  PlanRequest request;
  request.trials = 20;
  request.epochs = 10;
  request.epoch = 420 * kSecond;
  const Plan p = plan(explained(built), request);
  ASSERT_FALSE(p.projections.empty());
  const Projection& sweep = p.projections.back();
  EXPECT_NEAR(sweep.high_seconds / 3600, 23.33, 0.01);
  EXPECT_GE(sweep.low_seconds / 3600, 23.33 * 300 / 420 - 0.1);
  EXPECT_LT(sweep.low_seconds, sweep.high_seconds);
}

// Asked about workers that gain nothing, a plan that gains by other means projects both.
TEST(Plan, WhatWasAskedAboutIsProjectedBesideThePlan) {
  const Explanation e = explained(readings(1300, [](double t) { return std::fmod(t, 420) <= 300 ? 1.0 : 0.0; }));
  const Gain none{}, some{.low = 1, .high = 1.3};
  const auto both = planning::projections(e, {.epoch = 420 * kSecond}, {none, some});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].what, "an epoch of 7:00 with nothing but what was asked about");
  EXPECT_EQ(both[0].low_seconds, 420);
  EXPECT_EQ(both[1].what, "an epoch of 7:00 with all options");
  EXPECT_NEAR(both[1].low_seconds, 420 / 1.3, 1e-6);
  const auto alike = planning::projections(e, {.epoch = 420 * kSecond}, {some, some});
  ASSERT_EQ(alike.size(), 1U);
  EXPECT_EQ(alike[0].what, "an epoch of 7:00");
}

TEST(Plan, WhatIsLeftIsWhatFasterKernelsAreProjectedOn) {
  Explanation e = explained(readings(1300, [](double) { return 1.0; }));
  e.pipeline.emplace();
  e.pipeline->kernels = e.ledger.span() / 4;
  const Plan p = plan(e, {.left = 1000 * kSecond});
  ASSERT_GE(p.projections.size(), 2U);
  EXPECT_THAT(p.projections[0].what, ::testing::StartsWith("the remaining 16:40"));
  EXPECT_NEAR(p.projections[0].low_seconds, 875, 0.1);
  EXPECT_NEAR(p.projections[1].low_seconds, 750, 0.1);
  for (const auto at : {0U, 1U})
    EXPECT_NEAR(p.projections[at].high_seconds, 1000, 0.1) << "what goes on beside the kernels may set the pace";
  for (const Projection& one : p.projections) EXPECT_THAT(one.what, ::testing::Not(::testing::HasSubstr("GPU part")));
}

TEST(Plan, OfOneReadingItSaysWhatWouldBeEnough) {
  const Plan p = plan(explained(readings(1, [](double) { return 0.0; })));
  EXPECT_TRUE(p.options.empty());
  EXPECT_THAT(p.nothing,
              ::testing::HasSubstr("to plan from it: log for minutes, once a second, or record the job itself"));
}

TEST(Plan, BesideAnIdleGpuItSaysWhatBothMakeOfTheGpuPart) {
  RecordingBuilder recording(90);
  recording.gpu(0, [](double t) { return t < 30 ? 0.5 : 0.0; }).gpu(1, [](double) { return 0.0; });
  recording.process(100, 1, 0, 90, 0.1).context(100, 0, 0, 90, 0.2);
  Explanation e = explained(recording.build());
  ASSERT_EQ(e.ledger.devices.size(), 2U);
  const Nanos span = e.ledger.span();
  e.pipeline = Pipeline{.gpu_part = span / 3, .kernels = span / 6, .rest = span - span / 3};
  const Plan p = plan(e, {.left = 1080 * kSecond});
  ASSERT_GE(p.projections.size(), 4U);
  EXPECT_EQ(p.projections[2].what, "the remaining 18:00 with its GPU part split evenly over 2 GPUs");
  EXPECT_NEAR(p.projections[2].low_seconds, 900, 0.1);
  EXPECT_EQ(p.projections[2].low_seconds, p.projections[2].high_seconds);
  EXPECT_EQ(p.projections[3].what, "the remaining 18:00 however fast its GPU part becomes");
  EXPECT_NEAR(p.projections[3].low_seconds, 720, 0.1);
  EXPECT_NEAR(p.projections[3].high_seconds, 1080, 0.1);
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

// What holds for every plan of every recording.
// None for the start stands above those for what costs more, unless somebody asked.
void expect_no_start_first(const Explanation& e, const Plan& p, const PlanRequest& request) {
  std::map<std::size_t, bool> starts;  // by finding: all options are for the start
  for (const Option& one : p.options) {
    if (!one.finding || one.id == "observe") continue;
    const bool start = one.cause == Cause::kStartupLoad || one.cause == Cause::kCompileWarmup ||
                       one.cause == Cause::kEnvironmentInstall;
    starts.emplace(*one.finding, true).first->second &= start;
  }
  const bool asked = request.batch || request.workers || request.tasks;
  const auto cost = [&](const Option& one) {
    const Finding& finding = e.findings[*one.finding];
    const Cause first = finding.cause ? *finding.cause : finding.candidates.front();
    return first == Cause::kMoreGpusThanUseful ? 0 : finding.cost();  // that costs the job nothing
  };
  for (auto one = p.options.begin(); one != p.options.end() && !asked; ++one)
    for (auto later = std::next(one); later != p.options.end(); ++later)
      if (one->finding && one->id != "observe" && starts.at(*one->finding) && later->finding &&
          later->id != "observe" && !starts.at(*later->finding)) {
        ASSERT_LE(cost(*later), cost(*one)) << one->id << ", " << later->id;
      }
}

void expect_the_rules(const Explanation& e, const Plan& p) {
  std::set<std::string> ids;
  std::set<std::pair<std::optional<std::size_t>, std::string>> done;
  for (const Option& one : p.options) {
    SCOPED_TRACE(one.id);
    ASSERT_TRUE(done.insert({one.finding, one.apply}).second) << "said twice: " << one.apply;
    ASSERT_TRUE(ids.insert(one.id).second);
    ASSERT_NE(one.title, "");
    ASSERT_NE(one.apply, "");
    ASSERT_NE(one.verify, "");
    ASSERT_NE(one.undo, "");
    ASSERT_EQ(one.apply.find('{'), std::string::npos) << one.apply;
    if (!one.promises) continue;
    ASSERT_GE(one.gain.low, 1);
    ASSERT_GE(one.gain.high, one.gain.low);
    ASSERT_NE(one.gain.words(), "");
    const bool spreads = one.id == "one_gpu_per_process";
    if (spreads) {
      ASSERT_LE(one.gain.high, static_cast<double>(e.ledger.devices.size()) + 1e-9);
    }
    if (one.finding && !spreads && one.id != "larger_batch") {
      const Finding& finding = e.findings[*one.finding];
      ASSERT_TRUE(finding.gain);
      if (one.gain.words().find(" as well") != std::string::npos) {
        ASSERT_TRUE(e.bound);
        ASSERT_LE(one.gain.high, e.bound->speedup_high + 1e-6) << "of several findings together";
      } else if (one.gain.words().find("its high end has the kernels") == std::string::npos) {
        ASSERT_LE(one.gain.high, finding.gain->high + 1e-6) << "never above the finding's own";
      }
      if (!finding.cause) {
        ASSERT_EQ(one.gain.low, 1) << "a set promises nothing";
      }
    }
  }
  double last = 1;
  for (const OptionsTogether& step : p.after) {
    double product = 1;
    for (const std::string& id : step.options) product *= option(p, id)->gain.high;
    ASSERT_GE(step.gain.high, last - 1e-9) << "more options are never worse";
    if (e.bound) {
      ASSERT_LE(step.gain.high, std::max(e.bound->speedup_high, product) + 1e-6);
      const bool fewer_kernels = std::any_of(step.options.begin(), step.options.end(), [&](const std::string& id) {
        return id == "one_gpu_per_process" || option(p, id)->gain.high > e.bound->speedup_high + 1e-6;
      });
      if (!fewer_kernels) {
        ASSERT_LE(step.gain.high, e.bound->speedup_high + 1e-6) << "not below the kernels";
      }
    }
    std::set<std::size_t> sets;
    for (const std::string& id : step.options)
      if (!option(p, id)->candidates.empty()) {
        ASSERT_TRUE(sets.insert(option(p, id)->finding.value()).second) << id << ": one change of a set at most";
      }
    last = step.gain.high;
    for (const std::string& id : step.options) ASSERT_GE(step.gain.high, option(p, id)->gain.high - 1e-9);
  }
}

// What is told together begins with the first and goes on in the order of the options, one more each time.
void expect_their_order(const Plan& p) {
  const auto before = [&](const std::string& x, const std::string& y) { return option(p, x) < option(p, y); };
  for (std::size_t i = 0; i < p.after.size(); ++i) {
    const std::vector<std::string>& ids = p.after[i].options;
    ASSERT_EQ(ids.size(), i + 1);
    ASSERT_TRUE(std::is_sorted(ids.begin(), ids.end(), before)) << ::testing::PrintToString(ids);
  }
}

TEST(Plan, HoldsItsRulesOverRandomRecordingsAndBatches) {
  std::size_t options = 0, combined = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Recording recording = testing::random_recording_or_batch(random);
    const Explanation e = explained(recording);
    PlanRequest request;
    if (seed % 3 == 1) request.batch = {32, 128};
    if (seed % 3 == 2) request.workers = 8;
    if (seed % 6 == 5) request.tasks = 4;
    const Plan p = plan(e, request);
    expect_the_rules(e, p);
    expect_their_order(p);
    expect_no_start_first(e, p, request);
    if (HasFatalFailure()) return;
    options += p.options.size();
    combined += p.after.size();
  }
  EXPECT_GT(options, 300U);
  EXPECT_GT(combined, 100U);
}

// Any set of changes: one more never makes the simulated time longer, and none makes it shorter than it can be.
TEST(Plan, OneMoreChangeNeverMakesTheTimeLonger) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Explanation e = explained(testing::random_recording_or_batch(random));
    const StepModel model = step_model(e);
    double claimed = 0;
    for (const auto& part : model.parts) claimed += part.seconds;
    ASSERT_LE(claimed, model.seconds + 1e-6);
    std::vector<Change> changes;
    double before = simulate(model, changes);
    ASSERT_NEAR(before, model.seconds, 1e-9 * std::max(1.0, model.seconds)) << "seed " << seed;
    for (int i = 0; i < 6; ++i) {
      Change change{.mechanism = static_cast<Mechanism>(random() % 4)};
      if (!model.findings.empty() && random() % 4 != 0) change.finding = random() % model.findings.size();
      change.share = static_cast<double>(random() % 11) / 10;
      if (change.mechanism == Mechanism::kLoads) change.workers = 1 + static_cast<double>(random() % 8);
      if (change.mechanism == Mechanism::kEnlarges) change.factor = 1 + static_cast<double>(random() % 4);
      changes.push_back(change);
      const double now = simulate(model, changes);
      ASSERT_LE(now, before + 1e-6) << "seed " << seed << " change " << i;
      ASSERT_GE(now, 0);
      before = now;
    }
  }
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
