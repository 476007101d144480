// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/plan.h"
#include "report/words.h"

namespace headroom::report {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Option guess(std::string id, double high, bool promises = true) {
  Option option;
  option.id = std::move(id);
  option.candidates = {Cause::kSlowStorage, Cause::kInputTooFewWorkers};
  option.promises = promises;
  option.gain.low = 1;
  option.gain.high = high;
  return option;
}

TEST(PlanHeadline, AFirstGuessIsNotTheBestWhereAnotherAllowsMore) {
  Plan plan;
  plan.options = {guess("observe", 9, false), guess("storage", 2.6), guess("workers", 4.3), guess("ahead", 2.6)};
  EXPECT_THAT(plan_headline(plan), HasSubstr("The first guess allows at most 2.6x, another one at most 4.3x."));
  plan.options.erase(plan.options.begin() + 2);
  EXPECT_THAT(plan_headline(plan), HasSubstr("The best first guess allows at most 2.6x."));
}

TEST(PlanHeadline, TheChangeForTheLikeliestCauseIsNoGuess) {
  Plan plan;
  plan.options = {guess("storage", 2.6), guess("workers", 4.3)};
  plan.options[0].title = "Read from a local disk";
  plan.options[0].cause = Cause::kSlowStorage, plan.options[1].cause = Cause::kInputTooFewWorkers;
  for (Option& option : plan.options) option.likeliest = Cause::kSlowStorage;
  EXPECT_EQ(plan_headline(plan), "What to try first: read from a local disk, at most 2.6x at equal work.");
  EXPECT_THAT(cause_words(plan.options[0]), EndsWith("slow storage, the likeliest cause here"));
  EXPECT_THAT(cause_words(plan.options[1]), EndsWith("less likely here than slow storage"));
}

TEST(PlanHeadline, AGainThatNothingBoundsIsNotNone) {
  Plan plan;
  plan.options = {guess("observe", 1, false), guess("workers", 1, false)};
  EXPECT_THAT(plan_headline(plan), HasSubstr("No gain is promised for what was found; what to do about it:"));
  plan.options.back().gain.none = "not bounded by so short a time";
  plan.options.back().gain.unbounded = true;
  EXPECT_EQ(plan_headline(plan),
            "What can be gained is not bounded by so short a time; what to do about what was found:");
}

TEST(PlanText, NamesOfCodeFromOutsideControlNoTerminal) {
  Plan plan;
  plan.options = {guess("named_code", 2), guess("observe", 1, false), guess("third", 1.5), guess("fourth", 1.2)};
  for (Option& option : plan.options) option.title = "Change \x1b]0;owned\x07 it";
  for (const bool full : {false, true}) {
    TextOptions options;
    options.full = full;
    const std::string text = to_text(plan, options);
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_THAT(text, HasSubstr("\\x1b]0;owned\\x07"));
  }
}

TEST(PlanText, APlanThatWasWrittenIsVerifiedNext) {
  Plan plan;
  plan.recording = "a.hrec";
  plan.options = {guess("observe", 1, false), guess("one", 2)};
  EXPECT_THAT(to_text(plan, {}), HasSubstr("headroom plan a.hrec -o plan.json"));
  EXPECT_THAT(to_text(plan, {}, "my plan.json"), EndsWith("\n      headroom verify 'my plan.json' last\n"));
  EXPECT_THAT(to_text(plan, {}, "my plan.json"), Not(HasSubstr("headroom plan")));
  plan.options.push_back(guess("two", 1.5));
  EXPECT_THAT(to_text(plan, {}, "p.json"), EndsWith("headroom verify p.json last --applied one\n"));
  plan.options = {guess("observe", 1, false)};
  EXPECT_THAT(to_text(plan, {}, "p.json"), Not(HasSubstr("headroom verify"))) << "it promises nothing";
}

TEST(PlanText, WhatIsToldTogetherStandsOnThePage) {
  Plan plan;
  plan.seconds = 100;
  for (const char* id : {"one", "two", "three", "four", "five", "six", "seven"}) plan.options.push_back(guess(id, 1.2));
  plan.after = {{{"one"}, {.high = 1.2}}, {{"one", "three"}, {.high = 1.5}}, {{"one", "three", "seven"}, {.high = 2}}};
  TextOptions options;
  EXPECT_THAT(to_text(plan, options), HasSubstr("  1 + 3: at most 1.50x"));
  EXPECT_THAT(to_text(plan, options), Not(HasSubstr("+ 7"))) << "it is not there";
  options.full = true;
  EXPECT_THAT(to_text(plan, options), HasSubstr("  1 + 3 + 7: at most 2.0x"));
  options.full = false;
  plan.after.erase(plan.after.begin() + 1);
  EXPECT_THAT(to_text(plan, options), Not(HasSubstr("Together"))) << "one is none together";
}

TEST(PlanText, AChangeInALineKeepsItsGainHoweverLongItsName) {
  Plan plan;
  plan.seconds = 100;
  for (int i = 0; i < 4; ++i) {
    Option one;
    one.title = "Change the code itself: PrioritizedReplayBuffer.update_priorities (replay.py:24)";
    one.promises = true;
    one.gain = Gain{1.0, 1.25, "if it took no time"};
    plan.options.push_back(one);
  }
  EXPECT_THAT(to_text(plan, TextOptions{.width = 60}, ""), HasSubstr("(at most 1.25x, safe)"));
}

}  // namespace
}  // namespace headroom::report
