// SPDX-License-Identifier: Apache-2.0
#include "model/losses.h"

#include <gmock/gmock.h>

#include <set>

#include "model/damage.h"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Losses, EveryNameIsItsOwnAndFound) {
  std::set<std::string_view> names;
  for (const LossInfo& loss : kLosses) {
    EXPECT_TRUE(names.insert(loss.name).second) << loss.name;
    EXPECT_EQ(loss_kind_of(loss.name), loss.id);
    EXPECT_FALSE(loss.help.empty());
  }
  EXPECT_EQ(loss_kind_of("of_a_newer_program"), std::nullopt);
}

TEST(Losses, AKindOfANewerProgramIsKeptAsItIs) {
  MemorySink sink;
  const Loss strange{"of_a_newer_program", 3, Severity::kDataLoss, "why", {{1, 2, kNoSource}}};
  sink.add_loss(strange);
  EXPECT_THAT(sink.recording().losses, ElementsAre(strange));
  EXPECT_TRUE(touches_slices(strange));
}

TEST(Losses, TheSeverityIsTheTablesOrWorse) {
  EXPECT_EQ(make_loss(LossKind::kOutOfOrderRow, 1, "").severity, Severity::kNotice);
  EXPECT_EQ(make_loss(LossKind::kOutOfOrderRow, 1, "", {}, Severity::kDataLoss).severity, Severity::kDataLoss);
  EXPECT_EQ(make_loss(LossKind::kDamagedFile, 1, "", {}, Severity::kInfo).severity, Severity::kError);
  EXPECT_FALSE(touches_slices(make_loss(LossKind::kOutOfOrderRow, 1, "")));
  EXPECT_TRUE(touches_slices(make_loss(LossKind::kOutOfOrderRow, 1, "", {}, Severity::kDataLoss)));
}

TEST(Losses, PlacesOfOneSourceThatMeetBecomeOne) {
  std::vector<Loss> losses;
  const auto late = [&](Nanos begin, Nanos end, SourceId source) {
    count_loss(losses, make_loss(LossKind::kLateTick, 1, "x", LossPlace{begin, end, source}));
  };
  late(0, 10, 0);
  late(10, 20, 0);
  late(5, 15, 1);
  late(30, 40, 0);
  ASSERT_EQ(losses.size(), 1U);
  EXPECT_EQ(losses[0].count, 4);
  EXPECT_THAT(losses[0].places, ElementsAre(LossPlace{0, 20, 0}, LossPlace{5, 15, 1}, LossPlace{30, 40, 0}));
}

TEST(Losses, MorePlacesThanAreKeptGrowTheLast) {
  std::vector<Loss> losses;
  constexpr Nanos kPlaces = 1000;
  for (Nanos i = 0; i < kPlaces; ++i)
    count_loss(losses, make_loss(LossKind::kGap, 1, "", LossPlace{10 * i, 10 * i + 1, static_cast<SourceId>(i % 2)}));
  EXPECT_EQ(losses[0].places.size(), kMostLossPlaces);
  for (Nanos i = 0; i < kPlaces; ++i)
    EXPECT_TRUE(reaches(losses[0], static_cast<SourceId>(i % 2), 10 * i, 10 * i + 2)) << i;
}

TEST(Losses, WithoutAPlaceItMayBeAnywhere) {
  std::vector<Loss> losses;
  count_loss(losses, make_loss(LossKind::kGap, 1, "", LossPlace{0, 10, 0}));
  EXPECT_FALSE(reaches(losses[0], 0, 20, 30));
  EXPECT_FALSE(reaches(losses[0], 1, 0, 10));
  EXPECT_TRUE(reaches(losses[0], 0, 5, 30));
  count_loss(losses, make_loss(LossKind::kGap, 1, ""));
  EXPECT_THAT(losses[0].places, IsEmpty());
  EXPECT_TRUE(reaches(losses[0], 1, 20, 30));
}

TEST(Losses, ALittleIsLessThanAPercentOfATimeThatIsKnown) {
  const Loss missed = make_loss(LossKind::kMissedTick, 1, "", LossPlace{0, 65 * kMillisecond, kNoSource});
  EXPECT_TRUE(is_little(missed, 10 * kSecond));
  EXPECT_FALSE(is_little(missed, 6 * kSecond));
  EXPECT_FALSE(is_little(make_loss(LossKind::kMissedTick, 1, ""), 10 * kSecond)) << "it may be anywhere";
  EXPECT_FALSE(is_little(make_loss(LossKind::kDamagedFile, 1, "", LossPlace{0, 1, kNoSource}), 10 * kSecond));
}

TEST(Losses, LateLooksOfLessThanAnIntervalAreNoProblem) {
  RecordingMeta meta;
  meta.end = 5 * kSecond;
  meta.interval = kSecond;
  const auto late = [](Nanos by) { return make_loss(LossKind::kMissedTick, 1, "", LossPlace{0, by, 3}); };
  EXPECT_FALSE(is_a_problem(late(105 * kMillisecond), meta)) << "more than a percent, and between two readings";
  EXPECT_TRUE(is_a_problem(late(kSecond), meta));
  EXPECT_TRUE(is_a_problem(make_loss(LossKind::kMissedTick, 1, ""), meta)) << "it may be anywhere";
  EXPECT_TRUE(is_a_problem(make_loss(LossKind::kGap, 1, "", LossPlace{0, 105 * kMillisecond, 3}), meta));
}

}  // namespace
}  // namespace headroom
