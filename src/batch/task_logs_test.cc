// SPDX-License-Identifier: Apache-2.0
#include "batch/task_logs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace headroom::batch {
namespace {

struct TaskLogs : ::testing::Test {
  std::string folder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "headroom-logs-XXXXXX").string();
    return std::string(::mkdtemp(name.data()));
  }();
  Attempt attempt{.id = 1, .log_path = folder + "/t.log"};

  ~TaskLogs() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  void print(const std::string& text) const { std::ofstream(attempt.log_path, std::ios::app) << text; }
  void ended() { attempt.end = 1; }
};

TEST_F(TaskLogs, WithoutAPatternStepsAreWhatTrainersPrint) {
  const auto count = step_counter({});
  EXPECT_EQ(count(attempt), std::nullopt);
  print("loading\nstep 3/20 | loss 0.9\n");
  EXPECT_EQ(count(attempt), 3);
  print("step 12/20 | loss 0.5\nstep 20/20 | lo");
  EXPECT_EQ(count(attempt), 12) << "half a line is none";
  print("ss 0.4");
  ended();
  EXPECT_EQ(count(attempt), 20) << "the last one lacks its end";
}

TEST_F(TaskLogs, APatternStandsInForThem) {
  const auto count = step_counter({{output::LogPattern::Kind::kStep, "", "tree (\\d+)"}});
  print("step 3/20 | loss 0.9\ntree 7\n");
  ended();
  EXPECT_EQ(count(attempt), 7);
}

TEST_F(TaskLogs, ALongLogIsReadFromNearItsEndOnceItsAttemptHasEnded) {
  const auto count = step_counter({});
  std::string log;
  for (int i = 1; i <= 5; ++i) {  // 1.5 MB: five trainings of ten steps
    for (int step = 1; step <= 10; ++step) log += "step " + std::to_string(step) + "/10 | loss 0.9\n";
    for (int line = 0; line < 300; ++line) log += std::string(999, '.') + "\n";
  }
  print(log);
  ended();
  EXPECT_EQ(count(attempt), 50);
}

}  // namespace
}  // namespace headroom::batch
