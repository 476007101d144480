// SPDX-License-Identifier: Apache-2.0
#include "storage/journal_storage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "storage/testing.h"

namespace headroom {
namespace {

const std::string kStudy = R"({"op_code": 0, "worker_id": "a", "study_name": "one", "directions": [1]})"
                           "\n";
const std::string kTrial =
    R"({"op_code": 4, "worker_id": "a", "study_id": 0, "datetime_start": "2026-11-22T17:55:04.374397"})"
    "\n";
const std::string kWaiting =
    R"({"op_code": 4, "worker_id": "a", "study_id": 0, "datetime_start": null, "state": 4, "value": null,)"
    R"( "values": null, "distributions": {}, "params": {}, "system_attrs": {"fixed_params": {}},)"
    R"( "intermediate_values": {}})"
    "\n";

std::string report(int trial, int step, const std::string& value) {
  return fmt::format(R"({{"op_code": 7, "worker_id": "a", "trial_id": {}, "step": {}, "intermediate_value": {}}})"
                     "\n",
                     trial, step, value);
}
std::string state(int trial, TrialState state, const std::string& values = "null", const std::string& worker = "a") {
  return fmt::format(R"({{"op_code": 6, "worker_id": "{}", "trial_id": {}, "state": {}, "values": {},)"
                     R"( "datetime_start": "2026-11-22T17:55:05", "datetime_complete": "2026-11-22T17:55:06"}})"
                     "\n",
                     worker, trial, static_cast<int>(state), values);
}
std::string parameter(int trial, const std::string& name, double value, bool log) {
  return fmt::format(
      R"({{"op_code": 5, "worker_id": "a", "trial_id": {}, "param_name": "{}", "param_value_internal": {},)"
      R"( "distribution": "{{\"name\": \"FloatDistribution\", \"attributes\": {{\"low\": 0.5,)"
      R"( \"high\": 9.0, \"step\": null, \"log\": {}}}}}"}})"
      "\n",
      trial, name, value, log);
}
std::string attribute(int trial, const std::string& key, const std::string& value) {
  return fmt::format(R"({{"op_code": 9, "worker_id": "a", "trial_id": {}, "system_attr": {{"{}": {}}}}})"
                     "\n",
                     trial, key, value);
}

Study read(const std::string& text) {
  const auto content = read_journal_text({.name = "journal.log"}, text);
  EXPECT_TRUE(content) << content.error().what;
  if (!content || content->studies.empty()) return {};
  testing::check_study(content->studies[0]);
  return content->studies[0];
}

TEST(JournalStorage, ATrialIsReadWhole) {
  const Study study =
      read(kStudy + kTrial + parameter(0, "lr", 0.75, true) + report(0, 5, "Infinity") + report(0, 0, "NaN") +
           attribute(0, "completed_rung_1", "-Infinity") + attribute(0, "constraints", "[1, -2.5]") +
           attribute(0, "failed_trial", "3") + attribute(0, "else", "{}") + state(0, TrialState::kComplete, "[0.5]"));
  ASSERT_EQ(study.trials.size(), 1U);
  const Trial& trial = study.trials[0];
  EXPECT_EQ(trial.state, TrialState::kComplete);
  EXPECT_EQ(trial.start, 1'795'370'104'374'397'000);
  EXPECT_EQ(trial.complete, 1'795'370'106'000'000'000);
  EXPECT_EQ(trial.values, std::vector<double>{0.5});
  EXPECT_EQ(trial.constraints, (std::vector<double>{1, -2.5}));
  EXPECT_EQ(trial.retry_of, 3);
  ASSERT_EQ(trial.rungs.size(), 1U);
  EXPECT_EQ(trial.rungs[0], (std::pair{1, -std::numeric_limits<double>::infinity()}));
  ASSERT_EQ(study.reports.size(), 2U);
  EXPECT_TRUE(study.reports[0].step == 0 && std::isnan(study.reports[0].value));
  EXPECT_TRUE(study.reports[1].step == 5 && std::isinf(study.reports[1].value));
  EXPECT_EQ(study.spaces[0], (ParameterSpace{.name = "lr", .low = 0.5, .high = 9, .log = true}));
  EXPECT_EQ(study.workers, std::vector<std::string>{"a"});
  EXPECT_EQ(study.left_out, 0);
  EXPECT_FALSE(study.times_in_utc);
}

TEST(JournalStorage, AFinishedTrialDoesNotChange) {
  const std::string text = kStudy + kTrial + report(0, 0, "1") + state(0, TrialState::kComplete, "[1]");
  const Study study = read(text + report(0, 1, "2") + state(0, TrialState::kFail) + parameter(0, "x", 1, false) +
                           attribute(0, "completed_rung_0", "1"));
  EXPECT_EQ(study, read(text));
}

TEST(JournalStorage, OfTwoWhoStartAWaitingTrialTheFirstOneGetsIt) {
  const Study study = read(kStudy + kWaiting + state(0, TrialState::kRunning, "null", "first") +
                           state(0, TrialState::kRunning, "null", "second"));
  EXPECT_TRUE(study.trials[0].enqueued);
  EXPECT_EQ(study.trials[0].start, 1'795'370'105'000'000'000);
  EXPECT_EQ(study.workers.at(study.trials[0].worker.value()), "first");
}

TEST(JournalStorage, OfTwoStudiesOfOneNameTheFirstOneIs) {
  const auto content = read_journal_text({}, kStudy + kTrial + kStudy + kTrial);
  ASSERT_EQ(content->studies.size(), 1U);
  EXPECT_EQ(content->studies[0].trials.size(), 2U);
}

TEST(JournalStorage, TrialsOfADeletedStudyKeepTheirNumbersFromTheNextOnes) {
  std::string again = kStudy, trial = kTrial;
  trial.replace(trial.find("\"study_id\": 0"), 13, "\"study_id\": 1");
  // One more for the study that is gone gets no id.
  const Study study = read(kStudy + kTrial +
                           R"({"op_code": 1, "worker_id": "a", "study_id": 0})"
                           "\n" +
                           kTrial + again + trial + report(1, 0, "7") + report(0, 0, "8"));
  ASSERT_EQ(study.trials.size(), 1U);
  EXPECT_EQ(study.trials[0].number, 0);
  EXPECT_EQ(study.reports, (std::vector<StepReport>{{0, 7}}));
}

TEST(JournalStorage, WhatDoesNotFitTheFirstTrialsSpaceIsRefusedAsOptunaDoes) {
  const Study study = read(kStudy + kTrial + kTrial + parameter(0, "x", 1, false) + parameter(1, "x", 2, true) +
                           parameter(1, "y", 3, true));
  EXPECT_EQ(study.trials[0].parameters, 1U);
  EXPECT_EQ(study.trials[1].parameters, 1U);
  EXPECT_EQ(parameters_of(study, study.trials[1])[0].value, 3);
  EXPECT_EQ(study.left_out, 0);
}

TEST(JournalStorage, TheLastReportOfAStepCounts) {
  const Study study = read(kStudy + kTrial + report(0, 1, "1") + report(0, 0, "2") + report(0, 1, "3"));
  EXPECT_EQ(study.reports, (std::vector<StepReport>{{0, 2}, {1, 3}}));
}

TEST(JournalStorage, TornAndDamagedLinesAreCounted) {
  const std::string whole = kStudy + kTrial + report(0, 0, "1");
  const std::string line = report(0, 1, "2");
  EXPECT_EQ(read(whole + "not json\n" + line).left_out, 1);
  EXPECT_EQ(read(whole + R"({"op_code": 99})"
                         "\n")
                .left_out,
            1);
  EXPECT_EQ(read(whole + report(7, 0, "1")).left_out, 1);  // of a trial that does not exist
  // A writer died, and the next one wrote on: its line counts.
  const Study torn = read(whole + line.substr(0, 20) + line);
  EXPECT_EQ(torn.left_out, 1);
  EXPECT_EQ(torn.reports.size(), 2U);
  for (std::size_t cut = 1; cut < line.size(); ++cut) {
    const Study study = read(whole + line.substr(0, cut));
    EXPECT_EQ(study.left_out, 1);
    EXPECT_EQ(study.reports.size(), 1U);
  }
}

TEST(JournalStorage, TimesWithTheirZoneAreUnixTime) {
  std::string zoned = kTrial;
  zoned.replace(zoned.find("04.374397"), 9, "04.374397+09:00");
  const Study study = read(kStudy + zoned);
  EXPECT_EQ(study.trials[0].start, 1'795'370'104'374'397'000 - 9 * 3600 * kSecond);
  EXPECT_TRUE(study.times_in_utc);
  EXPECT_FALSE(read(kStudy + zoned + kTrial).times_in_utc);
}

TEST(JournalStorage, LinesReadTheSameHoweverTheyAreWritten) {
  const auto compact = [](std::string text) {
    for (const std::string_view wide : {", \"", ": "})
      for (std::size_t at = 0; (at = text.find(wide, at)) != std::string::npos;) text.erase(at + 1, 1);
    return text;
  };
  const std::string lines =
      parameter(0, "lr", 1.5, false) + parameter(0, "x y", -2, true) + report(0, 0, "-1.5e-07") + report(0, 1, "3");
  const Study study = read(kStudy + kTrial + lines);
  EXPECT_EQ(study.reports, (std::vector<StepReport>{{0, -1.5e-7}, {1, 3}}));
  EXPECT_EQ(study.parameters.size(), 2U);
  EXPECT_EQ(read(kStudy + kTrial + compact(lines)), study);
  std::string other;  // the parser of JSON reads these
  for (std::size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1)
    other += "{\"more\": 0, " + lines.substr(at + 1, end - at);
  EXPECT_EQ(read(kStudy + kTrial + other), study);
  // Neither way takes these.
  for (const char* value : {"1e999", "0x1", "--1", "1 2", "\"1\"", "nan", "inf"})
    EXPECT_EQ(read(kStudy + kTrial + report(0, 0, value)).left_out, 1) << value;
}

TEST(JournalStorage, AStudyThatIsNotThereIsNamedWithThoseThatAre) {
  const auto content = read_journal_text({.study = "two"}, kStudy);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Errc::kNotFound);
  EXPECT_EQ(content.error().hint, "it has one");
  EXPECT_EQ(read_journal_text({}, "{\n").error().code, Errc::kCorrupt);
}

}  // namespace
}  // namespace headroom
