// SPDX-License-Identifier: Apache-2.0
// What the planner takes from readings: memory, utilisation, progress, other users.
#include <algorithm>
#include <utility>

#include "scheduler/planner_state.h"

namespace headroom::scheduler {

namespace {

constexpr double kProgressCores = 0.005;  // less CPU than this is none: a sleeping process still wakes now and then
constexpr double kProgressUtil = 0.005;
constexpr Nanos kLooksForHang = 3;                   // at least so many without progress
constexpr double kWindow = 5.0, kAloneWindow = 1.0;  // seconds
constexpr double kEnoughSteps = 8;                   // to tell how long one takes

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

// What it needs is not what it gets on a host that is full.
std::optional<double> wanted(const AttemptReading& reading) {
  return reading.cores_wanted ? reading.cores_wanted : reading.cores;
}

}  // namespace

GroupStats& Planner::State::stats_on(GroupIndex index, GpuIndex gpu) {
  const std::string& model = gpus[static_cast<std::size_t>(gpu)].facts.model;
  auto& all = group(index).stats;
  const auto found = all.find(model);
  return found != all.end() ? found->second : all[model];
}

GroupStats& Planner::State::stats(GroupIndex index, const Running& attempt) {
  return attempt.gpus.empty() ? group(index).stats[""] : stats_on(index, attempt.gpus.front());
}

void Planner::State::read_gpu(const GpuReading& reading) {
  if (reading.gpu < 0 || static_cast<std::size_t>(reading.gpu) >= gpus.size()) return;
  Gpu& gpu = gpus[static_cast<std::size_t>(reading.gpu)];
  if (reading.others_bytes) gpu.others_bytes = *reading.others_bytes;
  gpu.others_compute = reading.others_compute;
  if (reading.others_compute) gpu.tenant_seen = now;
}

void Planner::State::on(const Readings& event) {
  for (const GpuReading& reading : event.gpus) read_gpu(reading);
  if (event.host_available_bytes) host_available = event.host_available_bytes;
  double cores = 0;
  for (const AttemptReading& reading : event.attempts) cores += reading.cores.value_or(0);
  host_busy_ratio = cores / std::max(1.0, setup.host.cores);
  std::map<AttemptId, const AttemptReading*> by_id;
  for (const AttemptReading& reading : event.attempts) by_id.emplace(reading.attempt, &reading);
  for (std::size_t g = 0; g < gpus.size(); ++g) observe_gpu(g, by_id);
  for (const AttemptReading& reading : event.attempts) read_attempt(reading);
}

// Beside others what is not measured is not known, only expected.
void Planner::State::take_work(Running& attempt, std::optional<double> measured, double expected) {
  attempt.work_seconds = measured.value_or(expected);
  attempt.all_told = attempt.all_told && (measured || !attempt.had_company);
}

// Compares what the tasks of a GPU did since the last reading with what was predicted of them. Only tasks that were
// past their start-up all the while count, so that turnover does not look like a change of speed.
void Planner::State::observe_gpu(std::size_t index, const std::map<AttemptId, const AttemptReading*>& readings) {
  Gpu& gpu = gpus[index];
  struct Stepping {
    Running* attempt;
    const GroupStats* stats;
    double dt;
    std::optional<double> work;
    bool by_steps;
  };
  std::vector<Stepping> stepping;
  std::vector<double> utils;
  PackObservation seen{.now = now, .host_busy_ratio = host_busy_ratio, .queued = !queue.empty()};
  for (const AttemptId id : gpu.running) {
    Running& attempt = running.at(id);
    seen.counted += stats(profile(tasks[attempt.task]).group, attempt).load();
    const auto found = readings.find(id);
    if (found == readings.end() || !attempt.seen || attempt.in_startup || found->second->in_startup) continue;
    const AttemptReading& reading = *found->second;
    const GroupStats& of = stats(profile(tasks[attempt.task]).group, attempt);
    const double dt = seconds(now - attempt.last_reading);
    std::optional<double> steps;
    if (reading.steps && attempt.steps) steps = *reading.steps - *attempt.steps;
    const bool by_steps = steps && of.seconds_per_step();
    stepping.push_back({&attempt, &of, dt, measured_work(reading, of, dt, steps, setup.space_sharing), by_steps});
    utils.push_back(of.util());
    seen.seconds = std::max(seen.seconds, dt);
  }
  if (stepping.empty()) return;
  const std::vector<double> speeds = work_speeds(utils, gpu.packer.parallelism());
  for (std::size_t i = 0; i < stepping.size(); ++i)
    take_work(*stepping[i].attempt, stepping[i].work, speeds[i] * stepping[i].dt);
  seen.by_steps = true;
  for (std::size_t i = 0; i < stepping.size(); ++i) {
    const Stepping& task = stepping[i];
    if (!task.work) return;  // one that nothing is known of: the sum would say nothing
    seen.work += *task.work;
    seen.predicted += speeds[i] * task.dt;
    seen.delivered += utils[i] * *task.work;
    seen.load += utils[i];
    seen.by_steps = seen.by_steps && task.by_steps;
    seen.task_seconds = std::max(seen.task_seconds, task.stats->duration_seconds().value_or(0));
  }
  seen.tasks = static_cast<int>(stepping.size());
  gpu.packer.observe(seen);
}

// Single readings are coarse: steps come in whole ones, utilisation in bursts. A window of a few seconds is shown.
void Planner::State::learn_speed(Running& attempt, GroupStats& learned, const AttemptReading& reading, double dt,
                                 std::optional<double> steps) {
  const Gpu* gpu = attempt.gpus.empty() ? nullptr : &gpus[static_cast<std::size_t>(attempt.gpus.front())];
  const bool alone = gpu != nullptr && gpu->running.size() == 1 && !gpu->others_compute;
  const bool before = attempt.alone_seconds >= kMeasurable;
  if (alone) attempt.alone_seconds += dt;
  if (!before && attempt.alone_seconds >= kMeasurable) learned.ran_alone();
  auto& window = attempt.window;
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
    GroupStats::Seen seen{.seconds = window.seconds, .alone = window.alone, .space_sharing = setup.space_sharing};
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

// Time in which nobody looked, because Headroom or the machine was stopped, is no sign of a hang: a gap counts for a
// part of the timeout at most. Where nothing can be read at all, nothing is known.
void Planner::State::note_progress(Running& attempt, const AttemptReading& reading, bool moved) const {
  const bool blind = !reading.cores && !reading.gpu_util_ratio && !reading.io_bytes && !reading.steps;
  if (moved || blind) attempt.last_progress = now;
  if (const auto& hang = profile(tasks[attempt.task]).hang_timeout)
    attempt.last_progress += std::max<Nanos>(0, now - attempt.last_reading - *hang / kLooksForHang);
  attempt.last_progress = std::min(attempt.last_progress, now);
}

void Planner::State::learn_memory(Running& attempt, GroupStats& learned, const AttemptReading& reading) const {
  const bool still = note_memory(attempt.memory, *reading.gpu_bytes, now);
  if (reading.in_startup) attempt.memory.last_growth = now;
  if (still && !reading.in_startup && !learned.memory_known()) learned.plateau(attempt.memory.peak_bytes);
  // A task that needs more than its group was thought to: the others will, too.
  if (learned.memory_known() && attempt.memory.peak_bytes > learned.peak_bytes() && learned.peak_bytes() > 0)
    learned.plateau(attempt.memory.peak_bytes);
}

void Planner::State::read_attempt(const AttemptReading& reading) {
  const auto found = running.find(reading.attempt);
  if (found == running.end()) return;
  Running& attempt = found->second;
  const double dt = seconds(now - attempt.last_reading);
  GroupStats& learned = stats(profile(tasks[attempt.task]).group, attempt);
  std::optional<double> steps;
  if (reading.steps) steps = *reading.steps - attempt.steps.value_or(0);
  const bool stepping = attempt.seen && !attempt.in_startup && !reading.in_startup;  // all the while
  if (attempt.gpus.size() <= 1) {
    // Where the first kernel came within this time, half of it is as good a guess as any.
    const double startup = reading.in_startup ? dt : stepping ? 0 : dt / 2;
    learned.see({.seconds = startup, .in_startup = true, .cores = wanted(reading)});
    learned.stepped(dt - startup);
    if (stepping) learn_speed(attempt, learned, reading, dt, steps);
  }

  const bool moved = reading.cores.value_or(0) > kProgressCores || reading.gpu_util_ratio.value_or(0) > kProgressUtil ||
                     (steps && *steps > 0) ||
                     (reading.io_bytes && attempt.io_bytes && *reading.io_bytes != *attempt.io_bytes);
  note_progress(attempt, reading, moved);
  if (reading.gpu_bytes) learn_memory(attempt, learned, reading);
  if (reading.host_bytes) {
    attempt.host_now = *reading.host_bytes;
    auto& host = group(profile(tasks[attempt.task]).group).host_peak;
    host = std::max(host.value_or(0), *reading.host_bytes);
  }
  // In start-up and where nothing is known, time passed counts as work done.
  attempt.done_seconds += std::exchange(attempt.work_seconds, std::nullopt).value_or(dt);
  attempt.cores_now = reading.cores.value_or(attempt.cores_now);
  if (reading.steps) attempt.steps = reading.steps;
  if (reading.io_bytes) attempt.io_bytes = reading.io_bytes;
  attempt.in_startup = reading.in_startup;
  attempt.seen = true;
  attempt.last_reading = now;
}

}  // namespace headroom::scheduler
