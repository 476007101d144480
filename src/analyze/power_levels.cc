// SPDX-License-Identifier: Apache-2.0
#include "analyze/power_levels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/median.h"

namespace headroom {

namespace {

struct WattsRead {
  Nanos at = 0, since = 0;  // the reading before
  double watts = 0;
};

std::vector<WattsRead> watts_of(const Track& track, const Window& window) {
  std::vector<WattsRead> readings;
  const Column* power = track.find(Metric::kPower);
  for (std::size_t row = 0; power && row < track.at.size(); ++row) {
    if (!window.holds(track.at[row]) || !power->has(row)) continue;
    const Nanos at = track.at[row];
    readings.push_back({at, readings.empty() ? at : readings.back().at, to_unit(Metric::kPower, power->values[row])});
  }
  return readings;
}

// The threshold that leaves the least variance within the two parts (Otsu 1979); of sorted values, as a position.
std::size_t best_cut(const std::vector<double>& sorted) {
  const double all = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  const auto count = static_cast<double>(sorted.size());
  double below = 0, most = -1;
  std::size_t best = 1;
  for (std::size_t cut = 1; cut < sorted.size(); ++cut) {
    below += sorted[cut - 1];
    const auto n = static_cast<double>(cut);
    const double apart = (all - below) / (count - n) - below / n, between = n * (count - n) * apart * apart;
    if (between > most) most = between, best = cut;
  }
  return best;
}

double mean_watts(std::vector<double>::const_iterator begin, std::vector<double>::const_iterator end) {
  return std::accumulate(begin, end, 0.0) / static_cast<double>(std::max<std::ptrdiff_t>(1, end - begin));
}

// Stretches of readings above the cut; a single reading on either side of it is none.
std::vector<Window> stretches_above(const std::vector<WattsRead>& readings, double cut) {
  std::vector<char> high;
  for (const WattsRead& one : readings) high.push_back(one.watts >= cut ? 1 : 0);
  for (std::size_t i = 1; i + 1 < high.size(); ++i)
    if (high[i - 1] == high[i + 1]) high[i] = high[i - 1];
  std::vector<Window> found;
  for (std::size_t i = 0; i < high.size(); ++i) {
    if (!high[i]) continue;
    if (i == 0 || !high[i - 1]) found.push_back({readings[i].since, readings[i].at});
    found.back().end = readings[i].at;
  }
  return found;
}

std::optional<Nanos> steady_period(const std::vector<Window>& times) {
  constexpr std::size_t kFewest = 4;  // stretches
  constexpr double kSteady = 0.1;     // of the period, what most are off by
  std::vector<double> spaces, off;
  for (std::size_t i = 1; i < times.size(); ++i)
    spaces.push_back(static_cast<double>(times[i].begin - times[i - 1].begin));
  if (times.size() < kFewest) return std::nullopt;
  const double period = median(spaces);
  for (const double space : spaces) off.push_back(std::abs(space - period));
  return median(std::move(off)) <= kSteady * period ? std::optional(static_cast<Nanos>(period)) : std::nullopt;
}

}  // namespace

std::optional<PowerLevels> power_levels(const Track& track, const Window& window) {
  constexpr std::size_t kFewest = 20;                                     // readings
  constexpr double kFar = 1.5, kLeast = 10, kShare = 0.05, kEdge = 0.25;  // of the lower; watts; of all; of the step
  const std::vector<WattsRead> readings = watts_of(track, window);
  if (readings.size() < kFewest) return std::nullopt;
  std::vector<double> sorted;
  for (const WattsRead& one : readings) sorted.push_back(one.watts);
  std::sort(sorted.begin(), sorted.end());
  const auto cut = sorted.cbegin() + static_cast<std::ptrdiff_t>(best_cut(sorted));
  PowerLevels found{.low_watts = mean_watts(sorted.cbegin(), cut), .high_watts = mean_watts(cut, sorted.cend())};
  const auto all = static_cast<double>(sorted.size());
  found.high_share = static_cast<double>(sorted.cend() - cut) / all;
  const double step = found.high_watts - found.low_watts;
  const auto between = std::count_if(sorted.begin(), sorted.end(), [&](double watts) {
    return watts > found.low_watts + kEdge * step && watts < found.high_watts - kEdge * step;
  });
  if (found.high_watts < kFar * found.low_watts || step < kLeast || found.high_share < kShare ||
      found.high_share > 1 - kShare || static_cast<double>(between) > kShare * all)
    return std::nullopt;
  found.high = stretches_above(readings, found.low_watts + step / 2);
  if (found.high.empty()) return std::nullopt;
  found.period = steady_period(found.high);
  return found;
}

}  // namespace headroom
