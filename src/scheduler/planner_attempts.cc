// SPDX-License-Identifier: Apache-2.0
// The planner's attempts: deadlines, how they ended, what follows from it; lost GPUs; the end of the batch.
#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/result.h"
#include "scheduler/planner_state.h"

namespace headroom::scheduler {

namespace {

constexpr double kVictimFactor = 1.5;  // of what it had reserved
constexpr int kDeviceLossesUntilFailed = 3;
constexpr std::size_t kSuspectFailures = 4;  // of different tasks in a row, on one GPU only

std::int64_t scaled(std::int64_t bytes, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

Nanos backoff(const RetryPolicy& retry, int failures) {
  if (retry.backoff <= 0) return 0;  // the factor may become infinite, and 0 times that is no number
  const double wait = static_cast<double>(retry.backoff) * std::pow(std::max(1.0, retry.backoff_factor), failures - 1);
  return static_cast<Nanos>(std::min(wait, static_cast<double>(retry.backoff_max)));
}

}  // namespace

void Planner::State::on(const AttemptStarted& event) {
  const auto found = running.find(event.attempt);
  if (found == running.end() || found->second.seen) return;
  // Lengths and deadlines count from the process's start, not from the decision.
  Running& attempt = found->second;
  attempt.start = attempt.memory.start = attempt.memory.last_growth = now;
  attempt.last_reading = attempt.last_progress = now;
}

void Planner::State::on(const AttemptEnded& event) {
  const auto found = running.find(event.attempt);
  if (found == running.end()) return;
  const Running attempt = std::move(found->second);
  running.erase(found);
  for (const GpuIndex gpu : attempt.gpus) std::erase(gpus[static_cast<std::size_t>(gpu)].running, attempt.id);
  if (attempt.gpus.empty()) --on_slots;
  free_slots.insert(attempt.slot);
  --groups[static_cast<std::size_t>(profile(tasks[attempt.task]).group)].running;
  const AttemptOutcome outcome = judged(attempt, event);
  act(CloseAttempt{attempt.id, attempt.task, outcome});
  learn_from_end(attempt, event, outcome);
  suspect(attempt, outcome);
  after_attempt(attempt, event, outcome);
}

AttemptOutcome Planner::State::judged(const Running& attempt, const AttemptEnded& event) const {
  if (event.outcome == AttemptOutcome::kSucceeded) return event.outcome;
  if (attempt.stopping) {
    switch (*attempt.stopping) {
      case StopReason::kTimedOut:
        return AttemptOutcome::kTimedOut;
      case StopReason::kHung:
        return AttemptOutcome::kHung;
      case StopReason::kCancelled:
        return AttemptOutcome::kCancelled;
      case StopReason::kBatchStopped:
        return AttemptOutcome::kInterrupted;
      case StopReason::kDeviceLost:
        return AttemptOutcome::kDeviceLost;
    }
  }
  const bool lost = std::any_of(attempt.gpus.begin(), attempt.gpus.end(),
                                [&](GpuIndex gpu) { return !gpus[static_cast<std::size_t>(gpu)].usable; });
  return lost && info(event.outcome).tasks_fault ? AttemptOutcome::kDeviceLost : event.outcome;
}

void Planner::State::learn_from_end(const Running& attempt, const AttemptEnded& event, AttemptOutcome outcome) {
  const GroupIndex index = profile(tasks[attempt.task]).group;
  std::optional<std::int64_t> peak = event.peak_gpu_bytes;
  if (attempt.memory.peak_bytes > 0) peak = std::max(peak.value_or(0), attempt.memory.peak_bytes);
  GroupStats& learned = stats(index, attempt);
  if (outcome == AttemptOutcome::kGpuOutOfMemory) learned.ran_out(peak);
  if (outcome != AttemptOutcome::kSucceeded) return;
  learned.finished(seconds(now - attempt.start), peak);
  if (attempt.gpus.size() == 1) {
    const double rest = seconds(now - attempt.last_reading);
    if (attempt.seen && !attempt.in_startup) learned.stepped(rest);
    if (!attempt.had_company && attempt.alone_seconds < kMeasurable) learned.ran_alone();
    if (!attempt.had_company)
      learned.told(seconds(now - attempt.start));
    else if (attempt.seen && attempt.all_told)  // since the last reading as fast as before it
      learned.told(attempt.done_seconds * (1 + rest / std::max(0.1, seconds(attempt.last_reading - attempt.start))));
  }
  if (!attempt.seen && event.startup) learned.see({.seconds = seconds(*event.startup), .in_startup = true});
  if (event.cpu_time)
    learned.used_cpu(seconds(*event.cpu_time), seconds(now - attempt.start), seconds(event.startup.value_or(0)));
  // A short task leaves no whole window of readings.
  if ((!attempt.seen || !learned.util_known()) && event.gpu_time) {
    const Nanos looked = attempt.seen ? attempt.last_reading : now;
    const double stepping = seconds(looked - attempt.start - event.startup.value_or(0));
    const bool alone = !attempt.had_company;
    if (!attempt.seen) learned.stepped(std::max(0.0, stepping));
    if (stepping > 0)
      learned.see({.seconds = stepping,
                   .alone = alone,
                   .space_sharing = setup.space_sharing,
                   .gpu_util_ratio = seconds(*event.gpu_time) / stepping});
  }
  auto& host = group(index).host_peak;
  if (event.peak_host_bytes) host = std::max(host.value_or(0), *event.peak_host_bytes);
}

void Planner::State::after_attempt(const Running& attempt, const AttemptEnded& event, AttemptOutcome outcome) {
  TaskRecord& task = tasks[attempt.task];
  switch (outcome) {
    case AttemptOutcome::kSucceeded:
      return end_task(attempt.task, TaskState::kSucceeded, "");
    case AttemptOutcome::kCancelled:
      return end_task(attempt.task, TaskState::kCancelled, "cancelled");
    case AttemptOutcome::kInterrupted:
      return requeue(attempt.task, outcome, now);
    case AttemptOutcome::kDeviceLost:
      if (attempt.gpus.size() == 1) quarantine(attempt.gpus.front(), event.reason.empty() ? "lost" : event.reason);
      if (++task.device_losses >= kDeviceLossesUntilFailed)
        return end_task(attempt.task, TaskState::kFailed,
                        fmt::format("{} GPUs were lost under it", static_cast<int>(task.device_losses)));
      return requeue(attempt.task, outcome, now);
    case AttemptOutcome::kGpuOutOfMemory:
    case AttemptOutcome::kHostOutOfMemory:
      return after_oom(attempt, event, outcome);
    case AttemptOutcome::kFailed:
    case AttemptOutcome::kTimedOut:
    case AttemptOutcome::kHung:
    case AttemptOutcome::kMisplaced:
    case AttemptOutcome::kNotStarted:
      return after_failure(attempt.task, outcome, event.reason);
  }
}

void Planner::State::after_failure(TaskIndex index, AttemptOutcome outcome, const std::string& reason) {
  TaskRecord& task = tasks[index];
  const RetryPolicy& retry = profile(task).retry;
  const bool would_again = outcome == AttemptOutcome::kMisplaced;  // on the GPU that its command chooses
  if (++task.failures > retry.retries || would_again) {
    std::string words(info(outcome).label);
    if (!reason.empty()) words += ": " + reason;
    if (task.failures > 1) words += fmt::format(" ({} attempts)", task.attempts);
    return end_task(index, TaskState::kFailed, std::move(words));
  }
  requeue(index, outcome, now + backoff(retry, task.failures));
}

void Planner::State::after_oom(const Running& attempt, const AttemptEnded& event, AttemptOutcome outcome) {
  TaskRecord& task = tasks[attempt.task];
  const bool host = outcome == AttemptOutcome::kHostOutOfMemory;
  const bool had_all = !host && !attempt.had_company && !attempt.gpus.empty();
  ++task.ooms;
  if ((had_all && task.alone) || task.ooms >= setup.ooms_until_failed) {
    const std::int64_t peak = std::max(event.peak_gpu_bytes.value_or(0), attempt.memory.peak_bytes);
    std::string numbers =
        host ? fmt::format("host memory {}", human_bytes(event.peak_host_bytes.value_or(0)))
             : fmt::format("{} seen, {} reserved{}", human_bytes(peak), human_bytes(attempt.memory.reserved_bytes),
                           had_all ? ", alone on its GPU" : "");
    return end_task(attempt.task, TaskState::kFailed,
                    fmt::format("{}, {} times: {}{}{}", info(outcome).label, static_cast<int>(task.ooms), numbers,
                                event.reason.empty() ? "" : ": ", event.reason));
  }
  if (host) {
    const std::int64_t peak = std::max(event.peak_host_bytes.value_or(0), attempt.host_need);
    const std::int64_t most = scaled(setup.host.memory_bytes, kHostMemory);
    task.host_reserve = std::max(task.host_reserve, std::min(scaled(peak, kVictimFactor), most));
  } else if (!attempt.gpus.empty()) {
    const std::int64_t total = gpus[static_cast<std::size_t>(attempt.gpus.front())].facts.memory_bytes;
    const std::int64_t had = std::max(attempt.memory.reserved_bytes, attempt.memory.peak_bytes);
    task.reserve = std::max(task.reserve, scaled(had, kVictimFactor));
    const bool packs = setup.pack == PackMode::kPack;
    task.alone =
        had_all || !packs || task.ooms + 1 >= setup.ooms_until_failed || task.reserve >= scaled(total, kMemoryLimit);
  }
  requeue(attempt.task, outcome, now);
}

void Planner::State::requeue(TaskIndex index, AttemptOutcome outcome, Nanos at) {
  const TaskRecord& task = tasks[index];
  act(RequeueTask{index, outcome, at, task.reserve, task.alone});
  if (at <= now) return make_ready(index);
  set_state(index, TaskState::kBackingOff);
  backing_off.emplace(at, index);
}

void Planner::State::stop(Running& attempt, StopReason reason) {
  if (attempt.stopping) return;
  attempt.stopping = reason;
  act(StopAttempt{attempt.id, reason});
}

void Planner::State::wake() {
  while (!draining && !backing_off.empty() && backing_off.begin()->first <= now) {
    const TaskIndex task = backing_off.begin()->second;
    backing_off.erase(backing_off.begin());
    make_ready(task);
  }
  for (auto& [id, attempt] : running) {
    const Profile& limits = profile(tasks[attempt.task]);
    if (limits.timeout && now >= attempt.start + *limits.timeout) stop(attempt, StopReason::kTimedOut);
    // Only somebody who has just looked can tell.
    if (limits.hang_timeout && attempt.last_reading == now && now >= attempt.last_progress + *limits.hang_timeout)
      stop(attempt, StopReason::kHung);
  }
}

void Planner::State::quarantine(GpuIndex index, std::string reason) {
  if (index < 0 || static_cast<std::size_t>(index) >= gpus.size()) return;
  Gpu& gpu = gpus[static_cast<std::size_t>(index)];
  if (!gpu.usable) return;
  gpu.usable = false;
  if (claim_ && std::count(claim_->gpus.begin(), claim_->gpus.end(), index) > 0) claim_.reset();
  act(QuarantineGpu{index, std::move(reason)});
  for (const AttemptId id : gpu.running) stop(running.at(id), StopReason::kDeviceLost);
}

// A GPU on which one task after another fails, while others of the same groups succeed elsewhere, would eat the queue.
void Planner::State::suspect(const Running& attempt, AttemptOutcome outcome) {
  if (attempt.gpus.size() != 1) return;
  const GroupIndex of = profile(tasks[attempt.task]).group;
  const GpuIndex here = attempt.gpus.front();
  Gpu& gpu = gpus[static_cast<std::size_t>(here)];
  if (outcome == AttemptOutcome::kSucceeded) {
    gpu.failures.clear();
    gpu.successes_elsewhere.clear();
    for (Gpu& other : gpus)
      if (&other != &gpu && !other.failures.empty()) ++other.successes_elsewhere[of];
    return;
  }
  if (outcome != AttemptOutcome::kFailed) return;
  const auto same = [&](const auto& failure) { return failure.first == attempt.task; };
  if (std::none_of(gpu.failures.begin(), gpu.failures.end(), same)) gpu.failures.emplace_back(attempt.task, of);
  const auto good_elsewhere = [&](const auto& failure) { return gpu.successes_elsewhere[failure.second] >= 2; };
  const auto odd = std::count_if(gpu.failures.begin(), gpu.failures.end(), good_elsewhere);
  if (static_cast<std::size_t>(odd) < kSuspectFailures) return;
  quarantine(here,
             fmt::format("{} tasks in a row failed on it, while others of their groups succeeded elsewhere", odd));
  gpu.failures.clear();
}

void Planner::State::on(const GpuLost& event) { quarantine(event.gpu, event.reason); }

void Planner::State::on(const GpuBack& event) {
  if (event.gpu < 0 || static_cast<std::size_t>(event.gpu) >= gpus.size()) return;
  Gpu& gpu = gpus[static_cast<std::size_t>(event.gpu)];
  if (gpu.usable) return;
  gpu.usable = true;
  gpu.packer = Packer(setup.decide_every, setup.space_sharing);
  gpu.failures.clear();
}

void Planner::State::on(const Drain&) { draining = true; }

void Planner::State::on(const Stop&) {
  draining = stopped = true;
  for (auto& [id, attempt] : running) stop(attempt, StopReason::kBatchStopped);
}

void Planner::State::on(const Tick&) {}

}  // namespace headroom::scheduler
