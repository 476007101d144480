// SPDX-License-Identifier: Apache-2.0
#include "batch/statistics.h"

#include "base/strings.h"

namespace headroom::batch {

namespace {

// What one task per GPU of this model would do; null unless enough tasks were measured to speak for the others.
const scheduler::AloneRate* rate_of(const std::vector<scheduler::AloneRate>& rates, const std::string& model) {
  constexpr std::int64_t kMostUnmeasured = 10;  // of 100
  for (const scheduler::AloneRate& rate : rates)
    if (rate.gpu_model == model && rate.alone_seconds > 0 &&
        100 * rate.unmeasured_tasks <= kMostUnmeasured * (rate.tasks + rate.unmeasured_tasks))
      return &rate;
  return nullptr;
}

double tasks_per_second(const scheduler::AloneRate& alone) {
  return static_cast<double>(alone.tasks) / alone.alone_seconds;
}

}  // namespace

void BatchStatistics::time_passed(Nanos elapsed, const scheduler::Planner& planner) {
  const double time = seconds(elapsed);
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const auto running = planner.gpu(static_cast<scheduler::GpuIndex>(i)).running.size();
    GpuUse& use = use_[gpus_[i].uuid];
    if (running > 0) use.seconds_with_work += time;
    use.task_seconds += static_cast<double>(running) * time;
  }
}

void BatchStatistics::attempt_closed(const std::string& task, const BookedAttempt& booked) {
  const Attempt& attempt = booked.facts;
  summary_.attempts += 1;
  for (const auto& uuid : attempt.gpu_uuids) {
    GpuUse& use = use_[uuid];
    use.steps += attempt.steps.value_or(0);
    if (attempt.outcome != AttemptOutcome::kSucceeded) continue;
    use.tasks += 1;
    if (!attempt.steps) use.without_steps += 1;
  }
  if (attempt.gpu_uuids.empty()) return;
  if (booked.end > booked.start)
    on_gpus_.push_back({.attempt = attempt.id,
                        .task = task,
                        .start = booked.start,
                        .end = booked.end,
                        .kernels_seen = attempt.gpu_time.has_value()});
  switch (attempt.proof) {
    case PlacementProof::kVerified:
      summary_.verified += 1;
      break;
    case PlacementProof::kUnseen:
      summary_.unseen += 1;
      break;
    case PlacementProof::kCpuFallback:
      cpu_fallbacks_.push_back(task);
      break;
    case PlacementProof::kMisplaced:
      summary_.misplaced.push_back(
          {.task = task, .wanted = join(attempt.gpu_uuids, ","), .found = join(attempt.seen_gpu_uuids, ",")});
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
  if (const auto use = use_.find(gpu.uuid); use != use_.end() && use->second.seconds_with_work > 0)
    row.tasks_per_second = static_cast<double>(use->second.tasks) / use->second.seconds_with_work;
  if (const auto* rate = rate_of(alone, gpu.model)) row.alone_tasks_per_second = tasks_per_second(*rate);
  return row;
}

std::optional<BatchSummary::Packing> BatchStatistics::packing_of(const BatchGpu& gpu,
                                                                 const std::vector<scheduler::AloneRate>& alone) const {
  const auto found = use_.find(gpu.uuid);
  if (found == use_.end() || found->second.seconds_with_work <= 0) return std::nullopt;
  const GpuUse& use = found->second;
  BatchSummary::Packing packing{.device = gpu.uuid, .concurrency = use.task_seconds / use.seconds_with_work};
  packing.work_per_second = static_cast<double>(use.tasks) / use.seconds_with_work;
  if (const auto* rate = rate_of(alone, gpu.model)) {
    packing.one_per_gpu_work_per_second = tasks_per_second(*rate);
    packing.one_per_gpu_attempts = rate->alone_attempts;
    packing.one_per_gpu_from_history = rate->from_history;
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
