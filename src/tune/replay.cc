// SPDX-License-Identifier: Apache-2.0
#include "tune/replay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tune/gpu_share.h"
#include "tune/pruners.h"

namespace headroom::tune {

namespace {

enum class Phase : std::uint8_t { kBetween = 0, kStartup, kStep, kAway, kDone };

struct Worker {
  Phase phase = Phase::kBetween;
  double left = 0;        // seconds of its phase, alone
  std::size_t trial = 0;  // index
  std::size_t reports = 0;
  bool warm = false;  // it has had a trial
};

class Simulation {
 public:
  Simulation(const std::vector<ReplayTrial>& trials, const ReplayMachine& machine, const ReplaySettings& settings,
             Direction direction, const std::string& study_name, double target)
      : trials_(trials),
        machine_(machine),
        settings_(settings),
        target_(target),
        maximize_(direction == Direction::kMaximize),
        pruning_(settings.pruner, direction, study_name),
        asks_(settings.pruner.kind != PrunerKind::kNone || settings.change.has_value()),
        workers_(static_cast<std::size_t>(std::max<std::int64_t>(1, settings.workers))) {
    for (std::size_t k = 0; k <= workers_.size(); ++k) {
      const auto computing = static_cast<std::int64_t>(k);
      busy_.push_back(gpu_busy(computing, machine.kernel_share));
      speed_.push_back(1 / gpu_slow_down(computing, machine.contended));
    }
    outcome_.ends.resize(trials.size());
  }

  ReplayOutcome run() {
    while (ended_ < trials_.size()) happen(advance());
    outcome_.seconds = now_;
    for (const ReplayEnd& end : outcome_.ends)
      outcome_.steady_trials +=
          end.at <= outcome_.steady_seconds ? 1 : (outcome_.steady_seconds - end.begin) / (end.at - end.begin);
    return std::move(outcome_);
  }

 private:
  struct Rates {
    std::size_t starting = 0, computing = 0;
    double startup = 1, step = 1;
  };

  // The time of the step after so many, in first ones.
  [[nodiscard]] static double of_first(std::size_t steps, double growth) {
    if (growth == 1) return 1;
    const auto before = static_cast<double>(steps);
    return std::pow(before + 1, growth) - std::pow(before, growth);
  }

  [[nodiscard]] bool starts(const Worker& worker) const {
    return worker.phase == Phase::kStartup && !trials_[worker.trial].startup_computes;
  }
  [[nodiscard]] bool computes(const Worker& worker) const {
    return worker.phase == Phase::kStep || (worker.phase == Phase::kStartup && !starts(worker));
  }
  [[nodiscard]] double rate(const Rates& r, const Worker& worker) const {
    return starts(worker) ? r.startup : computes(worker) ? r.step : 1;
  }

  [[nodiscard]] Rates rates() const {
    Rates r;
    for (const Worker& worker : workers_) {
      r.starting += starts(worker);
      r.computing += computes(worker);
    }
    const double wanted = static_cast<double>(r.starting) * machine_.startup_cores +
                          static_cast<double>(r.computing) * machine_.step_cores;
    const double host = machine_.cores > 0 && wanted > machine_.cores ? machine_.cores / wanted : 1;
    r.startup = host;
    r.step = std::min(host, speed_[r.computing]);  // whichever of the two is scarcer
    return r;
  }

  // Moves the clock to the next event; the worker that it happens to.
  Worker& advance() {
    const Rates r = rates();
    double seconds = std::numeric_limits<double>::infinity();
    Worker* next = &workers_.front();
    for (Worker& worker : workers_) {
      if (worker.phase == Phase::kAway || worker.phase == Phase::kDone) continue;
      const double needed = worker.left / rate(r, worker);
      if (needed < seconds) {
        seconds = needed;
        next = &worker;
      }
    }
    for (Worker& worker : workers_) worker.left -= seconds * rate(r, worker);
    next->left = 0;
    now_ += seconds;
    account(r, seconds);
    return *next;
  }

  void account(const Rates& r, double seconds) {
    const std::size_t idle = workers_.size() - r.starting - r.computing;
    outcome_.startup_seconds += static_cast<double>(r.starting) * seconds;
    outcome_.step_seconds += static_cast<double>(r.computing) * seconds;
    outcome_.idle_seconds += static_cast<double>(idle) * seconds;
    outcome_.any_kernel += busy_[r.computing] * seconds;
  }

  void happen(Worker& worker) {
    switch (worker.phase) {
      case Phase::kBetween:
        return begin(worker);
      case Phase::kStartup:
        return step(worker);
      case Phase::kStep:
        return report(worker);
      case Phase::kAway:
      case Phase::kDone:
        return;
    }
  }

  // Whether so many others have trials that this one was not there.
  [[nodiscard]] bool missing(const Worker& worker) const {
    if (settings_.present.empty()) return false;
    const auto others = std::count_if(workers_.begin(), workers_.end(), [&](const Worker& other) {
      return &other != &worker && (other.phase == Phase::kStartup || other.phase == Phase::kStep);
    });
    return others >= settings_.present[begun_];
  }

  // Those that are there by now.
  void call_back() {
    if (settings_.present.empty() || begun_ == trials_.size()) return;
    auto there = std::count_if(workers_.begin(), workers_.end(), [](const Worker& worker) {
      return worker.phase != Phase::kAway && worker.phase != Phase::kDone;
    });
    for (Worker& worker : workers_) {
      if (worker.phase != Phase::kAway || there >= settings_.present[begun_]) continue;
      worker.phase = Phase::kBetween;
      worker.left = 0;
      ++there;
    }
  }

  void begin(Worker& worker) {
    if (begun_ == trials_.size()) {
      worker.phase = Phase::kDone;
      return;
    }
    if (missing(worker)) {
      worker.phase = Phase::kAway;
      return;
    }
    if (settings_.change && settings_.change->first == begun_) pruning_.change(settings_.change->second);
    worker.trial = begun_++;
    worker.reports = 0;
    worker.phase = Phase::kStartup;
    const ReplayTrial& trial = trials_[worker.trial];
    worker.left = trial.startup * settings_.startup_factor;
    if (worker.warm && settings_.warm_startup) worker.left = std::min(worker.left, *settings_.warm_startup);
    worker.left += trial.stall;
    worker.warm = true;
    if (asks_) pruning_.begin(trial.number);
    call_back();
    outcome_.steady_seconds = now_;
    outcome_.steady_any_kernel = outcome_.any_kernel;
    outcome_.ends[worker.trial].begin = now_;
  }

  void step(Worker& worker) {
    const ReplayTrial& trial = trials_[worker.trial];
    if (worker.reports == trial.curve.size()) return end(worker, trial.ends);
    worker.phase = Phase::kStep;
    worker.left = trial.step * of_first(worker.reports, trial.growth);
  }

  void report(Worker& worker) {
    const ReplayTrial& trial = trials_[worker.trial];
    const StepReport& made = trial.curve[worker.reports++];
    const bool last = worker.reports == trial.curve.size();
    if (asks_) {
      const bool prune = pruning_.report(trial.number, made.step, made.value);
      if (prune && !(last && trial.value)) return end(worker, TrialState::kPruned);
    }
    step(worker);
  }

  void end(Worker& worker, TrialState state) {
    const ReplayTrial& trial = trials_[worker.trial];
    if (asks_) pruning_.end(trial.number, state);
    ReplayEnd& made = outcome_.ends[worker.trial];
    made = {.state = state, .reports = worker.reports, .begin = made.begin, .at = now_};
    ++outcome_.states[static_cast<std::size_t>(state)];
    if (state == TrialState::kComplete && trial.value && !outcome_.best_at &&
        (maximize_ ? *trial.value >= target_ : *trial.value <= target_)) {
      outcome_.best_at = now_;
    }
    ++ended_;
    worker.phase = Phase::kBetween;
    worker.left = settings_.between;
  }

  const std::vector<ReplayTrial>& trials_;
  const ReplayMachine& machine_;
  const ReplaySettings& settings_;
  double target_;
  bool maximize_;
  Pruning pruning_;
  bool asks_;
  std::vector<Worker> workers_;
  std::vector<double> busy_, speed_;  // by how many trials compute
  std::size_t begun_ = 0, ended_ = 0;
  double now_ = 0;
  ReplayOutcome outcome_;
};

}  // namespace

ReplayOutcome replay(const std::vector<ReplayTrial>& trials, const ReplayMachine& machine,
                     const ReplaySettings& settings, Direction direction, const std::string& study_name,
                     double target) {
  return Simulation(trials, machine, settings, direction, study_name, target).run();
}

}  // namespace headroom::tune
