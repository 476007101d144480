// SPDX-License-Identifier: Apache-2.0
#include "report/text.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/strings.h"
#include "model/losses.h"
#include "model/notes.h"
#include "report/json.h"
#include "report/words.h"

namespace headroom::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string many(const std::string& words, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += (i == 0 ? "" : " ") + words;
  return text;
}

// As much to say as there can be: devices unlike one another with many accounts, long findings, problems.
Explanation crowded(std::size_t devices) {
  Explanation e;
  e.headline = many("The GPUs computed for a part of the time and waited.", 3);
  e.path = "run.hrec";
  e.meta.tiers = "NPY";
  e.ledger.end = 100 * kSecond;
  for (std::size_t i = 0; i < devices; ++i) {
    Device device;
    device.index = static_cast<int>(i);
    device.name = "NVIDIA A100";
    e.ledger.devices.push_back(device);
    Nanos left = e.ledger.end;
    for (const Account account : {Account::kUseful, Account::kStartup, Account::kInput, Account::kHostCode,
                                  Account::kSync, Account::kCheckpoint, Account::kTeardown}) {
      LedgerEntry entry;
      entry.account = account;
      entry.device = i;
      entry.ns = std::min(left, static_cast<Nanos>(7 + 5 * i) * kSecond);
      left -= entry.ns;
      if (entry.ns > 0) e.ledger.entries.push_back(entry);
    }
  }
  for (int i = 0; i < 4; ++i) {
    Finding finding;
    finding.title = many("The GPU waits for code of the training process", 2);
    finding.candidates = {Cause::kLoggingUpload, Cause::kSlowStorage,        Cause::kBurstyInput,
                          Cause::kGilContention, Cause::kInputInMainProcess, Cause::kHostGraphBuilding};
    finding.claims = {{0, 0, (40 - i) * kSecond, Account::kHostCode, -1}};
    finding.evidence = std::vector<std::string>(4, many("its Python stacks say this and that", 3));
    finding.advice = many("make that code cheaper; or let it overlap with the kernels", 3);
    finding.bound = many("1.4x at most, if it overlapped", 4);
    finding.would_overturn = many("headroom stacks shows other functions", 3);
    e.findings.push_back(finding);
  }
  e.health = {{"ended_well", Answer::kNo, "exit code 1"}, {"memory", Answer::kNo, many("47.9 of 48 GiB at most", 4)}};
  return e;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(Report, ACauseThatIsLikelyIsToldWithWhatSpeaksForItAndWithWhatElseItMayBe) {
  Explanation e = crowded(1);
  Finding& first = e.findings.front();
  first.cause = Cause::kHostGraphBuilding;
  first.candidates.clear();
  first.less_likely = {Cause::kInputInMainProcess, Cause::kSyncPoints};
  first.speaks_for = {"its stacks are in its own code"};
  const std::string likely =
      "Likely    host code between steps (its stacks are in its own code); less likely, or a part of it: data loading "
      "in";
  EXPECT_THAT(to_text(e, {.width = 200, .full = true}), HasSubstr(likely));
  EXPECT_EQ(count(to_text(e, {.width = 200, .full = true}), "could be "), 3U) << "of the other findings";
  const auto json = nlohmann::json::parse(to_json(e))["findings"][0];
  EXPECT_EQ(json["cause"], "host_graph_building");
  ASSERT_EQ(json["less_likely"].size(), 2U);
  EXPECT_EQ(json["less_likely"][1]["cause"], "sync_points");
  EXPECT_EQ(json["cause_evidence"], "its stacks are in its own code");
  EXPECT_TRUE(json["candidates"].empty());
}

TEST(Report, AnAssumedSpacingOfRowsIsSaidAndWhatItTookToReadALogIsTypedAgain) {
  Explanation e = crowded(1);
  e.path = "boxes.log";
  e.meta.tiers = "N";
  const std::string detail = "rows carry no time: 30 s apart, as --log-interval says";
  e.losses = {make_loss(LossKind::kNoTimestamps, 1, detail)};
  TextOptions options{.width = 160};
  EXPECT_THAT(to_text(e, options), HasSubstr("In the log " + detail));
  options.reading = " --log-interval 30s";
  EXPECT_THAT(to_text(e, options), HasSubstr("Next: headroom why boxes.log --log-interval 30s --full\n"));
  options.full = true;
  EXPECT_THAT(to_text(e, options), HasSubstr("Next: headroom why boxes.log --log-interval 30s --json\n"));
  EXPECT_THAT(to_text(e, options), Not(HasSubstr("headroom export"))) << "it takes no such option";
  options.full = false;
  for (const LossKind told :
       {LossKind::kAssumedDateOrder, LossKind::kNoGpuColumn, LossKind::kNoDate, LossKind::kSharedMinute}) {
    e.losses = {make_loss(told, 1, "something was assumed (--option says it)")};
    EXPECT_THAT(to_text(e, options), HasSubstr("In the log something was assumed (--option says it)."));
  }
  e.losses = {make_loss(LossKind::kSharedSecond, 1, "something was assumed")};
  EXPECT_THAT(to_text(e, options), Not(HasSubstr("In the log"))) << "which changes little";
  e.losses.clear();
  e.meta.extra["decimal_commas"] = "'73,8' as 73.8";
  EXPECT_THAT(to_text(e, options), HasSubstr("Commas in the log were read as decimal points: '73,8' as 73.8."));
  e.meta.extra = {{"other_runs", "a is read, and b is left out"}};
  EXPECT_THAT(to_text(e, options), HasSubstr("Of the runs in the log a is read, and b is left out."));
  e.meta.extra.clear();
  e.losses.clear();
  EXPECT_THAT(to_text(e, TextOptions{}), Not(HasSubstr("rows carry no time")));
}

TEST(Report, WhyThereIsNoHangIsSaidOnce) {
  Explanation e = crowded(1);
  const std::string to_the_end = "kernels ran to the end";
  e.health = {{"progress", Answer::kYes, to_the_end}, {"no_hang", Answer::kYes, to_the_end}};
  const std::string text = to_text(e, {.width = 160, .full = true});
  EXPECT_THAT(text, HasSubstr("In order: no hang: kernels ran to the end."));
  EXPECT_EQ(count(text, to_the_end), 1U);
  e.health[1] = {"no_hang", Answer::kUnknown, "a peer may be late"};
  EXPECT_THAT(to_text(e, {.width = 160, .full = true}), HasSubstr("In order: kernels ran to the end."));
}

TEST(Report, WhereAJobIsOrWhatWouldTellIsSaidWhileItGoesOn) {
  constexpr const char* kTells = "Progress: not told: what the job prints is not read: not asked for (--output-lines).";
  Explanation e = crowded(1);
  e.meta.origin = "run";
  EXPECT_THAT(to_text(e, {.width = 100}), Not(HasSubstr("Progress"))) << "its output was read";
  e.meta.missing_tiers = {{'L', "not asked for (--output-lines)"}};
  EXPECT_THAT(to_text(e, {.width = 100}), HasSubstr(kTells));
  e.meta.missing_tiers = {{'L', std::string(kOutputToldNothing)}};
  EXPECT_THAT(to_text(e, {.width = 100}), Not(HasSubstr("Progress"))) << "nothing more can be read of it";
  e.progress = Progress{.epoch = Progress::At{3, 5, false}};
  EXPECT_THAT(to_text(e, {.width = 100}), HasSubstr("Progress: epoch 3/5."));
  e.progress.reset(), e.meta.stop_reason = "job_ended";
  EXPECT_THAT(to_text(e, {.width = 100}), Not(HasSubstr("Progress")));
}

TEST(Report, WhichPartOfComputingOnlyWaitedIsSaid) {
  Explanation e = crowded(1);  // kernels for 7 s
  Finding late;
  late.candidates = {Cause::kStraggler, Cause::kValidation};
  late.claims = {{0, 0, 2 * kSecond, Account::kUseful, -1}, {0, 50 * kSecond, 60 * kSecond, Account::kHostCode, -1}};
  e.findings = {late};
  EXPECT_EQ(computing_words(e),
            "Computing: a kernel was on the GPU; 29 % of that only waited for another GPU (below).");
  e.findings[0].confidence = Confidence::kLow;
  EXPECT_THAT(computing_words(e), HasSubstr("29 % of that may only have waited for another GPU"));
  e.findings[0].candidates = {Cause::kStraggler, Cause::kExposedCommunication};
  EXPECT_THAT(computing_words(e), HasSubstr("29 % of that hardly worked (below)"));
  e.findings[0].candidates = {Cause::kHang};
  EXPECT_THAT(computing_words(e), Not(HasSubstr("waited")));
}

TEST(Report, FasterKernelsAreABound) {
  Explanation e = crowded(1);
  e.pipeline = Pipeline{.gpu_part = 90 * kSecond, .kernels = 60 * kSecond, .rest = 10 * kSecond};
  const std::string text = to_text(e, {.width = 160, .full = true});
  EXPECT_THAT(text, HasSubstr("1:00 of 1:40 have a kernel on a GPU. Kernels that are twice as fast make no less than "
                              "1:10 (1.43x at most); however fast they are,\n"));
  EXPECT_THAT(text, HasSubstr("never under 40.0 s (2.5x): what goes on beside them may set the pace."));
  EXPECT_THAT(text, Not(HasSubstr("GPU part of the job")));
}

TEST(Report, AGainWithoutANumberHasNoCondition) {
  Option option;
  option.gain = {1, 2, "if the GPU never waited for its data"};
  EXPECT_EQ(condition_words(option), option.gain.words());
  option.gain.high = 1;
  EXPECT_EQ(condition_words(option), "none is promised for the time of this job");
  option.gain.high = 2;
  option.promises = false;
  EXPECT_EQ(condition_words(option), "none is promised for the time of this job");
  option.gain.none = "none by itself: it makes the answer surer";
  EXPECT_EQ(condition_words(option), option.gain.words());
  option.gain = {};
  EXPECT_EQ(condition_words(option), "not bounded by this recording");
}

TEST(Report, PhasesAreCountedExactlyWhereNothingOfThemWasLost) {
  const auto title = [](const std::string& way, LossKind lost, std::int64_t count) {
    Explanation e;
    e.phases = {{.name = "epoch", .named_by = way}};
    e.losses = {{.what = std::string(info(lost).name), .count = count}};
    return phases_title(e);
  };
  const auto least = HasSubstr("at least so often");
  EXPECT_THAT(title("marks", LossKind::kMarkLost, 1), least);
  EXPECT_THAT(title("marks", LossKind::kMarkLost, 0), Not(least));
  EXPECT_THAT(title("marks", LossKind::kOutputLost, 1), Not(least)) << "nobody read them in the output";
  EXPECT_THAT(title("output", LossKind::kOutputLost, 1), least);
  EXPECT_THAT(title("output", LossKind::kMarkLost, 1), Not(least));
  EXPECT_THAT(title("trace", LossKind::kMarkShort, 1), Not(least));
  EXPECT_THAT(title("stacks", LossKind::kMarkShort, 0), least);
  EXPECT_THAT(title("stacks", LossKind::kMarkShort, 0), HasSubstr("by samples"));
}

TEST(Report, EarlierPredictionsSetALowEndThatIsAGain) {
  Option option;
  option.outcomes = 1;
  option.gain = {1.2, 2, ""};
  EXPECT_EQ(shown_words(option), "by 1 earlier prediction for this cause; the low end rests on that");
  option.gain.low = 1.001;
  EXPECT_EQ(shown_words(option), "by 1 earlier prediction for this cause: it may gain nothing");
}

TEST(Report, TheTopThreeKeepWhatToTryAndWhatItBrings) {
  for (const auto& [devices, lines] : {std::pair(1U, 40), std::pair(2U, 40), std::pair(4U, 50), std::pair(8U, 50)}) {
    const std::string text = to_text(crowded(devices), {.width = 80});
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), lines) << text;
    EXPECT_EQ(count(text, "\n   Try "), 3U) << text;
    EXPECT_EQ(count(text, "\n   Gain "), 3U) << text;
    EXPECT_THAT(text, HasSubstr("Problems:"));
    EXPECT_THAT(text, HasSubstr("1 finding more with --full"));
  }
}

Explanation with_phases(std::size_t devices, int phases) {
  Explanation e = crowded(devices);
  for (int i = 0; i < phases; ++i)
    e.phases.push_back({.name = "phase " + std::to_string(i), .named_by = "marks", .count = 4, .total = 8 * kSecond});
  return e;
}

TEST(Report, ATableOfPhasesHasPhasesOrIsNone) {
  std::size_t tables = 0;
  for (const std::size_t width : {60U, 80U, 100U, 160U})
    for (const int findings : {1, 2, 3, 4})
      for (const int phases : {1, 2, 3, 4, 5, 12}) {
        Explanation e = with_phases(1, phases);
        e.findings.resize(static_cast<std::size_t>(findings));
        const std::string text = to_text(e, {.width = width});
        EXPECT_LE(std::count(text.begin(), text.end(), '\n'), std::max<std::size_t>(40, 40 * 80 / width)) << text;
        const std::size_t rows = count(text, "\n  phase ") - count(text, "\n  phase  ");  // but for the header
        if (count(text, "Phases, as marks") == 0) {
          EXPECT_EQ(rows, 0U) << text;
          continue;
        }
        ++tables;
        EXPECT_GE(rows, std::min<std::size_t>(3, static_cast<std::size_t>(phases))) << text;
        const std::size_t left_out = static_cast<std::size_t>(phases) - rows;
        EXPECT_EQ(count(text, "... and " + std::to_string(left_out) + " more"), left_out > 0 ? 1U : 0U) << text;
      }
  EXPECT_GT(tables, 30U);
}

TEST(Report, WhereNoShareOfKernelsIsKnownThePhasesSayWhy) {
  Explanation e = with_phases(1, 2);
  e.findings.resize(1);
  EXPECT_EQ(count(to_text(e, {.width = 160}), "too few of the GPU's readings"), 1U);
  for (Phase& phase : e.phases) phase.gpu_util_ratio = 0.0;
  EXPECT_EQ(count(to_text(e, {.width = 160}), "too few of the GPU's readings"), 0U);
}

TEST(Report, UnexplainedTimeInWhichAProcessEndedIsSaidToBeThat) {
  const auto text = [](Tiers tiers) {
    Explanation e = crowded(1);
    e.ledger.entries.push_back(
        {.account = Account::kUnexplained, .tiers = tiers, .confidence = Confidence::kLow, .ns = 2 * kSecond});
    return to_text(e, {.width = 160});
  };
  EXPECT_THAT(text(""), HasSubstr("Unexplained: in 2.0 s of it a process ended"));
  EXPECT_EQ(count(text("N"), "a process ended"), 0U);
}

}  // namespace
}  // namespace headroom::report
