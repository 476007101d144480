// SPDX-License-Identifier: Apache-2.0
#include "scheduler/lengths.h"

#include <algorithm>
#include <cmath>

namespace headroom::scheduler {

namespace {
constexpr double kBinsPerFactorE = 20;   // 5 % wide
constexpr double kAssumedScatter = 0.3;  // before lengths have been seen …
constexpr double kAssumedWeight = 1;     // … and for how many tasks that counts
constexpr double kNeverDone = 0.9;       // is the most of itself that a running task is credited with
constexpr double kShortest = 1e-3;       // seconds
}  // namespace

void Lengths::add(double seconds) {
  const double log = std::log(std::max(seconds, kShortest));
  Bin& bin = bins_[static_cast<int>(std::floor(log * kBinsPerFactorE))];
  ++bin.count, bin.seconds += seconds;
  ++count_, logs_ += log, squared_logs_ += log * log;
}

LengthCurve::LengthCurve(const Lengths& ended, std::span<const double> running) {
  const double count = static_cast<double>(ended.count_);
  const double spread = count > 0 ? std::max(0.0, ended.squared_logs_ - ended.logs_ * ended.logs_ / count) : 0;
  scatter_ = std::sqrt((spread + kAssumedWeight * kAssumedScatter * kAssumedScatter) / (count + kAssumedWeight));
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
    points_.push_back({std::max(last, running.back()) * std::exp(scatter_), longer});
  for (const Point& point : points_) mean_ += point.share * point.seconds;
  for (const Point& point : points_) variance_ += point.share * (point.seconds - mean_) * (point.seconds - mean_);
}

double LengthCurve::left(double done) const {
  double share = 0, sum = 0;
  for (const Point& point : points_)
    if (point.seconds > done) share += point.share, sum += point.share * (point.seconds - done);
  return std::max(share > 0 ? sum / share : 0, done * (1 - kNeverDone) / kNeverDone);
}

double LengthCurve::left_at_most(double done, double within) const {
  double share = 0;
  for (const Point& point : points_) share += point.seconds > done ? point.share : 0;
  double found = done * std::exp(scatter_) - done, sum = 0;
  for (const Point& point : points_) {
    if (point.seconds <= done) continue;
    sum += point.share, found = point.seconds - done;
    if (sum >= within * share) break;
  }
  return std::max(found, done * (1 - kNeverDone) / kNeverDone);
}

}  // namespace headroom::scheduler
