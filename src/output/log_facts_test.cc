// SPDX-License-Identifier: Apache-2.0
#include "output/log_facts.h"

#include <gmock/gmock.h>

namespace headroom::output {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

Attempt facts_of(std::string_view log, const std::vector<LogPattern>& patterns = {}) {
  Attempt attempt;
  LogFacts(patterns).take_log(log, attempt);
  return attempt;
}

TEST(LogFacts, PatternsFindTheLastMatch) {
  const std::vector<LogPattern> patterns{{LogPattern::Kind::kMetric, "loss", "loss=([0-9.]+)"},
                                         {LogPattern::Kind::kParameter, "lr", "lr ([0-9.e-]+)"},
                                         {LogPattern::Kind::kStep, "", "step (\\d+)"}};
  const Attempt found = facts_of("lr 1e-3\nstep 1 loss=0.5\nstep 2 loss=0.25\nloss=high\n", patterns);
  EXPECT_THAT(found.metrics, ElementsAre(Pair("loss", 0.25)));
  EXPECT_THAT(found.parameters_resolved, ElementsAre(Pair("lr", "1e-3")));
}

TEST(LogFacts, ALineOfJsonSaysParametersAndMetrics) {
  const Attempt found = facts_of(
      "starting\n"
      R"({"headroom": {"params": {"lr": 0.1, "model": {"depth": 6, "kind": "gbdt"}, "tags": [1, 2]}}})"
      "\nnoise {\"headroom\"\n"
      R"({"headroom": {"metrics": {"auc": 0.5, "note": "bad", "test": {"auc": 0.25}}, "params": {"lr": 0.2}}})"
      "\n");
  EXPECT_THAT(found.parameters_resolved, ElementsAre(Pair("lr", "0.2"), Pair("model.depth", "6"),
                                                     Pair("model.kind", "gbdt"), Pair("tags", "[1,2]")));
  EXPECT_THAT(found.metrics, ElementsAre(Pair("auc", 0.5), Pair("test.auc", 0.25)));
}

TEST(LogFacts, ParametersThatTrainersPrintAreFoundUnlessAPatternSaysThem) {
  const std::string_view log =
      "Using bfloat16 Automatic Mixed Precision (AMP)\nEpoch 12: early stopping\nprecision mine\n";
  EXPECT_THAT(facts_of(log).parameters_resolved,
              ElementsAre(Pair("mixed_precision", "bfloat16"), Pair("early_stopping", "yes")));
  EXPECT_THAT(
      facts_of(log, {{LogPattern::Kind::kParameter, "mixed_precision", "precision (\\w+)"}}).parameters_resolved,
      ElementsAre(Pair("early_stopping", "yes"), Pair("mixed_precision", "mine")));
}

TEST(LogFacts, OtherJsonIsOnlyText) {
  const Attempt found = facts_of("{\"params\": {\"lr\": 1}}\n{\"headroom\": 3}\n{\"headroom\": {\"params\": [1]}}\n");
  EXPECT_THAT(found.parameters_resolved, IsEmpty());
  EXPECT_THAT(found.metrics, IsEmpty());
}

TEST(LogFacts, AFileOfParametersIsOneObject) {
  Attempt attempt;
  EXPECT_TRUE(LogFacts::take_file(R"({"seed": 1, "optimizer": {"name": "adam"}, "resume": null})", attempt));
  EXPECT_THAT(attempt.parameters_resolved,
              ElementsAre(Pair("seed", "1"), Pair("optimizer.name", "adam"), Pair("resume", "null")));
  EXPECT_FALSE(LogFacts::take_file("[1]", attempt));
  EXPECT_FALSE(LogFacts::take_file("{\"half\": ", attempt));
}

TEST(LogFacts, DeepAndWideJsonIsCutOff) {
  std::string deep = "1";
  for (int i = 0; i < 40; ++i) deep = "{\"a\":" + deep + "}";
  Attempt attempt;
  EXPECT_TRUE(LogFacts::take_file(deep, attempt));
  EXPECT_EQ(attempt.parameters_resolved.size(), 1U);
  for (int i = 0; i < 40; ++i) deep = "{\"a\":" + deep + "}";
  EXPECT_FALSE(LogFacts::take_file(deep, attempt)) << "deeper than is read at all";
  std::string wide = "{\"first\": 0";
  for (int i = 0; i < 5000; ++i) wide += ",\"p" + std::to_string(i) + "\":1";
  Attempt many;
  EXPECT_TRUE(LogFacts::take_file(wide + "}", many));
  EXPECT_EQ(many.parameters_resolved.size(), 1000U);
}

TEST(LastWords, TheLastLineThatSaysSomething) {
  EXPECT_EQ(last_words("loading\ncannot open prices.csv\n\n  \n"), "cannot open prices.csv");
  EXPECT_EQ(last_words(""), "");
  EXPECT_EQ(last_words("\n\n"), "");
}

TEST(LastWords, WhatHeadroomSaysOfItsRecordingIsNoReason) {
  const std::string note = "headroom: cannot record GPUs: no driver\n  the job runs on, recorded without GPUs\n";
  EXPECT_EQ(last_words(note), "");
  EXPECT_EQ(last_words("cannot open prices.csv\n" + note), "cannot open prices.csv");
  EXPECT_EQ(last_words(note + "headroom: there is no a.hrec\n  headroom recordings\n"), "headroom recordings");
}

TEST(LastWords, APythonTracebackIsItsException) {
  EXPECT_EQ(last_words("Traceback (most recent call last):\n"
                       "  File \"train.py\", line 3, in <module>\n    main()\n"
                       "xgboost.core.XGBoostError: [12:00:00] bad value\nStack trace:\n  [bt] (0) lib.so\n"),
            "xgboost.core.XGBoostError: [12:00:00] bad value");
  EXPECT_EQ(last_words("Traceback (most recent call last):\n  File \"a\"\nKeyError: 'x'\n\n"
                       "During handling of the above exception, another exception occurred:\n\n"
                       "Traceback (most recent call last):\n  File \"b\"\nValueError: second\n"),
            "ValueError: second");
}

TEST(LastWords, AnExceptionAtTheEndIsToldFromOneOnTheWay) {
  const std::string failed = "step 1\nTraceback (most recent call last):\n  File \"a\"\nValueError: NaN loss\n";
  EXPECT_EQ(exception_at_end(failed), "ValueError: NaN loss");
  EXPECT_EQ(exception_at_end(failed + "wandb: synced\n\n"), "ValueError: NaN loss");
  EXPECT_EQ(exception_at_end(failed + "2\n3\n4\n5\n6\n7\n"), "") << "the job went on";
  EXPECT_EQ(exception_at_end("cannot open prices.csv\n"), "");
}

TEST(LastWords, OfAThreadThatHadEndedBefore) {
  const std::string thread =
      "Exception in thread feeder:\nTraceback (most recent call last):\n  File \"a\"\nValueError: bad line\n";
  const std::string own = "Traceback (most recent call last):\n  File \"b\"\n_queue.Empty\n";
  EXPECT_EQ(exception_at_end(thread + "step 7\n" + own),
            "_queue.Empty; before that, in another thread, ValueError: bad line");
  EXPECT_EQ(exception_at_end(thread), "ValueError: bad line");
  EXPECT_EQ(last_words(thread + own), "_queue.Empty");
}

TEST(LastWords, ControlCharactersAndBarsAreLeftOut) {
  EXPECT_EQ(last_words("  1%|\r 50%|#\r\x1b[31mfailed\x1b[0m at\a step 7\r\n"), "failed at step 7");
}

TEST(LastWords, ALongLineIsCutBetweenCharacters) {
  std::string line(157, 'x');
  line += "ÄÄÄÄ";
  const std::string cut = last_words(line);
  EXPECT_LE(cut.size(), 160u);
  EXPECT_EQ(cut, std::string(157, 'x') + "…");
}

}  // namespace
}  // namespace headroom::output
