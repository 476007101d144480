// SPDX-License-Identifier: Apache-2.0
#include "base/names.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Names, LettersOfAllScriptsStay) {
  for (const std::string_view text : {"größe_0.1", "模型-λ", "название 7", "a=b@c", "🚀"}) {
    EXPECT_EQ(file_name_of(text, 200), text);
    EXPECT_TRUE(fits_file_name(text));
  }
}

TEST(Names, WhatNoFileMayBeNamedIsReplaced) {
  EXPECT_EQ(file_name_of("a/b\nc\x7f", 200), "a-b-c-");
  EXPECT_EQ(file_name_of("\xc2\x9b"
                         "31m",
                         200),
            "-31m");  // a control sequence of one character
  EXPECT_EQ(file_name_of("\xff\xc3(\xe2\x82", 200), "--(--");
  EXPECT_EQ(file_name_of("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80", 200), "---------");  // too long, surrogate, beyond
  EXPECT_FALSE(fits_file_name("a/b"));
}

TEST(Names, LongOnesEndInAHashOfTheWhole) {
  const std::string one(300, 'x'), other = one + "y";
  EXPECT_EQ(file_name_of(one, 200).size(), 200u);
  EXPECT_NE(file_name_of(one, 200), file_name_of(other, 200));
  EXPECT_EQ(file_name_of(std::string(200, 'x'), 200), std::string(200, 'x'));
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "λ";
  EXPECT_LE(file_name_of(wide, 100).size(), 100u);
  EXPECT_TRUE(fits_file_name(file_name_of(wide, 100))) << "no character is cut in two";
}

TEST(Names, TheLengthOfACharacter) {
  EXPECT_EQ(utf8_length(""), 0u);
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("λx"), 2u);
  EXPECT_EQ(utf8_length("\x80"), 0u);
}

}  // namespace
}  // namespace headroom
