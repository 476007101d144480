// SPDX-License-Identifier: Apache-2.0
#include "analyze/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/entities.h"

namespace headroom {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Recording numbered(const std::vector<Process>& processes) {
  Recording recording;
  for (const Process& process : processes)
    recording.sources.push_back({SourceKind::kProcess, std::to_string(process.pid), kNoSource, to_attrs(process)});
  return recording;
}

TEST(Ranks, AreThoseOfTheLauncher) {
  const Recording recording = numbered({{.pid = 7, .rank = 0}, {.pid = 8, .rank = 1}, {.pid = 9}});
  EXPECT_THAT(ranks_of(recording, {0, 1, 2}), UnorderedElementsAre(Pair(0, 0), Pair(1, 1)));
}

TEST(Ranks, ANumberThatProcessesShareIsNotTheirs) {
  const Recording recording = numbered({{.pid = 7, .rank = 0}, {.pid = 8, .rank = 0}, {.pid = 9, .rank = 1}});
  EXPECT_THAT(ranks_of(recording, {0, 1, 2}), UnorderedElementsAre(Pair(2, 1)));
}

TEST(Ranks, OneThatWasStartedAgainHasTheNumberOfTheOneBefore) {
  const Recording recording =
      numbered({{.pid = 7, .start = 0, .end = 5, .rank = 0}, {.pid = 8, .start = 6, .rank = 0}});
  EXPECT_THAT(ranks_of(recording, {0, 1}), UnorderedElementsAre(Pair(0, 0), Pair(1, 0)));
}

TEST(Ranks, OneThatOutlivesAnotherIsNotAloneWithItsNumberLaterEither) {
  const Recording recording = numbered({{.pid = 7, .start = 0, .end = 9, .rank = 0},
                                        {.pid = 8, .start = 1, .end = 2, .rank = 0},
                                        {.pid = 9, .start = 5, .end = 6, .rank = 0},
                                        {.pid = 10, .start = 9, .rank = 0}});
  EXPECT_THAT(ranks_of(recording, {0, 1, 2, 3}), UnorderedElementsAre(Pair(3, 0)));
}

TEST(Ranks, OfProcessesThatCountNoStepsNoneCounts) {
  EXPECT_THAT(counting_ranks(numbered({{.pid = 7, .rank = 0}})), IsEmpty());
}

}  // namespace
}  // namespace headroom
