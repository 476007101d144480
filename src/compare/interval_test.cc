// SPDX-License-Identifier: Apache-2.0
#include "compare/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace headroom::compare {
namespace {

// A machine as it is: runs differ, steps hang together and drift, and now and then one takes much longer.
class Machine {
 public:
  explicit Machine(std::uint64_t seed) : random_(seed) {}

  // Student's t with 3 degrees of freedom: tails as heavy as those of real step times.
  double heavy() {
    double squares = 0;
    for (int i = 0; i < 3; ++i) squares += std::pow(random_.normal(), 2);
    return random_.normal() / std::sqrt(squares / 3);
  }
  std::vector<Rate> steps(std::size_t n, double seconds, double noise) {
    std::vector<Rate> result;
    const double level = 0.007 * random_.normal(), slope = noise * random_.normal();
    double state = 0;
    for (std::size_t i = 0; i < n; ++i) {
      constexpr double kKept = 0.8;
      state = kKept * state + noise * std::sqrt(1 - kKept * kKept) * random_.normal();
      const double part = static_cast<double>(i) / static_cast<double>(n);
      double took = seconds * std::exp(level + state + slope * (part - 0.5) + 0.5 * noise * heavy());
      if (random_.uniform() < 0.01) took *= 2;
      result.push_back({took, 1});
    }
    return result;
  }
  // Logarithms of B/A, of runs in the order A B B A A B: the machine wanders while they run.
  std::vector<double> pairs(std::size_t n, double noise) {
    std::vector<double> result;
    double level = 0;
    const double slope = 0.005 * random_.normal();
    const auto run = [&] {
      level += slope + 0.003 * random_.normal();
      return level + noise * heavy() / std::sqrt(3.0) + (random_.uniform() < 0.02 ? 0.1 : 0);
    };
    for (std::size_t i = 0; i < n; ++i) {
      const double first = run(), second = run();
      result.push_back(i % 2 == 0 ? second - first : first - second);
    }
    return result;
  }

 private:
  Random random_;
};

bool differs(const Ratio& ratio) { return ratio.low > 1 || ratio.high < 1; }

constexpr int kPairsOfRuns = 200, kFalseAtMost = 10;  // 5 %

TEST(Interval, EqualRunsAreSeldomCalledDifferentByTheirSteps) {
  for (const std::size_t n : {30U, 120U, 400U}) {
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < kPairsOfRuns; ++seed) {
      Machine machine(seed + 1);
      const auto a = machine.steps(n, 0.1, 0.03), b = machine.steps(n, 0.1, 0.03);
      wrong += differs(ratio_of_rates(a, b, 1).ratio) ? 1 : 0;
    }
    EXPECT_LE(wrong, kFalseAtMost) << n << " steps";
  }
}

TEST(Interval, EqualRunsAreSeldomCalledDifferentByInterleavedPairs) {
  for (const std::size_t n : {3U, 5U, 8U, 20U}) {
    int wrong = 0;
    for (std::uint64_t seed = 0; seed < kPairsOfRuns; ++seed) {
      Machine machine(seed + 1);
      wrong += differs(ratio_of_pairs(machine.pairs(n, 0.01), Runs::kRepeated, 1)) ? 1 : 0;
    }
    EXPECT_LE(wrong, kFalseAtMost) << n << " pairs";
  }
}

// The same noise, and intervals that know nothing of its kind: the test above can fail.
TEST(Interval, WithoutBlocksEqualRunsWouldBeCalledDifferent) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < kPairsOfRuns; ++seed) {
    Machine machine(seed + 1);
    const auto a = machine.steps(400, 0.1, 0.03), b = machine.steps(400, 0.1, 0.03);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double log_ratio = std::log(b[i].seconds / a[i].seconds);
      sum += log_ratio, squares += log_ratio * log_ratio;
    }
    const double n = 400, mean = sum / n, error = std::sqrt((squares / n - mean * mean) / n);
    wrong += std::abs(mean) > 1.96 * error ? 1 : 0;
  }
  EXPECT_GT(wrong, kPairsOfRuns / 5);
}

TEST(Interval, FivePercentAreSeenInFivePairsOrThirtySteps) {
  int by_pairs = 0, by_steps = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Machine machine(seed + 1);
    std::vector<double> pairs;
    for (int i = 0; i < 5; ++i) pairs.push_back(std::log(1.05) + 0.01 * machine.heavy() / std::sqrt(3.0));
    by_pairs += ratio_of_pairs(pairs, Runs::kRepeated, 1).low > 1 ? 1 : 0;
    std::vector<Rate> a, b;
    for (int i = 0; i < 30; ++i) a.push_back({0.1 * std::exp(0.01 * machine.heavy()), 1});
    for (int i = 0; i < 30; ++i) b.push_back({0.105 * std::exp(0.01 * machine.heavy()), 1});
    by_steps += ratio_of_rates(a, b, 1).ratio.low > 1 ? 1 : 0;
  }
  EXPECT_GE(by_pairs, 80);
  EXPECT_GE(by_steps, 80);
}

TEST(Interval, HoldsItsEstimateAndIsTheSameEveryTime) {
  const std::vector<double> pairs{-0.1, -0.12, -0.08, -0.11};
  const Ratio ratio = ratio_of_pairs(pairs, Runs::kRepeated, 1);
  EXPECT_NEAR(ratio.value, std::exp(-0.1025), 1e-12);
  EXPECT_LT(ratio.low, ratio.value);
  EXPECT_LT(ratio.value, ratio.high);
  EXPECT_LT(ratio.high, 1);
  EXPECT_EQ(ratio, ratio_of_pairs(pairs, Runs::kRepeated, 1));
  const Ratio once = ratio_of_pairs(pairs, Runs::kOneEach, 1);
  EXPECT_GT(once.high / once.low, ratio.high / ratio.low);
  const Ratio repeats = ratio_of_repeats(std::vector{0.0, 0.01, -0.01}, std::vector{0.2, 0.21, 0.19}, 1);
  EXPECT_NEAR(repeats.value, std::exp(0.2), 1e-12);
  EXPECT_GT(repeats.low, 1);
}

TEST(Interval, WhatIsOutsideOfTheStepsCountsInAWholeRun) {
  const std::vector<Rate> a(40, Rate{0.1, 1}), b(40, Rate{0.05, 1});
  EXPECT_NEAR(ratio_of_rates(a, b, 1).ratio.value, 0.5, 1e-12);
  EXPECT_NEAR(ratio_of_rates(a, b, 1, {4, 4}).ratio.value, 6.0 / 8.0, 1e-12);  // start-up of 4 s stays
}

}  // namespace
}  // namespace headroom::compare
