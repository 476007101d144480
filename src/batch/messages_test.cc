// SPDX-License-Identifier: Apache-2.0
#include "batch/messages.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace headroom::batch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<TaskSpec> tasks(int count, const std::string& group = "g") {
  std::vector<TaskSpec> all;
  for (int i = 0; i < count; ++i) {
    all.emplace_back();
    all.back().name = fmt::format("t{}", i), all.back().group = group;
  }
  return all;
}

std::size_t lines_of(EndMessages& messages, const std::vector<TaskSpec>& all, const std::string& reason) {
  std::size_t lines = 0;
  for (const auto& task : all) lines += messages.ended(task, TaskState::kFailed, reason).size();
  return lines;
}

TEST(EndMessages, ASuccessNeedsNoWords) {
  const auto all = tasks(1);
  EndMessages messages(all);
  EXPECT_THAT(messages.ended(all[0], TaskState::kSucceeded, ""), IsEmpty());
}

TEST(EndMessages, AFailureIsSaidWithItsReason) {
  const auto all = tasks(2);
  EndMessages messages(all);
  EXPECT_THAT(messages.ended(all[0], TaskState::kFailed, "failed: exit code 1"),
              ElementsAre(Message{MessageKind::kProblem, "t0: failed: exit code 1"}));
  EXPECT_THAT(messages.ended(all[1], TaskState::kSkipped, ""), ElementsAre(Message{MessageKind::kFact, "t1: skipped"}));
}

TEST(EndMessages, WhatRepeatsItselfIsOnlyCounted) {
  const auto all = tasks(100);
  EndMessages messages(all);
  EXPECT_TRUE(messages.ended(all[0], TaskState::kSucceeded, "").empty());
  int said = 0;
  for (int i = 1; i < 100; ++i)
    for (const auto& note : messages.ended(all[static_cast<std::size_t>(i)], TaskState::kFailed,
                                           fmt::format("failed: exit code 1: no file prices_{}.csv", i)))
      said += note.kind == MessageKind::kProblem ? 1 : 0;
  EXPECT_EQ(said, 5);
  EXPECT_THAT(messages.ended(all[0], TaskState::kFailed, "failed: exit code 1: no money"), SizeIs(1)) << "another kind";
}

TEST(EndMessages, AGroupThatBeginsWithFailuresOnlyIsSaidOnce) {
  const auto all = tasks(50);
  EndMessages messages(all);
  std::vector<Message> last;
  int warned = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const auto& note : messages.ended(all[i], TaskState::kFailed, std::string(i + 1, 'x')))
      if (note.text.find("all failed") != std::string::npos) {
        ++warned;
        EXPECT_EQ(i, 4u);
        EXPECT_THAT(note.text, HasSubstr("the first 5 tasks all failed, 45 have not ended yet"));
      }
  EXPECT_EQ(warned, 1);
}

TEST(EndMessages, OneSuccessAmongTheFirstIsNoBadBeginning) {
  const auto all = tasks(20);
  EndMessages messages(all);
  EXPECT_TRUE(messages.ended(all[0], TaskState::kSucceeded, "").empty());
  for (std::size_t i = 1; i < all.size(); ++i)
    for (const auto& note : messages.ended(all[i], TaskState::kFailed, std::string(i, 'x')))
      EXPECT_EQ(note.text.find("all failed"), std::string::npos);
}

TEST(EndMessages, ManyKindsTakeNoMemoryForEver) {
  const auto all = tasks(5000);
  EndMessages messages(all);
  std::size_t said = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string kind;  // letters, since numbers do not count
    for (std::size_t n = i; n > 0; n /= 26) kind += static_cast<char>('a' + n % 26);
    said += messages.ended(all[i], TaskState::kFailed, kind).size();
  }
  EXPECT_LT(said, 1100u);
  EXPECT_EQ(lines_of(messages, all, "after all"), 0u);
}

}  // namespace
}  // namespace headroom::batch
