// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <set>

#include "analyze/testing_random.h"
#include "diagnose/explain.h"
#include "plan/step_model.h"

namespace headroom {
namespace {

using planning::Change;
using planning::simulate;
using planning::step_model;
using planning::StepModel;
using testing::RecordingBuilder;

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
Recording loader_bound(double busy, int cores, double cores_used, int workers = 2) {
  RecordingBuilder recording(100, 0.5);
  recording.gpu(0, [=](double t) { return t < 1 ? 0.0 : busy; });
  recording.machine(cores, cores_used);
  recording.process(100, 1, 0, 100, 0.02);
  for (int i = 0; i < workers; ++i) recording.process(101 + i, 100, 0.5, 100, 0.95);
  recording.context(100, 0, 0.5, 100, busy);
  return recording.build();
}

TEST(Plan, MoreWorkersAreBoundedByTheCpuTimeOfLoadingAndTheCores) {
  const Explanation e = explain(loader_bound(0.3, 12, 2));
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

TEST(Plan, NoWorkersAreAdvisedThatTheCoresDoNotCarry) {
  const Explanation e = explain(loader_bound(0.3, 2, 2));
  const Plan p = plan(e);
  EXPECT_EQ(option(p, "more_loader_workers"), nullptr) << "two cores are full with two workers";
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
  const Plan p = plan(explain(uneven.build()));
  const Option* equal = option(p, "one_process_per_gpu");
  ASSERT_NE(equal, nullptr);
  EXPECT_NEAR(equal->gain.high, 0.9 / 0.6, 0.02);
  EXPECT_EQ(equal->gain.low, 1) << "whether the work can be split is not recorded";
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

TEST(Plan, SaysOfUnevenGpusWhatTheFindingSays) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.8; }).gpu(1, [](double) { return 0.2; });
  builder.process(100, 1, 0, 100, 0.5).context(100, 0, 0, 100).context(100, 1, 0, 100);
  const Explanation e = explain(builder.build());
  ASSERT_EQ(e.findings.at(0).cause, Cause::kOneProcessImbalance);
  const Plan p = plan(e);
  const auto spread = std::find_if(p.options.begin(), p.options.end(),
                                   [](const Option& one) { return one.cause == Cause::kOneProcessImbalance; });
  ASSERT_NE(spread, p.options.end());
  EXPECT_GT(spread->gain.high, e.bound->speedup_high) << "that one leaves the kernels where they are";
  EXPECT_NEAR(spread->gain.high, e.findings[0].gain->high, 0.01);
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

TEST(Plan, WhatHidesBehindKernelsNeedsKernelsToHideBehind) {
  StepModel model{.seconds = 100, .least = 10, .kernels = 10};
  model.parts = {{0b1, 60, false, false}};
  model.findings = {{.seconds = 60, .most = 60}};
  const Change hide{.mechanism = Mechanism::kOverlaps, .finding = 0}, remove{.finding = 0};
  EXPECT_DOUBLE_EQ(simulate(model, std::array{hide}), 90);
  EXPECT_DOUBLE_EQ(simulate(model, std::array{remove}), 40);
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
  const Explanation e = explain(readings(100, [](double) { return 0.11; }));
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
  const Explanation e = explain(loader_bound(0.3, 12, 2));
  PlanRequest request;
  request.workers = 4;
  const Gain bound = option(plan(e, request), "more_loader_workers")->gain;
  request.probe = probe("num_workers", {1.3, 1.25, 1.35});
  const Gain measured = option(plan(e, request), "more_loader_workers")->gain;
  EXPECT_NEAR(measured.low, 1.25, 0.02);
  EXPECT_NEAR(measured.high, 1.35, 0.02);
  EXPECT_THAT(measured.condition, ::testing::HasSubstr("measured num_workers 2 and 4 in turn, 3 runs each"));
  request.probe = probe("num_workers", {30, 20, 40});
  EXPECT_NEAR(option(plan(e, request), "more_loader_workers")->gain.high, bound.high, 1e-6)
      << "no more than the recording allows";
  request.probe = probe("threads", {1.3, 1.25, 1.35});
  EXPECT_EQ(option(plan(e, request), "more_loader_workers")->gain, bound) << "of something else";
}

TEST(Plan, WhatAProbeMeasuredOfBatchSizesIsBothEnds) {
  const Explanation e = explain(readings(100, [](double) { return 0.11; }));
  PlanRequest request;
  request.batch = {2, 4};
  request.probe = probe("batch_size", {1.5, 1.4, 1.6});
  const Gain measured = option(plan(e, request), "larger_batch")->gain;
  EXPECT_NEAR(measured.low, 1.4, 0.02);
  EXPECT_NEAR(measured.high, 1.6, 0.02);
}

TEST(Plan, ABatchThatDoesNotFitIsNotAdvised) {
  const Explanation e = explain(readings(
      100, [](double) { return 0.11; }, 45e9));  // of 48 GiB
  PlanRequest request;
  request.batch = {32, 128};
  const Plan p = plan(e, request);
  const Option* larger = option(p, "larger_batch");
  ASSERT_NE(larger, nullptr);
  EXPECT_LT(larger->gain.high, 1.25);
  EXPECT_THAT(larger->gain.condition, ::testing::HasSubstr("the memory"));
}

TEST(Plan, HistoryNarrowsTheInterval) {
  const Explanation e = explain(loader_bound(0.3, 12, 2));
  PlanRequest request;
  request.history = {{Cause::kInputTooFewWorkers, 8, 0.7, 0.9}};
  const Plan before = plan(e), after = plan(e, request);
  const Option *old = option(before, "more_loader_workers"), *now = option(after, "more_loader_workers");
  EXPECT_GT(now->gain.low, old->gain.low);
  EXPECT_EQ(now->gain.high, old->gain.high) << "the bound is this recording's, not the history's";
  EXPECT_EQ(now->outcomes, 8);
}

TEST(Plan, NothingToDoIsSaid) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.97; });
  recording.process(100, 1, 0, 100, 0.3).context(100, 0, 0, 100, 0.97);
  const Explanation e = explain(recording.build());
  const Plan p = plan(e);
  EXPECT_THAT(p.nothing, ::testing::StartsWith("Healthy"));
  EXPECT_THAT(p.options, ::testing::IsEmpty());
}

TEST(Plan, ASweepIsProjectedAsARange) {
  const Recording built = readings(1300, [](double t) { return std::fmod(t, 420) <= 300 ? 1.0 : 0.0; });
  PlanRequest request;
  request.trials = 20;
  request.epochs = 10;
  request.epoch = 420 * kSecond;
  const Plan p = plan(explain(built), request);
  ASSERT_FALSE(p.projections.empty());
  const Projection& sweep = p.projections.back();
  EXPECT_NEAR(sweep.high_seconds / 3600, 23.33, 0.01);
  EXPECT_GE(sweep.low_seconds / 3600, 23.33 * 300 / 420 - 0.1);
  EXPECT_LT(sweep.low_seconds, sweep.high_seconds);
}

// What holds for every plan of every recording.
void expect_the_rules(const Explanation& e, const Plan& p) {
  std::set<std::string> ids;
  for (const Option& one : p.options) {
    SCOPED_TRACE(one.id);
    ASSERT_TRUE(ids.insert(one.id).second);
    ASSERT_NE(one.title, "");
    ASSERT_NE(one.apply, "");
    ASSERT_NE(one.verify, "");
    ASSERT_NE(one.undo, "");
    ASSERT_EQ(one.apply.find('{'), std::string::npos) << one.apply;
    if (!one.promises) continue;
    ASSERT_GE(one.gain.low, 1);
    ASSERT_GE(one.gain.high, one.gain.low);
    ASSERT_NE(one.gain.condition, "");
    const bool spreads = one.id == "one_gpu_per_process";
    if (spreads) {
      ASSERT_LE(one.gain.high, static_cast<double>(e.ledger.devices.size()) + 1e-9);
    }
    if (one.finding && !spreads && one.id != "larger_batch") {
      const Finding& finding = e.findings[*one.finding];
      ASSERT_TRUE(finding.gain);
      ASSERT_LE(one.gain.high, finding.gain->high + 1e-6) << "never above the finding's own";
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
    }
    last = step.gain.high;
    for (const std::string& id : step.options) ASSERT_GE(step.gain.high, option(p, id)->gain.high - 1e-9);
  }
}

TEST(Plan, HoldsItsRulesOverRandomRecordingsAndBatches) {
  std::size_t options = 0, combined = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Recording recording = testing::random_recording_or_batch(random);
    const Explanation e = explain(recording);
    PlanRequest request;
    if (seed % 3 == 1) request.batch = {32, 128};
    if (seed % 3 == 2) request.workers = 8;
    const Plan p = plan(e, request);
    expect_the_rules(e, p);
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
    const Explanation e = explain(testing::random_recording_or_batch(random));
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

}  // namespace
}  // namespace headroom
