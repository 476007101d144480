// SPDX-License-Identifier: Apache-2.0
#include "batch/add_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::batch {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(std::vector<std::string> argv, bool shell = false) {
  const std::vector<TaskSpec> batch{{.name = "a", .parameters = {{"lr", "0.1"}, {"batch_size", "32"}}}};
  std::vector<TaskSpec> added{
      {.name = "b", .argv = std::move(argv), .shell = shell, .parameters = {{"1", "0.5"}, {"2", "64"}}}};
  name_parameters(batch, added);
  std::vector<std::string> result;
  for (const auto& [name, value] : added.front().parameters) result.push_back(name);
  return result;
}

TEST(AddTasks, AValueHasTheNameThatTheBatchHasForItsOption) {
  EXPECT_THAT(names({"train", "--lr", "0.5", "--batch-size=64"}), ElementsAre("lr", "batch_size"));
  EXPECT_THAT(names({"train", "lr=0.5", "64"}), ElementsAre("lr", "2"));
  EXPECT_THAT(names({"/bin/sh", "-c", "train --lr 0.5 --batch-size 64"}, true), ElementsAre("lr", "batch_size"));
}

TEST(AddTasks, AValueOfAnotherOptionKeepsItsNumber) {
  EXPECT_THAT(names({"train", "--momentum", "0.5", "64"}), ElementsAre("1", "2"));
  EXPECT_THAT(names({"train", "0.5", "64", "--lr", "0.1"}), ElementsAre("1", "2"));
}

}  // namespace
}  // namespace headroom::batch
