// SPDX-License-Identifier: Apache-2.0
#include "inject/texts.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "wire/marks.h"

namespace headroom::inject {
namespace {

constexpr std::uint32_t kBytes = 4096;

class Texts : public ::testing::Test {
 protected:
  Texts() { table_->begin_at(area_.data(), kBytes); }
  std::uint32_t add(const std::string& text, unsigned share = 100) {
    return table_->number_of(text.data(), text.size(), share);
  }
  std::string at(std::uint32_t number) {
    const std::size_t length =
        static_cast<unsigned char>(area_[number]) + 256U * static_cast<unsigned char>(area_[number + 1]);
    return area_.substr(number + 2, length);
  }

  std::string area_ = std::string(kBytes, '\0');
  std::unique_ptr<TextTable> table_ = std::make_unique<TextTable>();
};

TEST_F(Texts, ATextHasOneNumberAndStandsThere) {
  const auto train = add("train"), validate = add("validate");
  EXPECT_NE(train, validate);
  EXPECT_EQ(add("train"), train);
  EXPECT_EQ(at(train), "train");
  EXPECT_EQ(at(validate), "validate");
  EXPECT_EQ(add(""), HEADROOM_NO_NAME);
}

TEST_F(Texts, ANumberThatChangesDoesNotFillItAll) {
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 10'000; ++i) numbers.insert(add("step " + std::to_string(i)));
  EXPECT_FALSE(numbers.contains(HEADROOM_NO_NAME));
  EXPECT_LT(numbers.size(), 300U);
  EXPECT_EQ(at(add("step 9999")), "step N");
  EXPECT_EQ(at(add("step 1")), "step 1") << "what is known stays";
  EXPECT_EQ(at(add("layer2.conv10")), "layerN.convN");
}

TEST_F(Texts, AFullTableTakesNoMoreAndKnowsWhatItHas) {
  std::vector<std::string> names;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b) names.push_back(std::string("a name ") + a + b);
  for (const auto& name : names) static_cast<void>(add(name));
  EXPECT_EQ(add("another"), HEADROOM_NO_NAME);
  EXPECT_EQ(at(add(names.front())), names.front());
}

TEST_F(Texts, ValuesLeaveRoomForNames) {
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b) static_cast<void>(add(std::string("a value ") + a + b, 50));
  EXPECT_EQ(add("one more value", 50), HEADROOM_NO_NAME);
  EXPECT_NE(add("a name"), HEADROOM_NO_NAME);
}

TEST_F(Texts, ANewRingBeginsWithNone) {
  static_cast<void>(add("train"));
  std::string other(kBytes, '\0');
  table_->begin_at(other.data(), kBytes);
  static_cast<void>(add("first"));
  EXPECT_EQ(other.substr(2, 5), "first");
  EXPECT_EQ(other.find("train"), std::string::npos);
}

TEST_F(Texts, ThreadsAgree) {
  std::vector<std::vector<std::uint32_t>> numbers(4);
  {
    std::vector<std::jthread> threads;
    for (auto& own : numbers)
      threads.emplace_back([&] {
        for (int i = 0; i < 20'000; ++i) own.push_back(add(std::string("name ") + static_cast<char>('a' + i % 26)));
      });
  }
  for (const auto& own : numbers) EXPECT_EQ(own, numbers[0]);
  for (int i = 0; i < 26; ++i)
    EXPECT_EQ(at(numbers[0][static_cast<std::size_t>(i)]), std::string("name ") + static_cast<char>('a' + i));
}

TEST(TextLength, ACutIsBetweenCharacters) {
  EXPECT_EQ(text_length("train"), 5U);
  EXPECT_EQ(text_length(std::string(255, 'x').c_str()), 255U);
  EXPECT_EQ(text_length(std::string(300, 'x').c_str()), 255U);
  EXPECT_EQ(text_length((std::string(254, 'x') + "ü").c_str()), 254U);
  EXPECT_EQ(text_length(std::string(300, '\x80').c_str()), 0U) << "no UTF-8 at all";
}

TEST(ToUtf8, AllLengthsAndWhatIsNoCharacter) {
  char out[kLongestText + 1];
  to_utf8(L"aü\u20ac\U0001f600", out);
  EXPECT_STREQ(out, "aü\u20ac\U0001f600");
  const wchar_t bad[] = {static_cast<wchar_t>(0xd800), static_cast<wchar_t>(0x7fffffff), 0};
  to_utf8(bad, out);
  EXPECT_STREQ(out, "\ufffd\ufffd");
  to_utf8(std::wstring(400, L'\u20ac').c_str(), out);
  EXPECT_EQ(std::string(out).size(), 255U);
}

}  // namespace
}  // namespace headroom::inject
