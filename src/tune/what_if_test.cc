// SPDX-License-Identifier: Apache-2.0
#include "tune/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/random.h"
#include "base/testing.h"
#include "tests/studies/sweep.h"
#include "tune/first_trials.h"
#include "tune/study_facts.h"
#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

using ::testing::HasSubstr;

const std::string kStudies = in_checkout("tests/studies/");
const std::vector<std::string> kSweeps{"random_1", "random_2", "tpe_1", "tpe_2", "tpe_3", "tpe_4"};

Study sweep(const std::string& name) { return read_sweep(kStudies + "sweep_" + name + ".json"); }

StudyReport what_if_of(const Study& study, const StudyOptions& options = sweep_options()) {
  StudyReport report = study_facts(study, options);
  add_what_if(study, options, report);
  return report;
}

StudyOptions fewer_replays(std::int64_t replays) {
  StudyOptions options = sweep_options();
  options.replays = replays;
  return options;
}

const StudyReport& of_sweep(const std::string& name) {  // each is replayed once for all tests
  static std::map<std::string, StudyReport> reports;
  const auto found = reports.find(name);
  return found != reports.end() ? found->second
                                : reports.emplace(name, what_if_of(sweep(name), fewer_replays(10))).first->second;
}

const WhatIf* find(const StudyReport& report, const std::string& change) {
  const auto found = std::find_if(report.what_if.begin(), report.what_if.end(),
                                  [&](const WhatIf& what_if) { return what_if.change == change; });
  return found == report.what_if.end() ? nullptr : &*found;
}

// What a change is called here, and in truth.json.
const std::map<std::string, std::string> kChanges{
    {"start-up halved", "half the start-up"},
    {"warm workers", "warm workers"},
    {"warm workers, 2 trials at once", "warm, 2 workers"},
    {"6 trials at once", "6 workers"},
    {"8 trials at once", "8 workers"},
    {"patience 3 -> 6", "patience 6"},
    {"patience 3 -> 10", "patience 10"},
    {"min_resource 1 -> 3", "min_resource 3"},
    {"min_resource 1 -> 9", "min_resource 9"},
    {"without PatientPruner", "without Patient"},
    {"no pruning", "no pruning"},
};

// Mean over sweeps of one kind: finished trials per hour beside as it is, and utilisation; replayed and true.
struct Rates {
  double replayed = 0, actual = 0, replayed_util = 0, actual_util = 0;
};

Rates rates_of(const std::string& change, const std::string& kind) {
  static const nlohmann::json truth = read_json(kStudies + "truth.json");
  Rates sum;
  double count = 0;
  for (const std::string& name : kSweeps) {
    if (!name.starts_with(kind)) continue;
    const StudyReport& report = of_sweep(name);
    const WhatIf* found = find(report, change);
    if (found == nullptr) continue;
    const nlohmann::json& actual = truth.at(name).at(kChanges.at(change));
    sum.replayed += found->trials_per_hour.value / report.as_it_is->trials_per_hour.value;
    sum.actual +=
        actual.at("trials_per_hour").get<double>() / truth.at(name).at("base").at("trials_per_hour").get<double>();
    sum.replayed_util += found->utilisation.value;
    sum.actual_util += actual.at("utilisation").get<double>();
    ++count;
  }
  return {sum.replayed / count, sum.actual / count, sum.replayed_util / count, sum.actual_util / count};
}

// The random sampler takes the same trials under all settings, so that only chance in timing and in curves is left.
TEST(WhatIf, ChangesDoWhatOptunaDoesWithTheSameTrials) {
  for (const auto& [change, optuna] : kChanges) {
    const Rates rates = rates_of(change, "random");
    EXPECT_NEAR(rates.replayed / rates.actual, 1, 0.08) << change;
    EXPECT_NEAR(rates.replayed_util, rates.actual_util, 0.02) << change;
  }
}

// What the study itself did lies in what is predicted of it as it is, and the first trials in what is of them.
TEST(WhatIf, WhatAStudyDidLiesInWhatIsPredictedOfItAsItIs) {
  const auto holds = [](const Estimate& range, double value) { return range.low <= value && value <= range.high; };
  for (const std::string& name : kSweeps) {
    const StudyReport& report = of_sweep(name);
    const WhatIf& now = *report.as_it_is;
    const Study study = sweep(name);
    const auto whole = measured_first(study, report, 0, report.trials - 4);
    ASSERT_TRUE(whole);
    EXPECT_NEAR(now.pruned_share.value, whole->pruned_share.value, 0.02) << name;
    EXPECT_NEAR(now.trial_seconds.value, whole->trial_seconds.value, 0.1 * whole->trial_seconds.value) << name;
    EXPECT_NEAR(now.at_once.value, 4, 0.1) << name;
    ASSERT_FALSE(now.first.empty());
    EXPECT_EQ(now.first.front().trials, 10);
    EXPECT_EQ(now.first.back().trials, 150) << "of 200, without the last that run dry";
    for (const FirstTrials& first : now.first) {
      const auto seen = measured_first(study, report, 0, first.trials);
      EXPECT_TRUE(holds(first.trials_per_hour, seen->trials_per_hour.value) ||
                  seen->trials_per_hour.high >= first.trials_per_hour.low)
          << name << " " << first.trials;
      EXPECT_LT(first.trials_per_hour.low, first.trials_per_hour.high);
    }
    EXPECT_LE(now.first.front().pruned_share.value, now.pruned_share.value) << "the first are pruned less";
    EXPECT_LT(now.time_to_best_seconds.low, now.time_to_best_seconds.high);
    EXPECT_EQ(now.pruner, report.pruner_settings);
    EXPECT_FALSE(now.memory_at_once_bytes);
  }
}

TEST(WhatIf, MemoryIsThatOfTheTrialsThatAreOpenTogether) {
  StudyOptions options = fewer_replays(5);
  options.memory_per_trial_bytes = 1'000;
  for (std::int64_t i = 0; i < 200; ++i) options.measured[i] = {.memory_bytes = i % 2 == 0 ? 1'000 : 600};
  const StudyReport report = what_if_of(sweep("random_1"), options);
  const WhatIf* six = find(report, "6 trials at once");
  ASSERT_TRUE(six && six->memory_at_once_bytes && report.as_it_is->memory_at_once_bytes);
  EXPECT_EQ(six->memory_bytes, 6'000);
  EXPECT_LE(six->memory_at_once_bytes->high, 6'000);
  EXPECT_GE(six->memory_at_once_bytes->low, 6 * 600);
  EXPECT_LE(report.as_it_is->memory_at_once_bytes->high, 4'000);
}

// TPE goes other ways under other settings: single sweeps differ from each other by 10 % and more.
TEST(WhatIf, ChangesDoWhatTheyDoToASweepThatLearns) {
  for (const auto& [change, optuna] : kChanges) {
    const Rates rates = rates_of(change, "tpe");
    EXPECT_NEAR(rates.replayed / rates.actual, 1, 0.13) << change;
    EXPECT_NEAR(rates.replayed_util, rates.actual_util, 0.04) << change;
  }
}

TEST(WhatIf, AReplayGivesTheSweepBack) {
  for (const std::string& name : kSweeps) {
    const Calibration& calibration = of_sweep(name).calibration;
    EXPECT_TRUE(calibration.good) << name << ": " << calibration.why;
    EXPECT_THAT(calibration.why, ::testing::Not(HasSubstr("-0.0 %"))) << name;
    EXPECT_NEAR(calibration.replayed_seconds.value / calibration.observed_seconds, 1, 0.06) << name;
    EXPECT_EQ(calibration.replays, 10);
  }
}

TEST(WhatIf, WarmAndMoreWorkersComeFirst) {
  for (const std::string& name : kSweeps) {
    const StudyReport& report = of_sweep(name);
    for (const char* change : {"warm workers", "6 trials at once"}) {
      const WhatIf* found = find(report, change);
      ASSERT_NE(found, nullptr);
      EXPECT_TRUE(found->helps) << name << ": " << change << " " << found->time_to_best_ratio.high;
      EXPECT_LT(found - report.what_if.data(), 6) << name << ": " << change;
    }
    const std::string& first = report.what_if.front().change;
    EXPECT_TRUE(first.find("warm") != std::string::npos || first.find("at once") != std::string::npos)
        << name << ": " << first;
  }
}

TEST(WhatIf, MorePatienceIsALossThatRaisesUtilisation) {
  for (const std::string& name : kSweeps) {
    const StudyReport& report = of_sweep(name);
    for (const char* change : {"patience 3 -> 6", "patience 3 -> 10", "min_resource 1 -> 3", "min_resource 1 -> 9",
                               "no pruning", "patience 3 -> 6, min_resource 1 -> 3"}) {
      const WhatIf* found = find(report, change);
      ASSERT_NE(found, nullptr) << change;
      EXPECT_GT(found->time_to_best_ratio.value, 1) << name << ": " << change;
      EXPECT_FALSE(found->helps) << name << ": " << change;
    }
    for (const char* change : {"patience 3 -> 10", "min_resource 1 -> 9", "no pruning"}) {
      EXPECT_GT(find(report, change)->utilisation.value, report.as_it_is->utilisation.value) << name << ": " << change;
    }
  }
}

TEST(WhatIf, AsItIsIsOneOfItself) {
  const StudyReport& report = of_sweep("random_1");
  EXPECT_EQ(report.as_it_is->time_to_best_ratio, (Estimate{1, 1, 1}));
  EXPECT_FALSE(report.as_it_is->helps);
}

TEST(WhatIf, TheSameTwiceIsTheSame) {
  StudyOptions options = sweep_options();
  options.replays = 3;
  const Study study = sweep("tpe_1");
  EXPECT_EQ(what_if_of(study, options).what_if, what_if_of(study, options).what_if);
}

TEST(WhatIf, AnotherPrunerDoesNotGiveTheStudyBack) {
  StudyOptions options = sweep_options();
  options.pruner = PrunerSettings{.kind = PrunerKind::kMedian};
  const StudyReport report = what_if_of(sweep("tpe_1"), options);
  EXPECT_FALSE(report.calibration.good);
  EXPECT_THAT(report.calibration.why, HasSubstr("--pruner"));
  EXPECT_TRUE(report.what_if.empty());
  EXPECT_FALSE(report.as_it_is);
}

TEST(WhatIf, AnotherNumberOfWorkersDoesNotGiveTheStudyBack) {
  StudyOptions options = sweep_options();
  options.workers = 6;
  const StudyReport report = what_if_of(sweep("tpe_1"), options);
  EXPECT_FALSE(report.calibration.good);
  EXPECT_THAT(report.calibration.why, HasSubstr("--workers"));
}

TEST(WhatIf, WithoutAPrunerTheCutsStayWhereTheyWere) {
  StudyOptions options = sweep_options();
  options.pruner.reset();
  const StudyReport report = what_if_of(sweep("tpe_2"), options);
  ASSERT_TRUE(report.calibration.good) << report.calibration.why;
  EXPECT_EQ(report.calibration.observed, report.calibration.replayed);
  EXPECT_NE(find(report, "warm workers"), nullptr);
  EXPECT_EQ(find(report, "no pruning"), nullptr);
  EXPECT_THAT(report.assumptions, ::testing::Contains(HasSubstr("--pruner")));
}

// The wider a trial, the longer its steps take, and the further it goes: durations over reports have no start-up then.
TEST(WhatIf, WarmWorkersGainTheWholeStartUpWhereSlowTrialsGoFurther) {
  constexpr double kStartup = 30;
  testing::StudyBuilder builder;
  const auto width = builder.category("width", {"1", "2", "4"});
  std::array<double, 2> free{0, 0.3};
  double steps = 0;
  for (int i = 0; i < 90; ++i) {
    const int reports = i % (i % 3 == 2 ? 2 : 10) == 0 ? 20 : 4;
    const double training = reports * 1.2 * std::pow(2, i % 3);
    double& worker = *std::min_element(free.begin(), free.end());
    builder.add(reports == 20 ? TrialState::kComplete : TrialState::kPruned, worker, worker + kStartup + training,
                reports, {{width, static_cast<double>(i % 3)}});
    worker += kStartup + training + 0.01;
    steps += training;
  }
  const StudyReport report = what_if_of(builder.study, {.replays = 20});
  ASSERT_TRUE(report.startup.inside_seconds) << report.calibration.why;
  EXPECT_NEAR(report.startup.inside_seconds->value, kStartup, 1);
  const WhatIf* warm = find(report, "warm workers");
  ASSERT_TRUE(warm) << report.calibration.why;
  const double apart = 90 * 3600 * 2 / (steps + 90 * 1.0);  // trials that do not slow each other down, and 1 s each
  EXPECT_NEAR(warm->trials_per_hour.high, apart, 0.1 * apart);
}

TEST(WhatIf, LoaderWorkersBeyondTheCoresAreNamed) {
  StudyOptions options = sweep_options();
  options.cores = 12;
  options.loader_workers = 2;
  options.replays = 2;
  const StudyReport report = what_if_of(sweep("tpe_1"), options);
  const WhatIf* loaders = find(report, "loader workers 2 -> 4");
  ASSERT_NE(loaders, nullptr);
  EXPECT_EQ(loaders->safety, Safety::kRisky);
  EXPECT_EQ(loaders->why, "cores: 4 x 4 = 16 loader workers oversubscribe 12 cores");
  EXPECT_FALSE(loaders->helps);
}

TEST(WhatIf, TrialsThatDoNotFitTheGpuAreRisky) {
  StudyOptions options = sweep_options();
  options.gpu_memory_bytes = 24'000'000'000;
  options.memory_per_trial_bytes = 3'000'000'000;
  options.replays = 2;
  const StudyReport report = what_if_of(sweep("tpe_1"), options);
  EXPECT_EQ(find(report, "6 trials at once")->safety, Safety::kSafe);
  EXPECT_EQ(find(report, "6 trials at once")->memory_bytes, 18'000'000'000);
  EXPECT_EQ(find(report, "8 trials at once")->safety, Safety::kRisky);  // 24 GB, and nothing left
  ASSERT_NE(find(report, "7 trials at once"), nullptr);                 // as many as fit beside the reserve
  EXPECT_EQ(find(report, "7 trials at once")->safety, Safety::kSafe);
  const StudyReport unknown = what_if_of(sweep("tpe_1"));
  EXPECT_EQ(find(unknown, "6 trials at once")->safety, Safety::kModerate);
  EXPECT_THAT(find(unknown, "6 trials at once")->why, HasSubstr("headroom run"));
}

TEST(WhatIf, MoreTrialsThanTheMemoryHoldsNeverHelp) {
  StudyOptions options = sweep_options();
  options.gpu_memory_bytes = 24'000'000'000;
  options.memory_per_trial_bytes = 3'500'000'000;
  options.replays = 2;
  const StudyReport report = what_if_of(sweep("tpe_1"), options);
  EXPECT_TRUE(find(report, "6 trials at once")->fits);
  const WhatIf* eight = find(report, "8 trials at once");
  EXPECT_FALSE(eight->fits);
  EXPECT_FALSE(eight->helps) << "28 GB of 24";
  for (const WhatIf& row : report.what_if) EXPECT_FALSE(row.helps && &row > eight);
  options.gpu_memory_bytes = 8'000'000'000;  // four ran at once: what is told of the memory is wrong
  EXPECT_TRUE(find(what_if_of(sweep("tpe_1"), options), "warm workers")->fits);
}

// Trials of 100 s, one after the other, that all make as many reports.
Study alike(int reports) {
  testing::StudyBuilder builder;
  for (int i = 0; i < 60; ++i)
    builder.add(TrialState::kComplete, 101.0 * i, 101.0 * i + 100, reports).values = {1.0 / (i + 1)};
  return std::move(builder.study);
}

TEST(WhatIf, WhereTheStartUpIsNotKnownTrialsComputeAllTheTime) {
  StudyOptions fewer;
  fewer.replays = 10;
  for (const int reports : {0, 10}) {
    const StudyReport report = what_if_of(alike(reports), fewer);
    ASSERT_TRUE(report.calibration.good) << report.calibration.why;
    ASSERT_FALSE(report.startup.inside_seconds);
    EXPECT_NEAR(report.as_it_is->utilisation.value, 0.99, 0.011);
    const WhatIf* two = find(report, "2 trials at once");
    ASSERT_NE(two, nullptr);
    EXPECT_GT(two->time_to_best_ratio.high, 0.7) << "nobody saw two trials share the GPU";
    EXPECT_EQ(find(report, "warm workers"), nullptr);
    EXPECT_THAT(report.assumptions, ::testing::Contains(HasSubstr("from none to the whole trial")));
  }
}

TEST(WhatIf, WorkersOfAStorageThatTakeTrialAfterTrialAreWarmAlready) {
  testing::StudyBuilder builder;
  double now = 0;
  for (int i = 0; i < 40; ++i) {
    const int reports = i % 3 == 0 ? 20 : 4;
    builder.add(TrialState::kComplete, now, now + 30 + 2 * reports, reports).values = {1.0 / (i + 1)};
    now += 35 + 2 * reports;
  }
  Study study = std::move(builder.study);
  const auto advice = [&] {
    const StudyReport report = what_if_of(study, {.replays = 2});
    const WhatIf* warm = find(report, "warm workers");
    return warm ? warm->how : report.calibration.why;
  };
  EXPECT_THAT(advice(), HasSubstr("one process per worker")) << "5 s between trials: a program starts";
  study.workers = {"a"};
  for (Trial& trial : study.trials) trial.worker = 0;
  EXPECT_THAT(advice(), HasSubstr("trials follow each other in one process already"));
  study.workers.clear();
  for (Trial& trial : study.trials) {
    trial.worker = static_cast<std::uint32_t>(study.workers.size());
    study.workers.push_back(std::to_string(trial.number));
  }
  EXPECT_THAT(advice(), HasSubstr("one process per worker")) << "a process for each trial";
}

TEST(WhatIf, WhatAsksForMoreAndGainsHardlyMoreStandsBehind) {
  const auto places = [](double between) {
    testing::StudyBuilder builder;
    for (int i = 0; i < 24; ++i)
      builder.add(TrialState::kComplete, i * (300 + between), i * (300 + between) + 300, 5).values = {1.0 / (i + 1)};
    const StudyReport report = what_if_of(builder.study, {.replays = 5});
    const WhatIf *more = find(report, "3 trials at once"), *both = find(report, "warm workers, 3 trials at once");
    EXPECT_TRUE(more && both);
    return std::pair(more - report.what_if.data(), both - report.what_if.data());
  };
  const auto [more, both] = places(8);
  EXPECT_LT(more, both) << "8 s of 308 are not worth another edit";
  const auto [alone, better] = places(200);
  EXPECT_LT(better, alone);
}

TEST(WhatIf, AStartUpThatIsHardlyAnyIsNotShortened) {
  testing::StudyBuilder builder;
  double now = 0;
  for (int i = 0; i < 24; ++i) {
    const int reports = 20 + i % 5;
    builder.add(TrialState::kComplete, now, now + 12.5 * reports, reports).values = {1.0 / (i + 1)};
    now += 12.5 * reports + 2;
  }
  for (const bool startup_known : {true, false}) {
    for (Trial& trial : builder.study.trials)
      if (!startup_known) trial.reports = 0;
    const StudyReport report = what_if_of(builder.study, {.replays = 5});
    ASSERT_EQ(report.startup.inside_seconds.has_value(), startup_known);
    ASSERT_FALSE(report.what_if.empty()) << report.calibration.why;
    for (const WhatIf& row : report.what_if) EXPECT_THAT(row.change, ::testing::Not(HasSubstr("warm")));
    EXPECT_THAT(report.assumptions, ::testing::Contains(HasSubstr("Warm workers are not replayed")));
  }
}

TEST(WhatIf, ValuesThatManyTrialsReachMakeNoChangeSooner) {
  testing::StudyBuilder builder;
  for (int i = 0; i < 40; ++i)
    builder.add(TrialState::kComplete, i * 440, i * 440 + 400 + i % 3).values = {0.1 * (i % 4)};
  const StudyReport report = what_if_of(builder.study, {.replays = 10});
  const WhatIf* warm = find(report, "warm workers");  // saves 37 s of 440
  ASSERT_TRUE(warm) << report.calibration.why;
  EXPECT_GT(warm->time_to_best_ratio.low, 0.9);
  EXPECT_EQ(report.as_it_is->time_to_best_ratio, (Estimate{1, 1, 1}));
}

TEST(WhatIf, AStudyThatCannotBeReplayedSaysWhy) {
  Study study = sweep("tpe_1");
  study.directions = {Direction::kMinimize, Direction::kMaximize};
  EXPECT_THAT(what_if_of(study).calibration.why, HasSubstr("several objectives"));
  EXPECT_THAT(what_if_of(Study{}).calibration.why, HasSubstr("0 trials"));
  study = sweep("tpe_1");
  for (Trial& trial : study.trials) trial.values.clear();
  EXPECT_THAT(what_if_of(study).calibration.why, HasSubstr("no trial completed"));
}

TEST(WhatIf, APauseOfTheStudyIsLeftOut) {
  Study study = sweep("random_2");
  // Everything from a quiet instant on is a day later: no trial is open in between.
  Study paused = study;
  const Nanos middle = *study.trials[100].start;
  for (Trial& trial : paused.trials) {
    if (trial.number < 100) trial.complete = std::min(*trial.complete, middle);
    if (trial.number >= 100) trial.start = *trial.start + 86400 * kSecond;
    if (trial.number >= 100) trial.complete = *trial.complete + 86400 * kSecond;
  }
  StudyOptions options = sweep_options();
  options.replays = 3;
  const StudyReport report = what_if_of(paused, options);
  EXPECT_LT(report.calibration.observed_seconds, 6000);
  EXPECT_TRUE(report.calibration.good) << report.calibration.why;
  EXPECT_THAT(report.assumptions, ::testing::Contains(HasSubstr("stood still")));
}

// Two workers; trial 30 hangs for so many seconds, while the other worker goes on.
Study with_hang(double hang) {
  testing::StudyBuilder builder;
  std::array<double, 2> free{0, 3};
  for (int i = 0; i < 120; ++i) {
    double& worker = *std::min_element(free.begin(), free.end());
    const int reports = 5 + 7 * i % 16;
    const double end = worker + 40 + 13 * i % 20 + 2 * reports + (i == 30 ? hang : 0);
    builder.add(TrialState::kComplete, worker, end, reports).values = {100.0 - i};
    worker = end + 0.1;
  }
  return std::move(builder.study);
}

TEST(WhatIf, AStudyThatAWorkerLeftIsReplayedWithThoseThatWereThere) {
  for (const double until : {300.0, 1'200.0}) {  // of half an hour: for less and for more than half of it
    testing::StudyBuilder builder;
    std::array<double, 2> free{0, 3};
    for (int i = 0; *std::max_element(free.begin(), free.end()) < 1'800; ++i) {
      double& worker = free[1] < until && free[1] < free[0] ? free[1] : free[0];
      builder.add(TrialState::kComplete, worker, worker + 50 + 37 * i % 21).values = {100.0 - i};
      worker += 50.3 + 37 * i % 21;
    }
    const StudyReport report = what_if_of(builder.study, {.replays = 10});
    EXPECT_TRUE(report.calibration.good) << until << ": " << report.calibration.why;
    EXPECT_THAT(report.assumptions, ::testing::Contains(HasSubstr("There were 2 workers at first and 1 in the end")));
    ASSERT_TRUE(report.as_it_is);
    EXPECT_GT(report.as_it_is->trials_per_hour.value, 55) << until;
    EXPECT_LT(report.as_it_is->trials_per_hour.value, 90) << until << ": of one worker, and of two it were 120";
  }
}

TEST(WhatIf, AStartupThatIsNotKnownIsNotHalved) {
  testing::StudyBuilder builder;
  double t = 0;
  for (int i = 0; i < 40; ++i) {
    const double length = 110 + 7 * i % 20;
    builder.add(TrialState::kComplete, t, t + length).values = {100.0 - i};
    t += length + 3;
  }
  StudyOptions options;
  options.replays = 5;
  const StudyReport report = what_if_of(builder.study, options);
  ASSERT_FALSE(report.what_if.empty()) << report.calibration.why;
  EXPECT_EQ(find(report, "start-up halved"), nullptr);
}

// Every second trial is pruned at its first report, by its value; a trial of k reports takes 70 k^1.6 s.
TEST(WhatIf, ATrialThatIsNotPrunedGoesOnWithStepsThatTakeLonger) {
  testing::StudyBuilder builder;
  double now = 0;
  for (int i = 0; i < 40; ++i) {
    const bool whole = i % 2 == 0;
    const int reports = whole ? 9 - i % 3 : 1;
    const double length = 70 * std::pow(reports, 1.6) + i % 3;
    builder.add(whole ? TrialState::kComplete : TrialState::kPruned, now, now + length, reports);
    if (!whole) builder.study.reports.back().value = 5;
    now += length + 1;
  }
  StudyOptions options;
  options.replays = 5;
  options.pruner = PrunerSettings{.kind = PrunerKind::kThreshold, .upper = 2};
  const StudyReport report = what_if_of(builder.study, options);
  ASSERT_TRUE(report.calibration.good) << report.calibration.why;
  const WhatIf* all = find(report, "no pruning");
  ASSERT_TRUE(all);
  const double whole = 70 * std::pow(8, 1.6);  // constant steps would take 560 s
  // A start-up, of which nothing is known, takes no longer in a longer trial: the draws go from none to all of a trial.
  EXPECT_GT(all->gpu_hours * 3600, now + 20 * 0.3 * whole);
  EXPECT_LT(all->gpu_hours * 3600, now + 20 * 1.1 * whole);
  EXPECT_THAT(report.assumptions, ::testing::Contains(HasSubstr("the first k of a trial take k^1.6 times")));
}

TEST(WhatIf, ATrialThatHungHangsUnderEachChange) {
  StudyOptions options;
  options.replays = 5;
  const StudyReport hung = what_if_of(with_hang(2000), options), smooth = what_if_of(with_hang(0), options);
  ASSERT_TRUE(hung.calibration.good) << hung.calibration.why;
  for (const char* change : {"warm workers", "start-up halved"})
    EXPECT_NEAR(find(hung, change)->gpu_hours, find(smooth, change)->gpu_hours + 1000.0 / 3600, 0.1) << change;
}

// Whatever a storage holds: states, reports and values that make no sense together, and in every third study times.
Study wild_study(std::uint64_t seed, std::size_t workers) {
  Random random(seed);
  const std::array odd{0.0,
                       1.0,
                       -1e308,
                       1e308,
                       std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity()};
  const auto value = [&] { return random.uniform() < 0.1 ? odd[random.below(odd.size())] : random.normal(); };
  const bool times_make_sense = seed % 3 != 0;
  std::vector<Nanos> free(workers, 0);
  Study study;
  study.name = "wild";
  study.directions = {random.uniform() < 0.5 ? Direction::kMinimize : Direction::kMaximize};
  for (std::int64_t i = 0; i < 60; ++i) {
    Trial& trial = study.trials.emplace_back();
    trial.number = i;
    trial.state = random.uniform() < 0.05 ? TrialState::kRunning : static_cast<TrialState>(1 + random.below(3));
    Nanos& at = *std::min_element(free.begin(), free.end());
    if (times_make_sense || random.uniform() < 0.9) trial.start = at;
    at += static_cast<Nanos>(1e9 * random.uniform(times_make_sense ? 1 : -100, 100));
    if (times_make_sense || random.uniform() < 0.9) trial.complete = at;
    if (random.uniform() < 0.8) trial.values = {value()};
    trial.first_report = study.reports.size();
    trial.reports = random.below(12);
    for (std::size_t r = 0; r < trial.reports; ++r) {
      study.reports.push_back({.step = static_cast<std::int64_t>(2 * r), .value = value()});
    }
  }
  return study;
}

TEST(WhatIf, AnyStudyIsAnsweredWithFiniteFigures) {
  int replayed = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    StudyOptions options;
    options.workers = 1 + static_cast<std::int64_t>(seed % 4);
    if (seed % 2 != 0)
      options.pruner = PrunerSettings{.kind = static_cast<PrunerKind>(seed / 2 % 6), .max_resource = 20};
    options.replays = 2;
    options.cores = 3;
    options.loader_workers = 1;
    const Study study = wild_study(seed, static_cast<std::size_t>(*options.workers));
    const StudyReport report = what_if_of(study, options);
    EXPECT_FALSE(report.calibration.why.empty()) << seed;
    EXPECT_EQ(report.calibration.good, !report.what_if.empty()) << seed;
    replayed += report.calibration.good ? 1 : 0;
    for (const WhatIf& what_if : report.what_if) {
      for (const Estimate& e : {what_if.trials_per_hour, what_if.utilisation, what_if.time_to_best_ratio}) {
        EXPECT_TRUE(std::isfinite(e.value) && e.low <= e.value && e.value <= e.high) << seed << ": " << what_if.change;
      }
      EXPECT_LE(what_if.utilisation.high, 1 + 1e-9) << seed;
    }
  }
  EXPECT_GT(replayed, 40);
}

TEST(WhatIf, MaximizingIsMinimizingTheOtherWayRound) {
  Study study = sweep("random_1");
  study.directions = {Direction::kMaximize};
  for (Trial& trial : study.trials) {
    for (double& value : trial.values) value = -value;
  }
  for (StepReport& report : study.reports) report.value = -report.value;
  StudyOptions options = sweep_options();
  options.replays = 3;
  const StudyReport turned = what_if_of(study, options), straight = what_if_of(sweep("random_1"), options);
  ASSERT_EQ(turned.what_if.size(), straight.what_if.size());
  for (std::size_t i = 0; i < turned.what_if.size(); ++i) EXPECT_EQ(turned.what_if[i], straight.what_if[i]);
}

}  // namespace
}  // namespace headroom::tune
