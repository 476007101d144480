// SPDX-License-Identifier: Apache-2.0
#include "diagnose/health.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"

namespace headroom::diagnose {

namespace {

HealthCheck runs_on_gpu(const Case& c) {
  const Nanos own = c.ledger().total(Account::kUseful);
  if (!c.job.has_contexts)
    return {"runs_on_gpu", own > 0 ? Answer::kYes : Answer::kUnknown,
            own > 0 ? "kernels ran; whose they were is not recorded" : "no kernel ran in the recorded time"};
  const bool held = std::any_of(c.job.uses.begin(), c.job.uses.end(), [](const auto& use) { return use.ours; });
  if (own > 0) return {"runs_on_gpu", Answer::kYes, fmt::format("its kernels ran for {}", human_duration(own))};
  return {"runs_on_gpu", Answer::kNo, held ? "it held a context and no kernel ran" : "it never held a compute context"};
}

HealthCheck mixed_precision(const Case& c) {
  for (std::size_t i = 0; i < c.times.size(); ++i)
    if (const MetricStats* tensor = c.stats(i, Metric::kTensorActive); tensor && tensor->samples > 0)
      return {"mixed_precision", tensor->mean > 0.01 ? Answer::kYes : Answer::kNo,
              fmt::format("tensor pipes active {} of the time", human_percent(tensor->mean))};
  return {"mixed_precision", Answer::kUnknown, "needs GPM (Hopper and newer) or CUPTI"};
}

HealthCheck memory(const Case& c) {
  HealthCheck check{"memory", Answer::kUnknown, "memory use was not recorded"};
  double worst = -1;
  for (std::size_t i = 0; i < c.times.size(); ++i) {
    const MetricStats* used = c.stats(i, Metric::kMemoryUsed);
    const auto total = c.times[i].device.memory_total_bytes;
    if (!used || used->samples == 0) continue;
    if (!total || *total <= 0) {
      if (worst < 0)
        check.evidence = fmt::format("{} at most; the card's size was not recorded",
                                     human_bytes(static_cast<std::int64_t>(used->max)));
      continue;
    }
    const double share = used->max / static_cast<double>(*total);
    if (share <= worst) continue;
    worst = share;
    check.good = share < 0.95 ? Answer::kYes : Answer::kNo;
    check.evidence =
        fmt::format("{} of {} at most", human_bytes(static_cast<std::int64_t>(used->max)), human_bytes(*total));
  }
  return check;
}

HealthCheck clocks(const Case& c) {
  bool known = false;
  for (const DeviceTime& time : c.times)
    known |= c.recording.tracks[static_cast<std::size_t>(time.source)].find(Metric::kEventReasons) != nullptr;
  if (!known) return {"clocks", Answer::kUnknown, "clock event reasons were not recorded"};
  const bool low = std::any_of(c.so_far.findings.begin(), c.so_far.findings.end(),
                               [](const auto& f) { return f.cause == Cause::kThrottling; });
  return {"clocks", low ? Answer::kNo : Answer::kYes, low ? "lowered while busy" : "no lasting limit while busy"};
}

// Does anything still move in the last fifth of the time?
HealthCheck progress(const Case& c) {
  const Nanos from = c.ledger().end - c.ledger().span() / 5;
  Nanos busy = 0;
  for (const DeviceTime& time : c.times)
    for (const Slice& slice : time.slices)
      if (is_busy(slice.account)) busy += std::max<Nanos>(0, slice.end - std::max(slice.begin, from));
  if (busy > 0) return {"progress", Answer::kYes, "kernels ran to the end"};
  double cpu = 0;
  for (const SourceId id : c.recording.all(SourceKind::kProcess))
    for (const Activity& a : activities(c.recording, id))
      if (a.end > from) cpu = std::max(cpu, a.cpu);
  if (cpu > 0.05) return {"progress", Answer::kYes, "no kernel in the last fifth of the time, but CPU work"};
  if (!c.job.has_host) return {"progress", Answer::kUnknown, "no kernel in the last fifth of the time"};
  return {"progress", Answer::kNo, "neither kernels nor CPU work in the last fifth of the time"};
}

// Of a batch: how the last attempt of each task went.
HealthCheck tasks_ended(const Case& c) {
  std::vector<bool> well(c.job.batch.tasks.size(), false);
  for (const TaskAttempt& attempt : c.job.batch.attempts)
    well[static_cast<std::size_t>(attempt.task)] = attempt.counted();
  const auto bad = std::count(well.begin(), well.end(), false);
  if (bad == 0) return {"ended_well", Answer::kYes, "every task that was started succeeded"};
  return {"ended_well", Answer::kNo, fmt::format("{} of {} started tasks did not succeed", bad, well.size())};
}

HealthCheck ended_well(const Case& c) {
  if (c.job.batch.present) return tasks_ended(c);
  const auto code = c.recording.meta.exit_code;
  if (!code) return {"ended_well", Answer::kUnknown, "the end of the job was not recorded"};
  if (*code == 0) return {"ended_well", Answer::kYes, "exit code 0"};
  if (*code > 128) return {"ended_well", Answer::kNo, fmt::format("ended by signal {}", *code - 128)};
  return {"ended_well", Answer::kNo, fmt::format("exit code {}", *code)};
}

}  // namespace

std::vector<HealthCheck> health(const Case& c) {
  return {runs_on_gpu(c), mixed_precision(c), memory(c), clocks(c), progress(c), ended_well(c)};
}

}  // namespace headroom::diagnose
