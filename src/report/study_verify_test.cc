// SPDX-License-Identifier: Apache-2.0
#include "report/study_verify.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

namespace headroom::report {
namespace {

// However it is wrapped.
std::string in_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

using ::testing::HasSubstr;
using ::testing::Not;

StudyVerification kept_study() {
  return {.plan = "plan.json",
          .storage = "new.db",
          .study = "sweep",
          .change = "warm workers",
          .ended = 37,
          .used = 25,
          .figures = {{.figure = StudyFigure::kTrialsPerHour,
                       .predicted = Estimate{140, 150, 171},
                       .measured = Estimate{131, 152, 175},
                       .wanted = true,
                       .kept = true},
                      {.figure = StudyFigure::kMemory,
                       .predicted = Estimate{1 << 30, 1 << 30, 1 << 30},
                       .why = "no recording: memory is not known"}},
          .kept = true,
          .why = "trials per hour reach what was predicted",
          .remembered = true};
}

std::size_t longest_line_of(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, display_width(line));
  return longest;
}

TEST(StudyVerifyText, SaysTheAnswerThenEachFigure) {
  const std::string text = to_text(kept_study(), {});
  EXPECT_THAT(text, HasSubstr("warm workers. Kept: trials per hour reach what was predicted.\n"));
  EXPECT_THAT(in_one_line(text),
              HasSubstr("Study sweep: 37 trials ended before the last one began; the first 25 to end are held "
                        "against the first 25 of"));
  EXPECT_THAT(text, HasSubstr("  trials/h      predicted 140 to 171, measured 152 (131 to 175): kept *\n"));
  EXPECT_THAT(text, HasSubstr("  GPU memory    predicted 1024 MiB, measured -: not known: no recording"));
  EXPECT_THAT(text, HasSubstr("Remembered"));
  for (const std::size_t width : {std::size_t{40}, std::size_t{80}, std::size_t{160}})
    EXPECT_LE(longest_line_of(to_text(kept_study(), {.width = width})), width);
}

TEST(StudyVerifyText, SaysWhatIsNotKnown) {
  StudyVerification v = kept_study();
  v.kept.reset(), v.used = 0, v.ended = 1, v.figures.clear(), v.why = "too few to say: 1 trial ended, and 10 have to";
  EXPECT_THAT(to_text(v, {}), HasSubstr("warm workers. Too few to say: 1 trial ended, and 10 have to.\n"));
  EXPECT_THAT(to_text(v, {}), HasSubstr("Study sweep: 1 trial ended before the last one began.\n"));
  v.why = "trials per hour are below";
  EXPECT_THAT(to_text(v, {}), HasSubstr("Not known whether it was kept: trials per hour are below.\n"));
  v.why = "the range of lr differs", v.differences = {v.why};
  EXPECT_THAT(to_text(v, {}), HasSubstr("warm workers. Not comparable: the range of lr differs.\n"));
  v.goes_on = v.plans_own = true, v.since = 40;
  EXPECT_THAT(in_one_line(to_text(v, {})),
              HasSubstr("only trials from number 40 on count, which the plan did not know yet"));
  v.kept = false;
  EXPECT_THAT(to_text(v, {}), HasSubstr("warm workers. Not kept: "));
}

TEST(StudyVerifyJson, HasNullForWhatIsNotKnown) {
  StudyVerification v = kept_study();
  v.figures[0].measured->high = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(to_json(v));
  EXPECT_EQ(json["schema"], "headroom.verify-study/1");
  EXPECT_EQ(json["figures"][0]["measured"]["high"], nullptr);
  EXPECT_EQ(json["figures"][1]["kept"], nullptr);
  EXPECT_EQ(json["figures"][1]["figure"], "memory_at_once_bytes");
  EXPECT_EQ(json["kept"], true);
}

TEST(StudyVerifyText, SaysWhatWasRequired) {
  StudyVerification v = kept_study();
  EXPECT_FALSE(nlohmann::json::parse(to_json(v)).contains("requirements"));
  v.requirements = {{.requirement = {.text = "value>=0.97", .name = "value", .sense = Sense::kAtLeast, .limit = 0.97},
                     .kept = false,
                     .value = 0.91,
                     .of = "trial 4",
                     .why_not = ""}};
  EXPECT_THAT(to_text(v, {}), HasSubstr("Required\n  value>=0.97  not kept: 0.91 on trial 4\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(v))["requirements"][0]["kept"], false);
  const StudyComparison c{.requirements = v.requirements};
  EXPECT_THAT(to_text(c, {}), HasSubstr("  value>=0.97  not kept: 0.91 on trial 4\n"));
  EXPECT_EQ(nlohmann::json::parse(to_json(c))["requirements"][0]["value"], 0.91);
}

TEST(StudyVerifyDocument, HoldsWhatTheTextHolds) {
  StudyVerification v = kept_study();
  v.study = "<sweep>";
  const std::string html = to_html(StudyVerificationDocument{v}), text = to_markdown(StudyVerificationDocument{v});
  EXPECT_THAT(html, HasSubstr("content=\"headroom verify\""));
  EXPECT_THAT(html, HasSubstr("warm workers. Kept: trials per hour reach what was predicted."));
  EXPECT_THAT(html, HasSubstr("Study &lt;sweep&gt;: 37 trials ended"));
  EXPECT_THAT(html, HasSubstr("152 (131 to 175)"));
  EXPECT_THAT(html, HasSubstr("Remembered: headroom verify --history"));
  EXPECT_THAT(html, Not(HasSubstr("cannot be compared")));
  EXPECT_THAT(text, HasSubstr("# warm workers. Kept: trials per hour reach what was predicted.\n"));
  EXPECT_THAT(text, HasSubstr("140 to 171"));
  EXPECT_THAT(text, HasSubstr("The plan: plan.json."));
  v.kept.reset(), v.figures.clear(), v.why = "the range of lr differs", v.differences = {v.why};
  EXPECT_THAT(to_html(StudyVerificationDocument{v}), HasSubstr("the range of lr differs."));
}

TEST(StudyCompareText, HasBothSideBySide) {
  StudyComparison c{.a = {.storage = "a.db", .name = "one", .trials = 20}, .b = {.storage = "b.db", .name = "two"}};
  c.a.ended = FirstTrials{.trials = 20, .trials_per_hour = {90, 100, 110}, .pruned_share = {0.7, 0.8, 0.9}};
  c.a.best = BestPoint{.worked_seconds = 60, .value = 0.25};
  c.differences = {"no trial of B has ended"};
  c.notes = {"B runs: its figures will change"};
  const std::string text = to_text(c, {});
  EXPECT_THAT(text, HasSubstr("! Not comparable: no trial of B has ended.\n"));
  EXPECT_THAT(text, HasSubstr("A is study one of a.db, B is study two of b.db."));
  EXPECT_THAT(text, HasSubstr("  trials/h        100 (90 to 110)      -\n"));
  EXPECT_THAT(text, HasSubstr("  best value      0.25                 -\n"));
  EXPECT_THAT(text, HasSubstr("Note: B runs"));
  c.one_objective = false;
  EXPECT_THAT(to_text(c, {}), Not(HasSubstr("best value")));
  for (const std::size_t width : {std::size_t{40}, std::size_t{80}, std::size_t{160}})
    EXPECT_LE(longest_line_of(to_text(c, {.width = width})), width);
  const auto json = nlohmann::json::parse(to_json(c));
  EXPECT_EQ(json["comparable"], false);
  EXPECT_EQ(json["b"]["trials_per_hour"], nullptr);
  EXPECT_EQ(json["a"]["pruned_ratio"]["estimate"], 0.8);
}

TEST(StudyCompareDocument, HoldsWhatTheTextHolds) {
  StudyComparison c{.a = {.storage = "a.db", .name = "<one>", .trials = 20}, .b = {.storage = "b.db", .name = "two"}};
  c.notes = {"B runs: its figures will change"};
  const std::string html = to_html(StudyComparisonDocument{c}), text = to_markdown(StudyComparisonDocument{c});
  EXPECT_THAT(html, HasSubstr("A is study &lt;one&gt; of a.db, B is study two of b.db."));
  EXPECT_THAT(html, HasSubstr("B runs: its figures will change."));
  EXPECT_THAT(text, HasSubstr("# Two studies, side by side\n"));
  EXPECT_THAT(text, HasSubstr("B runs: its figures will change."));
  EXPECT_THAT(text, Not(HasSubstr("cannot be compared")));
  c.differences = {"no trial of B has ended"};
  EXPECT_THAT(to_html(StudyComparisonDocument{c}), HasSubstr("no trial of B has ended."));
}

}  // namespace
}  // namespace headroom::report
