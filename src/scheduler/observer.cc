// SPDX-License-Identifier: Apache-2.0
#include "scheduler/observer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headroom::scheduler {

namespace {

constexpr double kProgressCores = 0.005;  // less CPU than this is none: a sleeping process still wakes now and then
constexpr double kProgressUtil = 0.005;
constexpr Nanos kSamplesForHang = 3;                 // at least so many without progress
constexpr double kWindow = 5.0, kAloneWindow = 1.0;  // seconds
constexpr double kEnoughSteps = 8;                   // to tell how long one takes
constexpr int kStillLooks = 3;
constexpr double kMeasurable = 3.0;  // seconds with a GPU to itself that tell a task's speed alone

// Work done between two readings in tasks' worth of running alone; absent when nothing tells.
std::optional<double> measured_work(const AttemptReading& reading, const GroupStats& stats, double dt,
                                    std::optional<double> steps, bool space_sharing) {
  if (steps && stats.seconds_per_step()) return *steps * *stats.seconds_per_step();
  // Beside others kernels stretch under space sharing: CPU time tells more than utilisation does.
  if (space_sharing && reading.cores && stats.cores_known() && stats.cores() > 0.05)
    return *reading.cores * dt / stats.cores();
  if (!space_sharing && reading.gpu_util_ratio && stats.util_known())
    return *reading.gpu_util_ratio * dt / stats.util();
  return std::nullopt;
}

// What it would use if nobody kept it waiting for a core: on a host that is full it gets less, and takes longer for the
// same. More than one that waits at once may be as many threads.
std::optional<double> wanted(const AttemptReading& reading) {
  if (!reading.cores || !reading.cores_wanted) return reading.cores;
  const double waits = *reading.cores_wanted - *reading.cores;
  return waits < 1 ? std::min(*reading.cores_wanted, *reading.cores / (1 - waits)) : *reading.cores_wanted;
}

// Beside others what is not measured is not known, only expected.
void take_work(RunningAttempt& attempt, std::optional<double> measured, bool by_steps, double expected) {
  attempt.work.work_seconds = measured.value_or(expected);
  attempt.work.all_measured = attempt.work.all_measured && (measured || !attempt.had_company);
  attempt.work.all_counted = attempt.work.all_counted && (by_steps || !attempt.had_company);
}

// Its readings alone tell what it does, before there are many: their mean is known to a twentieth.
bool agree(const AttemptWork& work) {
  constexpr int kFewestLooks = 3;
  constexpr double kTold = 0.05, kNothing = 0.01;
  const auto& [count, sum, squares] = work.alone_utils;
  if (count < kFewestLooks || sum < kNothing * count) return false;
  const double mean = sum / count, variance = std::max(0.0, squares / count - mean * mean) * count / (count - 1);
  return std::sqrt(variance / count) <= kTold * mean;
}

// A reading of a task that had its GPU to itself for this time.
void learn_alone(AttemptWork& work, GroupStats& learned, const AttemptReading& reading, double dt) {
  const bool before = work.alone_seconds >= kMeasurable;
  work.alone_seconds += dt;
  if (reading.gpu_util_ratio) {
    auto& [count, sum, squares] = work.alone_utils;
    ++count, sum += *reading.gpu_util_ratio, squares += *reading.gpu_util_ratio * *reading.gpu_util_ratio;
    if (agree(work) && (!reading.steps || learned.seconds_per_step())) learned.seen_alone();
  }
  if (!before && work.alone_seconds >= kMeasurable) learned.ran_alone(), learned.seen_alone();
}

// What it would have been alone: beside others its kernels waited while theirs ran. Others beyond 0.9 tell nothing.
std::optional<double> alone_util(double seen, double others) {
  if (seen <= 0 || others >= 0.9) return std::nullopt;
  const double host_per_kernel = std::max(0.0, 1 / std::min(1.0, seen) - 1 / (1 - std::max(0.0, others)));
  return 1 / (1 + host_per_kernel);
}

// A task of a GPU that was past its start-up all the while between two readings.
struct Stepping {
  RunningAttempt* attempt;
  const GroupStats* stats;
  double dt;
  std::optional<double> work;
  bool by_steps;
};

// Takes the work in; false: of one nothing is known, and the sum would say nothing.
bool sum_up(const std::vector<Stepping>& stepping, double parallelism, PackObservation& seen) {
  std::vector<double> utils;
  for (const Stepping& task : stepping) utils.push_back(task.stats->util());
  const std::vector<double> speeds = work_speeds(utils, parallelism);
  // As Machine::alone_time() has it: of what nothing is known, company is not held to slow it.
  for (std::size_t i = 0; i < stepping.size(); ++i)
    take_work(*stepping[i].attempt, stepping[i].work, stepping[i].by_steps,
              (stepping[i].stats->util_known() ? speeds[i] : 1.0) * stepping[i].dt);
  seen.by_steps = true;
  for (std::size_t i = 0; i < stepping.size(); ++i) {
    const Stepping& task = stepping[i];
    if (!task.work) return false;
    seen.work += *task.work;
    seen.predicted += speeds[i] * task.dt;
    seen.delivered += utils[i] * *task.work;
    seen.load += utils[i];
    seen.by_steps = seen.by_steps && task.by_steps;
    seen.task_seconds = std::max(seen.task_seconds, task.stats->duration_seconds().value_or(0));
  }
  seen.tasks = static_cast<int>(stepping.size());
  return true;
}

}  // namespace

void Observer::take(const Readings& event, bool queued) {
  for (const GpuReading& reading : event.gpus) read_gpu(reading);
  if (event.host_available_bytes) machine_.host_available(*event.host_available_bytes);
  double cores = 0;
  for (const AttemptReading& reading : event.attempts) cores += reading.cores.value_or(0);
  const double host_busy_ratio = cores / std::max(1.0, setup_.host.cores);
  ById by_id;
  for (const AttemptReading& reading : event.attempts) by_id.emplace(reading.attempt, &reading);
  for (GpuIndex gpu = 0; gpu < machine_.gpu_count(); ++gpu)
    observe_gpu(machine_.gpu(gpu), by_id, host_busy_ratio, queued);
  for (const AttemptReading& reading : event.attempts) read_attempt(reading);
}

void Observer::read_gpu(const GpuReading& reading) {
  if (!machine_.has(reading.gpu)) return;
  Gpu& gpu = machine_.gpu(reading.gpu);
  if (reading.others_bytes) gpu.others_bytes = *reading.others_bytes;
  gpu.others_compute = reading.others_compute;
  if (reading.others_compute) gpu.tenant_seen = machine_.now();
}

// Compares what the tasks of a GPU did since the last reading with what was predicted of them. Only tasks that were
// past their start-up all the while count, so that turnover is not taken for a change of speed.
void Observer::observe_gpu(Gpu& gpu, const ById& readings, double host_busy_ratio, bool queued) {
  std::vector<Stepping> stepping;
  PackObservation seen{.now = machine_.now(), .host_busy_ratio = host_busy_ratio, .queued = queued};
  gpu.kernels_ratio = 0;
  for (const AttemptId id : gpu.running) {
    RunningAttempt& attempt = *machine_.find(id);
    seen.counted += machine_.stats(attempt).load();
    const auto found = readings.find(id);
    if (found != readings.end()) gpu.kernels_ratio += found->second->gpu_util_ratio.value_or(0);
    if (found == readings.end() || !attempt.seen || attempt.in_startup || found->second->in_startup) continue;
    const AttemptReading& reading = *found->second;
    const GroupStats& of = machine_.stats(attempt);
    const double dt = seconds(machine_.now() - attempt.last_reading);
    std::optional<double> steps;
    if (reading.steps && attempt.work.steps) steps = *reading.steps - *attempt.work.steps;
    const bool by_steps = steps && of.seconds_per_step();
    stepping.push_back({&attempt, &of, dt, measured_work(reading, of, dt, steps, setup_.space_sharing), by_steps});
    seen.seconds = std::max(seen.seconds, dt);
  }
  if (!stepping.empty() && sum_up(stepping, gpu.packer.parallelism(), seen)) gpu.packer.observe(seen);
}

// Single readings are coarse: steps come in whole ones, utilisation in bursts. A window of a few seconds is shown.
void Observer::learn_speed(RunningAttempt& attempt, GroupStats& learned, const AttemptReading& reading, double dt,
                           std::optional<double> steps) {
  const Gpu* gpu = attempt.gpus.empty() ? nullptr : &machine_.gpu(attempt.gpus.front());
  const bool alone = gpu != nullptr && gpu->running.size() == 1 && !gpu->others_compute;
  if (alone) learn_alone(attempt.work, learned, reading, dt);
  auto& window = attempt.work.window;
  window.seconds += dt;
  window.alone = window.alone && alone;
  window.has_gpu = reading.gpu_util_ratio.has_value();
  window.has_cpu = wanted(reading).has_value();
  window.gpu += reading.gpu_util_ratio.value_or(0) * dt;
  window.cpu += wanted(reading).value_or(0) * dt;
  window.step_seconds += dt;
  window.steps += steps.value_or(0);
  window.steps_alone = window.steps_alone && alone;
  // Alone is rare and true: every reading is taken, and averaged.
  if (window.seconds >= (alone && window.alone ? kAloneWindow : kWindow)) {
    GroupStats::Seen seen{.seconds = window.seconds, .alone = window.alone, .space_sharing = setup_.space_sharing};
    if (window.has_gpu) seen.gpu_util_ratio = window.gpu / window.seconds;
    if (window.has_cpu) seen.cores = window.cpu / window.seconds;
    learned.see(seen);
    window.seconds = window.gpu = window.cpu = 0;
    window.alone = true;
  }
  if (window.steps >= kEnoughSteps && window.step_seconds >= kAloneWindow) {
    learned.see_steps(window.step_seconds, window.steps, window.steps_alone);
    window.steps = window.step_seconds = 0;
    window.steps_alone = true;
  }
}

// Time without samples, because Headroom or the machine was stopped, is no sign of a hang: a gap counts for a part of
// the timeout at most. Where nothing can be read at all, nothing is known.
void Observer::note_progress(RunningAttempt& attempt, const AttemptReading& reading, bool moved) const {
  const Nanos now = machine_.now();
  const bool blind = !reading.cores && !reading.gpu_util_ratio && !reading.io_bytes && !reading.steps;
  if (moved || blind) attempt.work.last_progress = now;
  if (const auto& hang = attempt.profile.hang_timeout)
    attempt.work.last_progress += std::max<Nanos>(0, now - attempt.last_reading - *hang / kSamplesForHang);
  attempt.work.last_progress = std::min(attempt.work.last_progress, now);
}

void Observer::learn_memory(RunningAttempt& attempt, GroupStats& learned, const AttemptReading& reading) const {
  const bool still = note_memory(attempt.memory, *reading.gpu_bytes, machine_.now());
  if (reading.in_startup)
    attempt.memory.last_growth = machine_.now(), attempt.memory.still_looks = 0;
  else if (attempt.memory.works_since == 0)
    attempt.memory.works_since = machine_.now();
  else if (!learned.memory_known())
    learned.grows(attempt.memory.peak_bytes, seconds(machine_.now() - attempt.memory.works_since));
  if (attempt.memory.still_looks >= kStillLooks && machine_.now() - attempt.memory.last_growth >= kSecond)
    learned.stood_still();
  if (still && !reading.in_startup && !learned.memory_known()) learned.plateau(attempt.memory.peak_bytes);
  // A task that needs more than its group was thought to: the others will, too.
  if (learned.memory_known() && attempt.memory.peak_bytes > learned.peak_bytes() && learned.peak_bytes() > 0)
    learned.plateau(attempt.memory.peak_bytes);
}

void Observer::read_attempt(const AttemptReading& reading) {
  RunningAttempt* const found = machine_.find(reading.attempt);
  if (found == nullptr) return;
  RunningAttempt& attempt = *found;
  AttemptWork& work = attempt.work;
  const double dt = seconds(machine_.now() - attempt.last_reading);
  GroupStats& learned = learned_.to_learn(attempt.profile.group, machine_.model_of(attempt));
  std::optional<double> steps;
  if (reading.steps) steps = *reading.steps - work.steps.value_or(0);
  const bool stepping = attempt.seen && !attempt.in_startup && !reading.in_startup;  // all the while
  if (!stepping && !reading.in_startup) work.began = machine_.now() - (machine_.now() - attempt.last_reading) / 2;
  if (attempt.gpus.size() <= 1) {
    // Where the first kernel came within this time, half of it is as good a guess as any.
    const double startup = reading.in_startup ? dt : stepping ? 0 : dt / 2;
    learned.see({.seconds = startup, .in_startup = true, .cores = wanted(reading)});
    if (stepping) learn_speed(attempt, learned, reading, dt, steps);
  }
  const bool moved = reading.cores.value_or(0) > kProgressCores || reading.gpu_util_ratio.value_or(0) > kProgressUtil ||
                     (steps && *steps > 0) ||
                     (reading.io_bytes && work.io_bytes && *reading.io_bytes != *work.io_bytes);
  note_progress(attempt, reading, moved);
  if (reading.gpu_bytes) learn_memory(attempt, learned, reading);
  if (reading.host_bytes) {
    attempt.host_now = *reading.host_bytes;
    learned_.host_used(attempt.profile.group, *reading.host_bytes);
  }
  // In start-up and where nothing is known, time passed counts as work done.
  work.done_seconds += std::exchange(work.work_seconds, std::nullopt).value_or(dt);
  if (reading.steps) work.steps = reading.steps;
  if (reading.io_bytes) work.io_bytes = reading.io_bytes;
  attempt.in_startup = reading.in_startup;
  attempt.seen = true;
  attempt.last_reading = machine_.now();
}

void Observer::ended(const RunningAttempt& attempt, const AttemptEnded& event, AttemptOutcome outcome,
                     const AloneTime& alone) {
  std::optional<std::int64_t> peak = event.peak_gpu_bytes;
  if (attempt.memory.peak_bytes > 0) peak = std::max(peak.value_or(0), attempt.memory.peak_bytes);
  GroupStats& learned = learned_.to_learn(attempt.profile.group, machine_.model_of(attempt));
  if (outcome == AttemptOutcome::kGpuOutOfMemory) learned.ran_out(peak);
  if (outcome != AttemptOutcome::kSucceeded && !attempt.had_company) learned.failed_alone();
  if (outcome != AttemptOutcome::kSucceeded) return;
  learned.finished(seconds(machine_.now() - attempt.start), peak);
  if (attempt.gpus.size() == 1) learn_length(attempt, learned, alone, event.took_alone);
  learn_from_whole(attempt, learned, event);
  if (event.peak_host_bytes) learned_.host_used(attempt.profile.group, *event.peak_host_bytes);
}

// Of a task on one GPU: how long it ran, and how long that would have been alone.
void Observer::learn_length(const RunningAttempt& attempt, GroupStats& learned, const AloneTime& alone,
                            std::optional<Nanos> took_alone) const {
  const Nanos now = machine_.now();
  if (attempt.seen) {
    const Nanos middle = attempt.last_reading + (now - attempt.last_reading) / 2;
    const Nanos began = attempt.work.began > 0 ? attempt.work.began : middle;
    learned.lived(seconds(began - attempt.start), seconds(now - attempt.start));
  }
  if (!attempt.had_company && attempt.work.alone_seconds < kMeasurable) learned.ran_alone();
  if (alone.measured && (!attempt.had_company || learned.speed_seen_here())) learned.measured(alone.done_seconds);
  if (alone.whole)
    learned.took_alone(alone.done_seconds);
  else if (alone.counted && learned.speed_seen_here())
    learned.counted_alone(alone.done_seconds);
  else if (took_alone)
    learned.took_alone_before(seconds(*took_alone));
}

// A short task leaves no whole window of readings: what it used in all its life tells instead.
void Observer::learn_from_whole(const RunningAttempt& attempt, GroupStats& learned, const AttemptEnded& event) const {
  const Nanos now = machine_.now();
  if (!attempt.seen && event.startup) learned.lived(seconds(*event.startup), seconds(now - attempt.start));
  if (event.cpu_time)
    learned.used_cpu(seconds(*event.cpu_time), seconds(now - attempt.start),
                     seconds(attempt.work.began > 0 ? attempt.work.began - attempt.start : event.startup.value_or(0)),
                     !attempt.had_company);
  if (attempt.seen) return learn_from_glimpse(attempt, learned, event);
  const double stepping = seconds(now - attempt.start - event.startup.value_or(0));
  if (event.gpu_time && stepping > 0)
    learned.see({.seconds = stepping,
                 .alone = !attempt.had_company,
                 .space_sharing = setup_.space_sharing,
                 .gpu_util_ratio = seconds(*event.gpu_time) / stepping});
}

// What a task was seen at work for that ended before a whole window of readings was full: since the middle of the time
// in which its first kernel came, if no two looks found it at work.
void Observer::learn_from_glimpse(const RunningAttempt& attempt, GroupStats& learned, const AttemptEnded& event) const {
  const AttemptWork& work = attempt.work;
  if (attempt.gpus.size() != 1 || !learned.only_glimpsed()) return;
  double worked = work.window.has_gpu ? work.window.seconds : 0, kernels = work.window.gpu;
  if (worked > 0 && work.window.alone)
    return learned.see({.seconds = worked, .alone = true, .gpu_util_ratio = kernels / worked});
  if (worked <= 0 && event.gpu_time && work.began > 0)
    worked = seconds(attempt.last_reading - work.began), kernels = seconds(*event.gpu_time);
  const Gpu& gpu = machine_.gpu(attempt.gpus.front());
  if (worked <= 0 || gpu.others_compute) return;
  const double ratio = std::min(1.0, kernels / worked);
  // Where kernels run side by side they hardly wait for each other.
  const double others = attempt.had_company && !setup_.space_sharing ? gpu.kernels_ratio - ratio : 0;
  if (const auto alone = alone_util(ratio, others)) learned.glimpsed(*alone, worked);
}

}  // namespace headroom::scheduler
