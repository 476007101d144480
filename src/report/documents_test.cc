// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "report/compare_document.h"
#include "report/facts_study.h"
#include "report/html_study.h"

namespace headroom::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHostile = "<b>&\"'|`*[x](y)@z";

// A minimised study of `trials` trials with `reports` reports each; every third is pruned.
struct Sweep {
  explicit Sweep(std::int64_t trials, std::int64_t reports, std::string name = "sweep") {
    study.name = report.name = std::move(name);
    study.directions = report.directions = {Direction::kMinimize};
    report.trials = trials;
    for (std::int64_t number = 0; number < trials; ++number) {
      Trial trial{.number = number, .state = number % 3 == 0 ? TrialState::kPruned : TrialState::kComplete};
      trial.first_report = study.reports.size();
      for (std::int64_t step = 0; step < reports; ++step)
        study.reports.push_back({step, 1.0 / static_cast<double>(number + step + 1)});
      trial.reports = static_cast<std::size_t>(reports);
      study.trials.push_back(trial);
      const auto begin = static_cast<double>(number);
      report.bars.push_back({.trial = number,
                             .state = trial.state,
                             .lane = number % 2,
                             .begin = begin,
                             .first_step = begin + 0.5,
                             .end = begin + 2});
    }
    report.best = {{.trial = trials - 1, .trials_finished = trials, .seconds = 5, .worked_seconds = 5, .value = 0.1}};
    report.states = {{.state = TrialState::kComplete, .count = trials - trials / 3},
                     {.state = TrialState::kPruned, .count = trials / 3}};
  }
  [[nodiscard]] StudyDocument document() const { return {report, study, "optuna.db"}; }

  Study study;
  StudyReport report;
};

TEST(StudyDocument, TextFromOutsideIsNoMarkup) {
  Sweep sweep(3, 2, kHostile);
  sweep.report.anomalies = {{.kind = "dead_trial", .text = kHostile, .next = kHostile}};
  sweep.report.what_if = {{.change = kHostile, .how = kHostile + "\n" + kHostile, .why = kHostile}};
  const StudyDocument d{sweep.report, sweep.study, kHostile};
  EXPECT_THAT(to_html(d), Not(HasSubstr("<b>")));
  EXPECT_THAT(to_html(d), HasSubstr("&lt;b&gt;&amp;"));
  EXPECT_THAT(to_markdown(d), Not(HasSubstr("| <b>")));
}

TEST(StudyDocument, OfNothingIsADocument) {
  const StudyReport report;
  const Study study;
  EXPECT_THAT(to_html({report, study, "optuna.db"}), HasSubstr("0 trials."));
  EXPECT_THAT(to_markdown({report, study, "optuna.db"}), HasSubstr("0 trials."));
}

TEST(Curves, AsManyAsAPictureHoldsAndTheBestInAnyCase) {
  const Sweep sweep(1000, 100);
  const Curves curves = curves_of(sweep.document());
  EXPECT_EQ(curves.trials, 1000U);
  EXPECT_LE(curves.curves.size(), 121U);
  EXPECT_GE(curves.curves.size(), 120U);
  EXPECT_EQ(curves.curves.back().trial->number, 999);
  for (const Curve& curve : curves.curves) {
    EXPECT_LE(curve.points.size(), 81U);
    EXPECT_EQ(curve.points.back().step, 99);
  }
  EXPECT_THAT(curves_words(curves), HasSubstr("of 1,000 trials are drawn"));
  EXPECT_THAT(curves_words(curves), HasSubstr("more than 80 reports"));
}

TEST(Curves, ATrialThatExplodesDoesNotPressTheOthersIntoALine) {
  Sweep sweep(20, 10);
  sweep.study.reports.back().value = 1e30;
  sweep.study.reports.front().value = std::numeric_limits<double>::quiet_NaN();
  const Curves curves = curves_of(sweep.document());
  EXPECT_LT(curves.high, 10);
  EXPECT_TRUE(curves.beyond);
  EXPECT_THAT(curves_words(curves), HasSubstr("at the edge"));
  EXPECT_THAT(html::curves_chart(sweep.document()), Not(HasSubstr("nan")));
}

TEST(Curves, TheScaleOfAFewValuesIsAllOfThem) {
  const Curves curves = curves_of(Sweep(2, 1).document());
  EXPECT_EQ(curves.low, 0.5);
  EXPECT_EQ(curves.high, 1.0);
  EXPECT_FALSE(curves.beyond);
}

TEST(StudyDocument, AManyTrialsPageCanBeSentAround) {
  EXPECT_LT(to_html(Sweep(10'000, 50).document()).size(), 300'000U);
}

Comparison measured() {
  Comparison c{.a = {kHostile, 6, 60, 3000.0}, .b = {"more", 6, 48, 3000.0}, .unit = "step"};
  c.ratio = {0.8, 0.78, 0.82};
  c.method = "6 interleaved pairs";
  c.reasons = {{CompareReason::kCacheStateUnknown, "A fetched 4.0 GiB from storage, B nothing", false}};
  c.accounts = {{"computing", 0.012, 0.012}, {"input", 0.008, 0.004}};
  c.metrics = {{"accuracy", 0.97, 0.968, 0.001, 0.002}};
  c.parameters = {{kHostile, "0", "4", true}, {"seed", "", "2", false}};
  c.artefacts = {{"model.json", true, ""}, {kHostile, false, kHostile}};
  return c;
}

TEST(ComparisonDocument, SaysTheAnswerAndWhatItRestsOn) {
  const std::string page = to_html({measured()});
  for (const char* words : {"<h1>B is faster by 25 %", "A 20 ms, B 16 ms", "6 interleaved pairs", "<dt>page cache</dt>",
                            "0.780 to 0.820", "-4 ms", "not set", "Artefacts: 1 of 2 differ."})
    EXPECT_THAT(page, HasSubstr(words));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(to_markdown({measured()}), Not(HasSubstr("<b>")));
}

TEST(ComparisonDocument, OfBatchesHasTheTasksOfBothSides) {
  Comparison c;
  EXPECT_THAT(to_markdown(ComparisonDocument{.comparison = c}), Not(HasSubstr("## Tasks")));
  c.runs = {
      {.task = "fit 2023H1", .side = "A", .outcome = "succeeded", .why = "", .gpus = {"GPU 0"}, .seconds = {}},
      {.task = "fit 2023H1", .side = "B", .outcome = "timed_out", .why = "longer than 5 s", .gpus = {}, .seconds = {}}};
  const std::string refused = to_markdown(ComparisonDocument{.comparison = c});
  EXPECT_THAT(refused, HasSubstr("| fit 2023H1 | B | timed out: longer than 5 s | - |"));
  EXPECT_THAT(refused, HasSubstr("left out where two cannot be compared"));
  c.ratio = Ratio{0.5, 0.4, 0.6};
  c.runs[0].seconds = 12.5;
  EXPECT_THAT(to_markdown(ComparisonDocument{.comparison = c}),
              HasSubstr("| fit 2023H1 | A | succeeded | GPU 0 | 12.50 s |"));
  EXPECT_THAT(to_html(ComparisonDocument{.comparison = c}), HasSubstr("timed out: longer than 5 s"));
}

TEST(ComparisonDocument, ARefusalHasNoRatio) {
  Comparison c{.a = {"A", 36, 0, {}}, .b = {"B", 36, 0, {}}, .unit = "task"};
  c.reasons = {{CompareReason::kDifferentTasks, "36 of A's 576 tasks are among B's 36", true}};
  c.valid_command = "headroom ab -- a --- b";
  const std::string page = to_html({c});
  EXPECT_THAT(page, HasSubstr("<h1>These two cannot be compared, for 1 reason."));
  EXPECT_THAT(page, HasSubstr("headroom ab -- a --- b"));
  EXPECT_THAT(page, Not(HasSubstr("Time at equal work")));
}

TEST(ComparisonDocument, AVerificationHasTheVerdictFirst) {
  Verification v{.plan = "plan.json", .recording = "b.hrec", .comparison = measured()};
  v.applied = {.ids = {"workers"},
               .low = 1.1,
               .high = 1.4,
               .measured = MeasuredGain{1.25, 1.22, 1.28},
               .kept = true,
               .why = "it is within"};
  v.quality = {{.name = "accuracy", .a = 0.97, .b = 0.968, .lost = Answer::kNo}};
  const std::string page = to_html({v.comparison, &v});
  for (const char* words : {"<h1>workers delivered: it is within.", "predicted: 1.10x to 1.40x",
                            "measured: 1.22x to 1.28x", "B is faster by 25 %"})
    EXPECT_THAT(page, HasSubstr(words));
}

}  // namespace
}  // namespace headroom::report
