// SPDX-License-Identifier: Apache-2.0
#include "compare/parameters.h"

#include <gtest/gtest.h>

namespace headroom::compare {
namespace {

TEST(ParametersOf, ACommand) {
  EXPECT_EQ(parameters_of({"python", "train.py", "--num-workers", "4", "--lr=0.1", "--amp", "--seed", "-1", "-v"}),
            (Parameters{{"argument 1", "train.py"},
                        {"num_workers", "4"},
                        {"lr", "0.1"},
                        {"amp", "yes"},
                        {"seed", "-1"},
                        {"v", "yes"}}));
  EXPECT_EQ(
      parameters_of({"headroom", "batch", "--no-record", "base.toml", "--no_repeat_ngram_size", "3"}),
      (Parameters{
          {"argument 1", "batch"}, {"no_record", "yes"}, {"argument 2", "base.toml"}, {"no_repeat_ngram_size", "3"}}));
  EXPECT_TRUE(parameters_of({}).empty());
  EXPECT_EQ(parameters_of({"x", "--", "-"}), (Parameters{{"argument 1", "--"}, {"argument 2", "-"}}));
}

TEST(Parameters, OfListsOfTasksTheValuesThatOneSideAloneHasDiffer) {
  const auto compared = [](std::vector<std::string> a, std::vector<std::string> b) {
    for (auto* argv : {&a, &b}) argv->insert(argv->begin(), {"headroom", "batch", "train", "{1}", "{2}", ":::"});
    return compare_parameters(match({.samples = {{.task = "t", .asked = parameters_of(a)}}},
                                    {.samples = {{.task = "t", .asked = parameters_of(b)}}}),
                              std::nullopt);
  };
  EXPECT_EQ(compared({"A", "B", "D", ":::", "x", "-y"}, {"A", "2023H1", "B", ":::", "x", "-y"}),
            (std::vector<ComparedParameter>{{"values of :::", "D", "2023H1", true}}));
  EXPECT_EQ(compared({"A", ":::", "x", "y"}, {"A", ":::", "x"}),
            (std::vector<ComparedParameter>{{"values of ::: 2", "y", "", true}}));
  EXPECT_EQ(compared({"A", "B"}, {"B", "A"}), (std::vector<ComparedParameter>{{"values of :::", "A, B", "A, B", true}}))
      << "in another order";
  EXPECT_TRUE(compared({"A", "B"}, {"A", "B"}).empty());
}

TEST(Parameters, ValuesAreComparedAsNumbersWhereTheyAre) {
  Side a{.samples = {{.task = "t", .asked = {{"lr", "0.1"}, {"mode", "x"}}, .resolved = {{"layers", "3"}}}}};
  Side b{.samples = {{.task = "t", .asked = {{"lr", "1e-1"}, {"mode", "y"}}, .resolved = {{"layers", "4"}}}}};
  const std::vector<ComparedParameter> found = compare_parameters(match(a, b), std::nullopt);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], (ComparedParameter{"layers", "3", "4", false}));  // asked the same, settled otherwise
  EXPECT_EQ(found[1], (ComparedParameter{"mode", "x", "y", true}));
}

TEST(Parameters, WhatOneSideDidNotRecordIsNoDifference) {
  Side a{.samples = {{.task = "t", .resolved = {{"lr", "0.1"}}}}}, b{.samples = {{.task = "t"}}};
  EXPECT_TRUE(compare_parameters(match(a, b), std::nullopt).empty());
}

}  // namespace
}  // namespace headroom::compare
