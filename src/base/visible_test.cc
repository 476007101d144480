// SPDX-License-Identifier: Apache-2.0
#include "base/visible.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Visible, KeepsWhatPeopleWrite) {
  EXPECT_EQ(visible("NVIDIA A100 80GB"), "NVIDIA A100 80GB");
  EXPECT_EQ(visible("größe/名前/🙂"), "größe/名前/🙂");
  EXPECT_EQ(visible(""), "");
}

TEST(Visible, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(visible("\x1b]52;c;aGk=\x07"), "\\x1b]52;c;aGk=\\x07");
  EXPECT_EQ(visible("a\u009b2J"), "a\\u009b2J");
  EXPECT_EQ(visible("a\u202e"
                    "b\u2066"),
            "a\\u202eb\\u2066");
  EXPECT_EQ(visible("\x7f"), "\\x7f");
  EXPECT_EQ(visible("one\ntwo\t\r"), "one\\x0atwo\\x09\\x0d");
  EXPECT_EQ(visible_lines("one\ntwo\t\r"), "one\ntwo\t\\x0d");
}

TEST(Visible, OfJsonTheValueStays) {
  EXPECT_EQ(visible_json("{\"a\": \"\u009b2J\x7f größe 🙂 \u202e\"}\n"),
            "{\"a\": \"\\u009b2J\\u007f größe 🙂 \\u202e\"}\n");
}

TEST(Visible, WordsOfACommandAreReadBackByBash) {
  EXPECT_EQ(typed_line({"headroom", "why", "größe 1.hrec", "it's"}), "headroom why 'größe 1.hrec' 'it'\\''s'");
  EXPECT_EQ(typed_word("a\x1b[2J-x"), "$'a\\033[2J-x'");
  EXPECT_EQ(typed_word("it's\n\tC:\\größe"), "$'it\\'s\\n\\tC:\\\\größe'");
  EXPECT_EQ(typed_word("a\u202e\xff"), "$'a\\342\\200\\256\\377'");
}

TEST(Visible, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(visible("\x9b"
                    "31m"),
            "\\x9b31m");
  EXPECT_EQ(visible("\xc3"), "\\xc3");
  EXPECT_EQ(visible("\xc0\xaf"), "\\xc0\\xaf");           // longer than needed
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a pair
  EXPECT_EQ(visible("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
}

}  // namespace
}  // namespace headroom
