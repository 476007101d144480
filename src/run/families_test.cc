// SPDX-License-Identifier: Apache-2.0
// The planner on simulated workload families, against the best fixed concurrency found by trying in the same
// simulator. One seed each, to be quick; bench/packing.cc runs eight and prints the table.
#include "run/families.h"

#include <gtest/gtest.h>

namespace headroom::run::families {
namespace {

constexpr std::uint64_t kSeed = 300;  // none of those that the constants were chosen on

TEST(Families, ThePlannerComesCloseToTheBestFixedConcurrency) {
  const std::map<std::string_view, double> floors{
      {"mps small", 0.82}, {"heavytail", 0.74}, {"mps thrash", 0.80}, {"busy-waiting", 0.88}};
  double logs = 0;
  const std::vector<Family> all = all_families();
  for (const Family& family : all) {
    const Best best = best_fixed(family, kSeed, {2, 3, 4, 5, 6, 8, 10, 14}, Order::kLongestFirst);
    const RunResult run = run_planner(family, kSeed);
    const double relative = best.makespan / run.makespan;
    const auto floor = floors.find(family.name);
    EXPECT_GE(relative, floor == floors.end() ? 0.90 : floor->second) << family.name << ", best k " << best.k;
    EXPECT_EQ(run.finished, static_cast<std::int64_t>(tasks_of(family, kSeed).size())) << family.name;
    EXPECT_EQ(run.failed, 0) << family.name;
    EXPECT_FALSE(run.over_memory) << family.name;
    EXPECT_LE(run.ooms, 5) << family.name;
    EXPECT_LE(run.waste, 0.01) << family.name;
    logs += std::log(relative);
  }
  EXPECT_GE(std::exp(logs / static_cast<double>(all.size())), 0.94);
}

TEST(Families, NeverSlowerThanOnePerGpu) {
  for (const Family& family : all_families()) {
    if (family.name != "mps thrash" && family.name != "memory-bound" && family.name != "long") continue;
    EXPECT_LT(run_planner(family, kSeed).makespan, run_fixed(family, kSeed, 1, Order::kAsGiven)) << family.name;
  }
}

TEST(Families, UtilisationAndCpuTimeAreAlmostAsGoodAsSteps) {
  for (const Family& family : all_families()) {
    if (family.name != "medium" && family.name != "drift" && family.name != "mps contention") continue;
    const double steps = run_planner(family, kSeed).makespan;
    const double shares = run_planner(family, kSeed, {.signals = Signals::kShares}).makespan;
    EXPECT_LT(shares, 1.08 * steps) << family.name;
  }
}

TEST(Families, TheSameSeedIsTheSameRun) {
  const Family family = all_families()[4];
  EXPECT_EQ(run_planner(family, 5).makespan, run_planner(family, 5).makespan);
  EXPECT_NE(run_planner(family, 5).makespan, run_planner(family, 6).makespan);
}

TEST(Order, KnownLengthsShortenSkewedSets) {
  for (const int gpus : {2, 4}) {
    const Family heavy = heavy_tailed(gpus), skew = skewed(gpus);
    const double bound = lower_bound(heavy, tasks_of(heavy, kSeed));
    EXPECT_GE(bound / run_planner(heavy, kSeed, {.lengths_known = true}).makespan, 0.88) << gpus << " GPUs";
    const double known = run_planner(skew, kSeed, {.lengths_known = true}).makespan;
    EXPECT_LT(known, run_planner(skew, kSeed).makespan) << gpus << " GPUs";
    EXPECT_GE(lower_bound(skew, tasks_of(skew, kSeed)) / known, 0.78) << gpus << " GPUs";
  }
}

}  // namespace
}  // namespace headroom::run::families
