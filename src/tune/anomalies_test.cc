// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "tune/study_facts.h"
#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

using testing::anomaly;
using testing::at;
using testing::expect_conserved;
using testing::kInfinity;
using testing::kNaN;
using testing::Made;
using testing::make;
using testing::StudyBuilder;

TEST(Anomalies, ATrialFarOlderThanAnyThatEndedIsDead) {
  Made made = make({});
  Trial& dead = made.study.trials[10];
  dead.state = TrialState::kRunning;
  dead.complete.reset();
  const StudyReport report = study_facts(made.study, {.now = at(made.end + 1)});
  const StudyAnomaly* found = anomaly(report, "dead_trial");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->trials, std::vector<std::int64_t>{10});
  EXPECT_EQ(found->text.find("trial 10 is RUNNING in the storage and probably dead: silent for "), 0u) << found->text;
  EXPECT_FALSE(report.live);
  EXPECT_TRUE(report.bars[10].dead);
  EXPECT_EQ(report.parallelism.workers, 4) << "the dead one is no fifth";
  EXPECT_GT(report.parallelism.open_mean, report.parallelism.alive_mean + 0.5);
  expect_conserved(report);
}

TEST(Anomalies, OpenTrialsAreNoMoreThanWereOpenAtOnceWhateverPausesThereWere) {
  Made made = make({});
  const Nanos middle = at(made.end / 2), later = 7 * 86'400 * kSecond;
  for (Trial& trial : made.study.trials) {
    if (*trial.start <= middle && trial.complete) trial.complete = std::min(*trial.complete, middle);
    if (*trial.start > middle) *trial.start += later, *trial.complete += later;
  }
  made.study.trials[10].state = TrialState::kRunning;  // and dead
  made.study.trials[10].complete.reset();
  const StudyReport report = study_facts(made.study, {.now = at(made.end) + later + kSecond});
  ASSERT_GT(report.paused_seconds, 0);
  EXPECT_LE(report.parallelism.open_mean, static_cast<double>(report.parallelism.open_max));
  EXPECT_GE(report.parallelism.open_mean, report.parallelism.alive_mean);
}

TEST(Anomalies, ALongTrialWhoseReportsAccountForItsTimeIsNotDead) {
  Made made = make({.workers = 1, .startup_low = 5, .startup_high = 6, .step = 60, .failing = 0, .completing = 0});
  for (const int reports : {100, 3}) {
    StudyBuilder builder;
    builder.study = made.study;
    builder.add(TrialState::kRunning, made.end, -1, reports);
    const StudyReport report = study_facts(builder.study, {.now = at(made.end + 6010)});
    EXPECT_EQ(report.live, reports == 100);
    EXPECT_EQ(anomaly(report, "open_at_end") != nullptr, reports == 3) << "nothing else goes on";
  }
}

// Four workers are told, and 207, 208, 209, 210, 212 are open at once: the situation of a real study.
TEST(Anomalies, OneMoreOpenThanWorkersMeansADeadOne) {
  StudyBuilder builder;
  for (int i = 0; i < 40; ++i) builder.add(TrialState::kPruned, i * 60, i * 60 + 230, 3);
  const double t = 2400 + 230;
  builder.add(TrialState::kRunning, t, -1);
  builder.add(TrialState::kRunning, t, -1);
  builder.add(TrialState::kPruned, t, t + 2024, 3);
  builder.add(TrialState::kComplete, t + 262, t + 813, 9);
  builder.add(TrialState::kPruned, t + 813, t + 959, 2);
  builder.add(TrialState::kComplete, t + 262, t + 813, 9);
  builder.add(TrialState::kComplete, t + 960, t + 1513, 9);
  const StudyReport report = study_facts(builder.study, {.now = at(t + 2100), .workers = 4});
  const StudyAnomaly* dead = anomaly(report, "dead_trial");
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->trials, std::vector<std::int64_t>{40});
  EXPECT_NE(dead->text.find("4 workers that there are"), std::string::npos) << dead->text;
  EXPECT_FALSE(anomaly(report, "more_open_than_workers")) << "that is told already";
  EXPECT_TRUE(report.live) << "the other one may run";
  const StudyAnomaly* slow = anomaly(report, "slow_trial");
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->trials, std::vector<std::int64_t>{42});
  EXPECT_NE(slow->text.find("trial 42 (PRUNED) took 33:44"), std::string::npos) << slow->text;
}

// Three workers, of which one is killed and two are told: while it was heard of, it was one of three.
TEST(Anomalies, TheTrialOfAKilledWorkerIsDeadThoughOthersRanBesideIt) {
  StudyBuilder builder;
  for (int i = 0; i < 30; ++i)
    for (int lane = 0; lane < 3; ++lane)
      builder.add(TrialState::kComplete, i * 60, i * 60 + 19 + 10 * (lane + 2), lane + 2);
  const double t = 30 * 60;
  builder.add(TrialState::kRunning, t, -1, 3);
  const auto looked_at = [&](double now) {
    StudyBuilder seen = builder;
    for (double begin = t; begin < t + now; begin += 60)
      for (int lane = 0; lane < 2; ++lane) {
        const bool ended = begin + 59 < t + now;
        seen.add(ended ? TrialState::kComplete : TrialState::kRunning, begin, ended ? begin + 59 : -1, ended ? 6 : 1);
      }
    return study_facts(seen.study, {.now = at(t + now), .workers = 2});
  };
  EXPECT_FALSE(anomaly(looked_at(50), "dead_trial")) << "it may still report";
  const StudyReport report = looked_at(200);
  const StudyAnomaly* dead = anomaly(report, "dead_trial");
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->trials, std::vector<std::int64_t>{90});
}

TEST(Anomalies, AWorkerMoreIsNoDeadTrial) {
  Made made = make({});
  StudyBuilder builder;
  builder.study = made.study;
  builder.add(TrialState::kRunning, made.end - 50, -1);
  builder.add(TrialState::kRunning, made.end - 20, -1);
  const StudyReport report = study_facts(builder.study, {.now = at(made.end + 5)});
  EXPECT_FALSE(anomaly(report, "dead_trial"));
  EXPECT_TRUE(report.live);
}

TEST(Anomalies, ASilentHeartbeatIsADeadTrialAndAFreshOneIsNot) {
  Made made = make({});
  StudyBuilder builder;
  builder.study = made.study;
  builder.add(TrialState::kRunning, made.end - 300, -1).heartbeat = at(made.end - 280);
  builder.add(TrialState::kRunning, 0, -1).heartbeat = at(made.end + 90);
  const StudyReport report = study_facts(builder.study, {.now = at(made.end + 100), .workers = 4});
  const StudyAnomaly* dead = anomaly(report, "dead_trial");
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->trials, std::vector<std::int64_t>{200}) << "the old one's heart beats";
  EXPECT_NE(dead->text.find("heartbeat"), std::string::npos);
  EXPECT_TRUE(report.live);
}

TEST(Anomalies, ATrialWhoseProcessIsGoneIsDead) {
  Made made = make({});
  StudyBuilder builder;
  builder.study = made.study;
  builder.add(TrialState::kRunning, made.end - 5, -1);
  StudyOptions options{.now = at(made.end)};
  EXPECT_TRUE(study_facts(builder.study, options).live);
  options.measured[200].alive = false;
  const StudyReport report = study_facts(builder.study, options);
  EXPECT_FALSE(report.live);
  EXPECT_TRUE(report.bars[200].dead);
}

TEST(Anomalies, OpenTrialsOfACopyAreNotDeadByTodaysClock) {
  Made made = make({});
  StudyBuilder builder;
  builder.study = made.study;
  builder.add(TrialState::kRunning, made.end - 5, -1);
  for (const double written : {made.end + 1, 5e6}) {  // as it was, and by the copy's file
    builder.study.written = at(written);
    const StudyReport report = study_facts(builder.study, {.now = at(5e6 + 10)});
    EXPECT_FALSE(anomaly(report, "dead_trial"));
    EXPECT_TRUE(anomaly(report, "open_at_end"));
    EXPECT_FALSE(report.live);
    ASSERT_TRUE(report.end);
    EXPECT_LE(*report.end, at(made.end + 1));
  }
}

TEST(Anomalies, RepeatsAreCountedButNotWhatSomebodyAskedFor) {
  StudyBuilder builder;
  const auto lr = builder.number("lr"), layers = builder.number("layers");
  builder.add(TrialState::kComplete, 0, 10, 0, {{lr, 0.5}, {layers, 2}});
  builder.add(TrialState::kComplete, 10, 25, 0, {{layers, 2}, {lr, 0.5}});
  builder.add(TrialState::kComplete, 25, 30, 0, {{lr, 2}, {layers, 0.5}});
  builder.add(TrialState::kComplete, 30, 40, 0, {{lr, 0.5}, {layers, 2}}).enqueued = true;
  builder.add(TrialState::kComplete, 40, 50, 0, {{lr, 0.5}, {layers, 2}}).retry_of = 0;
  const StudyReport report = study_facts(builder.study, {});
  const StudyAnomaly* found = anomaly(report, "duplicates");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->trials, std::vector<std::int64_t>{1});
  EXPECT_NE(found->text.find("15.0 s of worker time, 30 %"), std::string::npos) << found->text;
}

TEST(Anomalies, RepeatsInTheOrderOfTheFirstSessionAreOfTheSameSeed) {
  const auto next_of = [](bool beside, bool in_order, bool in_turns = false, double pause = 50'000) {
    StudyBuilder builder;
    const auto lr = builder.number("lr");
    for (int i = 0; i < 40; ++i) {
      const double begin = beside ? 5.0 * i : 10.0 * i + (i >= 20 ? pause : 0);
      const int drawn = beside ? i / 2 : in_order ? i % 20 ^ (in_turns && i >= 20 ? 1 : 0) : i < 20 ? i : 7 * i % 20;
      builder.add(TrialState::kComplete, begin, begin + 9, 0, {{lr, 0.01 * (drawn + 1)}});
    }
    const StudyReport report = study_facts(builder.study, {});
    return anomaly(report, "duplicates")->next;
  };
  EXPECT_EQ(
      next_of(false, true),
      "they come in the order of those: the sampler of a later session was given the seed of an earlier one; give "
      "each session another, or none");
  EXPECT_EQ(next_of(false, true, true), next_of(false, true)) << "two workers need not ask in the same turns";
  EXPECT_EQ(next_of(false, true, false, 0),
            "they come in the order of those, and no pause was before them: the same list, or a sampler of the same "
            "seed, was gone through again; do so once, or return the known value where study.get_trials() has the same "
            "parameters")
      << "one session, or nobody can tell";
  EXPECT_NE(next_of(true, true).find("samplers of several workers were given the same seed"), std::string::npos);
  EXPECT_EQ(next_of(false, false), "return the known value where study.get_trials() has the same parameters")
      << "none ran beside another";
}

TEST(Anomalies, OfParametersThatAlwaysFailedNoValueIsKnown) {
  for (const TrialState first : {TrialState::kFail, TrialState::kComplete}) {
    StudyBuilder builder;
    const auto lr = builder.number("lr");
    builder.add(first, 0, 10, 0, {{lr, 0.5}});
    builder.add(TrialState::kFail, 10, 25, 0, {{lr, 0.5}});
    const StudyReport report = study_facts(builder.study, {});
    const StudyAnomaly* found = anomaly(report, "duplicates");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->next.find("return the known value") != std::string::npos, first == TrialState::kComplete);
  }
}

TEST(Anomalies, RepeatsOfWhatIsKnownAndOfWhatOnlyFailedAreToldApart) {
  StudyBuilder builder;
  const auto lr = builder.number("lr");
  for (int i = 0; i < 5; ++i)
    builder.add(i % 2 == 0 ? TrialState::kFail : TrialState::kComplete, 10 * i, 10 * i + 9, 0,
                {{lr, i % 2 == 0 ? 0.5 : 2}});
  std::vector<std::vector<std::int64_t>> repeated;
  const StudyReport report = study_facts(builder.study, {});
  for (const StudyAnomaly& found : report.anomalies)
    if (found.kind == "duplicates") repeated.push_back(found.trials);
  std::sort(repeated.begin(), repeated.end());
  EXPECT_EQ(repeated, (std::vector<std::vector<std::int64_t>>{{2, 4}, {3}}));
}

TEST(Anomalies, NonFiniteReportsAndValuesAreNamed) {
  StudyBuilder builder;
  builder.add(TrialState::kComplete, 0, 10, 3);
  builder.study.reports[1].value = kNaN;
  builder.study.reports[2].value = -kInfinity;
  builder.add(TrialState::kComplete, 10, 20).values = {kInfinity};
  const StudyReport report = study_facts(builder.study, {});
  ASSERT_TRUE(anomaly(report, "non_finite_reports"));
  EXPECT_EQ(anomaly(report, "non_finite_reports")->text, "trial 0 reported 1 NaN and 1 infinite values");
  ASSERT_TRUE(anomaly(report, "non_finite_values"));
  EXPECT_EQ(anomaly(report, "non_finite_values")->trials, std::vector<std::int64_t>{1});
}

TEST(Anomalies, ATrialWhoseWorkerTookAnotherOneIsDead) {
  const auto of = [](double second_end, int after) {
    StudyBuilder builder;
    for (int i = 0; i < 3; ++i) builder.add(TrialState::kComplete, 10 * i, i == 2 ? second_end : 10 * i + 9).worker = 0;
    builder.add(TrialState::kRunning, 30, -1).worker = 0;  // Ctrl-C in a notebook, and optimize() again
    if (after > 0) builder.add(TrialState::kRunning, 31, -1).worker = static_cast<std::uint32_t>(after - 1);
    return study_facts(builder.study, {.now = at(33)});
  };
  const StudyReport report = of(29, 1);
  const StudyAnomaly* dead = anomaly(report, "dead_trial");
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->trials, std::vector<std::int64_t>{3});
  EXPECT_NE(dead->text.find("its worker has begun another one since"), std::string::npos) << dead->text;
  EXPECT_FALSE(anomaly(of(29, 0), "dead_trial")) << "it may run";
  EXPECT_FALSE(anomaly(of(29, 2), "dead_trial")) << "of another worker";
  StudyBuilder asked;  // four at once, and told one after the other
  for (int i = 0; i < 12; ++i) asked.add(TrialState::kComplete, i / 4 * 40, i / 4 * 40 + 10 * (i % 4 + 1)).worker = 0;
  for (int i = 0; i < 4; ++i) asked.add(TrialState::kRunning, 160 + i, -1).worker = 0;
  EXPECT_FALSE(anomaly(study_facts(asked.study, {.now = at(165)}), "dead_trial"));
}

TEST(Anomalies, AWorkerThatTookAnotherTrialTellsMoreThanTheAgeOfTheOneBefore) {
  StudyBuilder builder;
  for (int i = 0; i < 8; ++i) builder.add(TrialState::kComplete, 10 * i, 10 * i + 9).worker = 0;
  builder.add(TrialState::kRunning, 80, -1).worker = 0;
  for (int i = 0; i < 8; ++i) builder.add(TrialState::kComplete, 1000 + 10 * i, 1009 + 10 * i).worker = 0;
  const StudyReport report = study_facts(builder.study, {.now = at(1100)});
  const StudyAnomaly* dead = anomaly(report, "dead_trial");
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->text,
            "trial 8 is RUNNING in the storage and dead: its worker has begun another one since, and runs one at a "
            "time");
}

TEST(Anomalies, AStudyThatStoodStillSaysWhen) {
  Made made = make({});
  std::find_if(made.study.trials.rbegin(), made.study.trials.rend(), [](const Trial& trial) {
    return trial.state == TrialState::kComplete;
  })->values = {0.5};  // the best, after the middle
  Study study = made.study;
  const Nanos middle = *study.trials[100].start, later = 36'000 * kSecond;
  for (Trial& trial : study.trials) {  // as when the machine sleeps
    if (*trial.start > middle) *trial.start += later;
    if (*trial.complete > middle) *trial.complete += later;
  }
  const StudyReport asleep = study_facts(study, {.now = at(made.end + 36'001)});
  const StudyAnomaly* slept = anomaly(asleep, "stood_still");
  ASSERT_TRUE(slept);
  EXPECT_NE(slept->text.find(" by the storage's clock no trial began or ended, and 4 were open"), std::string::npos)
      << slept->text;
  study = made.study;
  for (Trial& trial : study.trials) {  // as when it is stopped and started again
    if (*trial.start <= middle) trial.complete = std::min(*trial.complete, middle);
    if (*trial.start > middle) *trial.start += later, *trial.complete += later;
  }
  const StudyReport restarted = study_facts(study, {.now = at(made.end + 36'001)});
  const StudyAnomaly* stopped = anomaly(restarted, "stood_still");
  ASSERT_TRUE(stopped);
  EXPECT_NE(stopped->text.find("no trial was open"), std::string::npos) << stopped->text;

  // A pause without an open trial is nobody's time; where trials were open, it is theirs.
  const StudyReport whole = study_facts(made.study, {.now = at(made.end + 1)});
  EXPECT_EQ(whole.paused_seconds, 0);
  EXPECT_EQ(asleep.paused_seconds, 0);
  EXPECT_NEAR(restarted.paused_seconds, 36'000, 60);
  EXPECT_NEAR(restarted.worker_time.total, whole.worker_time.total, 0.05 * whole.worker_time.total);
  EXPECT_NEAR(restarted.parallelism.open_mean, whole.parallelism.open_mean, 0.1 * whole.parallelism.open_mean);
  const BestPoint& best = restarted.best.back();
  EXPECT_NEAR(best.worked_seconds, whole.best.back().worked_seconds, 60);
  EXPECT_NEAR(best.seconds - best.worked_seconds, restarted.paused_seconds, 1e-6) << "it came after the pause";
}

TEST(Anomalies, TrialsThatWentFurtherAreNotSlowForThat) {
  StudyBuilder builder;
  double t = 0;
  const auto add = [&](int reports, double length) {
    builder.add(TrialState::kPruned, t, t + length, reports);
    t += length + 1;
  };
  for (int i = 0; i < 24; ++i) {
    const int reports = i % 4 == 3 ? 6 : i % 4 == 2 ? 3 : 1;
    add(reports, 90 * std::pow(1.6, reports));
  }
  EXPECT_FALSE(anomaly(study_facts(builder.study, {}), "slow_trial"));
  add(1, 3000);
  EXPECT_TRUE(anomaly(study_facts(builder.study, {}), "slow_trial"));
}

TEST(Anomalies, OddTrialsAreNamed) {
  StudyBuilder builder;
  const auto lr = builder.number("lr");
  builder.add(TrialState::kComplete, 0, 10, 3, {{lr, 0.5}});
  builder.add(TrialState::kComplete, 10, 20, 3);
  builder.add(TrialState::kPruned, 20, 30, 0, {{lr, 0.25}});
  const StudyReport report = study_facts(builder.study, {.now = at(15)});
  EXPECT_EQ(anomaly(report, "no_parameters")->trials, std::vector<std::int64_t>{1});
  EXPECT_EQ(anomaly(report, "pruned_without_reports")->trials, std::vector<std::int64_t>{2});
  EXPECT_FALSE(anomaly(report, "slow_trial"));
}

TEST(Anomalies, AnOrdinaryStudyHasNoAnomaly) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Made made = make({.by_layers = 3, .seed = seed});
    const StudyReport report = study_facts(made.study, {.now = at(made.end + 5)});
    for (const StudyAnomaly& one : report.anomalies) ADD_FAILURE() << one.text;
  }
}

}  // namespace
}  // namespace headroom::tune
