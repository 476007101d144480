// SPDX-License-Identifier: Apache-2.0
#include "analyze/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "model/events.h"
#include "model/losses.h"

namespace headroom {
namespace {

using At = Progress::At;

// What one output of a job says, by the second.
class Output {
 public:
  Output() { source_ = sink_.add_source({SourceKind::kMarks, "7/1/7/output", kNoSource, {{"via", "output"}}}); }
  Output& epoch(double when, std::int64_t number, std::int64_t of, const std::string& state = "begun") {
    return event(when, {"epoch", number, of, state, {}, {}});
  }
  Output& fold(double when, std::int64_t number, std::int64_t of) {
    return event(when, {"fold", number, of, "begun", {}, {}});
  }
  // A bar at `number`, of which the steps were counted.
  Output& step(double when, std::int64_t number, std::int64_t of, bool in_epoch = false) {
    events::Progress said{"step", number, of, "counted", steps_, {}};
    if (in_epoch) said.in_epoch = 1;
    return event(when, said);
  }
  Output& count(double when, std::int64_t more) {
    steps_ += more;
    sink_.add_row(source_, at(when), std::array{Cell{Metric::kSteps, steps_, std::nullopt}});
    return *this;
  }
  // Of these a step each `pace` seconds; the bar is told once.
  Output& bar(double from, std::int64_t steps, std::int64_t of, double pace, bool in_epoch = false) {
    for (std::int64_t i = 1; i <= steps; ++i) {
      const double when = from + static_cast<double>(i) * pace;
      count(when, 1);
      if (i == 1) step(when, 1, of, in_epoch);
    }
    return *this;
  }
  Output& phase(double when, const std::string& name) {
    std::vector<TextId> texts;
    if (!name.empty()) texts.push_back(sink_.intern(name));
    sink_.add_list_row(source_, {.at = at(when), .list = sink_.intern_list(texts)});
    return *this;
  }
  [[nodiscard]] std::optional<Progress> by(double when, Ends job = Ends::kRuns) const {
    return progress_of(sink_.recording(), at(when), job);
  }

 private:
  static Nanos at(double when) { return static_cast<Nanos>(when * 1e9); }
  Output& event(double when, const events::Progress& said) {
    sink_.add_event(to_event(said, at(when), source_));
    return *this;
  }
  MemorySink sink_;
  SourceId source_ = kNoSource;
  std::int64_t steps_ = 0;
};

void expect_left(const std::optional<Progress>& progress, double low, double high) {
  ASSERT_TRUE(progress && progress->left);
  EXPECT_NEAR(progress->left->low_seconds, low, 0.01);
  EXPECT_NEAR(progress->left->high_seconds, high, 0.01);
}

TEST(Progress, AJobThatTellsNoWholeHasAPlaceAndNoTimeLeft) {
  EXPECT_FALSE(Output().by(10));
  const auto counted = Output().count(1, 5).count(9, 50).by(10);
  EXPECT_EQ(counted->step, (At{55, 0, true}));
  EXPECT_FALSE(counted->epoch || counted->left);
  EXPECT_EQ(Output().count(1, 5).count(9, 50).by(5)->step, (At{5, 0, true})) << "as of then";
  Output job;
  job.epoch(0, 1, 0).epoch(60, 2, 0).epoch(120, 3, 0);
  EXPECT_EQ(job.by(130)->epoch, (At{3, 0, false}));
  EXPECT_FALSE(job.by(130)->left);
  EXPECT_FALSE(job.by(130, Ends::kEndedWell)->epoch->done) << "whether it was the last one nobody knows";
}

TEST(Progress, StepsOfAnEpochWithoutAWholeTellOfThese) {
  Output job;
  job.epoch(0, 1, 0).bar(30, 41, 100, 1, true);
  const auto now = job.by(71);
  EXPECT_EQ(now->epoch, (At{1, 0, false}));
  EXPECT_EQ(now->left->to_end_of, Progress::Unit::kSteps);
  expect_left(now, 59 / 1.0625, 59 * 1.0625);
}

TEST(Progress, AFoldThatEndedTellsTheTimeOfAll) {
  Output job;
  job.fold(0, 1, 3).epoch(1, 1, 5).epoch(21, 2, 5);
  const auto first = job.by(25);
  EXPECT_EQ(first->fold, (At{1, 3, false}));
  EXPECT_EQ(first->left->to_end_of, Progress::Unit::kEpochs) << "no fold has ended";
  job.fold(100, 2, 3);
  EXPECT_FALSE(job.by(101)->epoch) << "that was of the fold before";
  job.epoch(101, 1, 5);
  const auto second = job.by(110);
  EXPECT_EQ(second->fold, (At{2, 3, false}));
  EXPECT_EQ(second->epoch, (At{1, 5, false}));
  EXPECT_EQ(second->left->to_end_of, Progress::Unit::kFolds);
  expect_left(second, 2 * 100 / 1.25 - 10, 2 * 100 * 1.25 - 10);
}

TEST(Progress, PhasesOfWhichSomeWereLostAreNotCounted) {
  MemorySink sink;
  const SourceId marks = sink.add_source({SourceKind::kMarks, "7/1/7", kNoSource, {{"via", "marks"}}});
  sink.add_event(to_event(events::Progress{"epoch", 3, 0, "begun", {}, {}}, kSecond, marks));
  EXPECT_EQ(progress_of(sink.recording(), 2 * kSecond, Ends::kRuns)->epoch, (At{3, 0, false}));
  sink.add_loss(make_loss(LossKind::kMarkLost, 5, "7"));
  EXPECT_FALSE(progress_of(sink.recording(), 2 * kSecond, Ends::kRuns));
}

TEST(Progress, WholeEpochsTellTheTimeLeft) {
  Output job;
  job.epoch(10, 1, 5).epoch(70, 2, 5).epoch(130, 3, 5);
  const auto now = job.by(150);
  EXPECT_EQ(now->epoch, (At{3, 5, false}));
  EXPECT_EQ(now->left->to_end_of, Progress::Unit::kEpochs);
  EXPECT_FALSE(now->left->without_pauses);
  expect_left(now, 3 * 60 / 1.125 - 20, 3 * 60 * 1.125 - 20);
}

TEST(Progress, EpochsThatDifferMakeTheRangeWide) {
  Output job;
  job.epoch(0, 1, 4).epoch(100, 2, 4).epoch(140, 3, 4);
  expect_left(job.by(140), 2 * 40 / 1.125, 2 * 100 * 1.125);
}

TEST(Progress, OneEpochIsNoRuleYet) {
  Output job;
  job.epoch(0, 1, 3).epoch(60, 2, 3);
  expect_left(job.by(60), 2 * 60 / 1.25, 2 * 60 * 1.25);
}

TEST(Progress, TheStartIsInNoEpoch) {
  Output job;
  job.epoch(1000, 1, 3);
  EXPECT_FALSE(job.by(1010)->left) << "nothing was seen of what an epoch takes";
  job.epoch(1060, 2, 3);
  expect_left(job.by(1060), 2 * 60 / 1.25, 2 * 60 * 1.25);
}

TEST(Progress, AnEpochThatTakesLongerThanAllBeforeWidensTheRangeUntilNobodyKnows) {
  Output job;
  job.epoch(0, 1, 3).epoch(60, 2, 3);
  expect_left(job.by(60 + 100), 60 / 1.25, 25 + 60 * 1.25);
  EXPECT_FALSE(job.by(60 + 300)->left);
  EXPECT_EQ(job.by(60 + 300)->epoch, (At{2, 3, false}));
}

TEST(Progress, LinesAtTheEndOfAnEpochCountThoseThatAreDone) {
  Output job;
  job.epoch(60, 1, 4, "done").epoch(120, 2, 4, "done");
  const auto now = job.by(130);
  EXPECT_EQ(now->epoch, (At{2, 4, true}));
  expect_left(now, 2 * 60 / 1.25 - 10, 2 * 60 * 1.25 - 10);
  job.epoch(180, 3, 4, "done").epoch(240, 4, 4, "done");
  EXPECT_FALSE(job.by(241)->left) << "what follows tells nothing";
}

TEST(Progress, ABarOfEpochsIsAtTheNextOne) {
  Output job;
  job.epoch(0, 0, 3, "counted").epoch(60, 1, 3, "counted");
  EXPECT_EQ(job.by(60)->epoch, (At{2, 3, false}));
  expect_left(job.by(60), 2 * 60 / 1.25, 2 * 60 * 1.25);
  EXPECT_EQ(job.epoch(120, 2, 3, "counted").epoch(180, 3, 3, "counted").by(180)->epoch, (At{3, 3, true}));
}

TEST(Progress, NumbersFromZeroLeaveOpenWhetherTheLastIsTheWhole) {
  Output job;
  job.epoch(0, 0, 4).epoch(60, 1, 4);
  expect_left(job.by(60), 3 * 60 / 1.25, 4 * 60 * 1.25);
  job.epoch(120, 2, 4).epoch(180, 3, 4).epoch(240, 4, 4);
  expect_left(job.by(240), 60 / 1.0625, 60 * 1.0625);
}

TEST(Progress, WithinTheFirstEpochStepsStandIn) {
  Output job;
  job.epoch(0, 1, 3).bar(30, 41, 100, 1, true);
  const auto now = job.by(71);
  EXPECT_EQ(now->step, (At{41, 100, true}));
  EXPECT_TRUE(now->left->without_pauses);
  expect_left(now, (59 + 200) / 1.0625, (59 + 200) * 1.0625);
}

TEST(Progress, ABarThatNamesNoEpochMayBeOfAllOfThem) {
  Output job;
  job.epoch(0, 1, 3).bar(30, 41, 100, 1);
  expect_left(job.by(71), 59 / 1.0625, (59 + 200) * 1.0625);
}

TEST(Progress, StepsAloneTellOfTheseStepsOnly) {
  Output job;
  job.bar(30, 41, 100, 1);
  const auto now = job.by(71);
  EXPECT_FALSE(now->epoch);
  EXPECT_EQ(now->left->to_end_of, Progress::Unit::kSteps);
  expect_left(now, 59 / 1.0625, 59 * 1.0625);
}

TEST(Progress, StepsThatBeginAgainAreCountedFromThere) {
  Output job;
  job.bar(0, 100, 100, 1).step(101, 0, 100).count(103, 2).count(120, 20);
  EXPECT_EQ(job.by(120)->step, (At{22, 100, true}));
}

TEST(Progress, OfTooLittleNothingIsSaid) {
  EXPECT_FALSE(Output().bar(30, 8, 100, 1).by(39)->left) << "too few steps";
  EXPECT_FALSE(Output().bar(30, 60, 1000, 0.01).by(31)->left) << "too short";
  EXPECT_FALSE(Output().bar(30, 41, 100, 1).by(400)->left) << "something else goes on";
}

TEST(Progress, StepsOfTheEpochBeforeAreNoneOfThisOne) {
  Output job;
  job.epoch(0, 1, 3).bar(0, 100, 100, 1, true).epoch(110, 2, 3);
  EXPECT_FALSE(job.by(111)->step);
  EXPECT_EQ(job.step(112, 0, 100, true).count(113, 1).by(113)->step, (At{1, 100, true}));
}

TEST(Progress, LinesWithinAnEpochSayByTheirStepsHowFarItIs) {
  Output job;
  job.epoch(20, 1, 3, "within").count(20, 50).step(20, 50, 200, true).epoch(100, 2, 3, "within");
  job.count(80, 150).count(100, 50).step(100, 50, 200, true);
  expect_left(job.by(100), 80 * 0.75 / 1.25 + 80 / 1.25, 80 * 0.75 * 1.25 + 80 * 1.25);
}

TEST(Progress, AJobThatEndedHasNoTimeLeft) {
  Output job;
  job.epoch(10, 1, 5).epoch(70, 2, 5).phase(0, "validate").phase(1, "").phase(60, "validate").phase(61, "");
  job.phase(120, "validate").phase(121, "");
  const auto ended = job.by(130, Ends::kEnded);
  EXPECT_EQ(ended->epoch, (At{2, 5, false}));
  EXPECT_FALSE(ended->left || ended->next_validation);
  EXPECT_EQ(job.by(130, Ends::kEndedWell)->epoch, (At{2, 5, false})) << "it may have stopped early";
  job.epoch(140, 3, 5).epoch(150, 4, 5).epoch(160, 5, 5);
  EXPECT_EQ(job.by(200, Ends::kEnded)->epoch, (At{5, 5, false})) << "it failed within, perhaps";
  EXPECT_EQ(job.by(200, Ends::kEndedWell)->epoch, (At{5, 5, true}));
}

TEST(Progress, AnotherTrainingBeginsAnew) {
  Output job;
  job.epoch(0, 1, 2).epoch(60, 2, 2).epoch(120, 1, 3);
  EXPECT_EQ(job.by(125)->epoch, (At{1, 3, false}));
  EXPECT_FALSE(job.by(125)->left);
}

struct Validating : Output {
  Validating() {
    epoch(0, 1, 9).epoch(60, 2, 9);
    for (const double begin : {50.0, 110.0, 170.0}) phase(begin, "validate").phase(begin + 10, "train");
  }
};

TEST(Progress, ValidationsThatRecurTellTheNextOne) {
  const auto now = Validating().by(200);
  ASSERT_TRUE(now->next_validation);
  EXPECT_EQ(now->next_validation->phase, "validate");
  EXPECT_NEAR(now->next_validation->low_seconds, 60 / 1.125 - 30, 0.01);
  EXPECT_NEAR(now->next_validation->high_seconds, 60 * 1.125 - 30, 0.01);
}

TEST(Progress, NoNextValidationIsGuessed) {
  EXPECT_FALSE(Validating().by(175)->next_validation) << "one is open";
  EXPECT_FALSE(Validating().by(160)->next_validation) << "twice is no rule";
  EXPECT_FALSE(Validating().by(300)->next_validation) << "overdue";
  EXPECT_FALSE(Validating().phase(400, "validate").phase(410, "").by(420)->next_validation) << "not regular";
}

TEST(Progress, AValidationAfterTheEndIsNoNextOne) {
  const auto at_epoch_three_of = [](std::int64_t epochs) {
    Output job;
    job.epoch(0, 1, epochs).epoch(60, 2, epochs).epoch(120, 3, epochs);
    for (const double begin : {50.0, 110.0, 170.0}) job.phase(begin, "validate").phase(begin + 10, "train");
    return job.by(185);
  };
  EXPECT_TRUE(at_epoch_three_of(9)->next_validation);
  EXPECT_FALSE(at_epoch_three_of(3)->next_validation);
}

TEST(Progress, TrainingsThatTellSideBySideHaveNoTimeLeft) {
  Output job;
  for (int i = 1; i <= 4; ++i) job.epoch(i * 60, i + 1, 20).epoch(i * 60 + 15, i, 20);
  EXPECT_EQ(job.by(256)->epoch, (At{4, 20, false}));
  EXPECT_FALSE(job.by(256)->left);
}

TEST(Progress, NoValidationFollowsWhereAllThatWasToldIsDone) {
  Output done;
  done.epoch(60, 1, 3, "done").epoch(120, 2, 3, "done").epoch(180, 3, 3, "done");
  Output steps;
  steps.bar(0, 200, 200, 1);
  Output late;
  late.epoch(0, 1, 3).epoch(60, 2, 3).epoch(120, 3, 3);
  for (Output* job : {&done, &steps, &late})
    for (const double begin : {50.0, 120.0, 190.0}) job->phase(begin, "validate").phase(begin + 8, "train");
  EXPECT_FALSE(done.by(201)->next_validation);
  EXPECT_FALSE(steps.by(201)->next_validation);
  EXPECT_FALSE(late.by(201)->next_validation);
}

TEST(Progress, WhatNobodyCanHaveDoneIsNotBelieved) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(Output().epoch(1, 1, kHuge).by(2));
  EXPECT_FALSE(Output().epoch(1, 7, 5).epoch(1, -1, 5).by(2));
}

}  // namespace
}  // namespace headroom
