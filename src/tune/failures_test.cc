// SPDX-License-Identifier: Apache-2.0
#include "tune/failures.h"

#include <gtest/gtest.h>

#include <functional>

#include "tune/study_facts.h"
#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

using testing::StudyBuilder;

struct Drawn {
  double batch_size = 0, layers = 0, lr = 0;
  bool adam = false;
};

// 200 trials over batch_size (8 to 512, as categories), layers, lr and optimizer; `fails` says how likely one fails.
Study drawn(unsigned seed, const std::function<double(const Drawn&)>& fails, int reports = 0) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  StudyBuilder builder;
  const auto batch = builder.category("batch_size", {"8", "16", "32", "64", "128", "256", "512"});
  const auto layers = builder.number("layers", ParameterKind::kInt), lr = builder.number("lr");
  const auto optimizer = builder.category("optimizer", {"adam", "sgd"});
  for (int i = 0; i < 200; ++i) {
    const auto choice = static_cast<double>(random() % 7);
    const Drawn one{.batch_size = 8 * std::exp2(choice),
                    .layers = static_cast<double>(1 + random() % 8),
                    .lr = uniform(),
                    .adam = random() % 2 == 0};
    const bool failed = uniform() < fails(one);
    builder.add(failed ? TrialState::kFail : TrialState::kComplete, i, i + 1, failed ? reports : 10,
                {{batch, choice}, {layers, one.layers}, {lr, one.lr}, {optimizer, one.adam ? 0.0 : 1.0}});
  }
  return builder.study;
}

std::vector<FailureGroup> groups(const Study& study) { return failure_groups(study, parameter_columns(study)); }

TEST(Failures, OfEveryTrialAreNoMatterOfParameters) {
  const Study study = drawn(1, [](const Drawn&) { return 1.0; });
  const auto groups = failure_groups(study, parameter_columns(study));
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].where, "whatever the parameters");
  EXPECT_FALSE(groups[0].region);
}

TEST(Failures, FromOneTrialOnAreNoMatterOfParametersEither) {
  StudyBuilder builder;
  const auto lr = builder.number("lr");
  std::mt19937_64 random(1);
  for (int i = 0; i < 30; ++i)
    builder.add(i < 6 ? TrialState::kComplete : TrialState::kFail, i, i + 1, i < 6 ? 10 : 0,
                {{lr, static_cast<double>(random() % 1000)}});
  const auto found = groups(builder.study);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].where, "from trial 6 on");
  EXPECT_EQ(found[0].failed, 24);
  EXPECT_FALSE(found[0].region);
  const StudyReport report = study_facts(builder.study, {});
  const StudyAnomaly* anomaly = testing::anomaly(report, "failing_since");
  ASSERT_TRUE(anomaly);
  EXPECT_EQ(anomaly->text,
            "24 of 24 trials from trial 6 on failed, whatever the parameters, from 11:06:46 on by the storage's clock");
  // As often before as after, they lie in no stretch.
  const auto mixed = groups(drawn(3, [](const Drawn&) { return 0.3; }));
  EXPECT_EQ(failing_since(mixed), nullptr);
}

TEST(Failures, OneAfterTheOtherInTheMiddleAreAStretch) {
  StudyBuilder builder;
  const auto lr = builder.number("lr");
  std::mt19937_64 random(1);
  for (int i = 0; i < 36; ++i)
    builder.add(i >= 15 && i < 24 ? TrialState::kFail : TrialState::kComplete, i, i + 1, 10,
                {{lr, static_cast<double>(random() % 1000)}});
  const auto found = groups(builder.study);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].where, "from trial 15 to trial 23");
  EXPECT_EQ(found[0].failed, 9);
  EXPECT_FALSE(found[0].region);
  EXPECT_EQ(failing_since(found), nullptr) << "it went on";
}

// Trials 25 to 69 of 100 fail. All of these have one worker or one optimizer, as few of the others have, or neither.
StudyReport failing_for_a_time(bool worker, bool optimizer, double seconds_each = 10) {
  StudyBuilder builder;
  builder.study.workers = {"aa11", "cc33"};
  const auto space = builder.category("optimizer", {"adam", "sgd"});
  for (int i = 0; i < 100; ++i) {
    const bool fails = i >= 25 && i < 70, chosen = fails || i < 3;
    const bool second = worker ? chosen : i % 2 == 0, sgd = optimizer ? chosen : i % 4 < 2;
    builder
        .add(fails ? TrialState::kFail : TrialState::kComplete, i * seconds_each, (i + 1) * seconds_each, 0,
             {{space, sgd ? 1.0 : 0.0}})
        .worker = second ? 1 : 0;
  }
  return study_facts(builder.study, {});
}

TEST(Failures, ThatLieTogetherTwiceAreToldTwice) {
  StudyBuilder builder;
  const auto lr = builder.number("lr");
  std::mt19937_64 random(1);
  const auto fails = [](int i) { return (i >= 12 && i < 20) || (i >= 41 && i < 55); };
  for (int i = 0; i < 70; ++i)
    builder.add(fails(i) ? TrialState::kFail : TrialState::kComplete, i * 10, (i + 1) * 10, fails(i) ? 0 : 10,
                {{lr, static_cast<double>(random() % 1000)}});
  const StudyReport report = study_facts(builder.study, {});
  const StudyAnomaly* found = testing::anomaly(report, "failing_for_a_time");
  ASSERT_TRUE(found);
  EXPECT_EQ(
      found->text,
      "8 of 8 trials from trial 12 to trial 19 failed, from 11:08:40 to 11:10:00 by the storage's clock, and 14 of "
      "14 trials from trial 41 to trial 54 failed, from 11:13:30 to 11:15:50 by the storage's clock: it came "
      "twice");
  EXPECT_EQ(found->trials.size(), 20U);
  EXPECT_EQ(found->trials.front(), 12);
  EXPECT_EQ(found->trials.back(), 54);
}

TEST(Failures, ThatLieTogetherInTimeSayWhenAndWhatTheyShare) {
  const StudyReport none = failing_for_a_time(false, false);
  const StudyAnomaly* found = testing::anomaly(none, "failing_for_a_time");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text,
            "45 of 45 trials from trial 25 to trial 69 failed, from 11:10:50 to 11:18:20 by the storage's clock");
  EXPECT_NE(found->next.find("no parameter and no worker alone sets them apart"), std::string::npos) << found->next;
  EXPECT_EQ(found->trials.size(), 20U);
  EXPECT_EQ(found->trials.back(), 69);
  for (const bool worker : {true, false}) {
    const StudyReport shared = failing_for_a_time(worker, !worker);
    found = testing::anomaly(shared, "failing_for_a_time");
    ASSERT_TRUE(found);
    EXPECT_NE(found->next.find(worker ? "all of them have worker cc33" : "all of them have optimizer = sgd"),
              std::string::npos)
        << found->next;
  }
  const StudyReport over_days = failing_for_a_time(false, false, 3000);
  found = testing::anomaly(over_days, "failing_for_a_time");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("from 2026-11-19 07:56:40 to 2026-11-20 21:26:40 by"), std::string::npos) << found->text;
}

TEST(Failures, OfOneSetOfParametersSayAllOfThemAndWhatAsksForThem) {
  enum class By { kEnqueued, kRetry, kUnknown };
  for (const By by : {By::kEnqueued, By::kRetry, By::kUnknown}) {
    for (const bool at_the_end : {false, true}) {
      StudyBuilder builder;
      const auto lr = builder.number("lr"), depth = builder.number("depth", ParameterKind::kInt);
      for (int i = 0; i < 30; ++i) {
        const bool fails = at_the_end ? i >= 24 : i < 6;
        Trial& trial =
            builder.add(fails ? TrialState::kFail : TrialState::kComplete, i * 10, i * 10 + 9, 0,
                        {{lr, fails ? 0.1 : 0.013 + 0.02 * (7 * i % 25)}, {depth, fails || i % 3 == 0 ? 12.0 : 8.0}});
        if (fails && by == By::kEnqueued) trial.enqueued = true;
        if (fails && by == By::kRetry && trial.number % 24 > 0) trial.retry_of = trial.number - 1;
      }
      const StudyReport report = study_facts(builder.study, {});
      const StudyAnomaly* found = testing::anomaly(report, at_the_end ? "failing_since" : "failing_for_a_time");
      ASSERT_TRUE(found);
      EXPECT_EQ(found->next.find("all of them have the same parameters (lr = 0.1, depth = 12), and hardly another has"),
                0U)
          << found->next;
      EXPECT_EQ(found->text.find("whatever the parameters"), std::string::npos) << found->text;
      const char* who = by == By::kEnqueued ? "enqueue_trial() asked for them"
                        : by == By::kRetry  ? "max_retry"
                                            : "what repeats them";
      EXPECT_NE(found->next.find(who), std::string::npos) << found->next;
    }
  }
}

TEST(Failures, OfOneWorkerAreThatWorkers) {
  StudyBuilder builder;
  const auto lr = builder.number("lr");
  builder.study.workers = {"aa11", "cc33"};
  std::mt19937_64 random(1);
  const auto add = [&](std::uint32_t worker, double begin, double end) {
    builder
        .add(worker == 1 ? TrialState::kFail : TrialState::kComplete, begin, end, 0,
             {{lr, static_cast<double>(random() % 1000)}})
        .worker = worker;
  };
  for (int i = 0; i < 40; ++i) i % 4 == 0 ? add(0, 30 * i, 30 * i + 115) : add(1, 30 * i, 30 * i + 8);
  const StudyReport report = study_facts(builder.study, {});
  ASSERT_FALSE(report.failures.empty());
  EXPECT_EQ(report.failures[0].where, "of worker cc33");
  EXPECT_EQ(report.failures[0].failed, 30);
  EXPECT_FALSE(report.failures[0].region) << "no space to leave out";
  const StudyAnomaly* found = testing::anomaly(report, "failing_worker");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->text, "30 of 30 trials of worker cc33 failed, and 0 of all 10 others");
  EXPECT_FALSE(testing::anomaly(report, "more_open_than_workers")) << "the storage knows of two";
  EXPECT_EQ(report.parallelism.workers, 2);
  EXPECT_EQ(failing_worker(report.failures), report.failures.data()) << "no change of the study mends that";
}

TEST(Failures, OfARegionThatCostsTimeAreAnAnomaly) {
  const Study study = drawn(1, [](const Drawn& one) { return one.layers >= 6 ? 1.0 : 0.0; });
  const StudyReport report = study_facts(study, {});
  ASSERT_FALSE(report.failures.empty());
  EXPECT_TRUE(report.failures[0].region);
  EXPECT_GT(report.failures[0].worker_seconds, 0);
  const StudyAnomaly* found = testing::anomaly(report, "failing_region");
  ASSERT_TRUE(found);
  EXPECT_NE(found->text.find("with layers >= 6 failed: "), std::string::npos) << found->text;
  const StudyReport seldom = study_facts(drawn(1, [](const Drawn& one) { return one.layers >= 6 ? 0.5 : 0.0; }), {});
  EXPECT_FALSE(testing::anomaly(seldom, "failing_region"));
}

TEST(Failures, OfOneParameterAreFoundAndCounted) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const auto found = groups(drawn(seed, [](const Drawn& d) { return d.batch_size >= 256 ? 0.8 : 0.0; }));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].where, "batch_size >= 256");
    EXPECT_GT(found[0].failed, found[0].of / 2);
    EXPECT_TRUE(found[0].before_first_step);
  }
}

TEST(Failures, OfTwoParametersTogetherAreFound) {
  int exact = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto found =
        groups(drawn(seed, [](const Drawn& d) { return d.batch_size >= 128 && d.layers >= 6 ? 1.0 : 0.0; }));
    ASSERT_FALSE(found.empty());
    exact +=
        found[0].where == "batch_size >= 128 and layers >= 6" || found[0].where == "layers >= 6 and batch_size >= 128";
    EXPECT_GT(found[0].failed * 10, found[0].of * 9) << found[0].where;
  }
  EXPECT_GE(exact, 9);
}

TEST(Failures, OfThreeParametersThatFailOnlyTogetherAreFound) {
  int exact = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto found =
        groups(drawn(seed, [](const Drawn& d) { return d.batch_size >= 64 && d.layers >= 5 && d.adam ? 1.0 : 0.0; }));
    ASSERT_FALSE(found.empty());
    const auto has = [&](const char* part) { return found[0].where.find(part) != std::string::npos; };
    exact += has("batch_size >= 64") && has("layers >= 5") && has("optimizer = adam");
    EXPECT_EQ(found[0].failed, found[0].of) << found[0].where;
  }
  EXPECT_GE(exact, 8);
}

TEST(Failures, OfOneValueAreNamedByItAndNoBoundBesides) {
  StudyBuilder builder;
  const auto lr = builder.number("lr"), width = builder.number("width");
  for (int i = 0; i < 40; ++i) {
    const bool failed = i % 5 == 4;
    builder.add(failed ? TrialState::kFail : TrialState::kComplete, i, i + 1, 0,
                {{lr, failed ? 0.02 : 0.001 * (1 + i * 7 % 60)}, {width, failed ? 256.0 : 32.0 + i}});
  }
  const auto found = groups(builder.study);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].failed, 8);
  EXPECT_EQ(found[0].where.find("lr", found[0].where.find("lr") + 1), std::string::npos) << found[0].where;
}

TEST(Failures, OfOnePointThatFailsEachTimeAreThatPoint) {
  StudyBuilder builder;
  const auto layers = builder.number("layers", ParameterKind::kInt), dropout = builder.number("dropout");
  const auto act = builder.category("act", {"relu", "gelu"});
  const auto add = [&](int i, bool fails, double a, double b, double c) {
    builder.add(fails ? TrialState::kFail : TrialState::kComplete, i, i + 1, 5, {{layers, a}, {act, b}, {dropout, c}});
  };
  for (int i = 0; i < 24; ++i)
    if (i % 4 == 3)
      add(i, true, 3, 1, 0.2);
    else
      add(i, false, i % 3 + 1.0, i / 3 % 2 + 0.0, i / 6 % 2 * 0.4);
  const auto found = groups(builder.study);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].where, "layers = 3, dropout = 0.2 and act = gelu");
  EXPECT_EQ(found[0].failed, 6);
  EXPECT_EQ(found[0].of, 6);
  EXPECT_TRUE(found[0].region);
}

TEST(Failures, OfACategoryAndBelowAThreshold) {
  const auto category = groups(drawn(1, [](const Drawn& d) { return d.adam ? 0.0 : 0.6; }));
  ASSERT_FALSE(category.empty());
  EXPECT_EQ(category[0].where, "optimizer = sgd");
  const Study study = drawn(1, [](const Drawn& d) { return d.lr < 0.2 ? 1.0 : 0.0; });
  const auto low = groups(study);
  ASSERT_EQ(low.size(), 1u);
  EXPECT_EQ(low[0].where.substr(0, 6), "lr <= ");
  EXPECT_EQ(low[0].failed, low[0].of) << "all that the words say, and nothing else";
}

TEST(Failures, ByChanceAreNoGroup) {
  int named = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const auto found = groups(drawn(seed, [](const Drawn&) { return 0.1; }));
    ASSERT_FALSE(found.empty());
    named += found.size() > 1 || found[0].where != "no region of the parameters stands out";
  }
  EXPECT_LE(named, 3) << "of 100 studies";
}

TEST(Failures, AreTheirSumHoweverTheyAreGrouped) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Study study = drawn(
        seed, [](const Drawn& d) { return d.layers >= 7 ? 0.7
                                          : d.adam      ? 0.02
                                                        : 0.1; }, 1);
    std::int64_t failed = 0, sum = 0;
    for (const Trial& trial : study.trials) failed += trial.state == TrialState::kFail;
    for (const FailureGroup& group : groups(study)) sum += group.failed;
    EXPECT_EQ(sum, failed);
  }
}

TEST(Failures, AfterOneStepAreSaidSo) {
  const auto found = groups(drawn(
      3, [](const Drawn&) { return 0.1; }, 1));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].where, "after step 1");
  EXPECT_FALSE(found[0].before_first_step);
}

TEST(Failures, ThatRanOutOfMemoryByARecordingAreCountedPerGroup) {
  const Study study = drawn(1, [](const Drawn& one) { return one.batch_size >= 256 ? 1.0 : 0.0; });
  std::map<std::int64_t, TrialMeasured> measured;
  std::int64_t failed = 0;
  for (const Trial& trial : study.trials) {
    measured[trial.number].out_of_memory = failed % 3 == 0 ? OutOfMemory::kFull : OutOfMemory::kSaid;
    failed += trial.state == TrialState::kFail ? 1 : 0;
  }
  const auto groups = failure_groups(study, parameter_columns(study), measured);
  std::int64_t said = 0, full = 0;
  for (const FailureGroup& group : groups) {
    EXPECT_EQ(group.said_out_of_memory + group.memory_full, group.failed) << "more than are listed";
    said += group.said_out_of_memory, full += group.memory_full;
  }
  EXPECT_GT(failed, 40);
  EXPECT_EQ(said + full, failed) << "what completed ran out of nothing";
  EXPECT_EQ(failure_groups(study, parameter_columns(study)).at(0).said_out_of_memory, 0);
}

}  // namespace
}  // namespace headroom::tune
