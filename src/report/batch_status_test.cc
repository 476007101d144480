// SPDX-License-Identifier: Apache-2.0
#include "report/batch_status.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

BatchProgress half_done() {
  BatchProgress progress{.tasks = {.total = 10, .ready = 3, .running = 2, .succeeded = 4, .failed = 1},
                         .elapsed = 60 * kSecond,
                         .left = 50 * kSecond,
                         .left_low = 40 * kSecond,
                         .left_high = 70 * kSecond};
  progress.gpus.push_back({.gpu = {.uuid = "GPU-0", .model = "NVIDIA H200", .index = 0, .memory_bytes = 143LL << 30},
                           .running = 2,
                           .used_bytes = 20LL << 30,
                           .util_ratio = 0.5,
                           .tasks_per_second = 0.1});
  progress.running.push_back({.task = "train-3", .elapsed = 5 * kSecond});
  progress.waiting_for = "GPU 0 is full";
  return progress;
}

TEST(BatchStatus, ProgressIsWhatWasDoneOfWhatIsStillWanted) {
  EXPECT_THAT(progress_words(half_done()), HasSubstr("5/10  50 %"));
  EXPECT_THAT(progress_words(half_done()), HasSubstr("1 failed"));
  EXPECT_THAT(progress_words(half_done()), HasSubstr("about 50"));
  BatchProgress progress = half_done();
  progress.tasks.cancelled = 2, progress.tasks.skipped = 1, progress.draining = true;
  EXPECT_THAT(progress_words(progress), HasSubstr("5/7  71 %  1:00  1 failed  1 skipped  2 cancelled  ending"));
  const std::string text = status_text(to_json(progress));
  EXPECT_EQ(text.find("2 running"), text.substr(0, text.find('\n')).rfind("2 running")) << "once: " << text;
}

TEST(BatchStatus, BeforeTheFirstTaskHasEndedTheTimeLeftIsNotYetKnown) {
  BatchProgress progress{.tasks = {.total = 10, .ready = 8, .running = 2}, .elapsed = kSecond};
  EXPECT_THAT(progress_words(progress), HasSubstr("time left not yet known"));
  progress.left = progress.left_low = progress.left_high = 50 * kSecond;  // as in earlier batches
  EXPECT_THAT(progress_words(progress), Not(HasSubstr("not yet")));
}

TEST(BatchStatus, OnANarrowTerminalTheLastPartsOfAGpuAreLeftOut) {
  const auto gpu = half_done().gpus.front();
  EXPECT_THAT(gpu_words(gpu), HasSubstr("0.1 tasks/s"));
  EXPECT_THAT(gpu_words(gpu, 30), Not(HasSubstr("tasks/s")));
  EXPECT_THAT(gpu_words(gpu, 1), HasSubstr("GPU 0  H200  2 running"));
}

TEST(BatchStatus, WhatIsNotYetSeenIsNotSaidToBeZero) {
  auto gpu = half_done().gpus.front();
  gpu.used_bytes = 1 << 20;
  EXPECT_THAT(gpu_words(gpu), Not(HasSubstr("GiB")));
  gpu.used_bytes = 1 << 26;
  EXPECT_THAT(gpu_words(gpu), HasSubstr("0.1/143 GiB"));
  gpu.used_bytes = 0, gpu.running = 0;
  EXPECT_THAT(gpu_words(gpu), HasSubstr("0.0/143 GiB"));
  EXPECT_THAT(gpu_words(gpu, 100), Not(HasSubstr(" W")));
  gpu.power_watts = 212.4, gpu.temperature_celsius = 64;
  EXPECT_THAT(gpu_words(gpu, 100), HasSubstr("gpu 50 %  212 W  64 °C  0.1 tasks/s"));
}

TEST(BatchStatus, WhatARunningBatchAnswersIsReadBackForPeople) {
  const std::string json = to_json(half_done());
  EXPECT_EQ(nlohmann::json::parse(json)["tasks"]["succeeded"], 4);
  EXPECT_TRUE(nlohmann::json::parse(json)["at_rest"].empty());
  const std::string text = status_text(json);
  EXPECT_THAT(text, HasSubstr("5/10"));
  EXPECT_THAT(text, HasSubstr("train-3  for 5"));
  EXPECT_THAT(text, HasSubstr("The next task waits: GPU 0 is full."));
}

TEST(BatchStatus, AnAnswerThatIsNoneIsNotRead) {
  for (const char* answer : {"", "error", "[]", "{}", "{\"gpus\": []"}) EXPECT_THAT(status_text(answer), IsEmpty());
  const std::string deep(100'000, '[');
  for (const std::string& answer :
       {std::string(R"({"gpus":[1],"running":[]})"), std::string(R"({"gpus":[],"running":["a"]})"),
        std::string(R"({"gpus":{"a":1},"running":[]})"), std::string(R"({"gpus":[],"running":[],"summary":3})"),
        std::string(R"({"gpus":[{"text":[]}],"running":[]})"), std::string(R"({"gpus":[],"running":[{"for_ns":"1"}]})"),
        std::string(R"({"gpus":[],"running":[{"for_ns":1e300}]})"),
        std::string(R"({"gpus":[],"running":[],"waiting_for":null})"),
        std::string(R"({"gpus":[],"running":[],"tasks":{"failed":"many"}})"),
        std::string(R"({"gpus":[],"running":[],"at_rest":"killed"})"),
        R"({"gpus":[],"running":[],"more":)" + deep + std::string(100'000, ']') + "}"}) {
    EXPECT_THAT(status_text(answer), IsEmpty()) << answer.substr(0, 80);
    EXPECT_THAT(status_json(answer), IsEmpty()) << answer.substr(0, 80);
  }
}

TEST(BatchStatus, AnAnswerIsPassedOnAsJsonOfOurs) {
  const std::string json = to_json(half_done());
  EXPECT_EQ(nlohmann::json::parse(status_json(json)), nlohmann::json::parse(json));
  const std::string shown = status_json("{\"gpus\":[],\"running\":[],\"summary\":\"a\xc2\x9b\xe2\x80\xae\x7f\"}   ");
  EXPECT_TRUE(std::all_of(shown.begin(), shown.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= 127); }));
  EXPECT_EQ(nlohmann::json::parse(shown)["summary"], "a\xc2\x9b\xe2\x80\xae\x7f");
  EXPECT_EQ(status_json("{\"gpus\":[],\"running\":[],\"summary\":\"\x9b\"}"), "") << "no UTF-8";
}

TEST(BatchStatus, AtRestItSaysHowTheLastRunEndedAndHowToGoOn) {
  StatusAtRest status{.folder = "f.batch", .command = "headroom batch f", .ran = true};
  status.tasks = {{.name = "a", .state = TaskState::kSucceeded}, {.name = "b"}};
  EXPECT_THAT(to_text(status), HasSubstr("the last run was killed"));
  EXPECT_THAT(to_text(status), HasSubstr("2 tasks: 1 not run yet, 1 succeeded"));
  EXPECT_THAT(to_text(status), HasSubstr("Go on with: headroom batch f"));
  const auto json = nlohmann::json::parse(to_json(status));
  EXPECT_EQ(json["tasks"]["ready"], 1);
  EXPECT_EQ(json["at_rest"], nlohmann::json({"No batch is running in f.batch; the last run was killed.",
                                             "Go on with: headroom batch f"}));
  EXPECT_THAT(task_list(status.tasks), HasSubstr("not run yet b"));
  status.tasks.push_back({.name = "c", .last = LastAttempt::kInterrupted});
  status.last_run = "drained", status.command = "", status.added = 2;
  EXPECT_THAT(to_text(status), HasSubstr("the last run was ended when its running tasks had finished"));
  EXPECT_THAT(to_text(status), Not(HasSubstr("Go on with")));
  EXPECT_THAT(to_text(status), HasSubstr("2 tasks were added while it ran: to go on with them, add them again"));
  EXPECT_THAT(to_text(status), HasSubstr("3 tasks: 1 interrupted, 1 not run yet, 1 succeeded"));
}

}  // namespace
}  // namespace headroom::report
