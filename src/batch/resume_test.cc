// SPDX-License-Identifier: Apache-2.0
#include "batch/resume.h"

#include <gmock/gmock.h>

namespace headroom::batch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What is said of one task that succeeded with this fingerprint, now that it is `task`.
std::vector<std::string> said_of(const std::string& before, const TaskSpec& task) {
  std::vector<std::string> said;
  KnownTask known{.key = 1, .state = TaskState::kSucceeded, .fingerprint = before};
  warn_of_changes({known}, fingerprints_of({task}), std::nullopt, std::nullopt,
                  [&](std::string_view what, std::string_view) { said.emplace_back(what); });
  return said;
}

TEST(Resume, AnotherEnvironmentIsTold) {
  TaskSpec task{.argv = {"train"}, .environment = {{"A", "1"}, {"B", "2"}}};
  const std::string before = fingerprints_of({task}).front();
  EXPECT_THAT(said_of(before, task), IsEmpty());
  task.environment = {{"B", "2"}, {"A", "0"}, {"A", "1"}};  // the same for the task
  EXPECT_THAT(said_of(before, task), IsEmpty());
  task.environment = {{"A", "2"}, {"B", "2"}};
  EXPECT_THAT(said_of(before, task), ElementsAre(HasSubstr("1 task that succeeded earlier did so with another env")));
  task.environment.clear();
  EXPECT_THAT(said_of(before, task), ElementsAre(HasSubstr("environment")));
  EXPECT_THAT(said_of(fingerprints_of({task}).front(), {.argv = {"train"}, .environment = {{"A", "1"}}}),
              ElementsAre(HasSubstr("environment")));
}

TEST(Resume, OfAnOlderJournalTheEnvironmentIsNotKnown) {
  const TaskSpec task{.argv = {"train"}, .environment = {{"A", "1"}}};
  EXPECT_THAT(said_of("", task), IsEmpty());
  EXPECT_THAT(said_of("train.py 1 2;", task), ElementsAre(HasSubstr("another version of the script")));
}

}  // namespace
}  // namespace headroom::batch
