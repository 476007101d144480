// SPDX-License-Identifier: Apache-2.0
#include "model/dictionary.h"

#include <gmock/gmock.h>

#include <array>

namespace headroom {
namespace {

using testing::ElementsAre;

TEST(Dictionary, TheSameTextAndTheSameListHaveTheSameNumber) {
  Dictionary dictionary;
  EXPECT_EQ(dictionary.text("main"), 0U);
  EXPECT_EQ(dictionary.text(""), 1U);
  EXPECT_EQ(dictionary.text("main"), 0U);
  const std::array<TextId, 2> there{0, 1}, back{1, 0};
  EXPECT_EQ(dictionary.list(there), 0U);
  EXPECT_EQ(dictionary.list(back), 1U);
  EXPECT_EQ(dictionary.list({}), 2U);
  EXPECT_EQ(dictionary.list(there), 0U);
  EXPECT_THAT(dictionary.list_of(1), ElementsAre(1U, 0U));
  EXPECT_TRUE(dictionary.list_of(2).empty());
  EXPECT_EQ(dictionary.text_of(0), "main");
}

TEST(Dictionary, AListOfTextsThatAreNotThereHasNoNumber) {
  Dictionary dictionary;
  EXPECT_EQ(dictionary.list(std::array<TextId, 1>{0}), kNoList);
  EXPECT_EQ(dictionary.list(std::array<TextId, 1>{kNoText}), kNoList);
  EXPECT_EQ(dictionary.lists(), 0U);
}

TEST(Dictionary, BeyondItsBoundsNothingNewHasANumberAndTheOldKeepTheirs) {
  Dictionary dictionary;
  for (std::size_t i = 0; i < Dictionary::kMostTexts; ++i) ASSERT_EQ(dictionary.text(std::to_string(i)), i);
  EXPECT_EQ(dictionary.text("one more"), kNoText);
  EXPECT_EQ(dictionary.text("7"), 7U);
  std::size_t kept = 0;
  for (TextId i = 0; i < Dictionary::kMostLists + 1; ++i)
    if (dictionary.list(std::array<TextId, 2>{i / 2, i % 2}) != kNoList) ++kept;
  EXPECT_EQ(kept, Dictionary::kMostLists);
  EXPECT_EQ(dictionary.list(std::array<TextId, 2>{0, 1}), 1U);
}

TEST(Dictionary, TextsAreBoundedInBytes) {
  Dictionary dictionary;
  constexpr std::size_t kLong = std::size_t{1} << 20;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < 2 * Dictionary::kMostTextBytes / kLong; ++i)
    if (dictionary.text(std::to_string(1000 + i) + std::string(kLong, 'x')) != kNoText) ++kept;
  EXPECT_EQ(kept, (Dictionary::kMostTextBytes - 1) / kLong);
  EXPECT_LE(dictionary.text_bytes(), Dictionary::kMostTextBytes);
  EXPECT_EQ(dictionary.text("1007" + std::string(kLong, 'x')), 7U);
  EXPECT_EQ(dictionary.text("a short one"), kept) << "there is room for it";
}

}  // namespace
}  // namespace headroom
