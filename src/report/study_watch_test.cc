// SPDX-License-Identifier: Apache-2.0
#include "report/study_watch.h"

#include <gmock/gmock.h>

namespace headroom::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// An hour old: 30 trials pruned in its second half, one a minute, one completed at its begin, two open, one dead.
StudyReport hour() {
  StudyReport report{.name = "sweep", .trials = 34, .begin = 0, .end = 3600 * kSecond, .live = true};
  report.states = {{.state = TrialState::kRunning, .count = 3},
                   {.state = TrialState::kComplete, .count = 1},
                   {.state = TrialState::kPruned, .count = 30}};
  report.bars.push_back({.trial = 0, .state = TrialState::kComplete, .begin = 0, .end = 600});
  for (std::int64_t i = 1; i <= 30; ++i)
    report.bars.push_back({.trial = i,
                           .state = TrialState::kPruned,
                           .begin = 1700.0 + 60.0 * static_cast<double>(i),
                           .end = 1800.0 + 60.0 * static_cast<double>(i)});
  report.bars.push_back({.trial = 31, .state = TrialState::kRunning, .begin = 3500, .first_step = 3540, .end = 3600});
  report.bars.push_back({.trial = 32, .state = TrialState::kRunning, .begin = 3590, .first_step = 3630, .end = 3600});
  report.bars.push_back({.trial = 33, .state = TrialState::kRunning, .begin = 100, .end = 3600, .dead = true});
  report.best = {{.trial = 0, .trials_finished = 1, .seconds = 600, .worked_seconds = 600, .value = 0.25}};
  return report;
}

TEST(StudyWatch, RateIsOfTheLastHalfHourAndDeadTrialsAreNotOpen) {
  EXPECT_EQ(watch_rate(hour()), "2 open; 60 trials/h over the last 30:00, 100 % of them pruned; best 0.25 (trial 0)");
  EXPECT_EQ(watch_rate({}), "0 open");
}

TEST(StudyWatch, AFewChangesAreNamedAndManyAreCounted) {
  StudyReport before = hour(), now = hour();
  EXPECT_THAT(watch_changes(before, now), IsEmpty());
  now.bars[31].state = TrialState::kPruned;
  now.bars[31].end = 3605;
  now.bars.push_back({.trial = 34, .state = TrialState::kRunning, .begin = 3605});
  now.best.push_back({.trial = 31, .trials_finished = 32, .seconds = 3605, .worked_seconds = 3605, .value = 0.125});
  EXPECT_THAT(watch_changes(before, now),
              ElementsAre("new best 0.125 by trial 31", "trial 31 was pruned after 1:45", "trial 34 began"));
  EXPECT_THAT(watch_changes({}, now), ElementsAre("new best 0.125 by trial 31", "2 trials began", "1 trial completed",
                                                  "31 trials were pruned", "1 trial died"));
}

TEST(StudyWatch, ThePictureNamesWhatIsOpenAndWhatHappenedLast) {
  std::vector<std::string> happened;
  for (int i = 0; i < 20; ++i) happened.push_back("12:00:" + std::to_string(10 + i) + " UTC  something");
  const std::string text = watch_picture(hour(), happened, {.width = 80});
  EXPECT_THAT(text, HasSubstr("34 trials: 1 complete, 30 pruned, 3 running (1 of them dead).\n"));
  EXPECT_THAT(text, HasSubstr("  trial 31 for 1:40\n  trial 32 for 10.0 s, in its start-up (estimated)\n"));
  EXPECT_THAT(text, Not(HasSubstr("12:00:21")));
  EXPECT_THAT(text, HasSubstr("12:00:29 UTC  something\n"));
  EXPECT_THAT(watch_picture(hour(), {"\x1b[2J"}, {}), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace headroom::report
