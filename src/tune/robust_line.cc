// SPDX-License-Identifier: Apache-2.0
#include "tune/robust_line.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "base/median.h"
#include "tune/quantiles.h"

namespace headroom::tune {

namespace {

using Points = std::vector<std::pair<double, double>>;
using Generator = std::mt19937_64;

constexpr std::size_t kFewestPoints = 8;
constexpr std::size_t kAllPairsOf = 300;  // points: 44,850 pairs
constexpr std::size_t kPairs = 40'000;
constexpr int kBootstraps = 200;
constexpr std::size_t kBootstrapPoints = 1'000;
constexpr std::size_t kBootstrapPairs = 1'000;

// Not std::uniform_int_distribution, which differs between libraries: the same study gives the same answer everywhere.
std::size_t below(std::size_t count, Generator& random) { return static_cast<std::size_t>(random() % count); }

void add_slope(const Points& points, std::size_t i, std::size_t j, std::vector<double>& slopes) {
  const double dx = points[j].first - points[i].first;
  if (dx != 0) slopes.push_back((points[j].second - points[i].second) / dx);
}

std::optional<Line> line_of(const Points& points, std::size_t pairs, Generator& random) {
  std::vector<double> slopes;
  if (points.size() * (points.size() - 1) / 2 <= pairs || (pairs == kPairs && points.size() <= kAllPairsOf)) {
    for (std::size_t i = 0; i < points.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) add_slope(points, i, j, slopes);
  } else {
    slopes.reserve(pairs);
    for (std::size_t k = 0; k < pairs; ++k)
      add_slope(points, below(points.size(), random), below(points.size(), random), slopes);
  }
  if (slopes.empty()) return std::nullopt;
  Line line{.slope = median(std::move(slopes))};
  std::vector<double> rest;
  rest.reserve(points.size());
  for (const auto& [x, y] : points) rest.push_back(y - line.slope * x);
  line.intercept = median(std::move(rest));
  return line;
}

// From the 5th to the 95th of 100; a sample smaller than the whole spreads wider, by the root of its share.
Estimate estimate(double value, std::vector<double> replicas, double width) {
  std::sort(replicas.begin(), replicas.end());
  return {.low = value + std::min(0.0, nearest_rank(replicas, 0.05) - value) * width,
          .value = value,
          .high = value + std::max(0.0, nearest_rank(replicas, 0.95) - value) * width};
}

}  // namespace

std::optional<Line> theil_sen(const Points& points) {
  if (points.size() < 2) return std::nullopt;
  Generator random(1);
  return line_of(points, kPairs, random);
}

std::optional<RobustLine> robust_line(const Points& points) {
  if (points.size() < kFewestPoints) return std::nullopt;
  Generator random(1);
  const auto line = line_of(points, kPairs, random);
  if (!line || line->slope <= 0) return std::nullopt;
  const std::size_t count = std::min(points.size(), kBootstrapPoints);
  std::vector<double> intercepts, slopes;
  Points drawn(count);
  for (int i = 0; i < kBootstraps; ++i) {
    for (auto& point : drawn) point = points[below(points.size(), random)];
    const auto replica = line_of(drawn, kBootstrapPairs, random);
    if (!replica) continue;
    intercepts.push_back(replica->intercept);
    slopes.push_back(replica->slope);
  }
  if (slopes.size() < static_cast<std::size_t>(kBootstraps) / 2) return std::nullopt;
  const double width = std::sqrt(static_cast<double>(count) / static_cast<double>(points.size()));
  RobustLine result{.intercept = estimate(line->intercept, std::move(intercepts), width),
                    .slope = estimate(line->slope, std::move(slopes), width)};
  if (result.slope.low <= 0) return std::nullopt;
  return result;
}

}  // namespace headroom::tune
