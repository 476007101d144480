// SPDX-License-Identifier: Apache-2.0
#include "base/answers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

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

TEST(Answers, ASilentPathIsAskedAgainOnceItsThreadHasReturned) {
  auto back = std::make_shared<std::promise<void>>();
  auto asked = std::make_shared<std::atomic<int>>(0);
  const std::shared_future<void> is_back = back->get_future();
  Answers mount(kMillisecond, [is_back, asked](const std::string&) {
    ++*asked;
    is_back.wait();
  });
  EXPECT_FALSE(mount.of("/mnt/a"));
  while (*asked == 0) std::this_thread::yield();
  EXPECT_FALSE(mount.of("/mnt/a"));
  EXPECT_EQ(*asked, 1);
  back->set_value();
  while (!mount.of("/mnt/a")) std::this_thread::yield();
  EXPECT_GE(*asked, 2);
}

}  // namespace
}  // namespace headroom
