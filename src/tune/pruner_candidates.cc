// SPDX-License-Identifier: Apache-2.0
#include "tune/pruner_candidates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>

#include "tune/halving.h"

namespace headroom::tune {

namespace {

using Steps = std::span<const StepReport>;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMostPatience = 50;
constexpr std::size_t kLookedAt = 500;  // prunes: more tell no more of patience
constexpr double kOutliers = 0.03;      // prunes of the program itself, or of settings that were changed

void keep_least(std::optional<std::int64_t>& least, std::int64_t value) {
  least = std::min(least.value_or(value), value);
}

// Whether nothing in the last patience + 1 reports reaches the best one before them.
bool stagnates(Steps reports, std::size_t patience, bool maximize) {
  if (reports.size() < patience + 2) return false;
  const auto best = [maximize](Steps part) {
    double found = std::numeric_limits<double>::quiet_NaN();
    for (const StepReport& r : part) found = maximize ? std::fmax(found, r.value) : std::fmin(found, r.value);
    return found;
  };
  const double before = best(reports.first(reports.size() - patience - 1)), recent = best(reports.last(patience + 1));
  return maximize ? before > recent : before < recent;
}

// The largest patience that leaves the last report of a trial to be pruned; -1: none does.
std::int64_t patience_of(Steps reports, bool maximize) {
  std::int64_t patience = -1;
  while (patience < kMostPatience && stagnates(reports, static_cast<std::size_t>(patience + 1), maximize)) ++patience;
  return patience;
}

std::vector<std::optional<std::int64_t>> patiences(const PruningTraces& traces) {
  std::vector<std::optional<std::int64_t>> all{std::nullopt};
  if (!traces.largest_patience) return all;
  // Less than the largest is possible, too: stagnation may just have lasted longer than it had to.
  for (std::int64_t p = *traces.largest_patience; p >= std::max<std::int64_t>(0, *traces.largest_patience - 2); --p)
    all.emplace_back(p);
  return all;
}

// max_resource of Hyperband: one for each number of brackets that may be.
std::vector<std::optional<std::int64_t>> max_resources(const PrunerSettings& settings, const PruningTraces& traces) {
  std::vector<std::optional<std::int64_t>> all;
  std::set<std::size_t> seen{0, 1};  // one bracket is successive halving
  const auto add = [&](std::int64_t max_resource) {
    const Brackets brackets(*settings.min_resource, max_resource, settings.reduction_factor, "");
    if (seen.insert(brackets.budgets.size()).second) all.emplace_back(max_resource);
  };
  if (traces.longest) {
    add(*traces.longest + (traces.from_zero ? 1 : 0));  // the number of steps
    add(*traces.longest + (traces.from_zero ? 0 : 1));
    all.emplace_back(std::nullopt);
  }
  std::int64_t power = *settings.min_resource;
  for (int brackets = 2; brackets <= 5; ++brackets) add(power *= settings.reduction_factor);
  return all;
}

void add_halving(std::vector<PrunerSettings>& all, const PruningTraces& traces,
                 const std::optional<std::int64_t>& patience) {
  const std::int64_t earliest = traces.earliest_rung.value_or(1);
  std::vector<std::int64_t> resources;
  // Without patience the first rung lies where the first value of one does; with it, there or before.
  for (const std::int64_t r : {1, 2, 3, 4, 5, 8, 10, 20})
    if (patience && r < earliest) resources.push_back(r);
  resources.push_back(std::max<std::int64_t>(1, earliest));
  for (const std::int64_t factor : {3, 4, 2, 5, 6, 7, 8, 9, 10}) {
    PrunerSettings settings{.kind = PrunerKind::kSuccessiveHalving, .patience = patience, .reduction_factor = factor};
    settings.min_resource.reset();
    if (traces.longest) all.push_back(settings);
    for (const std::int64_t resource : resources) {
      settings.kind = PrunerKind::kSuccessiveHalving;
      settings.min_resource = resource;
      settings.max_resource.reset();
      all.push_back(settings);
      settings.kind = PrunerKind::kHyperband;
      for (const auto& max_resource : max_resources(settings, traces)) {
        settings.max_resource = max_resource;
        all.push_back(settings);
      }
    }
  }
}

void add_percentiles(std::vector<PrunerSettings>& all, const PruningTraces& traces,
                     const std::optional<std::int64_t>& patience) {
  std::vector<std::int64_t> warmups{0}, startups{5};
  if (traces.earliest_step.value_or(0) > 0) warmups.push_back(*traces.earliest_step);
  for (const std::int64_t trials : {std::int64_t{1}, std::int64_t{10}, std::int64_t{20}, traces.completed_before})
    if (std::ranges::find(startups, trials) == startups.end()) startups.push_back(trials);
  for (const double percentile : {50, 25, 75, 10, 20, 30, 33, 40, 60, 66, 70, 80, 90})
    for (const std::int64_t startup : startups)
      for (const std::int64_t warmup : warmups) {
        PrunerSettings settings{.kind = percentile == 50 ? PrunerKind::kMedian : PrunerKind::kPercentile,
                                .patience = patience,
                                .percentile = percentile,
                                .n_startup_trials = startup,
                                .n_warmup_steps = warmup};
        all.push_back(settings);
        settings.interval_steps = traces.stride;
        if (traces.stride > 1 && warmup == *traces.earliest_step) all.push_back(settings);
      }
}

// The number with the fewest decimals in [low, high), where people's bounds lie.
double roundest(double low, double high) {
  for (double scale = 1; scale < 1e15; scale *= 10)
    if (const double round = std::ceil(low * scale) / scale; round >= low && round < high) return round;
  return low;
}

// Bounds between the values that were pruned and those that were not, from the end of a warm-up on.
void add_threshold(std::vector<PrunerSettings>& all, const Study& study, std::int64_t warmup) {
  double low = kUnbounded, high = -kUnbounded, below = -kUnbounded, above = kUnbounded;
  const auto each = [&](auto&& look) {
    for (const Trial& trial : study.trials)
      for (std::size_t i = 0; i < trial.reports; ++i)
        if (const StepReport& r = reports_of(study, trial)[i]; r.step >= warmup && !std::isnan(r.value))
          look(r.value, trial.state == TrialState::kPruned && i + 1 == trial.reports);
  };
  each([&](double value, bool pruned) {
    if (!pruned) low = std::min(low, value), high = std::max(high, value);
  });
  each([&](double value, bool pruned) {
    if (pruned && value < low) below = std::max(below, value);
    if (pruned && value > high) above = std::min(above, value);
  });
  PrunerSettings settings{.kind = PrunerKind::kThreshold, .n_warmup_steps = warmup};
  if (low > high) return;  // nothing was left to go on
  if (below > -kUnbounded) settings.lower = -roundest(-low, -below);
  if (above < kUnbounded) settings.upper = roundest(high, above);
  if (settings.lower || settings.upper) all.push_back(settings);
}

}  // namespace

PruningTraces pruning_traces(const Study& study) {
  PruningTraces traces;
  const bool maximize = study.directions.front() == Direction::kMaximize;
  std::vector<std::int64_t> lasting;
  std::set<std::int64_t> prune_steps;
  std::optional<Nanos> first_prune;
  for (const Trial& trial : study.trials) {
    const Steps reports = reports_of(study, trial);
    traces.rungs |= !trial.rungs.empty();
    if (reports.empty()) continue;
    traces.from_zero |= reports.front().step == 0;
    if (trial.state == TrialState::kComplete)
      traces.longest = std::max(traces.longest.value_or(0), reports.back().step);
    if (!trial.rungs.empty() && trial.rungs.front().first == 0) {
      const auto at = std::ranges::find(reports, trial.rungs.front().second, &StepReport::value);
      if (at != reports.end()) keep_least(traces.earliest_rung, at->step);
    }
    if (trial.state != TrialState::kPruned) continue;
    ++traces.pruned;
    keep_least(traces.fewest_reports, static_cast<std::int64_t>(reports.size()));
    prune_steps.insert(reports.back().step);
    if (trial.complete) keep_least(first_prune, *trial.complete);
    if (lasting.size() < kLookedAt) lasting.push_back(patience_of(reports, maximize));
  }
  if (first_prune)
    traces.completed_before = std::ranges::count_if(study.trials, [&](const Trial& t) {
      return t.state == TrialState::kComplete && t.complete && *t.complete < *first_prune;
    });
  if (lasting.empty()) return traces;
  traces.earliest_step = *prune_steps.begin();
  for (const std::int64_t step : prune_steps)
    if (prune_steps.size() > 2) traces.stride = std::gcd(traces.stride, step - *traces.earliest_step);
  const auto allowed = static_cast<std::ptrdiff_t>(kOutliers * static_cast<double>(lasting.size()));
  std::ranges::nth_element(lasting, lasting.begin() + allowed);
  if (const std::int64_t patience = lasting[static_cast<std::size_t>(allowed)]; patience >= 0)
    traces.largest_patience = patience;
  return traces;
}

std::vector<PrunerSettings> pruner_candidates(const Study& study, const PruningTraces& traces) {
  std::vector<PrunerSettings> all{{}};
  for (const auto& patience : patiences(traces)) {
    if (traces.rungs) {
      add_halving(all, traces, patience);
      continue;
    }
    if (patience) all.push_back({.patience = patience});
    add_percentiles(all, traces, patience);
  }
  if (traces.rungs) return all;
  add_threshold(all, study, 0);
  if (traces.earliest_step.value_or(0) > 0) add_threshold(all, study, *traces.earliest_step);
  return all;
}

}  // namespace headroom::tune
