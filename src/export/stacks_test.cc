// SPDX-License-Identifier: Apache-2.0
#include "export/stacks.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace headroom {
namespace {

using stacks::WeightedStack;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<WeightedStack> kProfile{{{"main (a.py:1)", "load <x> (a.py:2)"}, 3, 1},
                                          {{"main (a.py:1)", "step; (a.py:9)"}, 0, 5},
                                          {{"main (a.py:1)"}, 1, 0}};

template <class Write>
std::string written(const Write& write, const StacksOptions& options,
                    const std::vector<WeightedStack>& profile = kProfile) {
  std::string text;
  EXPECT_TRUE(write(profile, options, [&](std::string_view block) -> Result<void> {
    text += block;
    return {};
  }));
  return text;
}

TEST(Stacks, CollapseToALineEach) {
  EXPECT_EQ(written(write_collapsed, {}), "main (a.py:1);load <x> (a.py:2) 3000\nmain (a.py:1) 1000\n");
  EXPECT_EQ(written(write_collapsed, {.busy = true}),
            "main (a.py:1);load <x> (a.py:2) 4000\nmain (a.py:1);step_ (a.py:9) 5000\nmain (a.py:1) 1000\n");
  EXPECT_EQ(written(write_collapsed, {}, {}), "");
}

TEST(Stacks, AreSummedUpForPeopleByTheUsersOwnFunctions) {
  const std::vector<WeightedStack> profile{
      {{"main (/home/u/a.py:1)", "load (/home/u/a.py:7)", "sleep (/usr/lib/python3.11/x.py:3)"}, 3, 1},
      {{"main (/home/u/a.py:1)", "load (/home/u/a.py:7)"}, 1, 0},
      {{"main (/home/u/a.py:2)"}, 1, 4}};
  const auto write = [](const auto& stacks, const auto& how, const Output& output) {
    return write_functions(stacks, stacks::Families(), how, output);
  };
  EXPECT_EQ(written(write, {}, profile),
            "What the job was at while its GPUs were idle; of readings that were partly busy an estimate\n"
            "    4.0 s   80 %  load (a.py:7)\n"
            "    1.0 s   20 %  main (a.py:2)\n"
            "    5.0 s  100 %  in all\n");
  EXPECT_THAT(written(write, {.busy = true}, profile), HasSubstr("    5.0 s   50 %  main (a.py:2)\n"));
  std::vector<WeightedStack> many;
  for (int i = 0; i < 30; ++i) many.push_back({{"f" + std::to_string(i) + " (/home/u/a.py:1)"}, 1, 0});
  EXPECT_THAT(written(write, {}, many), HasSubstr("   10.0 s   33 %  10 others\n"));
}

TEST(Stacks, BecomeAProfileOfSpeedscope) {
  const auto read = nlohmann::json::parse(written(write_speedscope, {.title = "run"}));
  const auto& profile = read["profiles"][0];
  EXPECT_EQ(read["shared"]["frames"].size(), 2U);
  EXPECT_EQ(profile["samples"], nlohmann::json::parse("[[0,1],[0]]"));
  EXPECT_EQ(profile["weights"], nlohmann::json::parse("[3.0,1.0]"));
  EXPECT_EQ(profile["endValue"], 4.0);
}

TEST(Stacks, BecomeAFlameGraphThatSaysItsFigures) {
  const std::string idle = written(write_flame_graph, {.title = "run & more"});
  EXPECT_THAT(idle, HasSubstr("<title>load &lt;x&gt; (a.py:2): 3.0 s (75 % of the time shown)</title>"));
  EXPECT_THAT(idle, HasSubstr("run &amp; more"));
  EXPECT_THAT(idle, Not(HasSubstr("step;")));
  EXPECT_THAT(idle, Not(HasSubstr("<script")));
  const std::string all = written(write_flame_graph, {.busy = true});
  EXPECT_THAT(all, HasSubstr("step; (a.py:9): 5.0 s (50 % of the time shown); the GPU was idle for 0 % of it"));
  EXPECT_THAT(written(write_flame_graph, {}, {}), HasSubstr("</svg>"));
}

TEST(Stacks, AnEmbeddedFlameGraphBringsNoStyleOfItsOwn) {
  const std::string all = written(write_flame_graph, {.embedded = true});
  EXPECT_THAT(all, Not(HasSubstr("style")));
  EXPECT_THAT(all, HasSubstr("load &lt;x&gt;"));
  EXPECT_LT(written(write_flame_graph, {.embedded = true, .narrowest = 1e9}).size(), all.size() / 2);
}

}  // namespace
}  // namespace headroom
