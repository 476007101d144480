// SPDX-License-Identifier: Apache-2.0
#include "tune/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace headroom::tune {

namespace {

constexpr std::size_t kAlike = 12;  // examples of about the same report, of which one is taken
constexpr double kMostScaled = 16;  // a curve that hardly moved says little of how far it would

double change(double from, double to) { return std::isfinite(from) && std::isfinite(to) ? to - from : 0; }

// After n reports: the sum of the absolute changes so far.
std::vector<double> moved(const std::vector<StepReport>& curve) {
  std::vector<double> sums(curve.size() + 1, 0);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    sums[i + 1] = sums[i] + std::abs(change(curve[i - 1].value, curve[i].value));
  }
  return sums;
}

double mean_move(const std::vector<double>& moved, std::size_t reports) {
  return reports < 2 ? 0 : moved[reports] / static_cast<double>(reports - 1);
}

}  // namespace

CurveBook::CurveBook(std::vector<std::vector<StepReport>> curves, Direction direction)
    : curves_(std::move(curves)), places_(kAges + 1), maximize_(direction == Direction::kMaximize) {
  for (std::size_t c = 0; c < curves_.size(); ++c) {
    const std::vector<StepReport>& curve = curves_[c];
    moved_.push_back(moved(curve));
    double best = std::numeric_limits<double>::quiet_NaN();
    std::size_t age = 0;
    for (std::size_t n = 1; n < curve.size(); ++n) {
      age = better(curve[n - 1].value, best) ? 0 : age + 1;
      if (age == 0) best = curve[n - 1].value;
      places_[std::min(age, kAges)].push_back(
          {.reports = static_cast<std::uint32_t>(n), .curve = static_cast<std::uint32_t>(c)});
    }
    if (curve.size() > steps_.size()) {
      steps_.clear();
      for (const StepReport& report : curve) steps_.push_back(report.step);
    }
  }
  for (std::vector<Place>& places : places_) {
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.reports < b.reports; });
  }
}

bool CurveBook::better(double value, double than) const {
  if (std::isnan(value)) return false;
  return std::isnan(than) || (maximize_ ? value > than : value < than);
}

// The best value and how many reports ago it was.
std::pair<double, std::size_t> CurveBook::best_of(const std::vector<StepReport>& curve) const {
  double best = std::numeric_limits<double>::quiet_NaN();
  std::size_t age = 0;
  for (const StepReport& report : curve) {
    age = better(report.value, best) ? 0 : age + 1;
    if (age == 0) best = report.value;
  }
  return {best, age};
}

const CurveBook::Place* CurveBook::example(std::size_t reports, std::size_t age, std::size_t self,
                                           Random& random) const {
  age = std::min(age, kAges);
  for (std::size_t off = 0; off <= kAges; ++off) {  // an age that has examples, the nearest first
    for (const std::size_t at : {age - off, age + off}) {
      if (at > kAges || places_[at].empty()) continue;
      const std::vector<Place>& places = places_[at];
      const auto next = std::lower_bound(places.begin(), places.end(), reports,
                                         [](const Place& place, std::size_t n) { return place.reports < n; });
      const auto middle = static_cast<std::size_t>(next - places.begin());
      const std::size_t first = middle > kAlike / 2 ? middle - kAlike / 2 : 0;
      const std::size_t count = std::min(kAlike, places.size() - first);
      const std::size_t from = random.below(count);
      for (std::size_t i = 0; i < count; ++i) {
        const Place& place = places[first + (from + i) % count];
        if (place.curve != self) return &place;
      }
    }
  }
  return nullptr;
}

void CurveBook::extend(std::vector<StepReport>& curve, std::size_t length, std::size_t self, Random& random) const {
  if (curve.empty()) return;
  auto [best, age] = best_of(curve);
  const std::vector<double> own = moved(curve);
  const double own_move = mean_move(own, curve.size());
  const std::int64_t stride = curve.size() > 1 ? curve.back().step - curve[curve.size() - 2].step : 1;
  double value = curve.back().value;
  const auto append = [&](double further) {
    value = std::isfinite(value) ? value + further : value;
    const std::size_t n = curve.size();
    const std::int64_t after = curve.back().step + std::max<std::int64_t>(1, stride);
    curve.push_back({.step = n < steps_.size() && steps_[n] > curve.back().step ? steps_[n] : after, .value = value});
    age = better(value, best) ? 0 : age + 1;
    if (age == 0) best = value;
  };
  while (curve.size() < length) {
    const Place* place = example(curve.size(), age, self, random);
    if (place == nullptr) {
      append(0);
      continue;
    }
    const std::vector<StepReport>& donor = curves_[place->curve];
    const double donor_move = mean_move(moved_[place->curve], place->reports);
    // Half of the way, in proportion: the ratio of two noisy figures is too high on average.
    const double scale =
        own_move > 0 && donor_move > 0 ? std::sqrt(std::clamp(own_move / donor_move, 1 / kMostScaled, kMostScaled)) : 1;
    for (std::size_t n = place->reports; n < donor.size() && curve.size() < length; ++n) {
      append(scale * change(donor[n - 1].value, donor[n].value));
    }
  }
}

}  // namespace headroom::tune
