// SPDX-License-Identifier: Apache-2.0
#include "probe/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace headroom::probe {
namespace {

ProbeReport report_of(std::vector<double> truth, int rounds, double noise, double drift, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  ProbeReport report;
  for (std::size_t i = 0; i < truth.size(); ++i) report.values.push_back({.value = std::to_string(i)});
  for (int round = 0; round < rounds; ++round) {
    const double of_round = std::exp(drift * normal(random));
    for (std::size_t i = 0; i < truth.size(); ++i)
      report.runs.push_back({.value = i,
                             .round = round,
                             .seconds = 50 * truth[i] * of_round * std::exp(noise * normal(random)),
                             .work = 50});
  }
  return report;
}

TEST(ProbeValues, TheFastestIsFoundBehindADriftThatAllShare) {
  std::mt19937_64 random(1);
  ProbeReport report = report_of({0.030, 0.020, 0.025}, 3, 0.01, 0.3, random);
  evaluate(report);
  ASSERT_TRUE(report.best && report.runner_up);
  EXPECT_EQ(report.values[*report.best].value, "1");
  EXPECT_EQ(report.values[*report.runner_up].value, "2");
  EXPECT_TRUE(report.decided());
  EXPECT_EQ(report.complete, 3);
  const ProbedTime slowest = report.values[0].to_best.value();
  EXPECT_LT(slowest.low, 1.5);
  EXPECT_GT(slowest.high, 1.5);
  EXPECT_LT(slowest.high / slowest.low, 1.25) << "the rounds' drift is none of the noise";
}

TEST(ProbeValues, ValuesThatAreEqualAreSeldomToldApart) {
  for (const std::size_t values : {2U, 3U, 5U}) {
    std::mt19937_64 random(values);
    int decided = 0, any = 0;
    constexpr int kTimes = 2000;
    for (int i = 0; i < kTimes; ++i) {
      ProbeReport report = report_of(std::vector<double>(values, 0.02), 3, 0.05, 0.1, random);
      evaluate(report);
      decided += report.decided() ? 1 : 0;
      bool one = false;
      for (const ProbedValue& value : report.values) one = one || (value.to_best && value.to_best->low > 1);
      any += one ? 1 : 0;
    }
    EXPECT_LE(decided, kTimes * 0.06) << values;
    EXPECT_LE(any, kTimes * 0.09) << values;  // the best was chosen, which no interval for two knows
  }
}

TEST(ProbeValues, IntervalsHoldTheTruth) {
  std::mt19937_64 random(5);
  int held = 0;
  constexpr int kTimes = 1000;
  for (int i = 0; i < kTimes; ++i) {
    ProbeReport report = report_of({0.03, 0.02}, 4, 0.03, 0.1, random);
    evaluate(report);
    const ProbedTime ratio = report.values[0].to_best.value();
    held += ratio.low <= 1.5 && 1.5 <= ratio.high ? 1 : 0;
  }
  EXPECT_GE(held, kTimes * 0.93);
  EXPECT_LE(held, kTimes * 0.97);
}

TEST(ProbeValues, ARoundThatLacksAValueDoesNotCountAndAValueThatFailedIsLeftOut) {
  std::mt19937_64 random(2);
  ProbeReport report = report_of({0.03, 0.02, 0.01}, 3, 0.01, 0, random);
  report.runs.erase(report.runs.end() - 3);  // value 0 of the last round
  report.values[2].failed = "out of GPU memory";
  evaluate(report);
  EXPECT_EQ(report.complete, 2);
  EXPECT_EQ(report.best, 1U);
  EXPECT_FALSE(report.values[2].to_best);
  EXPECT_TRUE(report.values[2].seconds_per_unit) << "what it did is shown";
}

TEST(ProbeValues, OneRoundSaysNothingOfNoise) {
  std::mt19937_64 random(3);
  ProbeReport report = report_of({0.03, 0.02}, 1, 0.01, 0, random);
  evaluate(report);
  EXPECT_FALSE(report.best);
  EXPECT_FALSE(report.decided());
  EXPECT_NEAR(report.values[0].seconds_per_unit.value(), 0.03, 0.003);
  ProbeReport none;
  evaluate(none);
  EXPECT_EQ(none.complete, 0);
}

}  // namespace
}  // namespace headroom::probe
