// SPDX-License-Identifier: Apache-2.0
#include "scheduler/learned.h"

#include <algorithm>
#include <cmath>

#include "scheduler/packing.h"
#include "scheduler/setup.h"

namespace headroom::scheduler {

namespace {

constexpr double kReadingSeconds = 5.0;  // the weights below are per so many seconds
constexpr double kAlone = 0.1, kFast = 0.05;
constexpr double kSlow = 0.00001;  // every task that runs adds its bit, and all of them err in this direction
constexpr double kMarginLeast = 0.03, kMarginFirst = 0.15;
constexpr double kBoost = 1.3, kMostBoost = 4.0;
constexpr int kUsualAfter = 3;
constexpr std::int64_t kFewTasks = 10;  // an earlier batch counts for at least so many
constexpr int kBoostedFor = 3;
constexpr double kBelieved = 0.6;      // of the group's usual length, after which a task has shown its peak
constexpr double kMayGrow = 3;         // times what a task has that has not stopped growing
constexpr double kShownMargin = 1.03;  // on what it has shown

double weight(double per_reading, double seconds) {
  return 1.0 - std::pow(1.0 - per_reading, seconds / kReadingSeconds);
}

void move(std::optional<double>& value, double reading, double by) {
  value = value ? *value + by * (reading - *value) : reading;
}

// Beside others a reading misleads in one direction: it moves the value fast in the other one only.
enum class Trust { kHigher, kLower };
void learn(std::optional<double>& value, int& n, double reading, const GroupStats::Seen& seen, Trust trust) {
  if (seen.alone) {
    ++n;
    move(value, reading, std::max(weight(kAlone, seen.seconds), 1.0 / n));
    return;
  }
  const bool up = !value || reading > *value;
  move(value, reading, weight(up == (trust == Trust::kHigher) ? kFast : kSlow, seen.seconds));
}

}  // namespace

void GroupStats::see(const Seen& seen) {
  if (seen.seconds <= 0) return;
  if (seen.in_startup) {
    if (seen.cores) startup_cpu_seconds_ += *seen.cores * seen.seconds, startup_measured_seconds_ += seen.seconds;
    return;
  }
  if (seen.gpu_util_ratio) {
    if (!util_ && !seen.alone) util_ = kUnknownLoad;
    only_glimpsed_ = false;
    learn(util_, util_n_, std::clamp(*seen.gpu_util_ratio, 0.0, 1.0), seen,
          seen.space_sharing ? Trust::kLower : Trust::kHigher);
  }
  if (seen.cores) learn(cores_, cores_n_, *seen.cores, seen, Trust::kHigher);
}

void GroupStats::glimpsed(double gpu_util_ratio, double seconds) {
  if (seconds <= 0 || !only_glimpsed_) return;
  glimpsed_kernels_ += std::clamp(gpu_util_ratio, 0.0, 1.0) * seconds;
  glimpsed_seconds_ += seconds;
  const double guess_seconds = duration_.value_or(seconds);
  util_ = (glimpsed_kernels_ + kUnknownLoad * guess_seconds) / (glimpsed_seconds_ + guess_seconds);
}

void GroupStats::see_steps(double seconds, double steps, bool alone) {
  if (steps <= 0 || (!seconds_per_step_ && !alone)) return;
  learn(seconds_per_step_, step_n_, seconds / steps, {.seconds = seconds, .alone = alone}, Trust::kLower);
}

void GroupStats::finished(double seconds, std::optional<std::int64_t> peak_bytes) {
  ++finished_;
  const double less = seconds < usual_seconds_ ? 0.3 : 0.1;
  usual_seconds_ = finished_here_++ == 0 ? seconds : usual_seconds_ + less * (seconds - usual_seconds_);
  if (!duration_)
    duration_ = seconds;
  else
    *duration_ += (seconds < *duration_ ? 0.3 : 0.1) * (seconds - *duration_);
  if (boosted_for_ > 0 && --boosted_for_ == 0) boost_ = 1.0;
  if (peak_bytes && *peak_bytes > 0)
    peak_ = std::max(peak_, *peak_bytes);
  else
    ++unseen_;
}

void GroupStats::used_cpu(double cpu_seconds, double seconds, double startup_seconds, bool alone) {
  constexpr double kShortest = 0.1;  // seconds: as exact as start-up is seen
  learn(whole_cores_, whole_cores_n_, cpu_seconds / std::max(kShortest, seconds),
        {.seconds = kReadingSeconds, .alone = alone}, Trust::kHigher);
  if (!cores_) cores_ = cpu_seconds / std::max(kShortest, seconds);
  // Of one whose first kernel nobody saw all of its life may have been start-up.
  const double until = startup_seconds > 0 ? startup_seconds : seconds;
  startup_cores_ = std::min(1.0, std::max(startup_cores_.value_or(0), cpu_seconds / std::max(kShortest, until)));
}

void GroupStats::plateau(std::int64_t bytes) { peak_ = std::max(peak_, bytes); }

void GroupStats::grows(std::int64_t bytes, double worked_seconds) {
  growing_bytes_ = std::max(growing_bytes_, bytes);
  growing_seconds_ = std::max(growing_seconds_, worked_seconds);
}

void GroupStats::ran_out(std::optional<std::int64_t> peak_bytes) {
  if (peak_bytes) peak_ = std::max(peak_, *peak_bytes);
  boost_ = std::min(kMostBoost, boost_ * kBoost);
  boosted_for_ = kBoostedFor;
}

double GroupStats::util() const { return std::max(0.01, util_.value_or(kUnknownLoad)); }

double GroupStats::load() const {
  const double startup = seen_seconds_ > 0 ? startup_seconds_ / seen_seconds_ : 0.0;
  return std::clamp(util() * (1.0 - startup), 0.005, 1.0);
}

std::optional<double> GroupStats::usual_seconds() const {
  return finished_here_ >= kUsualAfter ? std::optional(usual_seconds_) : std::nullopt;
}

std::optional<double> GroupStats::alone_duration_seconds() const {
  if (measured_ > 0 && (alone_attempts_ > 0 || recalled_)) return measured_seconds_ / static_cast<double>(measured_);
  return recalled_duration_;
}

GroupStats::Alone GroupStats::all_alone() const {
  constexpr double kRunToRun = 0.05, kCounted = 0.1;  // start-ups beside others are longer than alone
  constexpr double kAssumedScatter = 0.1, kDeviations = 2;
  Alone all{.known = whole_alone_ + counted_ + alone_before_, .from_history = alone_before_};
  const double clocked = whole_alone_seconds_ + alone_before_seconds_;
  all.seconds = clocked + counted_seconds_;
  all.error_seconds = kRunToRun * clocked + kCounted * counted_seconds_;
  if (whole_alone_ >= kSpeakForOthers) {
    const double n = static_cast<double>(whole_alone_), mean = whole_alone_seconds_ / n;
    // Before there is a spread, one is assumed: it counts like one task.
    const double squares = std::max(0.0, whole_alone_squares_ - n * mean * mean) + std::pow(kAssumedScatter * mean, 2);
    all.assumed = finished_here_ - all.known;
    const double assumed = static_cast<double>(all.assumed);
    all.seconds += assumed * mean;
    all.error_seconds += assumed * (kRunToRun * mean + kDeviations * std::sqrt(squares) / n);
  }
  const double tasks = static_cast<double>(all.known + all.assumed);
  if (util_ && all.seconds > 0 && (util_n_ > 0 || recalled_))
    all.busy_ratio = *util_ * std::max(0.0, 1 - startup_seconds().value_or(0) * tasks / all.seconds);
  return all;
}

double GroupStats::cores() const { return cores_.value_or(1.0); }

std::optional<double> GroupStats::brief_cores() const {
  constexpr double kBrief = 3;  // seconds: six looks, of which two fall into the start-up or the end
  return duration_ && *duration_ < kBrief ? whole_cores_ : std::nullopt;
}

std::optional<double> GroupStats::brief_startup_seconds() const {
  const auto startup = brief_cores() ? startup_seconds() : std::nullopt;
  return startup && *startup <= 0.5 * *duration_ ? startup : std::nullopt;
}

// All that a brief task uses is held to be its start-up's, up to a core: no look tells more, and most of it is.
double GroupStats::cores_of(bool in_startup, double age_seconds) const {
  const auto brief = brief_cores();
  if (!brief) return in_startup ? startup_cores() : cores();
  const auto startup = brief_startup_seconds();
  if (!startup) return *brief;
  const double used = *brief * *duration_, first = std::min(used, *startup);
  if (in_startup && age_seconds < *startup) return first / *startup;
  return *duration_ > *startup ? (used - first) / (*duration_ - *startup) : *brief;
}

double GroupStats::startup_cores() const {
  constexpr double kEnoughSeconds = 1;
  if (startup_measured_seconds_ < kEnoughSeconds) return startup_cores_.value_or(1);
  return std::min(1.0, startup_cpu_seconds_ / startup_measured_seconds_);
}

std::optional<double> GroupStats::startup_seconds() const {
  if (!duration_ || seen_seconds_ <= 0) return std::nullopt;
  return *duration_ * startup_seconds_ / seen_seconds_;
}

std::int64_t GroupStats::expected_bytes(std::int64_t total_bytes) const {
  if (peak_ == 0) {
    // The longer it was seen to take little, the less is kept for a sudden growth.
    const double unknown = kProbeMemory * std::min(1.0, kBeginning / std::max(kBeginning, growing_seconds_));
    return std::max(scaled(total_bytes, unknown * boost_), scaled(growing_bytes_, kMayGrow * boost_));
  }
  const double n = static_cast<double>(std::max<std::int64_t>(1, finished_));
  return scaled(peak_, (1.0 + std::max(kMarginLeast, kMarginFirst / std::sqrt(n))) * boost_);
}

void GroupStats::recall(std::int64_t finished, std::optional<std::int64_t> peak_bytes) {
  finished_ = finished;
  peak_ = peak_bytes.value_or(0);
  if (!peak_bytes) unseen_ = static_cast<int>(std::min<std::int64_t>(finished, kUnseenUntilKnown));
}

void GroupStats::recall_speed(std::optional<double> util, std::optional<double> cores,
                              std::optional<double> startup_seconds, std::optional<double> duration_seconds,
                              std::optional<double> seconds_per_step) {
  util_ = util;
  only_glimpsed_ = !util;
  cores_ = whole_cores_ = cores;
  duration_ = recalled_duration_ = duration_seconds;
  recalled_ = util || seconds_per_step;
  seconds_per_step_ = seconds_per_step;
  if (!startup_seconds || !duration_seconds) return;
  // As many seconds as they rest on: the start-ups of this batch's first tasks, all at once, are not the usual share.
  const double tasks = static_cast<double>(std::max<std::int64_t>(kFewTasks, finished_));
  startup_seconds_ = tasks * *startup_seconds;
  seen_seconds_ = tasks * std::max(*duration_seconds, *startup_seconds);
}

std::int64_t counted_bytes(const RunningMemory& task, const GroupStats& group, std::int64_t total_bytes, Nanos now) {
  if (task.declared) return std::max(task.reserved_bytes, task.peak_bytes);
  const std::int64_t expected = group.expected_bytes(total_bytes);
  if (!group.memory_known())
    return std::max(
        {group.beginning_known() && !task.victim ? 0 : task.reserved_bytes, expected, scaled(task.peak_bytes, 1.5)});
  if (task.victim) return std::max({task.reserved_bytes, expected, task.peak_bytes});
  const auto usual = group.usual_seconds();
  const bool shown = usual && task.now_bytes > 0 && seconds(now - task.start) > kBelieved * *usual;
  return shown ? scaled(task.peak_bytes, kShownMargin) : std::max(expected, task.peak_bytes);
}

bool note_memory(RunningMemory& task, std::int64_t bytes, Nanos now) {
  task.now_bytes = bytes;
  // Against what it had when it last grew, so that many small steps are seen as growth.
  ++task.still_looks;
  if (bytes > scaled(task.grown_bytes, 1.02)) task.grown_bytes = bytes, task.last_growth = now, task.still_looks = 0;
  task.peak_bytes = std::max(task.peak_bytes, bytes);
  const Nanos quiet = std::max(5 * kSecond, (now - task.start) / 4);
  return task.peak_bytes > 0 && now - task.last_growth >= quiet;
}

Learned::Learned(std::span<const GroupHistory> history) {
  const auto in_seconds = [](std::optional<Nanos> ns) { return ns ? std::optional(seconds(*ns)) : std::nullopt; };
  for (const GroupHistory& past : history) {
    GroupStats& known = to_learn(past.group, past.gpu_model);
    known.recall(past.finished, past.peak_gpu_bytes);
    known.recall_speed(past.gpu_util_ratio, past.cores, in_seconds(past.startup), in_seconds(past.duration),
                       past.seconds_per_step);
  }
}

Learned::Group& Learned::group(GroupIndex index) {
  const auto at = static_cast<std::size_t>(index);
  if (at >= groups_.size()) groups_.resize(at + 1);
  return groups_[at];
}

GroupStats& Learned::to_learn(GroupIndex index, const std::string& gpu_model) {
  auto& all = group(index).stats;
  const auto found = all.find(gpu_model);
  return found != all.end() ? found->second : all[gpu_model];
}

const GroupStats& Learned::stats(GroupIndex index, std::string_view gpu_model) const {
  const auto at = static_cast<std::size_t>(index);
  if (at >= groups_.size()) return nothing_known_;
  const auto found = groups_[at].stats.find(gpu_model);
  return found != groups_[at].stats.end() ? found->second : nothing_known_;
}

void Learned::host_used(GroupIndex index, std::int64_t bytes) {
  std::int64_t& peak = group(index).host_peak_bytes;
  peak = std::max(peak, bytes);
}

std::int64_t Learned::host_peak_bytes(GroupIndex index) const {
  const auto at = static_cast<std::size_t>(index);
  return at < groups_.size() ? groups_[at].host_peak_bytes : 0;
}

std::vector<AloneRate> Learned::alone_rates() const {
  std::map<std::string, AloneRate> by_model;
  for (const Group& group : groups_) {
    for (const auto& [model, stats] : group.stats) {
      const std::int64_t finished = stats.tasks_finished_here();
      if (model.empty() || finished == 0) continue;
      const GroupStats::Alone alone = stats.all_alone();
      const auto [found, first] = by_model.try_emplace(model);
      AloneRate& rate = found->second;
      rate.gpu_model = model;
      rate.tasks += alone.known + alone.assumed;
      rate.assumed_tasks += alone.assumed;
      rate.unmeasured_tasks += finished - alone.known - alone.assumed;
      rate.alone_attempts += stats.alone_attempts();
      rate.from_history = rate.from_history || alone.from_history > 0;
      if (alone.busy_ratio && (first || rate.busy_ratio))
        rate.busy_ratio = (rate.busy_ratio.value_or(0) * rate.alone_seconds + *alone.busy_ratio * alone.seconds) /
                          (rate.alone_seconds + alone.seconds);
      else
        rate.busy_ratio.reset();
      rate.alone_seconds += alone.seconds;
      rate.error_seconds += alone.error_seconds;
    }
  }
  std::vector<AloneRate> all;
  for (auto& [model, rate] : by_model) all.push_back(std::move(rate));
  return all;
}

std::vector<GroupHistory> Learned::histories() const {
  std::vector<GroupHistory> all;
  const auto nanos = [](std::optional<double> s) {
    return s ? std::optional(static_cast<Nanos>(*s * 1e9)) : std::nullopt;
  };
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (const auto& [model, stats] : groups_[i].stats) {
      GroupHistory past{.group = static_cast<GroupIndex>(i), .gpu_model = model};
      past.finished = stats.tasks_finished();
      if (stats.peak_bytes() > 0) past.peak_gpu_bytes = stats.peak_bytes();
      if (stats.util_known()) past.gpu_util_ratio = stats.util();
      if (stats.cores_known()) past.cores = stats.cores();
      past.startup = nanos(stats.startup_seconds());
      past.duration = nanos(stats.alone_duration_seconds());
      past.seconds_per_step = stats.seconds_per_step();
      all.push_back(std::move(past));
    }
  }
  return all;
}

}  // namespace headroom::scheduler
