// SPDX-License-Identifier: Apache-2.0
#include "compare/interval.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/distributions.h"
#include "base/random.h"

namespace headroom::compare {

namespace {

constexpr double kNormal = 1.959964;
constexpr int kDraws = 2000;
// A correlation as long as a good part of the run hides from its estimate; a few long blocks and Student's t do not
// need it. More blocks would hardly narrow the interval: t(9) is 2.26, t(99) 1.98.
constexpr double kMostBlocks = 10;

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// How much further the bootstrap's percentiles must reach with n values; and a little more, since what is called a
// difference should be none at most once in twenty times, not once in twenty on average.
double expansion(std::size_t n) {
  constexpr double kMargin = 1.05;
  if (n < 2) return kMargin;
  const auto count = static_cast<double>(n);
  return kMargin * student_t(static_cast<std::int64_t>(n) - 1, 0.05) / kNormal * std::sqrt(count / (count - 1));
}

double drawn_mean(std::span<const double> values, Random& random) {
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
  return sum / static_cast<double>(values.size());
}

// The interval of the draws around the estimate; both are logarithms.
Ratio interval(double estimate, std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  const auto at = [&](double part) {
    return draws[static_cast<std::size_t>(part * static_cast<double>(draws.size() - 1) + 0.5)];
  };
  return {std::exp(estimate), std::exp(std::min(estimate, at(0.025))), std::exp(std::max(estimate, at(0.975)))};
}

Rate sum_of(std::span<const Rate> stretches) {
  Rate sum;
  for (const Rate& stretch : stretches) sum.seconds += stretch.seconds, sum.work += stretch.work;
  return sum;
}

// Stretches over which what a stretch took beyond its work's share hangs together; 1: not at all.
double correlation_time(std::span<const Rate> stretches) {
  const Rate all = sum_of(stretches);
  const double rate = all.seconds / all.work;
  std::vector<double> beyond;
  for (const Rate& stretch : stretches) beyond.push_back(stretch.seconds - rate * stretch.work);
  const std::size_t n = beyond.size();
  const auto product = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < n; ++i) sum += beyond[i] * beyond[i + lag];
    return sum;
  };
  const double variance = product(0);
  if (variance <= 0) return 1;
  double time = -1;
  for (std::size_t lag = 0; lag + 1 < n / 2; lag += 2) {
    const double pair = (product(lag) + product(lag + 1)) / variance;
    if (pair <= 0) break;
    time += 2 * pair;
  }
  return std::max(1.0, time);
}

// One side's time per unit of work, drawn again and again; logarithms.
class Blocks {
 public:
  Blocks(std::span<const Rate> stretches, double outside)
      : stretches_(stretches), sum_(sum_of(stretches)), outside_(outside) {
    const auto n = static_cast<double>(stretches.size());
    const double length = std::max(n / kMostBlocks, 2 * correlation_time(stretches));
    length_ = std::max<std::size_t>(1, static_cast<std::size_t>(std::min(std::ceil(length), n / 4)));
    count_ = stretches.size() / length_;
  }
  [[nodiscard]] double estimate() const { return log_time(sum_); }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] double draw(Random& random) const {
    Rate drawn;
    const std::size_t n = stretches_.size();
    for (std::size_t taken = 0; taken < n;) {
      const std::size_t begin = random.below(n);
      for (std::size_t i = 0; i < length_ && taken < n; ++i, ++taken) {
        const Rate& stretch = stretches_[(begin + i) % n];
        drawn.seconds += stretch.seconds, drawn.work += stretch.work;
      }
    }
    if (!(drawn.seconds > 0) || !(drawn.work > 0)) return estimate();
    return estimate() + expansion(count_) * (log_time(drawn) - estimate());
  }

 private:
  // Of all the work at the rate of a part of it.
  [[nodiscard]] double log_time(const Rate& part) const {
    return std::log(outside_ / sum_.work + part.seconds / part.work);
  }

  std::span<const Rate> stretches_;
  Rate sum_;
  double outside_;
  std::size_t length_ = 1, count_ = 1;
};

}  // namespace

Ratio ratio_of_pairs(std::span<const double> log_ratios, Runs runs, std::uint64_t seed) {
  Random random(seed);
  const double estimate = mean(log_ratios), wider = expansion(log_ratios.size());
  const double between = runs == Runs::kOneEach ? kRunToRun * std::sqrt(2.0) : 0;
  std::vector<double> draws;
  for (int i = 0; i < kDraws; ++i)
    draws.push_back(estimate + wider * (drawn_mean(log_ratios, random) - estimate) + between * random.normal());
  return interval(estimate, std::move(draws));
}

Ratio ratio_of_repeats(std::span<const double> log_a, std::span<const double> log_b, std::uint64_t seed) {
  Random random(seed);
  const double a = mean(log_a), b = mean(log_b);
  const double wider_a = expansion(log_a.size()), wider_b = expansion(log_b.size());
  std::vector<double> draws;
  for (int i = 0; i < kDraws; ++i)
    draws.push_back(b - a + wider_b * (drawn_mean(log_b, random) - b) - wider_a * (drawn_mean(log_a, random) - a));
  return interval(b - a, std::move(draws));
}

Ratio ratio_of_batches(double a_seconds, double b_seconds) {
  constexpr double kNormal95 = 1.96;
  const double ratio = b_seconds / a_seconds, half = std::exp(kNormal95 * std::sqrt(2.0) * kBatchToBatch);
  return {ratio, ratio / half, ratio * half};
}

StretchRatio ratio_of_rates(std::span<const Rate> a, std::span<const Rate> b, std::uint64_t seed,
                            const Outside& outside) {
  Random random(seed);
  const Blocks of_a(a, outside.a_seconds), of_b(b, outside.b_seconds);
  const double estimate = of_b.estimate() - of_a.estimate();
  std::vector<double> draws;
  for (int i = 0; i < kDraws; ++i)
    draws.push_back(of_b.draw(random) - of_a.draw(random) + kRunToRun * std::sqrt(2.0) * random.normal());
  return {interval(estimate, std::move(draws)), of_a.count(), of_b.count()};
}

}  // namespace headroom::compare
