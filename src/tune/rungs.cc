// SPDX-License-Identifier: Apache-2.0
#include "tune/rungs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "tune/pruners.h"

namespace headroom::tune {

namespace {

constexpr double kFarthest = 9e15;  // a step that a double still counts

// Steps of the first trial that completed: "auto" is made of it.
std::int64_t first_complete_length(const Study& study) {
  for (const Trial& trial : study.trials)
    if (trial.state == TrialState::kComplete && trial.reports > 0) return reports_of(study, trial).back().step + 1;
  return 0;
}

std::optional<std::int64_t> nominal_step(const PrunerSettings& pruner, int bracket, int rung) {
  if (!pruner.min_resource) return std::nullopt;
  const bool hyperband = pruner.kind == PrunerKind::kHyperband;
  const auto power = static_cast<double>((hyperband ? bracket : pruner.min_early_stopping_rate) + rung);
  const double step =
      static_cast<double>(*pruner.min_resource) * std::pow(static_cast<double>(pruner.reduction_factor), power);
  return step < kFarthest ? std::optional(static_cast<std::int64_t>(step)) : std::nullopt;
}

// The step at which the trial had the value that its rung keeps; absent where none or several fit.
std::optional<std::int64_t> step_of(const Study& study, const Trial& trial, double value) {
  std::optional<std::int64_t> step;
  for (const StepReport& report : reports_of(study, trial)) {
    if (report.value != value) continue;
    if (step) return std::nullopt;
    step = report.step;
  }
  return step;
}

struct Rung {
  RungFacts facts;
  std::map<std::int64_t, std::int64_t> seen;  // trials, by step
};

}  // namespace

std::vector<RungFacts> rung_facts(const Study& study, const std::optional<PrunerSettings>& pruner) {
  const bool hyperband = pruner && pruner->kind == PrunerKind::kHyperband;
  const bool halving = hyperband || (pruner && pruner->kind == PrunerKind::kSuccessiveHalving);
  const std::int64_t longest = hyperband ? first_complete_length(study) : 0;
  std::map<std::pair<int, int>, Rung> rungs;
  for (const Trial& trial : study.trials) {
    if (trial.rungs.empty()) continue;
    const int bracket = hyperband ? hyperband_bracket(*pruner, study.name, trial.number, longest).value_or(0) : 0;
    for (std::size_t k = 0; k < trial.rungs.size(); ++k) {
      const auto& [number, value] = trial.rungs[k];
      Rung& rung = rungs[{bracket, number}];
      rung.facts.bracket = bracket;
      rung.facts.rung = number;
      ++rung.facts.reached;
      const bool stopped = trial.state == TrialState::kPruned && k + 1 == trial.rungs.size();
      if (!stopped) ++rung.facts.promoted;
      if (const auto step = step_of(study, trial, value)) ++rung.seen[*step];
    }
  }
  std::vector<RungFacts> result;
  for (auto& [key, rung] : rungs) {
    const auto nominal = halving ? nominal_step(*pruner, key.first, key.second) : std::nullopt;
    const auto most = std::max_element(rung.seen.begin(), rung.seen.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const bool clear = most != rung.seen.end() && most->second * 2 > rung.facts.reached;
    rung.facts.step = nominal.value_or(clear ? most->first : 0);
    result.push_back(rung.facts);
  }
  return result;
}

}  // namespace headroom::tune
