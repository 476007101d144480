// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"

// How many tasks a GPU takes: a prediction of the work rate from utilisations, corrected by what is measured, and a
// guard that takes concurrency back where more of it delivered less. Pure; one Packer per GPU.
namespace headroom::scheduler {

// Reported utilisation may sum to so much before the prediction is asked: NVML's figure over-states the kernel time.
inline constexpr double kFreeLoad = 1.5;
// A further task must add so much of the work rate under space sharing, where too many can do less than few,
inline constexpr double kWorthIt = 1.03;
// … or so much where kernels take turns,
inline constexpr double kWorthItByTurns = 1.02;
// … or so much when few wait: a last round that is only partly filled costs more than a little too many now.
inline constexpr double kWorthItLast = 1.005;
inline constexpr int kMaxPerGpu = 32;
inline constexpr double kUnknownLoad = 0.6;

// Work done per time by tasks that share a GPU, in tasks' worth of running alone. `loads` are the utilisations each
// would have alone; `parallelism` is how many tasks' worth of kernels the GPU runs side by side.
[[nodiscard]] std::vector<double> work_speeds(std::span<const double> loads, double parallelism);  // of each, <= 1
[[nodiscard]] double work_rate(std::span<const double> loads, double parallelism);                 // their sum

// What one GPU did between two readings. Tasks in start-up are in none of these.
struct PackObservation {
  Nanos now = 0;
  double seconds = 0;    // it covers
  double work = 0;       // tasks' worth of running alone, measured, times seconds
  double predicted = 0;  // the same, as work_rate() said
  double delivered = 0;  // sum of utilisation alone times speed, times seconds
  double load = 0;       // sum of utilisations
  double counted = 0;    // the same of all tasks on the GPU, start-ups and all, as admits() has it; 0: `load`
  int tasks = 0;
  double task_seconds = 0;  // mean length of its tasks; 0: not known
  bool by_steps = false;    // `work` rests on reported steps, not on utilisation or CPU time
  double host_busy_ratio = 0;
  bool queued = true;  // tasks wait: what the rules would take matters
};

class Packer {
 public:
  // `step_by_step`: beyond kFreeLoad each further task waits until what runs was seen for a while. For space sharing,
  // where too many tasks can deliver far less than few, and it takes their whole length to get rid of them.
  explicit Packer(Nanos decide_every = 5 * kSecond, bool step_by_step = false)
      : decide_every_(decide_every), step_by_step_(step_by_step) {}

  // May a task of utilisation `added` join tasks of `loads`? Says nothing about memory or the host.
  // `gain`: the factor of the work rate that it must bring.
  [[nodiscard]] bool admits(Nanos now, std::span<const double> loads, double added, double gain = kWorthIt) const;
  void observe(const PackObservation& seen);

  [[nodiscard]] double parallelism() const { return parallelism_; }
  [[nodiscard]] std::optional<double> max_load(Nanos now) const;
  [[nodiscard]] int direction_changes() const { return direction_changes_; }
  [[nodiscard]] std::optional<Nanos> held_until(Nanos now) const;

 private:
  struct Bin {
    double delivered = 0;  // weighted seconds times work
    double seconds = 0;    // weighted
    double load = 0;       // weighted seconds times load
    [[nodiscard]] double rate() const { return delivered / seconds; }
  };
  [[nodiscard]] std::size_t bin_of(double load) const;
  [[nodiscard]] std::optional<double> elasticity(double load) const;
  void learn_parallelism();
  void note(const PackObservation& seen);
  [[nodiscard]] std::size_t best_below(std::size_t here) const;
  void guard(const PackObservation& seen);
  void count_direction(const PackObservation& seen);

  [[nodiscard]] bool worth_it(Nanos now, std::span<const double> loads, double added, double gain) const;
  [[nodiscard]] bool may_step(double load, double added) const;

  Nanos decide_every_;
  bool step_by_step_;
  double parallelism_ = 1.0;
  double ratio_ = 1.0;  // measured over predicted, smoothed
  PackObservation window_;
  std::array<Bin, 64> bins_{};             // of load, a quarter each
  double level_ = 0, steady_seconds_ = 0;  // the highest load seen since the last hold, and for how long since
  double max_load_ = 0;
  Nanos hold_until_ = 0, last_held_ = 0;
  int holds_ = 0;
  double usual_load_ = 0;
  int allowed_ = 0, direction_ = 0, direction_changes_ = 0;
};

}  // namespace headroom::scheduler
