// SPDX-License-Identifier: Apache-2.0
#include "tune/study_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

using testing::anomaly;
using testing::at;
using testing::expect_conserved;
using testing::Made;
using testing::make;
using testing::StudyBuilder;

const StateFacts& of(const StudyReport& report, TrialState state) {
  return report.states[static_cast<std::size_t>(state)];
}

// ---------------------------------------------------------------------------------------------------- made-up studies

TEST(StudyFacts, FindsTheStartUpThatTrialsWereMadeWith) {
  int held = 0, all = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    for (const double by_layers : {0.0, 3.0}) {
      const Made made = make({.by_layers = by_layers, .seed = seed});
      const StudyReport report = study_facts(made.study, {.now = at(1e6)});
      ASSERT_TRUE(report.startup.inside_seconds);
      EXPECT_NEAR(report.startup.inside_seconds->value, made.startup_mean, 0.1 * made.startup_mean) << seed;
      held += report.startup.inside_seconds->low <= made.startup_mean &&
              made.startup_mean <= report.startup.inside_seconds->high;
      ++all;
      ASSERT_TRUE(report.parallelism.computing_mean);
      EXPECT_NEAR(*report.parallelism.computing_mean, made.computing_mean, 0.1 * made.computing_mean) << seed;
      EXPECT_EQ(report.parallelism.workers, 4);
      EXPECT_FALSE(report.parallelism.workers_told);
      expect_conserved(report);
    }
  }
  EXPECT_GE(held, all * 8 / 10) << "a range of 90 %";
}

TEST(StudyFacts, NamesTheParameterThatStepsHangOnAndNoOther) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const StudyReport with = study_facts(make({.by_layers = 4, .seed = seed}).study, {});
    EXPECT_EQ(with.step_time.parameter, "layers");
    EXPECT_EQ(with.step_time.direction, "longer with higher layers");
    EXPECT_GT(with.step_time.explained, 1.0 / 3);
    const StudyReport without = study_facts(make({.by_layers = 0, .seed = seed}).study, {});
    EXPECT_EQ(without.step_time.parameter, "") << without.step_time.explained;
    ASSERT_TRUE(without.step_time.seconds);
    EXPECT_NEAR(without.step_time.seconds->value, 2, 0.4);
  }
}

TEST(StudyFacts, ACategoryCanExplainSteps) {
  StudyBuilder builder;
  const auto optimizer = builder.category("optimizer", {"adamw", "sgd", "lion"});
  for (int i = 0; i < 90; ++i) {
    const int steps = 5 + i % 17, kind = i % 3;
    builder.add(TrialState::kComplete, i * 100, i * 100 + 10 + steps * (1 + kind), steps,
                {{optimizer, static_cast<double>(kind)}});
  }
  const StudyReport report = study_facts(builder.study, {});
  EXPECT_EQ(report.step_time.parameter, "optimizer");
  EXPECT_EQ(report.step_time.direction, "longest with optimizer = lion, shortest with adamw");
  ASSERT_TRUE(report.startup.inside_seconds);
  EXPECT_NEAR(report.startup.inside_seconds->value, 10, 0.5);
}

TEST(StudyFacts, WhereLaterStepsAreLongerTheFootOfTheLineIsNoStartUp) {
  StudyBuilder builder;
  for (int i = 0; i < 40; ++i) {
    const bool whole = i % 2 == 0;
    builder.add(whole ? TrialState::kComplete : TrialState::kPruned, i * 500, i * 500 + (whole ? 486 : 85) + i % 3,
                whole ? 2 : 1);
  }
  const StudyReport report = study_facts(builder.study, {});
  EXPECT_FALSE(report.startup.inside_seconds);
  EXPECT_FALSE(report.step_time.seconds);
  EXPECT_EQ(report.startup.method, "later steps take longer than the first");
  EXPECT_EQ(report.step_time.direction,
            "later ones take longer on average: trials with 1 and 2 reports took 1:26 and 8:07 (medians), which is at "
            "most 1:26 a "
            "step at first and 6:41 after report 1");
}

TEST(StudyFacts, StepsOfTheSameLengthAreNotSaidToGrow) {
  StudyBuilder builder;
  for (int i = 0; i < 40; ++i) {
    const int reports = 1 + i % 4 * 3;
    builder.add(TrialState::kComplete, i * 500, i * 500 + 20 + 30 * reports + i % 3, reports);
  }
  const StudyReport report = study_facts(builder.study, {});
  ASSERT_TRUE(report.step_time.seconds);
  EXPECT_EQ(report.step_time.direction, "");
}

TEST(StudyFacts, WhereEachThirdStepIsLongerTheirMeanIsCalledOne) {
  const auto direction = [](int long_step) {
    StudyBuilder builder;
    for (int i = 0; i < 48; ++i) {
      const int reports = 2 + i % 8;
      builder.add(TrialState::kComplete, i * 600,
                  i * 600 + 10 + 20 * reports + (long_step - 20) * (reports / 3) + i % 3, reports);
    }
    const StudyReport report = study_facts(builder.study, {});
    EXPECT_TRUE(report.step_time.seconds);
    return report.step_time.direction;
  };
  EXPECT_EQ(direction(20), "");
  EXPECT_EQ(direction(90).find("on average: one report more took from "), 0U) << direction(90);
}

TEST(StudyFacts, WhatTheRecordingMeasuredIsTakenForTheStartUp) {
  const Made made = make({});
  StudyOptions options;
  for (std::int64_t i = 0; i < 50; ++i) options.measured[i] = {.startup_seconds = 12 + i % 3, .gpu = kSecond};
  const StudyReport report = study_facts(made.study, options);
  ASSERT_TRUE(report.startup.inside_seconds);
  EXPECT_EQ(report.startup.inside_seconds->value, 13);
  EXPECT_EQ(report.startup.method, "measured: begin to first kernel, of 50 trials");
  Nanos gpu = 0;
  for (const StateFacts& state : report.states) gpu += state.gpu.value_or(0);
  EXPECT_EQ(gpu, 50 * kSecond);
}

TEST(StudyFacts, StartUpBetweenTrialsIsInTheGapsOfWorkers) {
  const Made made = make({.startup_low = 0, .startup_high = 0.1, .between = 45});
  const StudyReport report = study_facts(made.study, {});
  ASSERT_TRUE(report.startup.between_seconds);
  EXPECT_NEAR(report.startup.between_seconds->value, 45, 5);
  ASSERT_TRUE(report.startup.share);
  EXPECT_GT(*report.startup.share, 0.5);
  EXPECT_EQ(report.parallelism.workers, 4) << "though mostly fewer are open: " << report.parallelism.alive_mean;
  expect_conserved(report);
}

TEST(StudyFacts, WhenSeveralTrialsAtOnceBeganIsSaidWhereItIsClear) {
  StudyBuilder builder;
  for (int i = 0; i < 5; ++i) builder.add(TrialState::kComplete, i * 10, i * 10 + 9, 5);
  EXPECT_FALSE(study_facts(builder.study, {}).parallelism.since) << "one at a time to the end";
  for (int i = 0; i < 30; ++i) builder.add(TrialState::kComplete, 45 + i * 3, 54 + i * 3, 5);
  const auto since = study_facts(builder.study, {}).parallelism.since;
  ASSERT_TRUE(since);
  EXPECT_EQ(since->trial, 5);
  EXPECT_EQ(since->seconds, 45);
  EXPECT_EQ(since->most, 3) << "9 s each, one every 3 s";
  const auto from_first = study_facts(make({}).study, {}).parallelism.since;
  ASSERT_TRUE(from_first);
  EXPECT_TRUE(from_first->from_first);
  EXPECT_EQ(from_first->trial, 0);
  EXPECT_EQ(from_first->seconds, 0);
  EXPECT_EQ(from_first->early, 4);
  StudyBuilder twice;
  for (int i = 0; i < 20; ++i) twice.add(TrialState::kComplete, i * 10, i * 10 + (i == 9 ? 12 : 9), 5);
  EXPECT_FALSE(study_facts(twice.study, {}).parallelism.since) << "two trials beside each other are no change";
}

TEST(StudyFacts, TpesFirstTrialsAreRandomUntilEnoughCompletedOrWerePruned) {
  StudyBuilder builder;
  for (int i = 0; i < 40; ++i)
    builder.add(i % 4 == 0 ? TrialState::kFail : TrialState::kPruned, i, i + 1.5, i % 4 == 0 ? 0 : 3);
  const auto start = [&](const char* sampler, std::optional<PrunerSettings> pruner = {}) {
    return study_facts(builder.study, {.pruner = pruner, .sampler = sampler}).random_start;
  };
  ASSERT_TRUE(start("TPESampler"));
  EXPECT_EQ(start("TPESampler")->needed, 10);
  EXPECT_TRUE(start("TPESampler")->over);
  EXPECT_EQ(start("TPESampler")->trials, 15) << "the tenth is trial 13, and 14 began beside it";
  EXPECT_EQ(start("optuna.samplers.TPESampler(seed=1, n_startup_trials = 3)")->trials, 5);
  EXPECT_EQ(start("TPE")->trials, 15);
  EXPECT_EQ(start("TPE(n_startup_trials=3)")->trials, 5);
  EXPECT_FALSE(start("TPEish"));
  EXPECT_FALSE(start("TPESampler(n_startup_trials=31)")->over);
  EXPECT_FALSE(start("TPESampler(n_startup_trials=n)") || start("RandomSampler") || start(""));
  const PrunerSettings hyperband{.kind = PrunerKind::kHyperband, .max_resource = 9};
  EXPECT_TRUE(start("TPESampler", hyperband)->per_bracket);
  PrunerSettings wrapped = hyperband;
  wrapped.patience = 2;
  EXPECT_FALSE(start("TPESampler", wrapped)->per_bracket);
}

TEST(StudyFacts, KernelsThatMayBeOfOtherTrialsAreNotCalledDiscarded) {
  StudyBuilder builder;
  for (int i = 0; i < 6; ++i)
    builder.add(i % 2 == 0 ? TrialState::kFail : TrialState::kComplete, i, i + 0.9, i % 2 == 0 ? 0 : 3);
  StudyOptions options{.recording = StudyRecording{}};
  for (int i = 0; i < 6; ++i) options.measured[i].gpu = kSecond / 2;
  EXPECT_EQ(study_facts(builder.study, options).recording->gpu_discarded, 3 * kSecond / 2);
  for (int i = 0; i < 6; i += 2) options.measured[i].computed = false;
  const StudyReport report = study_facts(builder.study, options);
  EXPECT_EQ(report.recording->gpu_discarded, std::nullopt);
  EXPECT_EQ(report.states[static_cast<std::size_t>(TrialState::kFail)].gpu, std::nullopt);
  EXPECT_EQ(report.states[static_cast<std::size_t>(TrialState::kComplete)].gpu, 3 * kSecond / 2);
}

TEST(StudyFacts, ParametersAreCountedByTheTrialsThatHaveThem) {
  StudyBuilder builder;
  const auto lr = builder.number("lr"), depth = builder.number("depth", ParameterKind::kInt);
  builder.number("never drawn");
  builder.add(TrialState::kComplete, 0, 1, 1, {{lr, 0.5}, {depth, 3}});
  builder.add(TrialState::kComplete, 1, 2, 1, {{lr, 0.25}});
  const auto parameters = study_facts(builder.study, {}).parameters;
  ASSERT_EQ(parameters.size(), 2U);
  EXPECT_EQ(parameters[0].trials, 2);
  EXPECT_EQ(parameters[1].space.name, "depth");
  EXPECT_EQ(parameters[1].trials, 1);
}

TEST(StudyFacts, WorkersOfAJournalAreItsOwn) {
  StudyBuilder builder;
  for (int i = 0; i < 6; ++i)
    builder.add(TrialState::kComplete, i * 10, i * 10 + 9).worker = static_cast<std::uint32_t>(i % 2);
  const StudyReport report = study_facts(builder.study, {});
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(report.bars[i].lane, static_cast<std::int64_t>(i % 2));
}

// Workers of 60 s a trial, of which each ends after so many seconds; the storage knows none.
Study with_leavers(const std::vector<double>& until, bool dies, double between = 1) {
  StudyBuilder builder;
  std::vector<std::tuple<double, double, TrialState>> trials;
  for (std::size_t worker = 0; worker < until.size(); ++worker) {
    double at = 0.2 * static_cast<double>(worker);
    for (int k = 0; at < until[worker]; ++k) {
      const double length = 50 + (37 * k + 11 * static_cast<int>(worker)) % 21;
      trials.emplace_back(at, at + length, TrialState::kComplete);
      at += length + between;
    }
    if (dies && until[worker] < 1'500) trials.emplace_back(at, -1, TrialState::kRunning);
  }
  std::sort(trials.begin(), trials.end());
  for (const auto& [begin, end, state] : trials) builder.add(state, begin, end);
  return std::move(builder.study);
}

TEST(StudyFacts, WorkersThatDieOrLeaveLeaveTheOthersTheirOwnGaps) {
  for (const bool dies : {false, true}) {
    for (const std::vector<double>& until :
         {std::vector<double>{1'500, 240}, {1'500, 700}, {1'500, 1'500, 180}, {1'500, 1'500, 100, 300}}) {
      const StudyReport report = study_facts(with_leavers(until, dies), {.now = at(50'000)});
      ASSERT_TRUE(report.startup.between_seconds);
      EXPECT_NEAR(report.startup.between_seconds->value, 1, 0.2) << until.size() << dies;
      ASSERT_GE(report.parallelism.fewer.size(), 2U) << until.size() << dies;
      EXPECT_EQ(report.parallelism.fewer.front().second, static_cast<std::int64_t>(until.size()));
      EXPECT_EQ(report.parallelism.fewer.back().second, std::count(until.begin(), until.end(), 1'500));
      EXPECT_NEAR(report.parallelism.fewer[1].first, *std::min_element(until.begin(), until.end()), 71);
      EXPECT_FALSE(anomaly(report, "more_open_than_workers")) << until.size() << dies;
      EXPECT_EQ(anomaly(report, "dead_trial") != nullptr, dies);
      expect_conserved(report);
      EXPECT_LT(report.worker_time.between, 0.1 * report.worker_time.total) << "who has left is idle no longer";
    }
  }
  EXPECT_TRUE(study_facts(with_leavers({1'500, 1'480}, false), {}).parallelism.fewer.empty()) << "it ran out";
  for (const std::vector<double>& until :
       {std::vector<double>{3'000, 500}, {3'000, 3'000, 900}, {3'000, 3'000, 2'000}}) {
    const StudyReport report = study_facts(with_leavers(until, false, 20), {});
    EXPECT_NEAR(report.startup.between_seconds->value, 20, 3) << until.size();
    ASSERT_EQ(report.parallelism.fewer.size(), 2U) << until.size();
    EXPECT_NEAR(report.parallelism.fewer[1].first, until.back(), 71);
  }
  EXPECT_TRUE(study_facts(make({}).study, {}).parallelism.fewer.empty());
}

TEST(StudyFacts, WhoDiedBeforeAPauseOfAllIsNotIdleUntilIt) {
  const auto two_sessions = [](double dies) {
    StudyBuilder builder;
    std::vector<std::tuple<double, double, TrialState>> trials;
    for (const double begin : {0.0, 1'000'000.0})
      for (const double until : {3'000.0, begin == 0 ? dies : 3'000.0}) {
        double at = begin;
        for (int k = 0; at < begin + until; ++k) {
          const double length = 50 + (37 * k) % 21;
          trials.emplace_back(at, at + length, TrialState::kComplete);
          at += length + 1;
        }
        if (until < 3'000) trials.emplace_back(at, -1, TrialState::kRunning);
      }
    std::sort(trials.begin(), trials.end());
    for (const auto& [begin, end, state] : trials) builder.add(state, begin, end);
    return std::move(builder.study);
  };
  for (const double dies : {900.0, 3'000.0}) {
    const StudyReport report = study_facts(two_sessions(dies), {.now = at(2'000'000)});
    ASSERT_GT(report.paused_seconds, 900'000);
    EXPECT_LT(report.worker_time.between, 0.04 * report.worker_time.total) << dies;
    EXPECT_NEAR(report.worker_time.total, 9'000 + dies, 400);
  }
}

TEST(StudyFacts, EverySecondOfAWorkerIsInOneAccount) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    Made made = make({.trials = 60 + static_cast<int>(seed), .workers = 1 + static_cast<int>(seed) % 6, .seed = seed});
    std::mt19937_64 random(seed);
    for (Trial& trial : made.study.trials) {  // break some of it
      const auto what = random() % 12;
      if (what == 0) trial.complete = *trial.start - kSecond;
      if (what == 1) trial.start.reset();
      if (what == 2) trial.state = TrialState::kRunning, trial.complete.reset();
      if (what == 3) trial.state = TrialState::kWaiting;
      if (what == 4) trial.complete = INT64_MAX;
      if (what == 5) trial.heartbeat = *trial.start + kSecond;
    }
    StudyOptions options{.now = at(made.end + 10)};
    if (seed % 3 == 0) options.workers = 2;
    expect_conserved(study_facts(made.study, options));
  }
}

// ----------------------------------------------------------------------------------------------------- corner cases

TEST(StudyFacts, OfAnEmptyStudyAreEmpty) {
  const StudyReport report = study_facts(Study{}, {.storage = "x.db", .now = at(0)});
  EXPECT_EQ(report.trials, 0);
  EXPECT_EQ(report.states.size(), kTrialStates);
  EXPECT_FALSE(report.begin);
  EXPECT_FALSE(report.live);
  EXPECT_EQ(report.worker_time, WorkerTime{});
  EXPECT_EQ(report.parallelism.workers, 0);
  EXPECT_TRUE(report.anomalies.empty());
}

TEST(StudyFacts, OneTrialIsAStudy) {
  StudyBuilder builder;
  builder.add(TrialState::kComplete, 0, 100, 10);
  const StudyReport report = study_facts(builder.study, {});
  EXPECT_EQ(report.parallelism.workers, 1);
  EXPECT_EQ(report.worker_time.total, 100);
  EXPECT_EQ(report.worker_time.useful, 100) << "no start-up is known";
  EXPECT_FALSE(report.startup.inside_seconds);
  EXPECT_EQ(of(report, TrialState::kComplete).duration_seconds.p50, 100);
  EXPECT_EQ(report.best.size(), 1u);
}

TEST(StudyFacts, AllWaitingHasNoTimes) {
  StudyBuilder builder;
  for (int i = 0; i < 5; ++i) builder.add(TrialState::kWaiting, -1, -1);
  const StudyReport report = study_facts(builder.study, {.now = at(0)});
  EXPECT_EQ(of(report, TrialState::kWaiting).count, 5);
  EXPECT_FALSE(report.begin);
  EXPECT_TRUE(report.bars.empty());
}

TEST(StudyFacts, FinishedWithoutTimesIsSaid) {
  StudyBuilder builder;
  builder.add(TrialState::kComplete, -1, -1, 3);
  const StudyReport report = study_facts(builder.study, {});
  EXPECT_EQ(of(report, TrialState::kComplete).count, 1);
  EXPECT_TRUE(anomaly(report, "no_times"));
  EXPECT_EQ(report.best.size(), 1u) << "a value needs no time";
}

TEST(StudyFacts, ATrialThatEndsBeforeItBeginsIsLeftOutOfTimes) {
  StudyBuilder builder;
  builder.add(TrialState::kComplete, 0, 100);
  builder.add(TrialState::kComplete, 200, 150);
  const StudyReport report = study_facts(builder.study, {});
  ASSERT_TRUE(anomaly(report, "time_backwards"));
  EXPECT_EQ(anomaly(report, "time_backwards")->trials, std::vector<std::int64_t>{1});
  EXPECT_EQ(of(report, TrialState::kComplete).duration_seconds.count, 1);
  expect_conserved(report);
}

TEST(StudyFacts, AllFailedIsOneGroup) {
  StudyBuilder builder;
  const auto lr = builder.number("lr");
  for (int i = 0; i < 30; ++i) builder.add(TrialState::kFail, i * 10, i * 10 + 9, 0, {{lr, i / 30.0}});
  const StudyReport report = study_facts(builder.study, {});
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_EQ(report.failures[0].failed, 30);
  EXPECT_EQ(report.failures[0].of, 30);
  EXPECT_FALSE(report.failures[0].before_first_step) << "no trial reports: nothing tells how far one came";
  EXPECT_EQ(report.failures[0].trials.size(), 20u);
  EXPECT_TRUE(report.best.empty());
  expect_conserved(report);
}

TEST(StudyFacts, AWholeStudyInOneMomentDividesByNothing) {
  StudyBuilder builder;
  for (int i = 0; i < 20; ++i) builder.add(TrialState::kComplete, 5, 5, 3);
  const StudyReport report = study_facts(builder.study, {});
  EXPECT_EQ(report.worker_time.total, 0);
  EXPECT_EQ(report.parallelism.open_mean, 0);
  EXPECT_FALSE(report.startup.share);
}

TEST(StudyFacts, PrunerAndSamplerAreToldOrUnknown) {
  const StudyReport unknown = study_facts(Study{}, {});
  EXPECT_FALSE(unknown.sampler.told);
  EXPECT_EQ(unknown.sampler.text, "unknown");
  const StudyReport told =
      study_facts(Study{}, {.pruner = PrunerSettings{.kind = PrunerKind::kMedian}, .sampler = "TPESampler"});
  EXPECT_TRUE(told.pruner.told);
  EXPECT_EQ(told.pruner_settings->kind, PrunerKind::kMedian);
  EXPECT_EQ(told.sampler.text, "TPESampler");
}

TEST(StudyFacts, TheOpenCurveIsSmallHoweverLongTheStudy) {
  const StudyReport report = study_facts(make({.trials = 3000}).study, {});
  EXPECT_LE(report.parallelism.open.size(), 2000u);
  EXPECT_EQ(report.parallelism.open.front().first, 0);
  EXPECT_EQ(report.bars.size(), 3000u);
}

}  // namespace
}  // namespace headroom::tune
