// SPDX-License-Identifier: Apache-2.0
#include "compare/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compare/history.h"

namespace headroom::compare {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kPlan = R"({"schema":"headroom.plan/1","recording":"before.hrec","more":[1],
  "options":[{"id":"workers","cause":"input_in_main_process","title":"more","gain":{"low":1.1,"high":1.4},"safety":"safe"},
             {"id":"batch","cause":"batch_too_small","gain":{"low":1,"high":2},"safety":"risky"},
             {"id":"odd","cause":"of_a_newer_version","gain":{"low":1,"high":2}},
             {"id":"observe","cause":null,"gain":null,"safety":"safe"}],
  "after":[{"options":["workers","batch"],"gain":{"low":1.2,"high":2.5}}]})";

Side run(double begin, double each, std::size_t steps = 100) {
  Side side{.hardware = {.gpus = {"A6000"}, .uuids = {"GPU-1"}}, .bytes_read = 0};
  for (std::size_t i = 0; i < steps; ++i) side.steps.push_back({each * (i % 3 == 0 ? 1.02 : 0.99), 1, std::nullopt});
  const auto n = static_cast<double>(steps);
  side.samples.push_back(
      {.task = "train.py", .begin = begin, .end = begin + n * each, .steps = n, .resolved = {{"lr", "1"}}});
  return side;
}

Plan plan() { return read_plan(kPlan).value(); }

Verification verified(const std::vector<std::string>& applied, const Side& before, const Side& after) {
  return verify(plan(), applied, before, after);
}

TEST(ReadPlan, WhatVerificationNeeds) {
  const Plan read = plan();
  EXPECT_EQ(read.recording, "before.hrec");
  ASSERT_EQ(read.options.size(), 4U);
  EXPECT_TRUE(read.options[0].promises);
  EXPECT_EQ(std::pair(read.options[0].gain.low, read.options[0].gain.high), std::pair(1.1, 1.4));
  EXPECT_EQ(read.options[0].cause, Cause::kInputInMainProcess);
  EXPECT_EQ(read.options[1].safety, Safety::kRisky);
  EXPECT_FALSE(read.options[2].cause);
  EXPECT_FALSE(read.options[3].promises);  // an observation promises nothing
  EXPECT_EQ(read.after[0].options, (std::vector<std::string>{"batch", "workers"}));
  EXPECT_EQ(read_plan(R"({"schema":"headroom.plan/1","recording":{"path":"x"}})")->recording, "x");
}

TEST(ReadPlan, WhatIsNoPlanIsSaidToBeNone) {
  const auto what = [](std::string_view text) { return read_plan(text).error().what; };
  EXPECT_EQ(what("{"), "it is no JSON");
  EXPECT_EQ(what("[]"), "it is no answer of headroom plan");
  EXPECT_EQ(what(R"({"schema":"headroom.why/1"})"), "it is no answer of headroom plan");
  EXPECT_THAT(what(R"({"schema":"headroom.plan/2"})"), HasSubstr("newer version"));
  EXPECT_EQ(what(R"({"schema":"headroom.plan/1","options":[{}]})"), "option 1 has no id");
  EXPECT_THAT(what(R"({"schema":"headroom.plan/1","options":[{"id":"x","gain":{"low":2,"high":1}}]})"),
              HasSubstr("option x"));
}

TEST(Applied, SeveralOptionsMustBeNamed) {
  EXPECT_THAT(applied_options(plan(), {}).error().what, HasSubstr("3 options with a gain"));
  EXPECT_EQ(applied_options(plan(), {}).error().hint,
            "--applied with its number in the plan or its name, of 1 (workers), 2 (batch), 3 (odd)");
  EXPECT_EQ(applied_options(plan(), {"2", "workers"}).value(), (std::vector<std::string>{"batch", "workers"}));
  EXPECT_THAT(applied_options(plan(), {"9"}).error().what, HasSubstr("no option 9"));
  EXPECT_THAT(applied_options(plan(), {"x"}).error().what, HasSubstr("no option x"));
  EXPECT_EQ(applied_options(plan(), {"batch", "batch"}).value(), std::vector<std::string>{"batch"});
  Plan one = plan();
  one.options.erase(one.options.begin() + 1, one.options.begin() + 3);  // an observation is nothing to apply
  EXPECT_EQ(applied_options(one, {}).value(), std::vector<std::string>{"workers"});
  one.options.erase(one.options.begin());
  EXPECT_THAT(applied_options(one, {}).error().what, HasSubstr("promises no gain"));
  EXPECT_THAT(applied_options({}, {}).error().what, HasSubstr("has no option"));
}

TEST(Verify, KeptNotKeptAndNotKnown) {
  const Side before = run(0, 0.1);
  const auto kept = [&](double speedup) { return verified({"workers"}, before, run(100, 0.1 / speedup)).applied; };
  EXPECT_EQ(kept(1.25).kept, true);
  EXPECT_NEAR(kept(1.25).measured->value, 1.25, 1e-6);
  EXPECT_EQ(kept(1.0).kept, false);
  EXPECT_EQ(kept(1.09).kept, std::nullopt);  // its interval reaches 1.1
  EXPECT_FALSE(kept(1.25).beyond);
  EXPECT_EQ(kept(2.0).kept, true);
  EXPECT_TRUE(kept(2.0).beyond);
  EXPECT_THAT(kept(2.0).why, HasSubstr("more than was held possible"));
  const Verification failed = [&] {
    Side after = run(100, 0.05);
    after.samples[0].outcome = "failed";
    return verified({"workers"}, before, after);
  }();
  EXPECT_FALSE(failed.applied.measured || failed.applied.kept);
  EXPECT_EQ(failed.applied.why, "the two runs cannot be compared");
}

TEST(Verify, AnIntervalThatHoldsNoDifferenceDeliversNothing) {
  Side before = run(0, 0.1), after = run(100, 0.08);
  for (Side* side : {&before, &after})  // steps that differ more than the sides do
    for (std::size_t i = 0; i < side->steps.size(); ++i) side->steps[i].seconds *= i / 10 % 2 == 0 ? 0.1 : 1.9;
  const VerifiedOption option = verified({"workers"}, before, after).applied;
  ASSERT_TRUE(option.measured);
  ASSERT_LE(option.measured->low, 1);
  ASSERT_GE(option.measured->value, *option.low);
  EXPECT_EQ(option.kept, std::nullopt);
  EXPECT_THAT(option.why, HasSubstr("cannot tell it from no difference"));
}

TEST(Verify, OptionsTogetherAreHeldAgainstTheirSimulation) {
  const Verification both = verified({"workers", "batch"}, run(0, 0.1), run(100, 0.05));
  EXPECT_EQ(both.applied.low, 1.2);
  EXPECT_FALSE(both.applied.cause);
  const Verification other = verified({"workers", "odd"}, run(0, 0.1), run(100, 0.05));
  EXPECT_FALSE(other.applied.low || other.applied.kept);
  EXPECT_THAT(other.applied.why, HasSubstr("did not simulate"));
  const Verification unpromised = verified({"observe"}, run(0, 0.1), run(100, 0.05));
  EXPECT_TRUE(unpromised.applied.measured);
  EXPECT_FALSE(unpromised.applied.low || unpromised.applied.kept);
  EXPECT_THAT(unpromised.applied.why, HasSubstr("promised no gain"));
}

TEST(Verify, WhatTheChangeWasToEndIsNoObjection) {
  Plan tenants = plan();
  tenants.options[0].cause = Cause::kForeignTenant;
  Side before = run(0, 0.1), after = run(100, 0.08);
  before.others = 0.3;
  EXPECT_EQ(verify(tenants, {"workers"}, before, after).applied.kept, true);
  EXPECT_FALSE(verified({"workers"}, before, after).applied.measured);  // of an option for another cause it is one
  after.others = 0.3;
  EXPECT_FALSE(verify(tenants, {"workers"}, before, after).applied.measured);  // they are still there
  Plan clocks = plan();
  clocks.options[0].cause = Cause::kThrottling;
  before.others = after.others = 0;
  before.throttled = "power cap";
  EXPECT_EQ(verify(clocks, {"workers"}, before, after).applied.kept, true);
  EXPECT_FALSE(verified({"workers"}, before, after).applied.measured);
  std::swap(before.throttled, after.throttled);
  EXPECT_FALSE(verify(clocks, {"workers"}, before, after).applied.measured);
}

TEST(Verify, AShorterRunIsComparedByItsSteps) {
  const Verification v = verified({"workers"}, run(0, 0.1, 400), run(100, 0.08, 100));
  EXPECT_EQ(v.comparison.unit, "step");
  EXPECT_EQ(v.applied.kept, true);
  EXPECT_EQ(verified({"workers"}, run(0, 0.1), run(100, 0.08)).comparison.unit, "run");
}

Side tasks(double begin, double every, double each) {
  Side side{.hardware = {.gpus = {"A6000"}, .uuids = {"GPU-1"}}, .bytes_read = 0};
  for (int i = 0; i < 12; ++i) {
    const double at = begin + every * i;
    side.samples.push_back({.task = fmt::format("t{}", i), .begin = at, .end = at + each, .resolved = {{"lr", "1"}}});
  }
  return side;
}

TEST(Verify, MoreTasksAtOnceAreJudgedByTheTimeOfAllOfThem) {
  const Verification v = verified({"workers"}, tasks(0, 10, 9.9), tasks(200, 7.5, 15));
  ASSERT_TRUE(v.comparison.comparable()) << v.comparison.reasons.front().text;
  EXPECT_EQ(v.comparison.unit, "batch");
  EXPECT_NEAR(v.applied.measured->value, 119.9 / 97.5, 1e-9);
  EXPECT_EQ(v.applied.kept, true);
}

TEST(Verify, ALargerBatchMustKeepItsQuality) {
  const auto with = [](std::vector<std::pair<std::string, std::vector<double>>> metrics) {
    Side before = run(0, 0.1, 200), after = run(100, 0.12, 100);  // twice the batch: 0.6 of the time per sample
    before.samples[0].asked = {{"batch_size", "32"}}, after.samples[0].asked = {{"batch_size", "64"}};
    for (const auto& [name, values] : metrics)
      before.samples[0].metrics.emplace_back(name, values[0]), after.samples[0].metrics.emplace_back(name, values[1]);
    return verified({"batch"}, before, after);
  };
  const Verification silent = with({});
  EXPECT_NEAR(silent.applied.measured->value, 1 / 0.6, 0.001);
  EXPECT_EQ(silent.applied.kept, std::nullopt);
  EXPECT_THAT(silent.applied.why, HasSubstr("no quality was printed"));
  EXPECT_EQ(with({{"val_accuracy", {0.97, 0.972}}}).applied.kept, true);
  const Verification worse = with({{"val_accuracy", {0.97, 0.93}}, {"lr", {0.1, 0.1}}});
  EXPECT_EQ(worse.applied.kept, false);
  EXPECT_THAT(worse.applied.why, HasSubstr("val_accuracy is worse: 0.93, and was 0.97"));
  ASSERT_EQ(worse.quality.size(), 1U);  // which way lr is better, nobody knows
  EXPECT_EQ(with({{"loss", {0.5, 0.6}}}).applied.kept, false);
}

// 400 steps of 32 samples and 100 of 128: a size in a file of settings is in neither command.
TEST(Verify, AStepOfAnotherSizeIsNoEqualWork) {
  Side before = run(0, 0.1, 400), after = run(100, 0.14, 100);
  before.samples[0].metrics = after.samples[0].metrics = {{"accuracy", 0.975}};
  const auto with = [&](const char* setting) {
    Plan sized = plan();
    sized.options[1].batch_sizes =
        read_plan(fmt::format(R"({{"schema":"headroom.plan/1","options":[{{"id":"x"{}}}]}})", setting))
            ->options[0]
            .batch_sizes;
    return verify(sized, {"batch"}, before, after);
  };
  const Verification known = with(R"(,"setting":"batch_size=32:128")");
  ASSERT_TRUE(known.applied.measured) << known.comparison.reasons.front().text;
  EXPECT_NEAR(known.applied.measured->value, 40 / 14.0, 0.01);
  EXPECT_EQ(known.applied.kept, true);
  EXPECT_THAT(known.comparison.reasons.back().text, HasSubstr("the samples of a step are the plan's"));
  for (const char* setting :
       {"", R"(,"setting":null)", R"(,"setting":"batch_size=32:")", R"(,"setting":"batch_size=0:8")"}) {
    const Verification unknown = with(setting);
    EXPECT_FALSE(unknown.applied.measured) << setting;
    EXPECT_EQ(unknown.applied.kept, std::nullopt);
    EXPECT_EQ(unknown.comparison.reasons.front().reason, CompareReason::kDifferentWork);
    EXPECT_THAT(unknown.comparison.reasons.front().text, HasSubstr("headroom.step(samples=N) does"));
  }
  before.samples[0].asked = {{"b", "32"}}, after.samples[0].asked = {{"b", "128"}};  // "-b 32"
  EXPECT_NEAR(with("").applied.measured->value, 40 / 14.0, 0.01);
  before.samples[0].asked.clear(), after.samples[0].asked.clear();
  for (Side* side : {&before, &after}) {  // counted by the programs: the plan is not asked
    const double each = side == &before ? 32 : 64;
    for (Stretch& stretch : side->steps) stretch.seen = stretch.steps * each;
    side->samples[0].seen = *side->samples[0].steps * each;
  }
  const Verification counted = with(R"(,"setting":"batch_size=32:128")");
  ASSERT_TRUE(counted.applied.measured);
  EXPECT_NEAR(counted.applied.measured->value, (0.1 / 32) / (0.14 / 64), 0.01);
  EXPECT_THAT(counted.comparison.reasons.back().text, ::testing::Not(HasSubstr("the plan's")));
}

// "loss" after each step and after every fiftieth: the last values are of step 250 and of step 201.
TEST(Verify, AMetricThatIsWrittenLessOftenIsNotWorse) {
  Side before = run(0, 0.1, 250), after = run(100, 0.08, 250);
  const auto writes = [](Side& side, int every, double worse) {
    for (int step = 0; step < 250; step += every)
      side.samples[0].points.push_back({"loss", worse / (step + 1), step + 1.0, std::nullopt});
    side.samples[0].metrics = {{"loss", side.samples[0].points.back().value}};
  };
  writes(before, 1, 1), writes(after, 50, 1);
  const Verification same = verified({"workers"}, before, after);
  EXPECT_EQ(same.applied.kept, true) << same.applied.why;
  EXPECT_DOUBLE_EQ(same.quality.at(0).a, 1 / 201.0);
  EXPECT_DOUBLE_EQ(same.quality.at(0).b, 1 / 201.0);
  after.samples[0].points.clear();
  writes(after, 50, 1.5);
  const Verification worse = verified({"workers"}, before, after);
  EXPECT_EQ(worse.applied.kept, false);
  EXPECT_THAT(worse.applied.why, HasSubstr("loss is worse"));
  for (MetricPoint& point : after.samples[0].points) point.steps = *point.steps + 1000;  // never where the other did
  const Verification elsewhere = verified({"workers"}, before, after);
  EXPECT_EQ(elsewhere.applied.kept, true) << "no quality speaks against it";
  EXPECT_FALSE(elsewhere.quality.at(0).equal_work);
  EXPECT_EQ(elsewhere.quality.at(0).lost, Answer::kUnknown);
}

TEST(Quality, ChanceIsNoLoss) {
  EXPECT_EQ(quality_of({"loss", 0.5, 0.52, 0.02, 0.02}).lost, Answer::kNo);
  EXPECT_EQ(quality_of({"loss", 0.5, 0.6, 0.02, 0.02}).lost, Answer::kYes);
  EXPECT_EQ(quality_of({"loss_accuracy", 0.5, 0.6, {}, {}}).lost, Answer::kUnknown);
  EXPECT_EQ(quality_of({"loss", 0.5, std::nan(""), {}, {}}).lost, Answer::kUnknown);
}

PredictionOutcome outcome(double high, double measured, int n = 0) {
  return {.at = n,
          .key = fmt::format("k{}", n),
          .option = "workers",
          .cause = Cause::kInputInMainProcess,
          .low = 1,
          .high = high,
          .measured = {measured, measured, measured},
          .unit = "run",
          .kept = measured > 1.05};
}

TEST(History, LinesComeBack) {
  const PredictionOutcome one = outcome(1.4, 1.2, 1), two = outcome(1.4, 1.3, 2);
  Outcomes read = outcomes_of(outcome_line(one) + "damaged\n{}\n" + outcome_line(two));
  EXPECT_EQ(read.list, (std::vector{one, two}));
  EXPECT_EQ(read.damaged, 2);
  PredictionOutcome again = one;
  again.measured.value = 1.25, again.kept.reset();
  read = outcomes_of(outcome_line(one) + outcome_line(two) + outcome_line(again));
  EXPECT_EQ(read.list, (std::vector{again, two}));  // verified again: counts once
}

// A file that earlier versions wrote into: what they took for equal work may have been steps of unequal batches.
TEST(History, WhatDoesNotSayHowItsWorkWasCountedIsNotCounted) {
  PredictionOutcome old = outcome(1.4, 0.73, 1);
  old.unit.clear();
  const Outcomes read = outcomes_of(outcome_line(old) + outcome_line(outcome(1.4, 1.3, 2)));
  EXPECT_EQ(read.list, (std::vector{outcome(1.4, 1.3, 2)}));
  EXPECT_EQ(read.uncounted, 1);
  EXPECT_EQ(read.damaged, 0);
}

TEST(History, AStudysChangeIsOfNoCauseAndTeachesNone) {
  PredictionOutcome study = outcome(1.4, 1.3, 1);
  study.option = "warm workers", study.cause.reset(), study.unit = "trial";
  const Outcomes read = outcomes_of(outcome_line(study) + outcome_line(outcome(1.4, 1.2, 2)));
  EXPECT_EQ(read.list, (std::vector{study, outcome(1.4, 1.2, 2)}));
  EXPECT_EQ(read.damaged, 0);
  const auto with = cause_histories(read.list), without = cause_histories({outcome(1.4, 1.2, 2)});
  ASSERT_EQ(with.size(), 1U);
  EXPECT_EQ(with[0].n, 1);
  EXPECT_EQ(with[0].shrink_low, without[0].shrink_low);
}

TEST(History, StartsBetweenHalfAndAllAndLearns) {
  std::vector<PredictionOutcome> half, all;
  for (int i = 0; i < 12; ++i) {
    half.push_back(outcome(1.5, 1.2 + 0.005 * (i % 3), i));
    all.push_back(outcome(1.4, 1.4, i));
  }
  EXPECT_TRUE(cause_histories({}).empty());
  const CauseHistory one = cause_histories({outcome(1.5, 1.2)}).at(0);  // 1/6 of the time for 1/3: half
  EXPECT_EQ(one.n, 1);
  EXPECT_NEAR(one.shrink_low, 0.43, 0.05);
  EXPECT_LT(one.shrink_high, 1);
  const CauseHistory many = cause_histories(half).at(0);
  EXPECT_EQ(many.kept, 12);
  EXPECT_NEAR((many.shrink_low + many.shrink_high) / 2, 0.58, 0.05);
  EXPECT_LT(many.shrink_high - many.shrink_low, one.shrink_high - one.shrink_low);  // narrower
  EXPECT_GT(cause_histories(all).at(0).shrink_low, 0.75);
  // What fell short of its promise widens it; what promised nothing teaches nothing.
  EXPECT_LT(cause_histories({outcome(1.4, 0.9)}).at(0).shrink_low, 0.3);
  EXPECT_TRUE(cause_histories({outcome(1.001, 1.4)}).empty());
}

TEST(History, WhatExceededItsPromiseMakesTheNextNoLessSure) {
  const CauseHistory all = cause_histories({outcome(1.17, 1.17)}).at(0),
                     more = cause_histories({outcome(1.17, 1.38)}).at(0);
  EXPECT_GT(all.shrink_low, 0.5) << "the prior's low end";
  EXPECT_EQ(more.shrink_low, all.shrink_low);
  EXPECT_GT(more.shrink_high, all.shrink_high) << "it missed upwards";
}

}  // namespace
}  // namespace headroom::compare
