// SPDX-License-Identifier: Apache-2.0
#include "compare/study_verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compare/studies.h"

namespace headroom::compare {
namespace {

using ::testing::HasSubstr;

StudyParameter lr(double high = 0.1) {
  return {.space = {.name = "lr", .low = 1e-5, .high = high, .log = true}, .trials = 100};
}

WhatIf row(std::string name, double rate, double at_once) {
  WhatIf made{.change = std::move(name), .trials_per_hour = {rate * 0.95, rate, rate * 1.05}};
  made.time_to_best_seconds = {1000, 2000, 3000};
  made.pruned_share = {0.8, 0.85, 0.9};
  made.trial_seconds = {60, 80, 100};
  made.at_once = {at_once - 0.1, at_once, at_once};
  for (const std::int64_t trials : {10, 25})
    made.first.push_back({.trials = trials,
                          .trials_per_hour = {rate * 0.9, rate, rate * 1.1},
                          .pruned_share = {0.5, 0.7, 0.9},
                          .trial_seconds = {60, 80, 100},
                          .at_once = {at_once - 0.2, at_once - 0.1, at_once}});
  return made;
}

StudyReport study_plan() {
  StudyReport plan{.name = "sweep", .storage = "old.db", .directions = {Direction::kMinimize}, .trials = 100};
  plan.begin = 1'000 * kSecond;
  plan.states = {{.state = TrialState::kComplete, .count = 10}, {.state = TrialState::kPruned, .count = 80}};
  plan.parameters = {lr()};
  plan.best = {{.value = 0.5}};
  plan.as_it_is = row("as it is", 100, 4);
  plan.what_if = {row("warm workers", 150, 4), row("warm workers, 8 trials at once", 180, 8)};
  return plan;
}

StudyReport new_study() {
  StudyReport report{.name = "sweep", .storage = "new.db", .directions = {Direction::kMinimize}, .trials = 30};
  report.begin = 9'001 * kSecond;
  report.parameters = {lr()};
  return report;
}

FirstTrials seen(double rate, double at_once = 4) {
  return {.trials = 10,
          .trials_per_hour = {rate * 0.8, rate, rate * 1.2},
          .pruned_share = {0.5, 0.7, 0.85},
          .trial_seconds = {50, 80, 120},
          .at_once = {at_once, at_once, at_once}};
}

StudyVerification verified(double rate, double at_once = 4, std::size_t change = 0, StudyReport now = new_study()) {
  const StudyReport of = study_plan();
  return verify_study(of, of.what_if[change], {.report = now, .ended = 12, .first = seen(rate, at_once)});
}

const VerifiedFigure& figure(const StudyVerification& v, StudyFigure wanted) {
  return v.figures.at(static_cast<std::size_t>(wanted));
}

TEST(StudyVerify, KeptWhereTrialsPerHourReachTheLowEnd) {
  const StudyVerification v = verified(140);
  EXPECT_EQ(v.kept, true) << v.why;
  EXPECT_EQ(v.used, 10);
  EXPECT_EQ(figure(v, StudyFigure::kTrialsPerHour).kept, true);
  ASSERT_TRUE(v.measured_gain && v.predicted_gain);
  EXPECT_DOUBLE_EQ(v.measured_gain->value, 1.4);
  EXPECT_DOUBLE_EQ(v.predicted_gain->low, 1.35);
  EXPECT_EQ(verified(300).kept, true) << "more than was predicted";
}

TEST(StudyVerify, TrialsThatFailAreNoGain) {
  StudyReport now = new_study();
  const auto with_failures = [&](std::int64_t failed) {
    now.bars.clear();
    for (std::int64_t i = 0; i < 30; ++i)
      now.bars.push_back({.trial = i, .state = i < failed ? TrialState::kFail : TrialState::kPruned});
    return verified(300, 4, 0, now);
  };
  EXPECT_EQ(with_failures(2).kept, true) << "by chance";
  const StudyVerification failing = with_failures(24);
  EXPECT_EQ(failing.kept, std::nullopt);
  EXPECT_THAT(failing.why, HasSubstr("24 of 30 trials of the new study failed, and 0 of 90 of the plan's: "));
}

TEST(StudyVerify, WhatCannotBeToldFromTheStudyAsItIsIsNotKnown) {
  StudyReport of = study_plan(), now = new_study();
  for (FirstTrials& first : of.as_it_is->first) first.trials_per_hour = {60, 100, 170};
  const StudyVerification v = verify_study(of, of.what_if[0], {.report = now, .ended = 12, .first = seen(150)});
  EXPECT_EQ(v.kept, std::nullopt);
  EXPECT_THAT(v.why, HasSubstr("cannot be told from the study as it is"));
  // Eight at once are, by their number.
  EXPECT_EQ(verify_study(of, of.what_if[1], {.report = now, .ended = 12, .first = seen(170, 8)}).kept, true);
}

TEST(StudyVerify, NotKeptOnlyWhereTheWholeRangeIsBelow) {
  EXPECT_EQ(verified(100).kept, false) << "80 to 120 of 135 to 165";
  const StudyVerification between = verified(120);
  EXPECT_EQ(between.kept, std::nullopt) << "96 to 144";
  EXPECT_THAT(between.why, HasSubstr("more would tell"));
}

TEST(StudyVerify, WhatTheChangeIsForHasToBeKeptAndOtherThingsDoNot) {
  const StudyVerification four = verified(180, 4, 1);  // 8 trials at once are promised
  EXPECT_TRUE(figure(four, StudyFigure::kAtOnce).wanted);
  EXPECT_EQ(figure(four, StudyFigure::kAtOnce).kept, false);
  EXPECT_EQ(four.kept, false);
  EXPECT_THAT(four.why, HasSubstr("at once"));
  EXPECT_EQ(verified(180, 12, 1).kept, true) << "further than predicted, and the way it was to go";
  const StudyVerification two = verified(150, 2);
  EXPECT_FALSE(figure(two, StudyFigure::kAtOnce).wanted);
  EXPECT_EQ(figure(two, StudyFigure::kAtOnce).kept, false);
  EXPECT_EQ(two.kept, true);
}

TEST(StudyVerify, OtherWorkersThanThePlansAreNotBlamedOnTheChange) {
  const StudyVerification fewer = verified(60, 1);
  EXPECT_EQ(fewer.kept, std::nullopt);
  EXPECT_THAT(fewer.why, HasSubstr("1.0 trials were open at once on average, and 3.9 with as many workers"));
  EXPECT_EQ(verified(150, 1).kept, true) << "reached with fewer";
  EXPECT_EQ(verified(300, 12).kept, std::nullopt) << "reached with three times as many";
  EXPECT_EQ(verified(60, 12).kept, false);
}

TEST(StudyVerify, AtOnceGoesByWhatIsPrintedOfIt) {
  FirstTrials now = seen(150, 4.04);
  now.at_once.high = 5;
  const StudyReport of = study_plan(), report = new_study();
  const StudyVerification v = verify_study(of, of.what_if[0], {.report = report, .ended = 12, .first = now});
  EXPECT_EQ(figure(v, StudyFigure::kAtOnce).kept, true) << "3.8 to 4.0, and 4.0 (4.0 to 5.0)";
}

TEST(StudyVerify, WhatIsPredictedOfAsManyTrialsAsItIsIsNotMovedByTheChange) {
  StudyReport of = study_plan(), now = new_study();
  of.as_it_is->pruned_share = {0.707, 0.707, 0.707};
  of.what_if[0].pruned_share = {0.692, 0.692, 0.697};
  const auto moved = [&] {
    return figure(verify_study(of, of.what_if[0], {.report = now, .ended = 12, .first = seen(150)}),
                  StudyFigure::kPruned)
        .wanted;
  };
  EXPECT_FALSE(moved()) << "50 to 90 % with and without";
  for (FirstTrials& first : of.what_if[0].first) first.pruned_share = {0.3, 0.4, 0.6};
  EXPECT_TRUE(moved());
}

TEST(StudyVerify, NoTrialIsTooShort) {
  StudyReport of = study_plan(), now = new_study();
  for (WhatIf& change : of.what_if) {
    change.trial_seconds = {150, 160, 170};  // the change makes trials longer
    for (FirstTrials& first : change.first) first.trial_seconds = change.trial_seconds;
  }
  const StudyVerification v = verify_study(of, of.what_if[1], {.report = now, .ended = 12, .first = seen(180, 8)});
  EXPECT_TRUE(figure(v, StudyFigure::kTrialLength).wanted);
  EXPECT_EQ(figure(v, StudyFigure::kTrialLength).kept, true);
  EXPECT_EQ(v.kept, true);
}

TEST(StudyVerify, OfFewerThanTenTrialsItIsTooFewToSay) {
  const StudyReport of = study_plan(), now = new_study();
  EXPECT_FALSE(predicted_of(of, of.what_if[0], 9, 0));
  const StudyVerification v = verify_study(of, of.what_if[0], {.report = now, .ended = 9, .first = {}});
  EXPECT_EQ(v.kept, std::nullopt);
  EXPECT_TRUE(v.figures.empty());
  EXPECT_THAT(
      v.why,
      HasSubstr("too few to say: 9 trials ended before the last one began, and 10 have to; go on with this study for "
                "1 more trial"));
  EXPECT_EQ(predicted_of(of, of.what_if[0], 10, 0)->trials, 10);
  EXPECT_EQ(predicted_of(of, of.what_if[0], 24, 0)->trials, 10);
  EXPECT_EQ(predicted_of(of, of.what_if[0], 400, 0)->trials, 25);
  EXPECT_EQ(predicted_of(of, of.what_if[0], 12, 30)->trials, 12) << "one that goes on is held against the whole";
}

TEST(StudyVerify, ABestValueThatComesLateIsLuckForTheMostPart) {
  StudyReport now = new_study();
  const auto best = [&](std::optional<double> at, double rate = 150, std::int64_t ended = 12) {
    now.best.clear();
    if (at) now.best = {{.worked_seconds = *at, .value = 0.4}};
    const StudyReport of = study_plan();
    return verify_study(of, of.what_if[0], {.report = now, .ended = ended, .first = seen(rate)})
        .figures.at(static_cast<std::size_t>(StudyFigure::kTimeToBest));
  };
  EXPECT_EQ(best(2500).kept, true);
  EXPECT_EQ(best(std::nullopt).kept, std::nullopt);
  EXPECT_THAT(best(std::nullopt).why, HasSubstr("there is time left"));
  // 90 trials to beat; 150 an hour for 3000 s are 125 others: 90 / 215.
  EXPECT_EQ(best(4000).kept, std::nullopt);
  EXPECT_THAT(best(4000).why, HasSubstr("42 %"));
  EXPECT_EQ(best(std::nullopt, 3000, 3000).kept, false) << "90 / (90 + 2500)";
}

TEST(StudyVerify, MemoryNeedsARecordingAndIsAnUpperLimit) {
  StudyReport of = study_plan(), now = new_study();
  const auto memory = [&] {
    return verify_study(of, of.what_if[0], {.report = now, .ended = 12, .first = seen(150)})
        .figures.at(static_cast<std::size_t>(StudyFigure::kMemory));
  };
  EXPECT_THAT(memory().why, HasSubstr("--trial-memory"));
  of.what_if[0].memory_at_once_bytes = Estimate{8e9, 9e9, 10e9};
  EXPECT_EQ(memory().why, "no recording: memory is not known");
  now.recording = StudyRecording{.memory_at_once_bytes = 5'000'000'000};
  EXPECT_EQ(memory().kept, true) << "less is no broken promise";
  now.recording->memory_at_once_bytes = 11'000'000'000;
  EXPECT_EQ(memory().kept, false);
}

TEST(StudyVerify, OtherWorkIsNotComparable) {
  StudyReport now = new_study();
  now.parameters = {lr(0.5)};
  const StudyVerification v = verified(150, 4, 0, now);
  EXPECT_EQ(v.kept, std::nullopt);
  EXPECT_TRUE(v.figures.empty());
  EXPECT_THAT(v.why, HasSubstr("the range of lr differs: 1e-05 to 0.1, log and 1e-05 to 0.5, log"));
  now = new_study();
  now.directions = {Direction::kMaximize};
  EXPECT_THAT(verified(150, 4, 0, now).why, HasSubstr("MINIMIZE and MAXIMIZE"));
  now = new_study();
  now.parameters.push_back(
      {.space = {.name = "depth", .kind = ParameterKind::kInt, .low = 1, .high = 9}, .trials = 30});
  EXPECT_THAT(verified(150, 4, 0, now).why, HasSubstr("depth (1 to 9) is in the new one only"));
  // One that only some of the trials have may come yet, and may have been left out by chance.
  now.parameters.back().trials = 3;
  EXPECT_EQ(verified(150, 4, 0, now).kept, true);
}

TEST(StudyVerify, APrunerThatIsToldHasToBeTheChanges) {
  StudyReport of = study_plan(), now = new_study();
  of.what_if[0].pruner = PrunerSettings{.kind = PrunerKind::kMedian};
  const auto with = [&](PrunerKind kind) {
    return verify_study(of, of.what_if[0],
                        {.report = now, .ended = 12, .first = seen(150), .told = PrunerSettings{.kind = kind}})
        .kept;
  };
  EXPECT_EQ(with(PrunerKind::kMedian), true);
  EXPECT_EQ(with(PrunerKind::kHyperband), std::nullopt);
}

TEST(StudyVerify, APlansOwnStudyIsKnownByItsNameAndBeginInAnyZone) {
  StudyReport now = new_study();
  EXPECT_FALSE(is_plans_own(study_plan(), now));
  now.begin = *study_plan().begin + kSecond * 3600 * 9;
  EXPECT_FALSE(is_plans_own(study_plan(), now)) << "it has fewer trials";
  now.trials = 100;
  EXPECT_TRUE(is_plans_own(study_plan(), now));
  now.name = "another";
  EXPECT_FALSE(is_plans_own(study_plan(), now));
}

TEST(StudyVerify, ChangesGoByNameOrNumber) {
  const StudyReport of = study_plan();
  EXPECT_EQ(applied_change(of, {"2"})->change, "warm workers, 8 trials at once");
  EXPECT_EQ(applied_change(of, {"warm workers", " 8 trials at once"})->change, "warm workers, 8 trials at once");
  EXPECT_EQ(applied_change(of, {"warm workers"})->change, "warm workers");
  EXPECT_THAT(applied_change(of, {"3"}).error().what, HasSubstr("no change '3'"));
  EXPECT_THAT(applied_change(of, {}).error().hint, HasSubstr("1 (warm workers), 2 (warm workers, 8 trials at once)"));
}

TEST(StudyPlan, OfAnotherKindOrWithoutWhatIfIsRefused) {
  EXPECT_FALSE(is_study_plan(R"({"schema":"headroom.plan/1"})"));
  EXPECT_FALSE(is_study_plan("no JSON"));
  ASSERT_TRUE(is_study_plan(R"({"schema":"headroom.study/2"})"));
  EXPECT_EQ(read_study_plan(R"({"schema":"headroom.study/2"})").error().code, Errc::kUnsupported);
  EXPECT_THAT(read_study_plan(R"({"schema":"headroom.study/1","studies":[]})").error().what, HasSubstr("no study"));
  EXPECT_THAT(read_study_plan(R"({"schema":"headroom.study/1","studies":[{"name":"a"},{"name":"b"}]})").error().what,
              HasSubstr("2 studies, and a plan is of one: a, b"));
  EXPECT_THAT(read_study_plan(R"({"schema":"headroom.study/1","studies":[
                 {"name":"a","what_if":[],"calibration":{"why":"too few trials"}}]})")
                  .error()
                  .what,
              HasSubstr("no what-if of study a: too few trials"));
  for (const char* damaged :
       {R"(7)", R"([])", R"({})", R"({"change":"x","first":7})",
        R"({"change":"x","first":[{"trials":-1}],"pruned_ratio":{"low":2,"estimate":1,"high":0}})"})
    EXPECT_FALSE(read_study_plan(fmt::format(
        R"({{"schema":"headroom.study/1","studies":[{{"name":"a","what_if":[{0}],"as_it_is":{0}}}]}})", damaged)))
        << damaged;
}

TEST(CompareStudies, StandSideBySideWithTheTimeToTheWorseBestValue) {
  StudyReport a = study_plan(), b = new_study();
  a.best = {{.worked_seconds = 100, .value = 0.9}, {.worked_seconds = 900, .value = 0.5}};
  b.best = {{.worked_seconds = 300, .value = 0.4}};
  const StudyComparison both = compare_studies(a, seen(100), b, seen(150));
  EXPECT_TRUE(both.differences.empty());
  EXPECT_TRUE(both.notes.empty());
  EXPECT_EQ(both.a.reached_seconds, 900);
  EXPECT_EQ(both.b.reached_seconds, 300);
  EXPECT_EQ(both.a.states[static_cast<std::size_t>(TrialState::kPruned)], 80);
  FirstTrials longer = seen(150);
  longer.trials = 40;
  EXPECT_THAT(compare_studies(a, seen(100), b, longer).notes.at(0), HasSubstr("10 trials of A count, and 40 of B"));
  EXPECT_THAT(compare_studies(a, seen(100), b, std::nullopt).differences.at(0),
              HasSubstr("no trial of B ended before"));
}

}  // namespace
}  // namespace headroom::compare
