// SPDX-License-Identifier: Apache-2.0
#include "tune/study_events.h"

#include <gtest/gtest.h>

namespace headroom::tune {
namespace {

using Kind = StudyEvent::Kind;

// Trials one after the other, each of `startup` and then so many steps of one second.
Study study(Nanos startup, const std::vector<std::size_t>& reports) {
  Study made;
  Nanos at = 0;
  for (const std::size_t count : reports) {
    Trial trial;
    trial.number = static_cast<std::int64_t>(made.trials.size());
    trial.state = TrialState::kComplete;
    trial.start = at;
    trial.complete = at += startup + static_cast<Nanos>(count) * kSecond;
    trial.first_report = made.reports.size();
    trial.reports = count;
    made.reports.resize(made.reports.size() + count);
    made.trials.push_back(trial);
  }
  return made;
}

std::vector<Nanos> times(const std::vector<StudyEvent>& events, std::uint32_t trial) {
  std::vector<Nanos> at;
  for (const StudyEvent& e : events)
    if (e.trial == trial && e.kind == Kind::kReport) at.push_back(e.at / kSecond);
  return at;
}

TEST(StudyEvents, ReportsLieAtTheEndOfATrialAfterItsStartUp) {
  const auto events = study_events(study(10 * kSecond, {2, 4, 3, 8}), 100);
  EXPECT_EQ(times(events, 0), (std::vector<Nanos>{11, 12}));
  EXPECT_EQ(times(events, 1), (std::vector<Nanos>{23, 24, 25, 26}));
  EXPECT_EQ(events.front().kind, Kind::kBegin);
  EXPECT_EQ(events.back().kind, Kind::kEnd);
}

TEST(StudyEvents, TakesWholeTrialsUpToALimit) {
  const auto events = study_events(study(kSecond, {2, 4, 3}), 7);
  EXPECT_EQ(events.size(), 2 + 4 + 2 * 2);
}

TEST(StudyEvents, AClockThatWasSetBackLeavesOrderWithinATrial) {
  Study set_back = study(kSecond, {2, 4, 3});
  set_back.trials[1].complete = *set_back.trials[1].start - kSecond;
  std::vector<std::uint32_t> order;
  for (const StudyEvent& e : study_events(set_back, 100))
    if (e.trial == 1 && e.kind == Kind::kReport) order.push_back(e.report);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(StudyEvents, ARunningTrialHasNoEndAndAWaitingOneNothing) {
  Study running = study(kSecond, {2, 4, 3});
  running.trials[2].state = TrialState::kRunning;
  running.trials[2].complete.reset();
  running.trials[1].start.reset();
  running.trials[1].state = TrialState::kWaiting;
  const auto events = study_events(running, 100);
  EXPECT_EQ(events.size(), (1 + 2 + 1) + (1 + 3));
}

}  // namespace
}  // namespace headroom::tune
