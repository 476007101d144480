// SPDX-License-Identifier: Apache-2.0
#include "tune/pruners.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tune/halving.h"
#include "tune/step_values.h"

namespace headroom::tune {

namespace {

struct Reported {
  std::int64_t step = 0;
  double value = 0;
  double best = 0;  // of this report and all before; NaN only where all are
};

struct TrialSoFar {
  std::vector<Reported> reports;
  RungValues rungs;
  TrialState state = TrialState::kRunning;
};

bool uses_step_values(const PrunerSettings& settings) {
  return settings.kind == PrunerKind::kMedian || settings.kind == PrunerKind::kPercentile;
}

// Whether no other report of the trial lies since the last step at which one is due: a check is held at the first
// report at or after it. The first due step is the end of the warm-up.
bool is_first_of_interval(const PrunerSettings& settings, const std::vector<Reported>& reports) {
  const std::int64_t step = reports.back().step;
  if (step < settings.n_warmup_steps) return false;
  const std::int64_t due = step - (step - settings.n_warmup_steps) % settings.interval_steps;
  return reports.size() < 2 || reports[reports.size() - 2].step < due;
}

}  // namespace

struct Pruning::State {
  PrunerSettings settings;
  Direction direction;
  std::string study_name;
  Halving halving;
  StepValues step_values;  // of the completed trials, for Median and Percentile
  std::unordered_map<std::int64_t, TrialSoFar> trials;
  std::int64_t completed = 0;
  std::optional<std::int64_t> longest;  // the latest last step of completed trials

  // The better of two; a NaN is worse than anything.
  [[nodiscard]] double best(double a, double b) const {
    return direction == Direction::kMaximize ? std::fmax(a, b) : std::fmin(a, b);
  }
  [[nodiscard]] bool worse(double a, double b) const { return direction == Direction::kMaximize ? a < b : a > b; }

  [[nodiscard]] bool stagnates(const std::vector<Reported>& reports) const;
  [[nodiscard]] bool below_percentile(const std::vector<Reported>& reports) const;
  [[nodiscard]] bool out_of_bounds(const std::vector<Reported>& reports) const;
  [[nodiscard]] bool prunes(std::int64_t number, TrialSoFar& trial);
  void add_step_values(const TrialSoFar& trial);
};

// PatientPruner: nothing in the last patience + 1 reports reaches the best one before them.
bool Pruning::State::stagnates(const std::vector<Reported>& reports) const {
  const auto patience = static_cast<std::uint64_t>(*settings.patience);
  if (reports.size() < 2 || reports.size() - 2 < patience) return false;
  const auto recent = reports.end() - 1 - *settings.patience;
  double best_recent = std::numeric_limits<double>::quiet_NaN();
  for (auto r = recent; r != reports.end(); ++r) best_recent = best(best_recent, r->value);
  const double slack = direction == Direction::kMaximize ? -settings.min_delta : settings.min_delta;
  return worse(best_recent, (recent - 1)->best + slack);
}

bool Pruning::State::below_percentile(const std::vector<Reported>& reports) const {
  if (completed == 0 || completed < settings.n_startup_trials) return false;
  if (!is_first_of_interval(settings, reports)) return false;
  if (std::isnan(reports.back().best)) return true;
  const double kept = settings.kind == PrunerKind::kMedian ? 50 : settings.percentile;
  const double bar = step_values.percentile(reports.back().step, direction == Direction::kMaximize ? 100 - kept : kept,
                                            settings.n_min_trials);
  return worse(reports.back().best, bar);
}

bool Pruning::State::out_of_bounds(const std::vector<Reported>& reports) const {
  if (!is_first_of_interval(settings, reports)) return false;
  const double value = reports.back().value;
  return std::isnan(value) || (settings.lower && value < *settings.lower) ||
         (settings.upper && value > *settings.upper);
}

bool Pruning::State::prunes(std::int64_t number, TrialSoFar& trial) {
  if (settings.patience && !stagnates(trial.reports)) return false;
  switch (settings.kind) {
    case PrunerKind::kNone:
      return settings.patience.has_value();
    case PrunerKind::kMedian:
    case PrunerKind::kPercentile:
      return below_percentile(trial.reports);
    case PrunerKind::kThreshold:
      return out_of_bounds(trial.reports);
    case PrunerKind::kSuccessiveHalving:
    case PrunerKind::kHyperband:
      break;
  }
  const auto each_trial = [this](auto&& enter) {
    for (auto& [n, t] : trials) enter(n, t.rungs);
  };
  const Reported& last = trial.reports.back();
  return halving.ready(longest, each_trial) && halving.prunes(number, trial.rungs, last.step, last.value);
}

void Pruning::State::add_step_values(const TrialSoFar& trial) {
  for (const Reported& r : trial.reports) step_values.add(r.step, r.value);
}

Pruning::Pruning(const PrunerSettings& settings, Direction direction, std::string study_name)
    : state_(new State{.settings = {},
                       .direction = direction,
                       .study_name = std::move(study_name),
                       .halving = {settings, direction, ""},
                       .step_values = {},
                       .trials = {},
                       .longest = {}}) {
  change(settings);
}
Pruning::Pruning(Pruning&&) noexcept = default;
Pruning& Pruning::operator=(Pruning&&) noexcept = default;
Pruning::~Pruning() = default;

void Pruning::begin(std::int64_t trial) { state_->trials.try_emplace(trial); }

bool Pruning::report(std::int64_t trial, std::int64_t step, double value) {
  TrialSoFar& so_far = state_->trials[trial];
  const double best = so_far.reports.empty() ? value : state_->best(so_far.reports.back().best, value);
  so_far.reports.push_back({step, value, best});
  return state_->prunes(trial, so_far);
}

void Pruning::end(std::int64_t trial, TrialState state) {
  TrialSoFar& so_far = state_->trials[trial];
  so_far.state = state;
  if (state != TrialState::kComplete) {
    so_far.reports = {};  // only its values at rungs count from now on
    return;
  }
  ++state_->completed;
  if (so_far.reports.empty()) return;
  state_->longest = std::max(state_->longest.value_or(0), so_far.reports.back().step);
  if (uses_step_values(state_->settings)) state_->add_step_values(so_far);
}

std::span<const double> Pruning::rungs(std::int64_t trial) const {
  const auto found = state_->trials.find(trial);
  return found == state_->trials.end() ? std::span<const double>{} : found->second.rungs.values;
}

void Pruning::change(const PrunerSettings& settings) {
  HR_CHECK(settings.reduction_factor >= 2 && settings.interval_steps >= 1 && settings.patience.value_or(0) >= 0 &&
               settings.min_resource.value_or(1) >= 1,
           "settings as parse_pruner() gives them");
  state_->settings = settings;
  state_->halving = Halving(settings, state_->direction, state_->study_name);
  for (auto& [number, trial] : state_->trials) trial.rungs.bracket.reset();
  state_->step_values = {};
  if (!uses_step_values(settings)) return;
  for (const auto& [number, trial] : state_->trials)
    if (trial.state == TrialState::kComplete) state_->add_step_values(trial);
}

std::optional<int> hyperband_bracket(const PrunerSettings& settings, const std::string& study_name, std::int64_t trial,
                                     std::int64_t longest) {
  const std::int64_t max_resource = settings.max_resource.value_or(longest);
  if (max_resource < 1) return std::nullopt;
  const Brackets brackets(settings.min_resource.value_or(1), max_resource, settings.reduction_factor, study_name);
  if (brackets.budgets.empty()) return std::nullopt;
  return brackets.of(trial);
}

}  // namespace headroom::tune
