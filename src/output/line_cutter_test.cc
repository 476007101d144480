// SPDX-License-Identifier: Apache-2.0
#include "output/line_cutter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace headroom::output {
namespace {

using Words = std::vector<std::string>;

TEST(LineCutter, CutsAtReturnsAndLeavesSequencesOut) {
  LineCutter cutter;
  Words lines;
  const auto take = [&](std::string_view line, Nanos at) { lines.push_back(fmt::format("{} {}", at, line)); };
  cutter.take("\x1b[1mone\x1b[0m\r\n\n\ttw", 1, take);
  cutter.take("o\x1b]0;title\a\rthr\bee\x1b[A", 2, take);
  EXPECT_EQ(lines, (Words{"1 one", "2 \ttwo", "2 three"}));
  cutter.take("prompt>", 3, take);
  cutter.settle(4, take);
  EXPECT_EQ(lines.size(), 3U);
  cutter.settle(3 + kLineSettles, take);
  cutter.settle(4 + kLineSettles, take);
  cutter.take("\n", 5, take);
  EXPECT_EQ(lines.size(), 4U) << "once";
  cutter.take(std::string(10 * kLongestLine, 'x') + "\nend\n", 6, take);
  EXPECT_EQ(lines[4].size(), kLongestLine + 2);
  EXPECT_EQ(lines[5], "6 end");
}

TEST(LineCutter, ALineWhoseRestCameLaterIsHandedOverWhole) {
  LineCutter cutter;
  Words lines;
  const auto take = [&](std::string_view line, Nanos at) { lines.push_back(fmt::format("{} {}", at, line)); };
  cutter.take("half", 1, take);
  cutter.settle(1 + kLineSettles, take);
  cutter.take(" a line\n", 2 + kLineSettles, take);
  EXPECT_EQ(lines, (Words{"1 half", fmt::format("{} half a line", 2 + kLineSettles)}));
  cutter.take("lost", 3, take);
  cutter.lose();
  cutter.take("next\n", 4, take);
  EXPECT_EQ(lines.back(), "4 next");
}

}  // namespace
}  // namespace headroom::output
