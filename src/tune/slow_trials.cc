// SPDX-License-Identifier: Apache-2.0
#include "tune/slow_trials.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/median.h"
#include "tune/quantiles.h"

namespace headroom::tune {

namespace {

constexpr std::size_t kFewestUsual = 10;  // trials, to say what is usual
constexpr double kDeviations = 5;
constexpr double kOfNormal = 1.4826;  // median absolute deviation to standard deviation, of a normal distribution
constexpr double kLeastScale = 0.05;  // trials that all take the same vary by some percent
constexpr double kTwice = 2;

// What trials of one state and as many reports take: those that went further took longer for that alone.
using Alike = std::pair<TrialState, std::size_t>;

Alike alike(const Trial& trial) { return {trial.state, static_cast<std::size_t>(trial.reports)}; }

std::map<Alike, double> middles_of_alike(const Study& study, const Timeline& timeline) {
  std::map<Alike, std::vector<double>> durations;
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    if (timeline.spans[i].timed && is_finished(study.trials[i].state))
      durations[alike(study.trials[i])].push_back(seconds(timeline.spans[i].duration()));
  std::map<Alike, double> middles;
  for (auto& [key, list] : durations)
    if (list.size() >= kFewestUsual) middles[key] = median(std::move(list));
  return middles;
}

}  // namespace

std::vector<SlowTrial> slow_trials(const Study& study, const Timeline& timeline, const StepModel& model) {
  const auto middles = middles_of_alike(study, timeline);
  std::vector<SlowTrial> all;
  std::vector<double> logs;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    const TrialSpan& span = timeline.spans[i];
    if (!span.timed || !is_finished(trial.state)) continue;
    const auto middle = middles.find(alike(trial));
    const double expected = model.line                ? model.line->intercept.value + model.steps_seconds(study, i)
                            : middle != middles.end() ? middle->second
                                                      : 0;
    const double took = seconds(span.duration());
    if (expected <= 0 || took <= 0) continue;
    all.push_back({.trial = i, .seconds = took, .expected = expected});
    logs.push_back(std::log(took / expected));
  }
  if (all.size() < kFewestUsual) return {};
  const double usual = median(logs);
  std::vector<double> off;
  for (const double one : logs) off.push_back(std::abs(one - usual));
  const double scale = std::max(kLeastScale, kOfNormal * median(std::move(off)));
  std::vector<SlowTrial> slow;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (logs[i] - usual > kDeviations * scale && all[i].seconds > kTwice * all[i].expected) slow.push_back(all[i]);
  std::stable_sort(slow.begin(), slow.end(), [](const SlowTrial& a, const SlowTrial& b) {
    return a.seconds - a.expected > b.seconds - b.expected;
  });
  return slow;
}

}  // namespace headroom::tune
