// SPDX-License-Identifier: Apache-2.0
#include "report/batch_table.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kWide = 160;

TableRow row(std::string task, std::string lr, std::optional<double> loss) {
  TableRow row{.task = std::move(task), .state = TaskState::kSucceeded, .parameters = {{"lr", std::move(lr)}}};
  if (loss) row.metrics = {{"loss", *loss}};
  row.took = 90 * kSecond;
  row.gpu_bytes = std::int64_t{3} << 30;
  return row;
}

std::vector<std::string> order(const std::vector<TableRow>& rows) {
  std::vector<std::string> names;
  for (const auto& one : rows) names.push_back(one.task);
  return names;
}

TEST(BatchTable, AColumnForEachParameterAndMetric) {
  std::vector<TableRow> rows{row("a", "0.1", 0.5), row("b", "0.01", std::nullopt)};
  rows[1].state = TaskState::kReady, rows[1].took.reset(), rows[1].gpu_bytes.reset();
  EXPECT_EQ(table_text(rows, kWide),
            "task    lr  loss  time  GPU memory  state\n"
            "a      0.1   0.5  1:30    3072 MiB  succeeded\n"
            "b     0.01                          not run yet\n");
  EXPECT_EQ(table_csv(rows),
            "task,lr,loss,seconds,gpu_memory_bytes,state,outcome,too_short\n"
            "a,0.1,0.5,90.000,3221225472,succeeded,,\n"
            "b,0.01,,,,not run yet,,\n");
  rows[1].state = TaskState::kRunning;
  EXPECT_THAT(table_csv(rows), HasSubstr("b,0.01,,,,running"));
  rows[1].state = TaskState::kReady, rows[1].last = LastAttempt::kInterrupted;
  EXPECT_THAT(table_csv(rows), HasSubstr("b,0.01,,,,interrupted"));
  EXPECT_EQ(nlohmann::json::parse(table_json(rows))["tasks"][1]["interrupted"], true);
  rows[1].last = LastAttempt::kOther;
  EXPECT_THAT(table_csv(rows), HasSubstr("b,0.01,,,,to run again"));
}

TEST(BatchTable, HowAMetricWentStandsBesideItWhereThereIsRoom) {
  std::vector<TableRow> rows{row("a", "0.1", 0.5), row("b", "0.01", 0.7)};
  rows[0].courses = {{.name = "loss",
                      .last = 0.5,
                      .first = 2,
                      .lowest = 0.4,
                      .highest = 2,
                      .values = 12,
                      .better = Better::kLower,
                      .curve = {2, 1.2, 0.4, 0.5}}};
  EXPECT_EQ(table_text(rows, kWide),
            "task    lr  loss  first  best  curve  time  GPU memory  state\n"
            "a      0.1   0.5      2   0.4  █▄▁▁   1:30    3072 MiB  succeeded\n"
            "b     0.01   0.7                      1:30    3072 MiB  succeeded\n");
  EXPECT_THAT(table_text(rows, 60), HasSubstr("loss  first  best  time"));
  EXPECT_THAT(table_text(rows, 50), HasSubstr("loss  time"));
  EXPECT_THAT(table_csv(rows), HasSubstr("loss,loss:first,loss:best,seconds"));
  const auto json = nlohmann::json::parse(table_json(rows))["tasks"];
  EXPECT_EQ(json[0]["metric_values"][0]["best"], 0.4);
  EXPECT_TRUE(json[1]["metric_values"].empty());
}

TEST(BatchTable, ACourseThatEndsOtherwiseIsOfSomethingElse) {
  Attempt attempt;
  attempt.start = 1, attempt.end = 2, attempt.outcome = AttemptOutcome::kSucceeded;
  attempt.metrics = {{"loss", 0.5}, {"acc", 0.9}};
  attempt.courses = {{.name = "loss", .last = 0.25, .first = 1}, {.name = "acc", .last = 0.9, .first = 0.1}};
  const TableRow told = table_row({.name = "a", .state = TaskState::kSucceeded}, {}, {&attempt}, 3);
  ASSERT_EQ(told.courses.size(), 1U);
  EXPECT_EQ(told.courses[0].name, "acc");
}

Attempt on_gpu(Nanos took, AttemptOutcome outcome, std::optional<std::int64_t> bytes) {
  Attempt attempt;
  attempt.gpu_uuids = {"GPU-0"};
  attempt.start = 1, attempt.end = 1 + took, attempt.outcome = outcome, attempt.peak_gpu_bytes = bytes;
  return attempt;
}

TEST(BatchTable, WhatWasTooShortToMeasureIsMarked) {
  const auto told = [](const char* name, const Attempt& attempt) {
    return table_row({.name = name, .state = TaskState::kSucceeded}, {}, {&attempt}, 9 * kSecond);
  };
  const Attempt glimpsed = on_gpu(kSecond, AttemptOutcome::kSucceeded, std::int64_t{1} << 30),
                unseen = on_gpu(kSecond / 2, AttemptOutcome::kSucceeded, std::nullopt),
                measured = on_gpu(3 * kSecond, AttemptOutcome::kSucceeded, std::int64_t{2} << 30);
  EXPECT_EQ(table_text({told("a", glimpsed), told("b", unseen), told("c", measured)}, kWide),
            "task    time  GPU memory  state\n"
            "a      1.0 s  * 1024 MiB  succeeded\n"
            "b     500 ms           *  succeeded\n"
            "c      3.0 s    2048 MiB  succeeded\n"
            "* too short to measure (less than 3.0 s): the most that a look found it to hold, if one did\n");
  EXPECT_THAT(table_csv({told("a", glimpsed)}), HasSubstr("a,1.000,1073741824,succeeded,succeeded,yes\n"));
  EXPECT_EQ(nlohmann::json::parse(table_json({told("b", unseen)}))["tasks"][0]["too_short"], true);
  EXPECT_EQ(table_text({told("c", measured)}, kWide).find('*'), std::string::npos);
  Attempt without_gpu = glimpsed, refused = unseen;
  without_gpu.gpu_uuids.clear(), refused.outcome = AttemptOutcome::kNotStarted;
  for (const Attempt& other : {without_gpu, refused}) EXPECT_FALSE(told("d", other).too_short);
}

TEST(BatchTable, OfWhatATaskFailedStandsBesideItsState) {
  const auto told = [](const Attempt& attempt) {
    return table_row({.name = "a", .state = TaskState::kFailed}, {}, {&attempt}, 99 * kSecond);
  };
  const Attempt memory = on_gpu(9 * kSecond, AttemptOutcome::kHostOutOfMemory, std::nullopt),
                other = on_gpu(9 * kSecond, AttemptOutcome::kFailed, std::nullopt);
  EXPECT_THAT(table_text({told(memory)}, kWide), HasSubstr("failed, out of host memory\n"));
  EXPECT_THAT(table_text({told(other)}, kWide), HasSubstr("failed\n"));
  EXPECT_THAT(table_csv({told(memory)}), HasSubstr(",failed,host_out_of_memory,\n"));
  EXPECT_EQ(nlohmann::json::parse(table_json({told(memory)}))["tasks"][0]["outcome"], "host_out_of_memory");
}

TEST(BatchTable, CsvQuotesWhatNeedsIt) {
  EXPECT_THAT(table_csv({row("a,\"b\"\nc", "x", 1.0)}), HasSubstr("\"a,\"\"b\"\"\nc\",x,1,"));
  EXPECT_THAT(table_text({row("a\nb\x1b[2J", "x", 1.0)}, kWide), HasSubstr("a b [2J"));
}

TEST(BatchTable, SortsNumbersAsNumbersAndPutsWhatIsMissingLast) {
  std::vector<TableRow> rows{row("none", "9", std::nullopt), row("ten", "10", 10), row("nine", "9", 9),
                             row("nan", "x", std::nan(""))};
  ASSERT_TRUE(sort_table(rows, "loss", false));
  EXPECT_THAT(order(rows), ElementsAre("nine", "ten", "none", "nan"));
  ASSERT_TRUE(sort_table(rows, "loss", true));
  EXPECT_THAT(order(rows), ElementsAre("ten", "nine", "none", "nan"));
  ASSERT_TRUE(sort_table(rows, "lr", false));
  EXPECT_THAT(order(rows), ElementsAre("nine", "none", "ten", "nan"));
  rows[0].state = TaskState::kFailed;
  ASSERT_TRUE(sort_table(rows, "lr", false));
  EXPECT_EQ(order(rows).front(), "nine") << "what it was given is not what it reached";
  for (const char* key : {"time", "gpu_memory"}) {
    ASSERT_TRUE(sort_table(rows, key, false));
    EXPECT_EQ(order(rows).back(), "nine") << key << ": it has failed";
  }
  ASSERT_TRUE(sort_table(rows, "loss", false));
  EXPECT_THAT(order(rows), ElementsAre("ten", "none", "nan", "nine")) << "nine has failed";
  const auto unknown = sort_table(rows, "los", false);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::kInvalidInput);
  EXPECT_THAT(unknown.error().hint, HasSubstr("loss, lr, task, time, gpu_memory"));
}

TEST(BatchTable, ValuesAfterThreeColonsAreNamedAsInTheCommand) {
  TableRow one = row("a", "0.1", std::nullopt);
  one.parameters = {{"1", "0.1"}, {"2", "7"}};
  EXPECT_THAT(table_text({one}, kWide), HasSubstr("task  {1}  {2}  time"));
  std::vector<TableRow> rows{one};
  EXPECT_TRUE(sort_table(rows, "{2}", false));
}

TEST(BatchTable, TheAttemptThatSucceededIsTold) {
  const auto attempt = [](AttemptOutcome outcome, Nanos took, double loss) {
    Attempt made;
    made.start = 5, made.end = 5 + took, made.outcome = outcome, made.metrics = {{"loss", loss}};
    made.parameters_resolved = {{"lr", "0.1"}, {"depth", "6"}};
    return made;
  };
  const Attempt failed = attempt(AttemptOutcome::kFailed, 1, 1), good = attempt(AttemptOutcome::kSucceeded, 2, 2),
                later = attempt(AttemptOutcome::kInterrupted, 3, 3);
  const TableRow told =
      table_row({.name = "a", .state = TaskState::kSucceeded}, {{"lr", "1e-1"}}, {&failed, &good, &later}, 0);
  EXPECT_EQ(told.took, 2);
  EXPECT_THAT(told.parameters, ElementsAre(testing::Pair("lr", "1e-1"), testing::Pair("depth", "6")));
  EXPECT_EQ(table_row({.name = "a", .state = TaskState::kFailed}, {}, {&failed}, 0).took, 1);
  Attempt running;
  running.start = 10;
  const TableRow runs = table_row({.name = "a", .state = TaskState::kRunning}, {}, {&failed, &running}, 14);
  EXPECT_EQ(runs.took, 4) << "so far";
  EXPECT_TRUE(runs.metrics.empty()) << "those were of another attempt";
}

TEST(BatchTable, JsonKeepsWhatIsMissingAsNull) {
  TableRow one = row("a", "0.1", std::nan(""));
  one.gpu_bytes.reset();
  const auto json = nlohmann::json::parse(table_json({one}));
  EXPECT_EQ(json["schema"], "headroom.batch-table/1");
  EXPECT_EQ(json["tasks"][0]["parameters"]["lr"], "0.1");
  EXPECT_TRUE(json["tasks"][0]["metrics"]["loss"].is_null());
  EXPECT_EQ(json["tasks"][0]["seconds"], 90.0);
  EXPECT_TRUE(json["tasks"][0]["gpu_memory_bytes"].is_null());
}

}  // namespace
}  // namespace headroom::report
