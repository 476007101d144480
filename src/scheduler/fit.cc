// SPDX-License-Identifier: Apache-2.0
#include "scheduler/fit.h"

#include <algorithm>

#include "base/human.h"
#include "base/result.h"
#include "scheduler/scaled.h"

namespace headroom::scheduler {

namespace {

constexpr double kHostMargin = 1.15;         // on the largest host memory seen of a group
constexpr double kSeenMargin = 1.03;         // on the largest GPU memory seen of a group
constexpr std::int64_t kWorthMeasuring = 8;  // tasks of a group that are left: of fewer there is little to gain
constexpr Nanos kMeasuredBy = 60 * kSecond;  // what takes longer to begin does not keep others waiting
constexpr Nanos kYoung = 12 * kSecond;       // a task older than this that still grows does not keep others waiting

}  // namespace

std::optional<std::string> Fit::impossible(const TaskProfile& profile) const {
  const ResourceRequest& need = profile.resources;
  if (need.gpus > machine_.gpu_count())
    return fmt::format("it asks for {} GPUs, and this batch has {}", need.gpus, machine_.gpu_count());
  if (need.cpus && *need.cpus > setup_.host.cores)
    return fmt::format("it asks for {} cores, and {} can be used here", *need.cpus, setup_.host.cores);
  if (need.host_memory_bytes && setup_.host.memory_bytes > 0 && *need.host_memory_bytes > setup_.host.memory_bytes)
    return fmt::format("it asks for {} of host memory, and {} can be used here", human_bytes(*need.host_memory_bytes),
                       human_bytes(setup_.host.memory_bytes));
  if (need.gpus == 0 || !need.gpu_memory_bytes) return std::nullopt;
  std::int64_t largest = 0;
  int enough = 0;
  for (const Gpu& gpu : machine_.gpus()) {
    largest = std::max(largest, gpu.facts.memory_bytes);
    if (gpu.facts.memory_bytes >= *need.gpu_memory_bytes) ++enough;
  }
  if (enough >= need.gpus) return std::nullopt;
  return fmt::format("it asks for {} of GPU memory, and the largest GPU has {}", human_bytes(*need.gpu_memory_bytes),
                     human_bytes(largest));
}

std::int64_t Fit::host_bytes(TaskIndex task) const {
  const TaskProfile& of = graph_.profile(task);
  const std::int64_t learned = scaled(learned_.host_peak_bytes(of.group), kHostMargin);
  return std::max(graph_.task(task).tries.host_bytes, of.resources.host_memory_bytes.value_or(learned));
}

Need Fit::need_of(TaskIndex task, GpuIndex index) const {
  const Gpu& gpu = machine_.gpu(index);
  const TaskProfile& of = graph_.profile(task);
  const std::int64_t reserve = graph_.task(task).tries.gpu_bytes;
  const GroupStats& learned = learned_.stats(of.group, gpu.facts.model);
  const std::int64_t total = gpu.facts.memory_bytes;
  Need need{.load = learned.load()};
  if (of.resources.gpu_memory_bytes) {
    need.alone_bytes = *of.resources.gpu_memory_bytes;
    need.bytes = std::max(need.alone_bytes, reserve);
  } else {
    need.probe = !learned.memory_known();
    need.bytes = std::max(learned.expected_bytes(total), reserve);
    // What it was seen to need; a reservation after an OOM is a guess, and an empty GPU is all there is to have.
    need.alone_bytes = need.probe ? learned.expected_bytes(total) : scaled(learned.peak_bytes(), kSeenMargin);
  }
  // Nobody can have more than a GPU.
  need.alone_bytes = std::min(need.alone_bytes, scaled(total, kMemoryLimit));
  return need;
}

bool Fit::host_fits(TaskIndex task, bool extra) const {
  const TaskProfile& of = graph_.profile(task);
  std::optional<double> joins;
  if (extra) {
    joins = of.resources.cpus;
    for (const Gpu& gpu : machine_.gpus())
      if (!of.resources.cpus)
        joins = std::max(joins.value_or(0), learned_.stats(of.group, gpu.facts.model).most_cores());
  }
  return machine_.host_fits(of.resources.cpus, host_bytes(task), joins);
}

bool Fit::memory_fits(const Gpu& gpu, const Need& need) const {
  if (setup_.pack == PackMode::kFixed) return true;
  if (gpu.running.empty()) return need.alone_bytes <= machine_.limit_bytes(gpu);
  return machine_.counted_bytes(gpu) + need.bytes <= machine_.limit_bytes(gpu);
}

bool Fit::probe_runs(GroupIndex of) const {
  const auto& running = machine_.running();
  return std::any_of(running.begin(), running.end(), [&](const auto& entry) {
    const RunningAttempt& attempt = entry.second;
    const bool young = attempt.in_startup || attempt.memory.peak_bytes == 0 || machine_.now() - attempt.start < kYoung;
    const GroupIndex group = attempt.profile.group;
    if (!attempt.memory.probe || !young || attempt.gpus.empty() || (group != of && !attempt.had_company)) return false;
    return !machine_.stats(attempt).memory_known() && !machine_.stats(attempt).beginning_known();
  });
}

bool Fit::is_measured_alone(GroupIndex group, const Gpu& gpu) const {
  if (!setup_.measure_alone) return false;
  const auto waits_for = [&](GroupIndex of) {
    return !learned_.stats(of, gpu.facts.model).alone_known() && graph_.unfinished_of_group(of) >= kWorthMeasuring;
  };
  const auto old = [&](AttemptId id) { return machine_.now() - machine_.running().at(id).start > kMeasuredBy; };
  if (std::any_of(gpu.running.begin(), gpu.running.end(), old)) return false;
  return waits_for(group) || std::any_of(gpu.running.begin(), gpu.running.end(), [&](AttemptId id) {
           return waits_for(machine_.running().at(id).profile.group);
         });
}

bool Fit::has_lone_attempt(const Gpu& gpu) const {
  return std::any_of(gpu.running.begin(), gpu.running.end(),
                     [&](AttemptId id) { return machine_.running().at(id).alone; });
}

bool Fit::fits(TaskIndex task, GpuIndex index, const Need& need, double gain) const {
  const Gpu& gpu = machine_.gpu(index);
  if (!gpu.usable || has_lone_attempt(gpu)) return false;
  const int count = static_cast<int>(gpu.running.size());
  if (setup_.pack == PackMode::kFixed) return count < setup_.per_gpu && host_fits(task, false);
  if (count == 0) return memory_fits(gpu, need) && host_fits(task, false);
  if (setup_.pack == PackMode::kOnePerGpu || count >= kMaxPerGpu || gpu.others_compute) return false;
  if (!memory_fits(gpu, need) || !host_fits(task, true)) return false;
  if (need.probe && probe_runs(graph_.profile(task).group)) return false;
  if (is_measured_alone(graph_.profile(task).group, gpu)) return false;
  return gpu.packer.admits(machine_.now(), machine_.loads(gpu), need.load, gain);
}

std::string Fit::obstacle(TaskIndex task, GpuIndex index, double gain) const {
  const Gpu& gpu = machine_.gpu(index);
  const Need need = need_of(task, index);
  const std::size_t count = gpu.running.size();
  if (!gpu.usable) return "it cannot be used any more";
  if (count > 0 && wants_whole_gpus(task)) return fmt::format("needs it alone, {} run on it", count);
  if (has_lone_attempt(gpu)) return "what runs on it has it alone";
  const bool fixed = setup_.pack == PackMode::kFixed;
  if (fixed && static_cast<int>(count) >= setup_.per_gpu)
    return fmt::format("{} run on it, and may not be more", count);
  if (!fixed && count > 0) {
    if (setup_.pack == PackMode::kOnePerGpu) return "one runs on it, and may not be more";
    if (count >= static_cast<std::size_t>(kMaxPerGpu)) return fmt::format("{} run on it, and may not be more", count);
    if (gpu.others_compute) return "another user computes on it";
  }
  if (!memory_fits(gpu, need)) {
    const std::int64_t limit = machine_.limit_bytes(gpu);
    const std::int64_t free = count == 0 ? limit : limit - machine_.counted_bytes(gpu);
    return fmt::format("may need {}, {} not spoken for", human_bytes(count == 0 ? need.alone_bytes : need.bytes),
                       human_bytes(std::max<std::int64_t>(0, free)));
  }
  if (!host_fits(task, !fixed && count > 0)) return "the host's cores or memory are taken";
  if (fixed || count == 0) return "";
  if (need.probe && probe_runs(graph_.profile(task).group))
    return "waits until the first of its group has shown what it needs";
  if (is_measured_alone(graph_.profile(task).group, gpu))
    return "waits until tasks of its group have shown what they do alone";
  if (!gpu.packer.admits(machine_.now(), machine_.loads(gpu), need.load, gain))
    return "one more task on it would not raise its measured rate of work";
  return "";
}

}  // namespace headroom::scheduler
