// SPDX-License-Identifier: Apache-2.0
#include "base/answers.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

namespace headroom {
namespace {

TEST(Answers, AFileThatIsNotThereIsAnAnswer) {
  EXPECT_TRUE(answers("/"));
  EXPECT_TRUE(answers("/no/such/file"));
}

TEST(Answers, WhatNeverReturnsIsLeftBehind) {
  auto released = std::make_shared<std::promise<void>>();
  auto ended = std::make_shared<std::promise<void>>();
  const std::shared_future<void> release = released->get_future();
  EXPECT_FALSE(returns_within(kMillisecond, [release, ended] {
    release.wait();
    ended->set_value();
  }));
  released->set_value();
  ended->get_future().wait();  // it lived on its own until then
  EXPECT_TRUE(returns_within(60 * kSecond, [] {}));
}

}  // namespace
}  // namespace headroom
