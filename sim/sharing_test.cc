// SPDX-License-Identifier: Apache-2.0
#include "sim/core/sharing.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace headroom::contention {
namespace {

constexpr std::uint64_t kSeed = 20261120;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  Nanos operator()(Nanos low, Nanos high) { return std::uniform_int_distribution<Nanos>(low, high)(engine_); }

 private:
  std::mt19937_64 engine_;
};

const Policy kPolicies[] = {{.schedule = Schedule::kRoundRobin},
                            {.schedule = Schedule::kProcessorSharing},
                            {.schedule = Schedule::kSpaceSharing}};

std::unique_ptr<Device> device() { return std::make_unique<Device>(); }

void submit_some(Device& d, Dice& roll, bool copies) {
  const auto stream = static_cast<std::size_t>(roll(0, 7)) * 9;
  const Work work{.duration = roll(1, 9 * kMillisecond),
                  .share_permille = static_cast<std::uint32_t>(roll(1, 10) * 100),
                  .engine = copies && roll(0, 3) == 0 ? Engine::kCopy : Engine::kKernel};
  (void)submit(d, stream, work);
}

Nanos attained_by_kernels(const Device& d) {
  Nanos sum = 0;
  for (const Stream& s : d.streams) sum += s.kernel;
  return sum;
}

TEST(Sharing, OneStreamTakesItsOwnTime) {
  for (const Policy& policy : kPolicies) {
    auto d = device();
    const Nanos ticket = submit(*d, 3, {.duration = 12 * kMillisecond, .share_permille = 300});
    EXPECT_EQ(completion(*d, policy, 3, ticket, kSecond), 12 * kMillisecond);
    advance(*d, policy, kSecond);
    EXPECT_EQ(d->streams[3].done_at, 12 * kMillisecond);
    EXPECT_EQ(d->busy, 12 * kMillisecond) << "a kernel of a small share alone makes the device busy all the same";
    EXPECT_EQ(d->sm_active, 12 * kMillisecond * 300);
  }
}

TEST(Sharing, TwoEqualStreamsTakeTwiceAsLong) {
  for (const Policy& policy : {kPolicies[0], kPolicies[1]}) {
    auto d = device();
    for (const std::size_t s : {0u, 1u}) EXPECT_GT(submit(*d, s, {.duration = 100 * kMillisecond}), 0);
    advance(*d, policy, 100 * kMillisecond);
    EXPECT_EQ(d->streams[0].attained, 50 * kMillisecond);
    EXPECT_EQ(d->streams[1].attained, 50 * kMillisecond);
    advance(*d, policy, kSecond);
    EXPECT_EQ(d->streams[1].done_at, 200 * kMillisecond);
  }
}

TEST(Sharing, SmallSharesRunSideBySideOnlyUnderSpaceSharing) {
  struct Case {
    std::size_t streams;
    std::uint32_t share;
    double slowdown;
  };
  for (const Case& c : {Case{2, 500, 1.0}, Case{3, 500, 1.5}, Case{4, 400, 1.6}, Case{2, 1000, 2.0}}) {
    auto d = device();
    for (std::size_t s = 0; s < c.streams; ++s)
      EXPECT_GT(submit(*d, s, {.duration = 10 * kMillisecond, .share_permille = c.share}), 0);
    advance(*d, kPolicies[2], kSecond);
    EXPECT_NEAR(static_cast<double>(d->streams[0].done_at), 1e7 * c.slowdown, 10.0);
  }
}

TEST(Sharing, CopiesDoNotMakeTheDeviceBusy) {
  auto d = device();
  EXPECT_GT(submit(*d, 0, {.duration = kMillisecond, .engine = Engine::kCopy}), 0);
  EXPECT_GT(submit(*d, 0, {.duration = 2 * kMillisecond}), 0);
  EXPECT_GT(submit(*d, 1, {.duration = 3 * kMillisecond}), 0);
  advance(*d, kPolicies[1], kSecond);
  EXPECT_EQ(d->busy, 5 * kMillisecond);
  EXPECT_EQ(d->copy_busy, kMillisecond);
  EXPECT_EQ(d->streams[0].done_at, 5 * kMillisecond);
}

TEST(Sharing, AFullQueueRefusesAndChangesNothing) {
  auto d = device();
  for (std::size_t i = 0; i < kMaxSegments; ++i)
    EXPECT_GT(submit(*d, 0, {.duration = 10, .engine = i % 2 == 0 ? Engine::kKernel : Engine::kCopy}), 0);
  const Nanos submitted = d->streams[0].submitted;
  EXPECT_EQ(submit(*d, 0, {.duration = 10, .engine = Engine::kKernel}), -1);
  EXPECT_EQ(d->streams[0].submitted, submitted);
  EXPECT_GT(submit(*d, 0, {.duration = 10, .engine = Engine::kCopy}), 0) << "the open segment takes more of its kind";
}

TEST(Sharing, ThrottlingStretchesKernelsOnly) {
  for (Policy policy : kPolicies) {
    policy.rate_permille = 250;
    auto d = device();
    EXPECT_GT(submit(*d, 0, {.duration = 10 * kMillisecond}), 0);
    EXPECT_GT(submit(*d, 1, {.duration = 10 * kMillisecond, .engine = Engine::kCopy}), 0);
    advance(*d, policy, kSecond);
    EXPECT_EQ(d->streams[0].done_at, 40 * kMillisecond);
    EXPECT_EQ(d->busy, 40 * kMillisecond);
    EXPECT_EQ(d->streams[1].done_at, 10 * kMillisecond);
  }
}

TEST(Sharing, CancelSpeedsTheOthersUp) {
  auto d = device();
  EXPECT_GT(submit(*d, 0, {.duration = 10 * kSecond}), 0);
  EXPECT_GT(submit(*d, 1, {.duration = 100 * kMillisecond}), 0);
  advance(*d, kPolicies[0], 20 * kMillisecond);
  cancel(*d, 0);
  advance(*d, kPolicies[0], kSecond);
  EXPECT_EQ(d->streams[1].done_at, 110 * kMillisecond);
  EXPECT_EQ(attained_by_kernels(*d), d->busy);
}

// The same arrivals, seen by one who looks rarely and by one who looks all the time.
TEST(Sharing, LazyEqualsEager) {
  for (const Policy& policy : kPolicies) {
    for (std::uint64_t round = 0; round < 60; ++round) {
      Dice roll(kSeed + round);
      auto lazy = device(), eager = device();
      Nanos now = 0;
      for (int i = 0; i < 40; ++i) {
        const Nanos next = now + roll(0, 12 * kMillisecond);
        for (Nanos at = now; at < next; at += roll(1, kMillisecond)) advance(*eager, policy, at);
        advance(*eager, policy, next);
        advance(*lazy, policy, next);
        now = next;
        const auto seed = static_cast<std::uint64_t>(roll(0, 1'000'000));
        Dice a(seed), b(seed);
        submit_some(*lazy, a, true);
        submit_some(*eager, b, true);
      }
      for (std::size_t s = 0; s < kMaxStreams; ++s) {
        EXPECT_EQ(lazy->streams[s].attained, eager->streams[s].attained) << "seed " << kSeed + round << " stream " << s;
        EXPECT_EQ(lazy->streams[s].done_at, eager->streams[s].done_at);
      }
      EXPECT_EQ(lazy->busy, eager->busy);
      EXPECT_EQ(lazy->sm_active, eager->sm_active);
      EXPECT_EQ(lazy->copy_busy, eager->copy_busy);
    }
  }
}

TEST(Sharing, ServiceIsConserved) {
  for (const Policy& policy : {kPolicies[0], kPolicies[1]}) {
    for (std::uint64_t round = 0; round < 60; ++round) {
      Dice roll(kSeed * 3 + round);
      auto d = device();
      for (int i = 0; i < 80; ++i) {
        submit_some(*d, roll, true);
        if (roll(0, 20) == 0) cancel(*d, static_cast<std::size_t>(roll(0, 7)) * 9);
        advance(*d, policy, d->t + roll(0, 9 * kMillisecond));
        ASSERT_EQ(attained_by_kernels(*d), d->busy) << "seed " << kSeed * 3 + round << " after " << i;
        for (const Stream& s : d->streams) ASSERT_LE(s.attained, s.submitted);
      }
      EXPECT_LE(d->busy, d->t);
    }
  }
}

TEST(Sharing, PredictionEqualsStepping) {
  for (const Policy& policy : kPolicies) {
    for (std::uint64_t round = 0; round < 200; ++round) {
      Dice roll(kSeed * 5 + round);
      auto d = device();
      for (int i = 0; i < 30; ++i) {
        submit_some(*d, roll, true);
        advance(*d, policy, d->t + roll(0, 2 * kMillisecond));
      }
      for (std::size_t s = 0; s < kMaxStreams; ++s) {
        const Stream& stream = d->streams[s];
        if (stream.attained == stream.submitted) continue;
        const Nanos ticket = roll(stream.attained + 1, stream.submitted);
        const Nanos at = completion(*d, policy, s, ticket, d->t + 3600 * kSecond);
        auto before = std::make_unique<Device>(*d), then = std::make_unique<Device>(*d);
        advance(*before, policy, at - 1);
        advance(*then, policy, at);
        EXPECT_LT(before->streams[s].attained, ticket) << "seed " << kSeed * 5 + round << " stream " << s;
        EXPECT_GE(then->streams[s].attained, ticket) << "seed " << kSeed * 5 + round << " stream " << s;
      }
    }
  }
}

}  // namespace
}  // namespace headroom::contention
