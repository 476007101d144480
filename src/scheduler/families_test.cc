// SPDX-License-Identifier: Apache-2.0
// The planner on simulated workload families, against the best fixed concurrency found by trying in the same
// simulator, which is told the true memory and lengths. Seeds on which no constant was chosen; few of them, to be
// quick: bench/packing.cc runs eight and prints the table.
#include "scheduler/testing/families.h"

#include <gtest/gtest.h>

namespace headroom::scheduler::families {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 1;
#else
constexpr std::uint64_t kSeeds = 3;
#endif
constexpr std::uint64_t kFirst = 900;

const Family& family_named(std::string_view name) {
  static const std::vector<Family> all = all_families();
  return *std::find_if(all.begin(), all.end(), [&](const Family& family) { return family.name == name; });
}

double best_makespan(const Family& family, std::uint64_t seed, const std::vector<int>& ks, double noise = 0.05) {
  double best = 0;
  for (const int k : ks) {
    const double makespan = run_fixed(family, seed, k, Order::kLongestFirst, noise);
    if (best == 0 || makespan < best) best = makespan;
  }
  return best;
}

// At least so much of the best fixed concurrency's speed. The tenant's family pays for courtesy: nothing is added
// beside another user who computes, and room is kept for a while; the fixed concurrency goes on packing there.
double floor_of(std::string_view name) {
  static const std::map<std::string_view, double> floors{
      {"tiny", 0.90}, {"heavytail", 0.78}, {"mps small", 0.85}, {"mps thrash", 0.90}, {"tenant", 0.85}};
  const auto found = floors.find(name);
  return found != floors.end() ? found->second : 0.93;
}

std::int64_t most_ooms(std::string_view name) {
  static const std::map<std::string_view, std::int64_t> limits{
      {"mixed", 5}, {"late jump", 2}, {"drift", 4}, {"tenant", 3}};
  const auto found = limits.find(name);
  return found != limits.end() ? found->second : 0;
}

TEST(Families, ThePlannerComesCloseToTheBestFixedConcurrency) {
  double logs = 0, logs_shares = 0, turns = 0;
  const std::vector<Family> all = all_families();
  for (const Family& family : all) {
    double relative = 0, shares = 0;
    for (std::uint64_t seed = kFirst; seed < kFirst + kSeeds; ++seed) {
      const double one = run_fixed(family, seed, 1, Order::kLongestFirst);
      const double best = std::min(one, best_makespan(family, seed, {2, 3, 4, 5, 6, 8, 10, 14, 20}));
      const RunResult run = run_planner(family, seed);
      const double of_best = best / run.makespan;
      relative += of_best / kSeeds;
      shares += best / run_planner(family, seed, {.signals = Signals::kShares}).makespan / kSeeds;
      turns += run.direction_changes / static_cast<double>(kSeeds * all.size());
      EXPECT_GE(of_best, 0.65) << family.name << ", seed " << seed;
      EXPECT_LE(run.makespan, one) << family.name << ", seed " << seed;
      EXPECT_LE(run.direction_changes, 26) << family.name << ", seed " << seed;
      EXPECT_EQ(run.finished, static_cast<std::int64_t>(tasks_of(family, seed).size())) << family.name;
      EXPECT_EQ(run.failed, 0) << family.name;
      EXPECT_FALSE(run.over_memory) << family.name;
      EXPECT_LE(run.ooms, most_ooms(family.name)) << family.name << ", seed " << seed;
      EXPECT_LE(run.waste, 0.01) << family.name << ", seed " << seed;
    }
    EXPECT_GE(relative, floor_of(family.name)) << family.name;
    logs += std::log(relative), logs_shares += std::log(shares);
  }
  const double families = static_cast<double>(all.size());
  EXPECT_GE(std::exp(logs / families), 0.94);
  EXPECT_GE(std::exp(logs_shares / families), 0.94) << "utilisation and CPU time instead of steps";
  EXPECT_LE(turns, 15);
}

// Noise and the interval of decisions must not matter much.
TEST(Families, NoiseAndTheIntervalMatterLittle) {
  struct Case {
    double noise;
    Nanos every;
    double logs = 0;
  };
  std::vector<Case> cases{{0.05, 5 * kSecond}, {0.05, 2 * kSecond}, {0.05, 10 * kSecond}, {0.20, 5 * kSecond}};
  const std::vector<Family> all = all_families();
  for (const Family& family : all) {
    std::map<double, double> best;
    for (const double noise : {0.05, 0.20})
      best[noise] = best_makespan(family, kFirst, {2, 3, 4, 5, 6, 8, 12, 16}, noise);
    for (Case& one : cases)
      one.logs += std::log(best[one.noise] /
                           run_planner(family, kFirst, {.noise = one.noise, .decide_every = one.every}).makespan);
  }
  const auto geomean = [&](const Case& one) { return std::exp(one.logs / static_cast<double>(all.size())); };
  EXPECT_NEAR(geomean(cases[1]), geomean(cases[0]), 0.03) << "2 s";
  EXPECT_NEAR(geomean(cases[2]), geomean(cases[0]), 0.03) << "10 s";
  EXPECT_GE(geomean(cases[3]), geomean(cases[0]) - 0.03) << "20 % noise";
}

TEST(Families, TheSameSeedIsTheSameRun) {
  const Family family = all_families()[4];
  EXPECT_EQ(run_planner(family, 5).makespan, run_planner(family, 5).makespan);
  EXPECT_NE(run_planner(family, 5).makespan, run_planner(family, 6).makespan);
}

TEST(Families, TheRateOfOnePerGpuIsCloseToTheTruth) {
  for (const std::string_view name : {"small", "medium", "memory-bound", "heavytail", "mps contention"}) {
    const Family& family = family_named(name);
    double truth = 0;
    const std::vector<SimTask> tasks = tasks_of(family, kFirst);
    for (const SimTask& task : tasks) truth += task.alone();
    const RunResult run = run_planner(family, kFirst);
    ASSERT_EQ(run.alone.size(), 1u);
    EXPECT_EQ(run.alone[0].tasks, static_cast<std::int64_t>(tasks.size())) << name;
    EXPECT_GE(run.alone[0].alone_attempts, 1) << name;
    EXPECT_NEAR(run.alone[0].alone_seconds / truth, 1.0, 0.15) << name;
  }
}

TEST(Order, KnownLengthsShortenSkewedSets) {
  for (const int gpus : {2, 4, 8}) {
    const Family heavy = heavy_tailed(gpus), skew = skewed(gpus);
    double heavy_ratio = 0, skew_ratio = 0, unknown_ratio = 0;
    for (std::uint64_t seed = kFirst; seed < kFirst + kSeeds; ++seed) {
      const auto ratio = [&](const Family& family, bool known) {
        return lower_bound(family, tasks_of(family, seed)) /
               run_planner(family, seed, {.lengths_known = known}).makespan / kSeeds;
      };
      heavy_ratio += ratio(heavy, true), skew_ratio += ratio(skew, true), unknown_ratio += ratio(skew, false);
    }
    EXPECT_GE(heavy_ratio, 0.88) << gpus << " GPUs";
    EXPECT_GE(skew_ratio, gpus == 8 ? 0.84 : 0.87) << gpus << " GPUs";
    EXPECT_GT(skew_ratio, unknown_ratio) << gpus << " GPUs";
  }
}

// Equal long tasks with wrong lengths are where a rule for critical paths could do harm.
TEST(Order, WrongLengthsOfEqualTasksCostLittle) {
  const Family& family = family_named("long");
  for (std::uint64_t seed = kFirst; seed < kFirst + kSeeds; ++seed) {
    const double longest_first = best_makespan(family, seed, {4, 5, 6});
    EXPECT_LE(run_planner(family, seed, {.lengths_known = true, .length_error_cv = 0.2}).makespan,
              1.04 * longest_first);
  }
}

}  // namespace
}  // namespace headroom::scheduler::families
