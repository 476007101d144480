// SPDX-License-Identifier: Apache-2.0
#include "import/log_reader.h"

#include "import/log_test_support.h"

namespace headroom {
namespace {

using testing::ElementsAre;

std::vector<std::string> lines_of(LineCursor& lines) {
  std::vector<std::string> found;
  while (lines.next()) found.emplace_back(lines.line());
  return found;
}
std::vector<std::string> lines_of(std::string_view text) {
  LineCursor lines(text);
  return lines_of(lines);
}
std::vector<std::string> streamed_lines_of(std::string_view text) {
  ByteStream bytes = ByteStream::of(text);
  LineCursor lines(bytes);
  return lines_of(lines);
}

constexpr std::size_t kBlock = std::size_t{1} << 18;  // of a ByteStream

TEST(Lines, AreTheSameWhereverABlockEnds) {
  EXPECT_THAT(lines_of("\xef\xbb\xbf"
                       "a,b\r\n\r\n\nc"),
              ElementsAre("a,b", "", "", "c"));
  for (const std::string_view end : {"\n", "\r\n"})
    for (const std::size_t first : {kBlock - 3, kBlock - 2, kBlock - 1, kBlock, kBlock + 1, 3 * kBlock}) {
      std::string text = std::string(first, 'x');
      text.append(end).append("one").append(end).append(end).append("cut");
      const auto lines = streamed_lines_of(text);
      EXPECT_EQ(lines, lines_of(text)) << first;
      EXPECT_EQ(lines.size(), 4u);
      text.append(end);
      EXPECT_EQ(streamed_lines_of(text), lines_of(text)) << first;
    }
  EXPECT_TRUE(streamed_lines_of("").empty());
}

TEST(Lines, ThatNeverEndTakeNoMoreThanALine) {
  const std::string text = "a\n" + std::string(4 * LineCursor::kLongestLine, 'x') + "\nb\n";
  const auto lines = streamed_lines_of(text);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].size(), LineCursor::kLongestLine);
  EXPECT_EQ(lines[2], "b");
}

TEST(Lines, WhatComesBehindOneMayBeLookedAtFirst) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += fmt::format("line {}\n", i);
  ByteStream bytes = ByteStream::of(text);
  LineCursor lines(bytes);
  ASSERT_TRUE(lines.next());
  LineCursor ahead(lines.rest());
  const auto later = lines_of(ahead);
  EXPECT_EQ(later.size(), 99'999u);
  EXPECT_EQ(later.back(), "line 99999");
  EXPECT_EQ(lines_of(lines), later);
  EXPECT_EQ(lines.number(), 100'000u);
}

}  // namespace
}  // namespace headroom
