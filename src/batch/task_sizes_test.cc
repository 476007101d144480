// SPDX-License-Identifier: Apache-2.0
#include "batch/task_sizes.h"

#include <gtest/gtest.h>

namespace headroom::batch {
namespace {

bool differ(std::initializer_list<std::pair<double, double>> tasks) {  // seconds taken, and of the GPU's time
  TaskSizes sizes;
  for (const auto& [took, share] : tasks)
    sizes.add(static_cast<Nanos>(took * kSecond), static_cast<Nanos>(share * kSecond));
  return sizes.differ();
}

TEST(TaskSizes, AlikeTasksTakeLongerOrHaveLessOfTheGpuBesideOthers) {
  EXPECT_FALSE(differ({}));
  EXPECT_FALSE(differ({{10, 10}, {10, 5}, {10, 2.5}})) << "nobody slowed another";
  EXPECT_FALSE(differ({{10, 10}, {20, 10}, {40, 10}})) << "the GPU was full";
  EXPECT_FALSE(differ({{10, 10}, {15, 7.5}, {16, 4}})) << "in between";
}

TEST(TaskSizes, WhoTookLongerAndHadMoreOfTheGpuHadMoreToDo) {
  EXPECT_TRUE(differ({{1, 1}, {2, 2}}));
  EXPECT_TRUE(differ({{17, 4}, {1.2, 1.2}})) << "in whichever order they ended";
  EXPECT_TRUE(differ({{4, 0.4}, {17, 4}}));
  EXPECT_FALSE(differ({{1, 1}, {1.4, 1.4}})) << "as much as start-up may differ";
}

}  // namespace
}  // namespace headroom::batch
