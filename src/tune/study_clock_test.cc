// SPDX-License-Identifier: Apache-2.0
#include "tune/study_clock.h"

#include <gtest/gtest.h>

#include "tune/study_testing.h"

namespace headroom::tune {
namespace {

using testing::at;
using testing::StudyBuilder;

constexpr Nanos kHour = 3600 * kSecond;

// One trial from second 0 to 100 of UTC, as a writer `hours` east of UTC that writes its local time has it.
Study written_east(int hours) {
  StudyBuilder builder;
  Trial& trial = builder.add(TrialState::kComplete, 0, 100);
  *trial.start += hours * kHour;
  *trial.complete += hours * kHour;
  return builder.study;
}

StudyClock clock_of(const Study& study, double now, int local_hours) {
  return study_clock(study, {.now = at(now), .local_offset = local_hours * kHour});
}

TEST(StudyClock, WhatIsToldHolds) {
  const StudyClock clock = study_clock(written_east(9), {.now = at(200), .utc_offset = 9 * kHour});
  EXPECT_TRUE(clock.known);
  EXPECT_EQ(clock.offset, -9 * kHour);
  EXPECT_EQ(clock.how, "as told");
}

TEST(StudyClock, AStorageThatNamesTheZoneNeedsNothingElse) {
  Study study = written_east(0);
  study.times_in_utc = true;
  const StudyClock clock = study_clock(study, {.utc_offset = 9 * kHour});
  EXPECT_TRUE(clock.known);
  EXPECT_EQ(clock.offset, 0);
}

TEST(StudyClock, TheZoneOfThisMachineAloneTellsNothing) {
  for (const int zone : {-8, 0, 9}) {
    const StudyClock clock = clock_of(written_east(0), 1e6, zone);
    EXPECT_FALSE(clock.known) << zone;
    EXPECT_EQ(clock.offset, 0);
    EXPECT_TRUE(clock_of(written_east(zone), 110, zone).known) << zone << ": its latest time was just now";
  }
}

TEST(StudyClock, HeartbeatsFindEvenAZoneThatIsNotOurs) {
  Study study = written_east(9);
  study.trials[0].heartbeat = at(60);
  const StudyClock clock = clock_of(study, 1e6, -5);
  EXPECT_TRUE(clock.known);
  EXPECT_EQ(clock.offset, -9 * kHour);
  EXPECT_EQ(clock.how, "heartbeats");
}

TEST(StudyClock, HeartbeatsOfTwoClocksAreAContradiction) {
  StudyBuilder builder;
  builder.add(TrialState::kComplete, 0, 100).heartbeat = at(60);
  builder.add(TrialState::kComplete, 0, 100).heartbeat = at(60) - 9 * kHour;
  const StudyClock clock = clock_of(builder.study, 1e6, 9);
  EXPECT_FALSE(clock.known);
  EXPECT_NE(clock.how.find("contradict"), std::string::npos) << clock.how;
}

TEST(StudyClock, AStorageInUseWasWrittenJustAfterItsLatestTime) {
  for (const int zone : {9, 0, -8}) {
    for (const int writer : {0, zone}) {
      Study study = written_east(writer);
      study.written = at(110);
      const StudyClock clock = clock_of(study, 1e6, zone);
      EXPECT_TRUE(clock.known) << zone << " " << writer;
      EXPECT_EQ(clock.offset, -writer * kHour) << zone << " " << writer;
    }
  }
}

TEST(StudyClock, NoTimeIsInTheFuture) {
  const StudyClock clock = clock_of(written_east(9), 200, 9);
  EXPECT_TRUE(clock.known);
  EXPECT_EQ(clock.offset, -9 * kHour);
}

TEST(StudyClock, AnOldCopyTellsNothingAndSaysSo) {
  Study study = written_east(9);
  study.written = at(1e6);
  const StudyClock clock = clock_of(study, 1e6, 9);
  EXPECT_FALSE(clock.known);
  EXPECT_EQ(clock.offset, 0);
  EXPECT_NE(clock.how.find("UTC is assumed"), std::string::npos);
}

TEST(StudyClock, TimesOfAThirdZoneAreNotTakenForOurs) {
  const StudyClock clock = clock_of(written_east(9), 200, 0);
  EXPECT_FALSE(clock.known);
  EXPECT_NE(clock.how.find("do its times make sense"), std::string::npos) << clock.how;
}

TEST(StudyClock, WithoutTimesNothingIsKnown) {
  StudyBuilder builder;
  builder.add(TrialState::kWaiting, -1, -1);
  EXPECT_FALSE(clock_of(builder.study, 1e6, 9).known);
  EXPECT_FALSE(latest_time(builder.study));
}

TEST(StudyClock, TimesOutsideOfReasonAreNoTimes) {
  EXPECT_FALSE(sane(-1));
  EXPECT_FALSE(sane(INT64_MAX));
  EXPECT_FALSE(sane(std::nullopt));
  EXPECT_EQ(sane(at(0)), at(0));
}

}  // namespace
}  // namespace headroom::tune
