// SPDX-License-Identifier: Apache-2.0
#include "scheduler/lengths.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headroom::scheduler {

namespace {
constexpr double kBinsPerFactorE = 20;    // 5 % wide
constexpr double kNeverKnown = 0.9;       // is the most of itself that a running task is credited with
constexpr double kShortestLength = 1e-3;  // seconds
constexpr double kLongestLength = 1e12;   // seconds
constexpr double kLeastScatter = 0.01;
constexpr double kOddScatter = 1.2;         // at least
constexpr double kOddAfter = 5;             // one in so many is odd, and in so many more as have ended
constexpr int kSteps = 10, kHalvings = 12;  // enough for a few percent, and for a thousandth
constexpr double kFar = 30;                 // scales from the middle of a logistic law
constexpr double kWithin = 1 - 1e-9;        // sums of shares are not exact
// Variance of a logistic law, in scales, beyond that of its tail.
constexpr double kLogistic = std::numbers::pi * std::numbers::pi / 3 - 1;
}  // namespace

void Lengths::add(double seconds) {
  const double log = std::log(std::max(seconds, kShortestLength));
  Bin& bin = bins_[static_cast<int>(std::floor(log * kBinsPerFactorE))];
  ++bin.count, bin.seconds += seconds;
  ++count_, logs_ += log, squared_logs_ += log * log;
}

double Lengths::spread() const {
  return count_ > 0 ? std::max(0.0, squared_logs_ - logs_ * logs_ / static_cast<double>(count_)) : 0;
}

double LengthLaw::left_at_most(double done, double share) const {
  const auto longer = [&](double seconds) {  // share of tasks
    const auto of = [&](double deviation) {
      return 1 / (1 + std::pow(seconds / usual, std::numbers::pi / std::numbers::sqrt3 / deviation));
    };
    return (1 - odd) * of(std::max(scatter, kLeastScatter)) + odd * of(std::max(scatter, kOddScatter));
  };
  const double wanted = longer(done) * (1 - share);
  double low = std::max(done, kShortestLength), high = std::max(low, usual);
  while (longer(high) > wanted && high < kLongestLength) high *= 4;
  for (int step = 0; step < kHalvings; ++step) {
    const double middle = std::sqrt(low * high);
    (longer(middle) > wanted ? low : high) = middle;
  }
  return std::max(0.0, high - done);
}

// Maximum likelihood by expectation and maximisation: what still runs is taken for as long as such a task is expected
// to be, and then for a length like the others.
void LengthCurve::believe(const Lengths& ended, std::span<const double> running, Belief belief) {
  const double seen = static_cast<double>(ended.count_), all = seen + static_cast<double>(running.size());
  const double believed = belief.weight * belief.scatter * belief.scatter, mean = ended.logs_ / std::max(1.0, seen);
  double usual = mean, variance = (ended.spread() + believed) / std::max(1.0, seen - 1 + belief.weight);
  for (int step = 0; step < kSteps && seen > 0 && !running.empty(); ++step) {
    const double scale = std::sqrt(variance) * std::numbers::sqrt3 / std::numbers::pi;
    double sum = ended.logs_, squares = 0, own = 0;
    for (const double one : running) {
      const double behind = std::clamp((std::log(std::max(one, kShortestLength)) - usual) / scale, -kFar, kFar);
      const double expected = usual + scale * (behind + (1 + std::exp(behind)) * std::log1p(std::exp(-behind)));
      sum += expected, squares += expected * expected;
      own += scale * scale * (1 + kLogistic / (1 + std::exp(behind)));
    }
    usual = sum / all;
    const double spread = ended.spread() + seen * (mean - usual) * (mean - usual) + own + squares -
                          2 * usual * (sum - ended.logs_) + static_cast<double>(running.size()) * usual * usual;
    variance = (spread + believed) / (all - 1 + belief.weight);
  }
  law_ = {.usual = std::exp(usual),
          .scatter = std::sqrt(variance * (1 + 1 / std::max(1.0, seen))),
          .odd = 1 / (seen + kOddAfter)};
}

LengthCurve::LengthCurve(const Lengths& ended, std::span<const double> running)
    : LengthCurve(ended, running, Belief{}) {}

LengthCurve::LengthCurve(const Lengths& ended, std::span<const double> running, Belief belief) {
  believe(ended, running, belief);
  const double count = static_cast<double>(ended.count_);
  const double shown = ended.spread() + belief.weight * belief.scatter * belief.scatter;
  double at_risk = count + static_cast<double>(running.size()), longer = 1, last = 0;
  auto shorter = running.begin();
  for (const auto& [number, bin] : ended.bins_) {
    const double size = static_cast<double>(bin.count);
    last = bin.seconds / size;
    for (; shorter != running.end() && *shorter < last; ++shorter) --at_risk;
    const double share = longer * size / at_risk;
    points_.push_back({last, share});
    longer -= share, at_risk -= size;
  }
  if (longer > 1e-9 && !running.empty())
    points_.push_back({std::max(last, running.back()) * std::exp(std::sqrt(shown / (count + belief.weight))), longer});
  for (const Point& point : points_) mean_ += point.share * point.seconds;
  for (const Point& point : points_) variance_ += point.share * (point.seconds - mean_) * (point.seconds - mean_);
  const double believed = mean_ * mean_ * std::expm1(std::min(1.0, law_.scatter * law_.scatter));
  variance_ = (count * variance_ + belief.weight * believed) / std::max(1.0, count - 1 + belief.weight);
}

double LengthCurve::left(double done) const {
  double share = 0, sum = 0;
  for (const Point& point : points_)
    if (point.seconds > done) share += point.share, sum += point.share * (point.seconds - done);
  return std::max(share > 0 ? sum / share : 0, done * (1 - kNeverKnown) / kNeverKnown);
}

// Absent where none took so long.
std::optional<double> LengthCurve::seen_left(double done, double within) const {
  double share = 0, sum = 0;
  for (const Point& point : points_) share += point.seconds > done ? point.share : 0;
  for (const Point& point : points_) {
    if (point.seconds <= done) continue;
    sum += point.share;
    if (sum >= within * share * kWithin) return point.seconds - done;
  }
  return std::nullopt;
}

double LengthCurve::left_at_most(double done, double share) const {
  return std::max(
      {seen_left(done, share).value_or(0), law_.left_at_most(done, share), done * (1 - kNeverKnown) / kNeverKnown});
}

double LengthCurve::left_at_least(double done, double share) const {
  const double held = law_.left_at_most(done, 1 - share);
  return std::min(seen_left(done, 1 - share).value_or(held), held);
}

}  // namespace headroom::scheduler
