// SPDX-License-Identifier: Apache-2.0
#include "batch/statistics.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace headroom::batch {

namespace {

constexpr double kShared = 1.2;  // tasks on a GPU, on average

// Running out of memory is a price of packing. What else did not succeed says nothing of how fast work is done.
bool came_to_nothing(const Attempt& attempt) {
  const auto outcome = attempt.outcome.value_or(AttemptOutcome::kFailed);
  return outcome != AttemptOutcome::kSucceeded && outcome != AttemptOutcome::kGpuOutOfMemory &&
         outcome != AttemptOutcome::kHostOutOfMemory;
}

constexpr std::int64_t kMostUncertain = 10;  // of 100 tasks

double alone_tasks_per_second(const scheduler::AloneRate& alone) {
  return static_cast<double>(alone.tasks) / alone.alone_seconds;
}

bool few(std::int64_t some, std::int64_t all) { return 100 * some <= kMostUncertain * all; }

}  // namespace

bool BatchStatistics::sizes_differ(const std::string& model) const {
  const auto found = sizes_.find(model);
  return found != sizes_.end() && std::any_of(found->second.begin(), found->second.end(),
                                              [](const auto& group) { return group.second.differ(); });
}

// Enough tasks were measured to speak for the others, and these are not seen to be of another size.
const scheduler::AloneRate* BatchStatistics::rate_of(const std::vector<scheduler::AloneRate>& rates,
                                                     const std::string& model) const {
  for (const scheduler::AloneRate& rate : rates)
    if (rate.gpu_model == model && rate.alone_seconds > 0 &&
        few(rate.unmeasured_tasks, rate.tasks + rate.unmeasured_tasks) &&
        (few(rate.assumed_tasks, rate.tasks) || !sizes_differ(model)))
      return &rate;
  return nullptr;
}

std::string_view BatchStatistics::why_unknown(const std::vector<scheduler::AloneRate>& rates,
                                              const std::string& model) const {
  for (const scheduler::AloneRate& rate : rates) {
    if (rate.gpu_model != model || rate.alone_attempts == 0) continue;
    if (few(rate.unmeasured_tasks, rate.tasks + rate.unmeasured_tasks))
      return "the others took other times, and those that had a GPU to themselves may not speak for them";
    return "too few of them had a GPU to themselves from start to end";
  }
  return "none of them had a GPU to itself from start to end";
}

void BatchStatistics::GpuUse::advance(Nanos now) {
  const Nanos elapsed = std::max<Nanos>(0, now - std::exchange(at, std::max(at, now)));
  if (running.empty() || elapsed == 0) return;
  const auto count = static_cast<Nanos>(running.size());
  for (const AttemptId id : running) shares[id] += elapsed / count;
  seconds_with_work += seconds(elapsed);
  task_seconds += static_cast<double>(count) * seconds(elapsed);
}

void BatchStatistics::attempt_runs(const Attempt& attempt, Nanos at) {
  for (const auto& uuid : attempt.gpu_uuids) {
    use_[uuid].advance(at);
    use_[uuid].running.insert(attempt.id);
  }
}

void BatchStatistics::attempt_left(const Attempt& attempt, Nanos at) {
  for (const auto& uuid : attempt.gpu_uuids) {
    use_[uuid].advance(at);
    use_[uuid].running.erase(attempt.id);
  }
}

void BatchStatistics::attempt_closed(const TaskSpec& task, const BookedAttempt& booked) {
  const Attempt& attempt = booked.facts;
  summary_.attempts += 1;
  for (const auto& uuid : attempt.gpu_uuids) {
    GpuUse& use = use_[uuid];
    use.running.erase(attempt.id);
    const auto share = use.shares.extract(attempt.id);
    if (share && !came_to_nothing(attempt)) use.working_seconds += seconds(share.mapped());
    if (attempt.outcome != AttemptOutcome::kSucceeded) continue;
    if (share && attempt.gpu_uuids.size() == 1)
      if (const auto gpu = std::find_if(gpus_.begin(), gpus_.end(), [&](const BatchGpu& g) { return g.uuid == uuid; });
          gpu != gpus_.end())
        sizes_[gpu->model][task.group].add(booked.end - booked.start, share.mapped());
    use.steps += attempt.steps.value_or(0);
    use.tasks += 1;
    if (!attempt.steps) use.without_steps += 1;
  }
  if (attempt.gpu_uuids.empty()) return;
  if (booked.end > booked.start)
    on_gpus_.push_back({.attempt = attempt.id,
                        .task = task.name,
                        .start = booked.start,
                        .end = booked.end,
                        .kernels_seen = attempt.gpu_time.has_value()});
  switch (attempt.proof) {
    case PlacementProof::kVerified:
      summary_.verified += 1;
      break;
    case PlacementProof::kUnseen:
      summary_.unseen += attempt.outcome == AttemptOutcome::kNotStarted ? 0 : 1;
      break;
    case PlacementProof::kCpuFallback:
      cpu_fallbacks_.push_back(task.name);
      break;
    case PlacementProof::kMisplaced:
      summary_.misplaced.push_back(
          {.task = task.name, .wanted = join(attempt.gpu_uuids, ","), .found = join(attempt.seen_gpu_uuids, ",")});
      break;
  }
}

void BatchStatistics::runs_again(AttemptOutcome after) {
  if (after == AttemptOutcome::kGpuOutOfMemory || after == AttemptOutcome::kHostOutOfMemory) summary_.oom_requeues += 1;
  if (info(after).tasks_fault) summary_.retries += 1;
}

BatchProgress::Gpu BatchStatistics::progress_of(const BatchGpu& gpu,
                                                const std::vector<scheduler::AloneRate>& alone) const {
  BatchProgress::Gpu row{.gpu = gpu};
  if (const auto use = use_.find(gpu.uuid); use != use_.end() && use->second.working_seconds > 0)
    row.tasks_per_second = static_cast<double>(use->second.tasks) / use->second.working_seconds;
  // Beside what runs one by one the same figure would say nothing.
  if (const auto* rate = rate_of(alone, gpu.model); rate != nullptr && shares_gpu(gpu))
    row.alone_tasks_per_second = alone_tasks_per_second(*rate);
  return row;
}

bool BatchStatistics::shares_gpu(const BatchGpu& gpu) const {
  const auto use = use_.find(gpu.uuid);
  return use != use_.end() && use->second.task_seconds > kShared * use->second.seconds_with_work;
}

std::optional<BatchSummary::Packing> BatchStatistics::packing_of(const BatchGpu& gpu,
                                                                 const std::vector<scheduler::AloneRate>& alone) const {
  const auto found = use_.find(gpu.uuid);
  if (found == use_.end() || found->second.working_seconds <= 0) return std::nullopt;
  const GpuUse& use = found->second;
  BatchSummary::Packing packing{.device = gpu.uuid, .concurrency = use.task_seconds / use.seconds_with_work};
  packing.work_per_second = static_cast<double>(use.tasks) / use.working_seconds;
  if (const auto* rate = rate_of(alone, gpu.model)) {
    packing.one_per_gpu_work_per_second = alone_tasks_per_second(*rate);
    packing.one_per_gpu_error_ratio = rate->error_seconds / rate->alone_seconds;
    packing.alone_busy_ratio = rate->busy_ratio;
    packing.one_per_gpu_attempts = rate->alone_attempts;
    packing.one_per_gpu_from_history = rate->from_history;
  } else {
    packing.one_per_gpu_unknown = why_unknown(alone, gpu.model);
  }
  if (use.tasks > 0 && use.without_steps == 0) {  // the same in steps
    const double steps_per_task = use.steps / static_cast<double>(use.tasks);
    packing.unit = "steps";
    packing.work_per_second = *packing.work_per_second * steps_per_task;
    if (packing.one_per_gpu_work_per_second)
      packing.one_per_gpu_work_per_second = *packing.one_per_gpu_work_per_second * steps_per_task;
  }
  return packing;
}

BatchSummary BatchStatistics::summary(const scheduler::Planner& planner, Nanos wall) const {
  BatchSummary summary = summary_;
  const auto counts = planner.counts();
  summary.tasks = {.total = counts.total,
                   .succeeded = counts.succeeded,
                   .failed = counts.failed,
                   .skipped = counts.skipped,
                   .cancelled = counts.cancelled,
                   .left = counts.waiting + counts.ready + counts.running + counts.backing_off};
  summary.wall_seconds = seconds(wall);
  const auto alone = planner.alone_rates();
  for (const BatchGpu& gpu : gpus_) {
    const auto use = use_.find(gpu.uuid);
    summary.devices.push_back({.uuid = gpu.uuid,
                               .index = gpu.index,
                               .tasks = use == use_.end() ? 0 : use->second.tasks,
                               .quarantined = quarantined_.contains(gpu.uuid)});
    if (auto packing = packing_of(gpu, alone)) summary.packing.push_back(*packing);
  }
  return summary;
}

}  // namespace headroom::batch
