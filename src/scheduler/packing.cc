// SPDX-License-Identifier: Apache-2.0
#include "scheduler/packing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace headroom::scheduler {

namespace {

constexpr double kBinWidth = 0.25;
constexpr double kForget = 300.0;     // seconds
constexpr double kSeenEnough = 15.0;  // seconds of a bin before it is compared
constexpr double kStepAfter = 20.0;   // seconds at a load before it is raised: the guard has looked at it by then
constexpr double kSameLoad = 0.1;     // a difference that noise makes
constexpr double kLostTooMuch = 0.9;  // of what a lower load delivered
constexpr double kWorseThanSerial = 0.85, kStepBack = 0.75;
constexpr Nanos kHold = 60 * kSecond;       // doubled each time in a row, at most four times
constexpr Nanos kForgiven = 900 * kSecond;  // after a hold ended: the next one is a first again
constexpr double kHoldTasks = 3.0;          // lengths of a task: what a wrong step costs is one length
constexpr int kIterations = 25;
constexpr double kMeasuredGain = 1.02;   // a further task must have been seen to be worth so much …
constexpr double kMeasuredLoss = 0.985;  // … and one that was there before, not to cost so much
// How the measured ratio moves the parallelism. Steps are trusted more, but react to the mix: smaller moves.
constexpr double kBandSteps = 0.1, kPowerSteps = 0.3, kMaxSteps = 8.0;
constexpr double kBandShares = 0.05, kPowerShares = 0.6, kMaxShares = 16.0;
constexpr double kBandUp = 0.03;     // under space sharing, where steps are small and guarded: too few costs more
constexpr double kShortTask = 20.0;  // seconds: shorter ones are measured over three task lengths, however short,
constexpr Nanos kShortestWindow = kSecond;  // … but for two looks at least

double sum(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

// Each task's kernels wait for those of the others that are there when it arrives: a closed queueing network, solved
// by damped substitution of the mean queue lengths.
std::vector<double> work_speeds(std::span<const double> loads, double parallelism) {
  std::vector<double> queue(loads.begin(), loads.end());
  std::vector<double> speeds(loads.size());
  for (int i = 0; i < kIterations; ++i) {
    const double all = sum(queue);
    for (std::size_t k = 0; k < loads.size(); ++k) {
      const double residence = loads[k] * std::max(1.0, (1.0 + all - queue[k]) / parallelism);
      speeds[k] = 1.0 / (1.0 - loads[k] + residence);
      queue[k] = 0.5 * (queue[k] + speeds[k] * residence);
    }
  }
  return speeds;
}

double work_rate(std::span<const double> loads, double parallelism) { return sum(work_speeds(loads, parallelism)); }

bool Packer::admits(Nanos now, std::span<const double> loads, double added, double gain) const {
  return loads.empty() || (may_step(sum(loads), added) && worth_it(now, loads, added, gain));
}

bool Packer::worth_it(Nanos now, std::span<const double> loads, double added, double gain) const {
  if (loads.empty()) return true;
  if (loads.size() >= static_cast<std::size_t>(kMaxPerGpu)) return false;
  const double load = sum(loads) + added;
  if (const auto most = max_load(now); most && load > *most) return false;
  if (load <= kFreeLoad) return true;
  std::vector<double> with(loads.begin(), loads.end());
  with.push_back(added);
  const bool predicted = work_rate(with, parallelism_) >= gain * work_rate(loads, parallelism_);
  if (!step_by_step_) return predicted;
  const bool refill = load <= level_ + kSameLoad;
  if (const auto measured = elasticity(std::min(level_, load)))
    return 1.0 + *measured * added / (load - added) >= (refill ? kMeasuredLoss : kMeasuredGain);
  return predicted || refill;
}

// How much more was delivered for how much more load, as a ratio of relative changes, around this load. Absent where
// that load, or somewhat less, was not seen for long enough.
std::optional<double> Packer::elasticity(double load) const {
  Bin low, high;
  for (const Bin& bin : bins_) {
    if (bin.seconds <= 0) continue;
    const double ratio = bin.load / bin.seconds / load;
    if (ratio < 0.6 || ratio > 1.1) continue;
    Bin& side = ratio < 0.92 ? low : high;
    side.load += bin.load, side.delivered += bin.delivered, side.seconds += bin.seconds;
  }
  if (low.seconds < kSeenEnough || high.seconds < kSeenEnough || low.delivered <= 0) return std::nullopt;
  const double more = (high.load / high.seconds) / (low.load / low.seconds);
  return std::log(high.rate() / low.rate()) / std::log(more);
}

// Beyond the free load: refilling up to what was seen is no step; a step waits until all that runs was seen for long.
bool Packer::may_step(double load, double added) const {
  if (!step_by_step_ || load + added <= std::max(kFreeLoad, level_ + kSameLoad)) return true;
  return load <= level_ + kSameLoad && steady_seconds_ >= kStepAfter;
}

std::size_t Packer::bin_of(double load) const {
  return std::min(bins_.size() - 1, static_cast<std::size_t>(load / kBinWidth));
}

void Packer::observe(const PackObservation& seen) {
  if (seen.seconds <= 0) return;
  guard(seen);
  window_.now = seen.now;
  window_.seconds += seen.seconds;
  window_.work += seen.work;
  window_.predicted += seen.predicted;
  window_.load += seen.load * seen.seconds;
  window_.tasks = std::max(window_.tasks, seen.tasks);
  window_.task_seconds = seen.task_seconds;
  window_.by_steps = seen.by_steps;
  window_.host_busy_ratio = std::max(window_.host_busy_ratio, seen.host_busy_ratio);
  const bool short_tasks = seen.task_seconds > 0 && seen.task_seconds < kShortTask;
  const double enough =
      short_tasks ? std::max(headroom::seconds(std::min(kShortestWindow, decide_every_)), 3 * seen.task_seconds)
                  : headroom::seconds(decide_every_);
  if (window_.seconds < 0.99 * enough) return;
  learn_parallelism();
  count_direction(seen);
  window_ = {};
}

void Packer::learn_parallelism() {
  if (window_.predicted <= 0) return;
  ratio_ += 0.5 * (std::clamp(window_.work / window_.predicted, 0.6, 1.5) - ratio_);
  const double load = window_.load / window_.seconds;
  const bool telling = window_.tasks > 1 && load > 0.7 * parallelism_ && window_.host_busy_ratio < 0.93;
  const bool steps = window_.by_steps;
  const double band = steps ? kBandSteps : kBandShares;
  if (!telling || (ratio_ >= 1.0 - band && ratio_ <= 1.0 + (step_by_step_ ? kBandUp : band))) return;
  parallelism_ = std::clamp(parallelism_ * std::pow(ratio_, steps ? kPowerSteps : kPowerShares), 1.0,
                            steps ? kMaxSteps : kMaxShares);
}

// Takes in what was delivered at this load, and forgets a part of what was before.
void Packer::note(const PackObservation& seen) {
  const double counted = seen.counted > 0 ? seen.counted : seen.load;
  if (counted > level_ + kSameLoad) {
    level_ = counted;
    steady_seconds_ = 0;
  }
  if (seen.load > 0.8 * counted) steady_seconds_ += seen.seconds;
  const double kept = std::exp(-seen.seconds / kForget);
  for (Bin& bin : bins_) {
    bin.delivered *= kept;
    bin.seconds *= kept;
    bin.load *= kept;
  }
  Bin& here = bins_[bin_of(seen.load)];
  here.load += seen.load * seen.seconds;
  here.delivered += seen.delivered;
  here.seconds += seen.seconds;
}

// The bin of a lower load that delivered most; `here` where none was seen for long enough.
std::size_t Packer::best_below(std::size_t here) const {
  std::size_t best = here;
  double most = 0;
  for (std::size_t i = 0; i < here; ++i) {
    if (bins_[i].seconds < kSeenEnough || bins_[i].rate() <= most) continue;
    most = bins_[i].rate();
    best = i;
  }
  return best;
}

// Compares what is delivered at this load with the best that a lower load delivered: the work of kernels, not the
// number of tasks, so that a change of the mix does not look like a change of the rate.
void Packer::guard(const PackObservation& seen) {
  note(seen);
  const std::size_t here = bin_of(seen.load);
  if (seen.load <= kFreeLoad || seen.host_busy_ratio >= 0.97 || bins_[here].seconds < kSeenEnough) return;
  if (max_load(seen.now)) {  // what runs on is not a new finding, and the hold begins when it has ended
    if (seen.load > max_load_) hold_until_ = last_held_ += static_cast<Nanos>(seen.seconds * 1e9);
    return;
  }
  std::size_t best = best_below(here);
  const bool lost = best != here && bins_[here].rate() < kLostTooMuch * bins_[best].rate();
  if (!lost) {
    // Where no lower load was seen: one after the other would do more than side by side.
    const bool worse =
        step_by_step_ && steady_seconds_ >= kSeenEnough && parallelism_ <= 1.0 && ratio_ < kWorseThanSerial;
    if (!worse) return;
    best = bin_of(kStepBack * seen.load);
  }
  if (seen.now - last_held_ > kForgiven) holds_ = 0;
  max_load_ = kBinWidth * static_cast<double>(best + 1);
  const auto shortest = step_by_step_ ? static_cast<Nanos>(kHoldTasks * seen.task_seconds * 1e9) : 0;
  hold_until_ = last_held_ = seen.now + (std::max(kHold, shortest) << std::min(holds_, 4));
  ++holds_;
  level_ = max_load_;
  steady_seconds_ = 0;
}

std::optional<double> Packer::max_load(Nanos now) const {
  return now < hold_until_ ? std::optional(max_load_) : std::nullopt;
}

std::optional<Nanos> Packer::held_until(Nanos now) const {
  return now < hold_until_ ? std::optional(hold_until_) : std::nullopt;
}

// How many tasks of the usual load the rules would take, from what runs, and whether that number turned round.
void Packer::count_direction(const PackObservation& seen) {
  if (!seen.queued || seen.tasks == 0) return;
  const double mean = seen.load / seen.tasks;
  usual_load_ = usual_load_ > 0 ? usual_load_ + 0.1 * (mean - usual_load_) : mean;
  const double counted = seen.counted > 0 ? seen.counted : seen.load;
  std::vector<double> loads(static_cast<std::size_t>(std::max(1.0, std::round(counted / usual_load_))), usual_load_);
  const std::size_t running = loads.size();
  const double gain = step_by_step_ ? kWorthIt : kWorthItByTurns;
  while (worth_it(seen.now, loads, usual_load_, gain)) loads.push_back(usual_load_);
  while (loads.size() <= running && loads.size() > 1 &&
         !worth_it(seen.now, std::span(loads).first(loads.size() - 1), usual_load_, gain))
    loads.pop_back();
  const int allowed = static_cast<int>(loads.size());
  const int direction = allowed > allowed_ ? 1 : allowed < allowed_ ? -1 : 0;
  if (allowed_ != 0 && direction != 0) {
    if (direction_ != 0 && direction != direction_) ++direction_changes_;
    direction_ = direction;
  }
  allowed_ = allowed;
}

}  // namespace headroom::scheduler
