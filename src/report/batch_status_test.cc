// SPDX-License-Identifier: Apache-2.0
#include "report/batch_status.h"

#include <gmock/gmock.h>

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

TEST(BatchStatus, ProgressIsWhatHasEndedOfAll) {
  EXPECT_THAT(progress_words(half_done()), HasSubstr("5/10  50 %"));
  EXPECT_THAT(progress_words(half_done()), HasSubstr("1 failed"));
  EXPECT_THAT(progress_words(half_done()), HasSubstr("about 50"));
}

TEST(BatchStatus, OnANarrowTerminalTheLastPartsOfAGpuAreLeftOut) {
  const auto gpu = half_done().gpus.front();
  EXPECT_THAT(gpu_words(gpu), HasSubstr("0.1 tasks/s"));
  EXPECT_THAT(gpu_words(gpu, 30), Not(HasSubstr("tasks/s")));
  EXPECT_THAT(gpu_words(gpu, 1), HasSubstr("GPU 0  H200  2 running"));
}

TEST(BatchStatus, WhatARunningBatchAnswersIsReadBackForPeople) {
  const std::string json = to_json(half_done());
  EXPECT_EQ(nlohmann::json::parse(json)["tasks"]["succeeded"], 4);
  const std::string text = status_text(json);
  EXPECT_THAT(text, HasSubstr("5/10"));
  EXPECT_THAT(text, HasSubstr("train-3  for 5"));
  EXPECT_THAT(text, HasSubstr("The next task waits: GPU 0 is full."));
}

TEST(BatchStatus, AnAnswerThatIsNoneIsNotRead) {
  for (const char* answer : {"", "error", "[]", "{}", "{\"gpus\": []"}) EXPECT_THAT(status_text(answer), IsEmpty());
}

TEST(BatchStatus, AtRestItSaysHowTheLastRunEndedAndHowToGoOn) {
  StatusAtRest status{.folder = "f.batch", .command = "headroom batch f", .ran = true};
  status.tasks = {{.name = "a", .state = TaskState::kSucceeded}, {.name = "b"}};
  EXPECT_THAT(to_text(status), HasSubstr("the last run was killed"));
  EXPECT_THAT(to_text(status), HasSubstr("2 tasks: 1 not run yet, 1 succeeded"));
  EXPECT_THAT(to_text(status), HasSubstr("Go on with: headroom batch f"));
  EXPECT_EQ(nlohmann::json::parse(to_json(status))["tasks"]["ready"], 1);
  EXPECT_THAT(task_list(status.tasks), HasSubstr("not run yet b"));
}

}  // namespace
}  // namespace headroom::report
