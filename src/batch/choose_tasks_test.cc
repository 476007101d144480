// SPDX-License-Identifier: Apache-2.0
#include "batch/choose_tasks.h"

#include <gmock/gmock.h>

namespace headroom::batch {
namespace {

using ::testing::ElementsAre;

std::vector<TaskSpec> tasks() {
  std::vector<TaskSpec> all;
  for (const char* name : {"prep_1", "prep_2", "train_1", "train_2", "odd[1]", "report"})
    all.push_back({.name = name, .group = std::string(name).substr(0, 4)});
  all[2].after = {"prep_1"}, all[3].after = {"prep_2"}, all[5].after = {"trai"};
  return all;
}

std::vector<std::string> names_of(const std::vector<TaskSpec>& all) {
  std::vector<std::string> names;
  for (const TaskSpec& task : all) names.push_back(task.name);
  return names;
}

TEST(ChooseTasks, NamesAndPatterns) {
  EXPECT_THAT(tasks_named(tasks(), {"train_*", "prep_1"}).value(), ElementsAre(0, 2, 3));
  EXPECT_THAT(tasks_named(tasks(), {"odd[1]"}).value(), ElementsAre(4)) << "a name that exists is no pattern";
  EXPECT_THAT(tasks_named(tasks(), {"*_[12]"}).value(), ElementsAre(0, 1, 2, 3));
  const auto none = tasks_named(tasks(), {"*", "train_3"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "there is no task 'train_3'");
  EXPECT_EQ(none.error().hint, "did you mean 'train_1'?");
}

TEST(ChooseTasks, WhatTheyComeAfterStays) {
  auto one = tasks();
  ASSERT_TRUE(keep_only(one, {"train_2"}));
  EXPECT_THAT(names_of(one), ElementsAre("prep_2", "train_2"));
  auto all = tasks();
  ASSERT_TRUE(keep_only(all, {"report"}));
  EXPECT_THAT(names_of(all), ElementsAre("prep_1", "prep_2", "train_1", "train_2", "report"));
}

}  // namespace
}  // namespace headroom::batch
