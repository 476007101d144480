// SPDX-License-Identifier: Apache-2.0
#include "batch/executor/background_reader.h"

#include <gmock/gmock.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace headroom::batch {
namespace {

void rest() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 5'000'000};
  ::nanosleep(&pause, nullptr);
}

std::vector<OutputRead> take_all(BackgroundReader& reader, std::size_t count) {
  std::vector<OutputRead> all;
  for (const Nanos until = boottime_now() + 20 * kSecond; all.size() < count && boottime_now() < until; rest())
    for (OutputRead& read : reader.take()) all.push_back(std::move(read));
  return all;
}

TEST(BackgroundReader, ReadsOneAfterTheOtherAndSaysWhenThereIsSomething) {
  std::atomic<int> ready{0};
  BackgroundReader reader(60 * kSecond, [&] { ++ready; });
  for (AttemptId id = 1; id <= 3; ++id)
    reader.read(id, [id] { return OutputFacts{.ended = true, .steps = static_cast<double>(id)}; });
  const auto read = take_all(reader, 3);
  ASSERT_EQ(read.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read[i].attempt, i + 1);
    EXPECT_EQ(read[i].facts.steps, static_cast<double>(i + 1));
    EXPECT_FALSE(read[i].given_up);
  }
  EXPECT_EQ(ready, 3);
}

// A file system that does not answer, until the test lets it.
struct Hanging {
  std::mutex mutex;
  std::condition_variable changed;
  bool goes_on = false;
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return goes_on; });
  }
  void go_on() {
    const std::lock_guard lock(mutex);
    goes_on = true;
    changed.notify_all();
  }
};

TEST(BackgroundReader, GivesUpWhatHangsAndReadsTheRest) {
  const auto hanging = std::make_shared<Hanging>();
  BackgroundReader reader(50 * kMillisecond, [] {});
  reader.read(1, [hanging] {
    hanging->wait();
    return OutputFacts{.steps = 1};
  });
  reader.read(2, [] { return OutputFacts{.steps = 2}; });
  const auto read = take_all(reader, 2);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_TRUE(read[0].given_up);
  EXPECT_EQ(read[0].attempt, 1U);
  EXPECT_EQ(read[1].facts.steps, 2);
  hanging->go_on();  // what comes too late is dropped
  reader.read(3, [] { return OutputFacts{.steps = 3}; });
  const auto last = take_all(reader, 1);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].attempt, 3U);
}

TEST(BackgroundReader, ThreadsThatHangAreNotMadeWithoutEnd) {
  const auto hanging = std::make_shared<Hanging>();
  BackgroundReader reader(20 * kMillisecond, [] {});
  for (AttemptId id = 1; id <= 30; ++id)
    reader.read(id, [hanging] {
      hanging->wait();
      return OutputFacts{};
    });
  const auto read = take_all(reader, 30);
  ASSERT_EQ(read.size(), 30U);
  for (const OutputRead& one : read) EXPECT_TRUE(one.given_up);
  hanging->go_on();
}

}  // namespace
}  // namespace headroom::batch
