// SPDX-License-Identifier: Apache-2.0
#include "analyze/beat.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/median.h"

namespace headroom {

namespace {

constexpr std::size_t kFewestReadings = 24, kFewestRounds = 6;
constexpr double kBusyAt = 0.2;                      // utilisation that busy readings have at the least
constexpr double kLowOfBusy = 0.25, kUnclear = 0.5;  // of it
constexpr double kNearlyAll = 0.9, kMost = 0.8;

struct Round {
  double readings = 0, low = 0;
};

// From one low reading after a busy one to the next such.
std::vector<Round> rounds_of(const std::vector<double>& values, double busy) {
  std::vector<Round> rounds;
  std::optional<Round> now;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool low = values[i] < kLowOfBusy * busy;
    const bool begins = low && i > 0 && values[i - 1] >= kLowOfBusy * busy;
    if (begins && now) rounds.push_back(*now);
    if (begins) now.emplace();
    if (now) ++now->readings, now->low += low ? 1 : 0;
  }
  return rounds;
}

// The share of rounds that are as the middle one, give or take `off`.
double alike(const std::vector<Round>& rounds, double Round::*of, double middle, double off) {
  const auto count = std::count_if(rounds.begin(), rounds.end(),
                                   [&](const Round& round) { return std::abs(round.*of - middle) <= off; });
  return static_cast<double>(count) / static_cast<double>(rounds.size());
}

double middle_of(const std::vector<Round>& rounds, double Round::*of) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(round.*of);
  return median(std::move(values));
}

}  // namespace

std::optional<Beat> find_beat(const Track& track, const Window& window) {
  const Column* util = track.find(Metric::kGpuUtil);
  if (!util) return std::nullopt;
  std::vector<double> values, spaces;
  std::optional<Nanos> before;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (!window.holds(track.at[row]) || !util->has(row)) continue;
    values.push_back(to_unit(Metric::kGpuUtil, util->values[row]));
    if (before) spaces.push_back(static_cast<double>(track.at[row] - *before));
    before = track.at[row];
  }
  if (values.size() < kFewestReadings) return std::nullopt;
  const double interval = median(spaces);
  const auto even = std::count_if(spaces.begin(), spaces.end(), [&](double space) { return space < 1.5 * interval; });
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const double busy = sorted[sorted.size() * 9 / 10];
  const auto unclear = std::count_if(values.begin(), values.end(), [&](double value) {
    return value >= kLowOfBusy * busy && value < kUnclear * busy;
  });
  const auto all = static_cast<double>(values.size());
  if (busy < kBusyAt || static_cast<double>(even) < kNearlyAll * (all - 1) ||
      static_cast<double>(unclear) > (1 - kNearlyAll) * all)
    return std::nullopt;
  const std::vector<Round> rounds = rounds_of(values, busy);
  if (rounds.size() < kFewestRounds) return std::nullopt;
  const double readings = middle_of(rounds, &Round::readings), low = middle_of(rounds, &Round::low);
  const double off = readings < 10 ? 0.5 : 1;  // a look falls on either side of an edge
  if (readings < 3 || alike(rounds, &Round::readings, readings, off) < kMost ||
      alike(rounds, &Round::low, low, off) < kMost || readings * static_cast<double>(rounds.size()) < kMost * all)
    return std::nullopt;
  return Beat{readings, low, rounds.size(), static_cast<Nanos>(interval)};
}

}  // namespace headroom
