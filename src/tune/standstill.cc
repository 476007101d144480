// SPDX-License-Identifier: Apache-2.0
#include "tune/standstill.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/median.h"
#include "tune/quantiles.h"

namespace headroom::tune {

namespace {

constexpr std::size_t kFewestLengths = 8;  // trials, to say how long one takes
constexpr double kFarLonger = 3;           // x
constexpr double kNearlyAll = 0.95;        // of the trials

// How many trials are open, from each begin and end on.
std::vector<std::pair<double, std::int64_t>> open_since(const std::vector<TimedTrial>& trials) {
  std::vector<std::pair<double, int>> events;
  for (const TimedTrial& trial : trials) {
    events.emplace_back(trial.begin, 1);
    events.emplace_back(trial.end, -1);
  }
  std::sort(events.begin(), events.end());
  std::vector<std::pair<double, std::int64_t>> open;
  std::int64_t now = 0;
  for (const auto& [at, by] : events) {
    now += by;
    if (!open.empty() && open.back().first == at)
      open.back().second = now;
    else
      open.emplace_back(at, now);
  }
  return open;
}

double mostly(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return nearest_rank(values, kNearlyAll);
}

// What the reports of a trial that is open all that time make plausible, by a usual one's.
double by_reports(const std::vector<TimedTrial>& trials, double begin, double end, double usual, double reports) {
  double fewest = std::numeric_limits<double>::infinity();
  for (const TimedTrial& trial : trials)
    if (trial.begin <= begin && trial.end >= end) fewest = std::min(fewest, static_cast<double>(trial.reports));
  return usual * (fewest + 1) / (reports + 1);
}

}  // namespace

std::vector<Standstill> standstills(const std::vector<TimedTrial>& trials) {
  if (trials.size() < kFewestLengths) return {};
  std::vector<double> durations, stretches, reports;
  for (const TimedTrial& trial : trials) {
    durations.push_back(trial.end - trial.begin);
    reports.push_back(static_cast<double>(trial.reports));
  }
  const auto open = open_since(trials);
  for (std::size_t i = 0; i + 1 < open.size(); ++i) stretches.push_back(open[i + 1].first - open[i].first);
  if (stretches.empty()) return {};
  const double limit = kFarLonger * std::max(mostly(durations), mostly(stretches));
  const double usual = median(durations), usual_reports = median(reports);
  std::vector<TimedTrial> lengthy;  // that can be open all that time: few
  for (const TimedTrial& trial : trials)
    if (trial.end - trial.begin > limit) lengthy.push_back(trial);
  std::vector<Standstill> found;
  for (std::size_t i = 0; i + 1 < open.size(); ++i) {
    Standstill still{.begin = open[i].first, .end = open[i + 1].first, .open = open[i].second};
    if (still.end - still.begin <= limit) continue;
    if (still.open > 0) {
      if (still.end - still.begin <= kFarLonger * by_reports(lengthy, still.begin, still.end, usual, usual_reports))
        continue;
      still.begin += usual;
    }
    found.push_back(still);
  }
  return found;
}

std::vector<std::int64_t> present(const std::vector<TimedTrial>& trials, std::int64_t workers, double pause) {
  std::vector<std::int64_t> there(trials.size(), workers);
  if (trials.empty()) return there;
  const auto open = open_since(trials);
  std::int64_t most = 0;
  for (const auto& [at, count] : open) most = std::max(most, count);
  std::vector<std::pair<double, int>> changes;  // of how many are missing
  for (std::int64_t level = 1; level <= std::min(workers, most); ++level) {
    double free_since = open.front().first;
    bool free = true;
    const auto until = [&](double at) {
      if (!free || at - free_since <= pause) return;
      changes.emplace_back(free_since, 1);
      changes.emplace_back(at, -1);
    };
    for (const auto& [at, count] : open) {
      if (count >= level) until(at);
      if (!free && count < level) free_since = at;
      free = count < level;
    }
    until(open.back().first);
  }
  std::sort(changes.begin(), changes.end());
  std::vector<std::size_t> order(trials.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return trials[a].begin < trials[b].begin; });
  std::size_t next = 0;
  std::int64_t missing = 0;
  for (const std::size_t i : order) {
    for (; next < changes.size() && changes[next].first <= trials[i].begin; ++next) missing += changes[next].second;
    there[i] = std::max<std::int64_t>(1, workers - missing);
  }
  return there;
}

}  // namespace headroom::tune
