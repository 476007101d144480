// SPDX-License-Identifier: Apache-2.0
#include "compare/artefact.h"

#include <gtest/gtest.h>

namespace headroom::compare {
namespace {

std::string difference(std::string_view a, std::string_view b, double tolerance = 1e-6) {
  const ComparedArtefact artefact = compare_artefact("x", a, b, tolerance);
  EXPECT_EQ(artefact.same, artefact.difference.empty());
  return artefact.difference;
}

TEST(Artefact, NumbersWithinTheToleranceAreTheSame) {
  EXPECT_EQ(difference("loss 0.5000001\n", "loss 0.5\n"), "");
  EXPECT_EQ(difference("{\"loss\": 1e10, \"n\": 3}", "{\"loss\": 10000000001, \"n\": 3}"), "");
  EXPECT_EQ(difference("a,b\n1,2\n3,-4\n", "a,b\n1,2.5\n3,4\n"), "2 of 4 numbers differ, by 2 at most");
  EXPECT_EQ(difference("1 2", "1 2.1", 0.1), "");
  EXPECT_EQ(difference("layer2 1", "layer3 1"), "the text differs from line 1 on");  // part of a name
}

TEST(Artefact, TimesAreLeftApart) {
  EXPECT_EQ(difference("at 2026-11-22T19:48:52.5Z x", "at 2026-11-23T00:00:00+01:00 x"), "");
  EXPECT_EQ(difference("19:48:52 done", "19:48:53,123 done"), "");
  EXPECT_EQ(difference("{\"train_seconds\": 3.1, \"auc\": 0.9}", "{\"train_seconds\": 4.7, \"auc\": 0.9}"), "");
  EXPECT_EQ(difference("time 3\nauc 4", "time 4\nauc 5"), "1 of 1 number differ, by 0.2 at most");
  EXPECT_EQ(difference("2026-11-22", "20261122"), "the text differs from line 1 on");
}

TEST(Artefact, OtherTextAndBytesMustBeTheSame) {
  EXPECT_EQ(difference("a\nb\nc", "a\nb\nd"), "the text differs from line 3 on");
  EXPECT_EQ(difference("a 1\n", "a 1"), "the text differs from line 1 on");
  EXPECT_EQ(difference("", "x"), "the text differs from line 1 on");
  EXPECT_EQ(difference(std::string("\0ab", 3), std::string("\0ac", 3)), "the bytes differ from byte 2 on");
  EXPECT_EQ(difference(std::string("\0ab", 3), std::string("\0abc", 4)), "3 and 4 bytes");
  EXPECT_EQ(difference("nan -1 - 1e999", "nan -1 - 1e999"), "");
}

}  // namespace
}  // namespace headroom::compare
