// SPDX-License-Identifier: Apache-2.0
#include "live/loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>

namespace headroom {
namespace {

using testing::ElementsAre;

struct LoopTest : testing::Test {
  std::unique_ptr<Loop> loop = std::move(*Loop::create());
  std::vector<int> seen;

  // A descriptor that is readable for ever.
  static Fd readable() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    Fd reading(ends[0]), writing(ends[1]);
    EXPECT_EQ(::write(writing.get(), "x", 1), 1);
    return reading;
  }
};

TEST_F(LoopTest, TimersRunInTheOrderOfTheirInstants) {
  const Nanos now = boottime_now();
  loop->at(now + 2000, [&] {
    seen.push_back(2);
    loop->stop();
  });
  loop->at(now - kSecond, [&] { seen.push_back(0); });
  loop->at(now + 1000, [&] { seen.push_back(1); });
  loop->run();
  EXPECT_THAT(seen, ElementsAre(0, 1, 2));
}

TEST_F(LoopTest, ACancelledTimerDoesNotRun) {
  const auto first = loop->after(0, [&] { seen.push_back(1); });
  loop->after(kMillisecond, [&] { loop->stop(); });
  loop->cancel(first);
  loop->cancel(12345);
  loop->run();
  EXPECT_TRUE(seen.empty());
}

TEST_F(LoopTest, AHandlerMayForgetItselfAndOthers) {
  const Fd one = readable(), two = readable();
  const auto forget_both = [&](int number) {
    seen.push_back(number);
    loop->forget(one.get());
    loop->forget(two.get());
    loop->after(0, [&] { loop->stop(); });
  };
  ASSERT_TRUE(loop->watch(one.get(), [&] { forget_both(1); }));
  ASSERT_TRUE(loop->watch(two.get(), [&] { forget_both(2); }));
  loop->run();
  EXPECT_EQ(seen.size(), 1U);
}

TEST_F(LoopTest, AHandlerIsCalledForWhatIsExpectedAlone) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const Fd reading(ends[0]), writing(ends[1]);
  ASSERT_TRUE(loop->watch(
      writing.get(), [&] { seen.push_back(1); }, Loop::Ready::kNothing));
  const auto turn = [&] {
    loop->after(kMillisecond, [&] { loop->stop(); });
    loop->run();
  };
  turn();
  EXPECT_TRUE(seen.empty());
  loop->expect(writing.get(), Loop::Ready::kWrite);
  loop->after(kMillisecond, [&] { loop->expect(writing.get(), Loop::Ready::kRead); });
  turn();
  EXPECT_FALSE(seen.empty());
  seen.clear();
  turn();
  EXPECT_TRUE(seen.empty());
}

TEST_F(LoopTest, OtherThreadsMayPost) {
  std::thread other([&] {
    loop->post([&] { seen.push_back(1); });
    loop->post([&] { loop->stop(); });
  });
  loop->run();
  other.join();
  EXPECT_THAT(seen, ElementsAre(1));
}

TEST_F(LoopTest, TheLongestCallIsKnown) {
  const auto use_cpu = [](Nanos span) {
    for (const Nanos until = thread_cpu_now() + span; thread_cpu_now() < until;) continue;
  };
  EXPECT_EQ(loop->longest_call(), 0);
  loop->post([&] { use_cpu(20 * kMillisecond); });
  loop->after(kMillisecond, [&] { use_cpu(kMillisecond); });
  loop->after(2 * kMillisecond, [&] { loop->stop(); });
  loop->run();
  EXPECT_GE(loop->longest_call(), 20 * kMillisecond);
  EXPECT_LE(loop->longest_call(), thread_cpu_now());
}

TEST_F(LoopTest, WhatCannotBeWatchedIsAnError) {
  EXPECT_FALSE(loop->watch(-1, [] {}));
}

}  // namespace
}  // namespace headroom
