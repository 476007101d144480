// SPDX-License-Identifier: Apache-2.0
#include "report/compare.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/strings.h"
#include "report/compare_document.h"
#include "report/compare_words.h"
#include "report/verify.h"

namespace headroom::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Comparison measured() {
  Comparison c{.a = {"base", 6, 60, 3000.0}, .b = {"more", 6, 48, 3000.0}, .unit = "step"};
  c.ratio = {0.8, 0.78, 0.82};
  c.pairs = 6, c.method = "6 interleaved pairs";
  c.reasons = {{CompareReason::kCacheStateUnknown, "A fetched 4.0 GiB from storage, B nothing", false}};
  c.accounts = {{"computing", 0.012, 0.012}, {"input", 0.008, 0.004}, {"start-up", 1e-6, 1e-6}};
  c.metrics = {{"accuracy", 0.97, 0.968, 0.001, 0.002}};
  c.parameters = {{"num_workers", "0", "4", true}, {"seed", "1", "2", false}};
  c.artefacts = {{"model.json", true, ""}, {"metrics.csv", false, "3 of 400 numbers differ, by 0.002 at most"}};
  return c;
}

Comparison refused() {
  Comparison c{.a = {"base", 36, 0, {}}, .b = {"exp", 36, 0, {}}, .unit = "task"};
  c.reasons = {{CompareReason::kDifferentTasks, "36 of A's 576 tasks are among B's 36", true},
               {CompareReason::kFasterWithMoreWork, "B did 2.0x of A's work in 11 % of its time", true},
               {CompareReason::kParametersUnknown, "A did not record the parameters that it settled on", false}};
  c.valid_command = "headroom ab -- train --a --- train --b";
  return c;
}

TEST(CompareText, ASpreadThatIsRoundingIsNone) {
  EXPECT_EQ(metric_words(0.9875, 1.4e-16), "0.9875");
  EXPECT_EQ(metric_words(0.97, 0.001), "0.97 (+-0.001)");
  EXPECT_EQ(metric_words(0, 0.001), "0 (+-0.001)");
}

TEST(CompareText, TheAnswerComesFirst) {
  EXPECT_EQ(to_text(measured(), {}), R"(B is faster by 25 %: it takes 0.800 of A's time per step (95 % interval 0.780 to
0.820).
  per step          A 20 ms, B 16 ms; 6 interleaved pairs
  page cache        A fetched 4.0 GiB from storage, B nothing
What differs
  num_workers       0 -> 4
  seed              1 -> 2 (not said to differ)
What the programs printed
  accuracy          0.97 (+-0.001) -> 0.968 (+-0.002)
GPU time of the whole runs, per step
                                   A           B
  computing                    12 ms       12 ms
  input                         8 ms        4 ms
Artefacts: 1 of 2 differ.
  metrics.csv: 3 of 400 numbers differ, by 0.002 at most
)");
}

TEST(CompareText, MemoryThatDiffersIsInTheFullTextInJsonAndInTheDocument) {
  for (Comparison c : {measured(), refused()}) {
    c.memory = {{MemoryFact::kPeak, "10 GiB in A, 20 GiB in B, on GPU 0"},
                {MemoryFact::kBatchSize, "batch_size differs, too: 32 in A, 64 in B"}};
    EXPECT_THAT(to_text(c, {}), Not(HasSubstr("GPU memory")));
    EXPECT_THAT(to_text(c, {.full = true}),
                HasSubstr("GPU memory, and what differs beside it\n"
                          "  peak              10 GiB in A, 20 GiB in B, on GPU 0\n"
                          "  batch size        batch_size differs, too: 32 in A, 64 in B\n"));
    const auto json = nlohmann::json::parse(to_json(c))["memory"];
    EXPECT_EQ(json[1]["code"], "batch_size");
    EXPECT_EQ(json[0]["text"], "10 GiB in A, 20 GiB in B, on GPU 0");
    EXPECT_THAT(to_html(ComparisonDocument{.comparison = c}), HasSubstr("batch_size differs, too: 32 in A, 64 in B"));
    EXPECT_THAT(to_markdown(ComparisonDocument{.comparison = c}), HasSubstr("* peak: 10 GiB in A, 20 GiB in B"));
  }
}

TEST(CompareText, ShortPhasesAreSaidToBeCountedToOthers) {
  Comparison c = measured();
  EXPECT_THAT(to_text(c, {}), Not(HasSubstr("too short")));
  c.phases = {{"train", 0.021, 0.025}, {"load", 0.03, 0}};
  c.b.short_phases = 1200;
  EXPECT_THAT(to_text(c, {}),
              HasSubstr("  load                         30 ms           -\n  Phases too short to be told "
                        "apart: 0 in A, 1,200 in B. Their time is in the\n  phase around or before"));
  EXPECT_EQ(nlohmann::json::parse(to_json(c))["b"]["short_phases"], 1200);
  for (const std::string& page :
       {to_html(ComparisonDocument{.comparison = c}), to_markdown(ComparisonDocument{.comparison = c})})
    EXPECT_THAT(page, HasSubstr("Their time is in the phase around or before them."));
}

TEST(CompareText, TimesTakeTheUnitThatTheyAreRoundedTo) {
  EXPECT_EQ(time_words(999.4e-6), "999 us");
  EXPECT_EQ(time_words(999.6e-6), "1 ms");
  EXPECT_EQ(time_words(0.9996), "1.00 s");
}

TEST(CompareText, ARefusalNamesNoTimeAndTheWayOut) {
  EXPECT_EQ(to_text(refused(), {}), R"(These two cannot be compared, for 2 reasons:
  different tasks   36 of A's 576 tasks are among B's 36
  implausible       B did 2.0x of A's work in 11 % of its time
Not enough to refuse, but it would count, too:
  parameters        A did not record the parameters that it settled on
A valid pair: headroom ab -- train --a --- train --b
)");
}

TEST(CompareText, ACommandToPasteIsNotBroken) {
  Comparison c = refused();
  c.valid_command = "headroom ab -- python3 train.py --a-long-option=1 --- env -C 'a folder' python3 train.py";
  c.valid_note = "FOLDER: one";
  EXPECT_THAT(to_text(c, {}), HasSubstr("\nA valid pair:\n" + c.valid_command + "\n  FOLDER: one.\n"));
}

TEST(CompareText, TheOtherMeasureStandsBelow) {
  Comparison c = measured();
  c.other = OtherRatio{"run", {0.9, 0.85, 0.95}};
  EXPECT_THAT(to_text(c, {}),
              HasSubstr("  per run           0.900 (0.850 to 0.950): the whole runs, with what they took"));
  c.unit = "run", c.other->unit = "step";
  EXPECT_THAT(to_text(c, {}), HasSubstr("  per step          0.900 (0.850 to 0.950): the steps alone"));
}

TEST(CompareText, ALabelStandsApartFromItsText) {
  Comparison c = refused();
  c.reasons[0].reason = CompareReason::kInterleavedWithOtherWork;
  EXPECT_THAT(to_text(c, {}), HasSubstr("  work in between   36 of A's"));
  c = measured();
  c.parameters[0].name = "gradient_accumulation_steps";
  EXPECT_THAT(to_text(c, {}), HasSubstr("  gradient_accumulation_steps: 0 -> 4"));
}

TEST(CompareText, NoDifferenceIsSaidAsSuch) {
  Comparison c = measured();
  c.ratio = {0.99, 0.97, 1.01};
  EXPECT_THAT(to_text(c, {}), HasSubstr("No difference can be told: B takes 0.990 of A's time per step"));
  c.ratio = {1.5, 1.4, 1.6};
  EXPECT_THAT(to_text(c, {}), HasSubstr("B is slower by 50 %"));
}

TEST(CompareText, StepsThatMayHoldMoreAreNoAnswer) {
  Comparison c = measured();
  c.ratio = {1.27, 1.08, 1.48};
  c.reasons = {{CompareReason::kDifferentWork, "the steps of B may hold 4 times the samples", false}};
  const std::string text = to_text(c, {.width = 200});
  EXPECT_THAT(text,
              HasSubstr("A step of B takes 1.270 of the time of one of A (95 % interval 1.080 to 1.480): whether B is "
                        "faster at equal work is not known."));
  EXPECT_THAT(text, Not(HasSubstr("slower")));
  c.unit = "sample";
  EXPECT_THAT(to_text(c, {}), HasSubstr("B is slower by 27 %"));
}

TEST(CompareText, FitsEveryWidth) {
  for (const std::size_t width : {40U, 60U, 80U, 120U})
    for (const Comparison& c : {measured(), refused()}) {
      std::istringstream lines(to_text(c, {.width = width}));
      for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
    }
}

TEST(CompareJson, SaysWhatTheTextSays) {
  const auto json = nlohmann::json::parse(to_json(measured()));
  EXPECT_EQ(json["ratio"]["of"], "time per step, B/A");
  EXPECT_EQ(json["reasons"][0]["code"], "cache_state_unknown");
  EXPECT_EQ(json["valid_command"], nullptr);
  const auto no = nlohmann::json::parse(to_json(refused()));
  EXPECT_FALSE(no["comparable"]);
  EXPECT_EQ(no["ratio"], nullptr);
  EXPECT_EQ(no["implausible"].size(), 1U);
  EXPECT_EQ(no["a"]["seconds"], nullptr);
}

TEST(VerifyText, PredictedBesideMeasured) {
  Verification v{.plan = "plan.json", .recording = "x.hrec", .comparison = measured()};
  v.applied = {.ids = {"workers"}, .cause = Cause::kInputInMainProcess, .low = 1.1, .high = 1.4};
  v.applied.measured = {1.25, 1.22, 1.28}, v.applied.kept = true,
  v.applied.why = "the measured gain is within what was predicted";
  v.quality = {{"accuracy", 0.97, 0.968, Answer::kNo}};
  const std::string text = to_text(v, {});
  EXPECT_THAT(text, HasSubstr("workers delivered: the measured gain is within"));
  EXPECT_THAT(text, HasSubstr("  predicted     1.10x to 1.40x of time at equal work\n"));
  EXPECT_THAT(text, HasSubstr("  measured      1.25x (95 % interval 1.22x to 1.28x)\n"));
  EXPECT_THAT(text, HasSubstr("  accuracy      0.97 -> 0.968, not worse\n"));
  EXPECT_THAT(text, Not(HasSubstr("Remembered")));
  EXPECT_THAT(text, Not(HasSubstr("--before")));
  const auto json = nlohmann::json::parse(to_json(v));
  EXPECT_EQ(json["options"][0]["cause"], "input_in_main_process");
  EXPECT_EQ(json["comparison"]["schema"], "headroom.compare/1");
  v.applied.ids = {"workers", "batch"}, v.applied.kept.reset();
  EXPECT_THAT(to_text(v, {}), HasSubstr("Whether workers and batch delivered is not known"));
  const auto both = nlohmann::json::parse(to_json(v));
  EXPECT_EQ(both["options"][1]["measured"], nullptr);
  EXPECT_EQ(both["together"]["measured"]["value"], 1.25);
}

TEST(VerifyText, WithoutAValidPairItSaysHowToMakeOneAndVerifyIt) {
  Verification v{.plan = "my plan.json", .recording = "x.hrec", .comparison = refused()};
  v.applied = {.ids = {"workers", "batch"}, .why = "the two runs cannot be compared"};
  const std::string text = to_text(v, {});
  EXPECT_THAT(text, HasSubstr("\nheadroom verify 'my plan.json' DIR/runs/B-01.hrec,DIR/runs/B-02.hrec,"));
  EXPECT_THAT(text, HasSubstr(",DIR/runs/B-05.hrec --before DIR/runs/A-01.hrec,"));
  EXPECT_THAT(text, HasSubstr(",DIR/runs/A-05.hrec --applied workers,batch\n"));
  v.comparison.valid_command = "";
  EXPECT_THAT(to_text(v, {}), Not(HasSubstr("--before")));
}

TEST(Predictions, StartAndShow) {
  EXPECT_THAT(predictions_text({}, {}, {}), HasSubstr("No prediction has been verified yet"));
  const PredictionOutcome outcome{
      .option = "workers", .cause = Cause::kInputInMainProcess, .high = 1.4, .measured = {1.2, 1.1, 1.3}};
  const CauseHistory history{
      .cause = Cause::kInputInMainProcess, .n = 1, .shrink_low = 0.4, .shrink_high = 0.9, .kept = 1};
  EXPECT_THAT(predictions_text({history}, {outcome}, {}),
              HasSubstr("input_in_main_process                 1     1   40 % to 90 %"));
  EXPECT_THAT(predictions_text({history}, {outcome}, {}),
              HasSubstr("  workers               1.00x to 1.40x    1.20x      not known\n"));
  PredictionOutcome beyond = outcome;
  beyond.measured = {1.6, 1.5, 1.7};
  beyond.kept = true;
  EXPECT_THAT(predictions_text({history}, {beyond}, {}),
              HasSubstr("  workers               1.00x to 1.40x    1.60x      more than was held possible\n"));
  const std::string many = predictions_text({history}, std::vector(7, outcome), {});
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 3 + 1 + 5) << many;  // the newest five
  EXPECT_EQ(nlohmann::json::parse(predictions_json({history}, {outcome}))["causes"][0]["shrink_low"], 0.4);
  PredictionOutcome study = outcome;  // its change is of no cause
  study.option = "warm workers", study.cause.reset();
  EXPECT_THAT(predictions_text({}, {study}, {}), HasSubstr("1 prediction verified.\n  option"));
  EXPECT_THAT(predictions_text({}, {study}, {}), HasSubstr("  warm workers          1.00x to 1.40x"));
  EXPECT_EQ(nlohmann::json::parse(predictions_json({}, {study}))["outcomes"][0]["cause"], nullptr);
}

Comparison with_figures(Comparison c) {
  c.figures = {{"busy", "GPU 0", 0.5, 0.75}, {"peak_memory", "GPU 0", 3e9, std::nullopt}, {"duration", "", 61.0, 59.0}};
  const Requirement memory{"peak_memory<22GB", "peak_memory", Sense::kLess, 22e9, "GB", 1e9};
  const Requirement accuracy{"accuracy>=0.97", "accuracy", Sense::kAtLeast, 0.97};
  c.requirements = {
      {memory, false, 22000001000.0, "GPU 1"}, {accuracy, true, 0.97}, {accuracy, std::nullopt, {}, "", "why"}};
  return c;
}

TEST(CompareText, WhatIsRequiredAndTheFiguresOfBoth) {
  const std::string text = to_text(with_figures(measured()), {.full = true});
  EXPECT_THAT(text, HasSubstr("Required\n"
                              "  peak_memory<22GB  not kept: 22.000001GB on GPU 1\n"
                              "  accuracy>=0.97    kept: 0.97\n"
                              "  accuracy>=0.97    not known: why\n"))
      << "with as many digits as tell the value from the limit";
  EXPECT_THAT(text, HasSubstr("Figures of the whole runs\n"
                              "                                       A           B\n"
                              "  busy, GPU 0                       50 %        75 %\n"
                              "  peak memory, GPU 0            2861 MiB   not known\n"
                              "  duration                          1:01      59.0 s\n"));
  EXPECT_THAT(to_text(with_figures(refused()), {.full = true}), HasSubstr("Figures of the whole runs"));
  EXPECT_THAT(to_text(with_figures(measured()), {}), Not(HasSubstr("Figures of the whole runs")));
}

TEST(CompareText, AMeasuredValueIsOnTheSideOfItsLimitThatIsSaid) {
  const auto said = [](double limit, double value, double scale = 1) {
    Comparison c = measured();
    c.requirements = {{{"x", "x", Sense::kLess, limit, "", scale}, value < limit, value}};
    const std::string text = to_text(c, {});
    const std::size_t at = text.find("kept: ") + 6;
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(said(20, 1.6124, 1e-3), "1,612") << "no exponent";
  EXPECT_EQ(said(0.12345, 0.12345), "0.12345") << "the limit itself is no rounded one";
  EXPECT_EQ(said(20000.3, 20000.4), "20000.4");
}

TEST(CompareJson, RequirementsAndFiguresAreThere) {
  const auto json = nlohmann::json::parse(to_json(with_figures(measured())));
  EXPECT_EQ(json["requirements"][0]["kept"], false);
  EXPECT_EQ(json["requirements"][0]["of"], "GPU 1");
  EXPECT_EQ(json["requirements"][2]["kept"], nullptr);
  EXPECT_EQ(json["requirements"][2]["why_not_known"], "why");
  EXPECT_EQ(json["figures"][1]["a"], 3e9);
  EXPECT_EQ(json["figures"][1]["b"], nullptr);
  EXPECT_FALSE(nlohmann::json::parse(to_json(measured())).contains("requirements"));
}

TEST(CompareDocument, HasWhatIsRequiredAndTheFigures) {
  const Comparison c = with_figures(measured());
  const std::string text = to_markdown({c});
  EXPECT_THAT(text, HasSubstr("## Required"));
  EXPECT_THAT(text, HasSubstr("## Side by side"));
  EXPECT_THAT(to_html({c}), HasSubstr("22.000001GB on GPU 1"));
}

}  // namespace
}  // namespace headroom::report
