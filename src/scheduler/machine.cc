// SPDX-License-Identifier: Apache-2.0
#include "scheduler/machine.h"

#include <algorithm>

#include "base/human.h"
#include "base/result.h"
#include "scheduler/setup.h"

namespace headroom::scheduler {

namespace {

constexpr double kHostFactor = 1.5;   // of the cores: a step waits for the GPU now and then
constexpr double kHostMemory = 0.95;  // of the host's, for everybody together
constexpr std::string_view kFull = "{} run on it, and may not be more", kNoMemory = "may need {}, {} not spoken for";

}  // namespace

Machine::Machine(const PlannerSetup& setup, const Learned& learned) : setup_(setup), learned_(learned) {
  for (const GpuFacts& facts : setup.gpus)
    gpus_.push_back({.facts = facts, .packer = Packer(setup.decide_every, setup.space_sharing)});
}

int Machine::usable_gpus() const {
  return static_cast<int>(std::count_if(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.usable; }));
}

void Machine::restore(GpuIndex index) {
  gpu(index).usable = true;
  gpu(index).packer = Packer(setup_.decide_every, setup_.space_sharing);
}

RunningAttempt* Machine::find(AttemptId id) {
  const auto found = running_.find(id);
  return found != running_.end() ? &found->second : nullptr;
}

const RunningAttempt& Machine::seat(RunningAttempt&& attempt) {
  attempt.slot = free_slots_.empty() ? next_slot_++ : free_slots_.extract(free_slots_.begin()).value();
  for (const GpuIndex index : attempt.gpus) {
    Gpu& onto = gpu(index);
    if (!onto.running.empty() || onto.others_compute) attempt.had_company = true;
    for (const AttemptId other : onto.running) running_.at(other).had_company = true;
    onto.running.push_back(attempt.id);
  }
  if (attempt.gpus.empty()) ++on_slots_;
  return running_.emplace(attempt.id, std::move(attempt)).first->second;
}

RunningAttempt Machine::leave(AttemptId id) {
  RunningAttempt attempt = std::move(running_.extract(id).mapped());
  for (const GpuIndex index : attempt.gpus) std::erase(gpu(index).running, id);
  if (attempt.gpus.empty()) --on_slots_;
  free_slots_.insert(attempt.slot);
  return attempt;
}

int Machine::slots() const {
  return setup_.slots > 0 ? setup_.slots : std::max(1, static_cast<int>(setup_.host.cores));
}

std::int64_t Machine::counted_bytes(const Gpu& gpu) const {
  std::int64_t bytes = 0;
  for (const AttemptId id : gpu.running) {
    const RunningAttempt& attempt = running_.at(id);
    const GroupStats& known = learned_.stats(attempt.profile.group, gpu.facts.model);
    bytes += scheduler::counted_bytes(attempt.memory, known, gpu.facts.memory_bytes, now_);
  }
  return bytes;
}

std::int64_t Machine::limit_bytes(const Gpu& gpu) const {
  const bool tenant = gpu.tenant_seen && now_ - *gpu.tenant_seen < setup_.tenant_memory;
  const double share = kMemoryLimit - (tenant ? kTenantReserve : 0.0);
  return scaled(gpu.facts.memory_bytes, share) - gpu.others_bytes;
}

std::vector<double> Machine::loads(const Gpu& gpu) const {
  std::vector<double> loads;
  for (const AttemptId id : gpu.running) loads.push_back(stats(running_.at(id)).load());
  return loads;
}

double Machine::cores_counted() const {
  double cores = 0;
  for (const auto& [id, attempt] : running_) {
    const GroupStats& known = stats(attempt);
    if (const auto& declared = attempt.profile.resources.cpus)
      cores += *declared;
    else
      cores += known.cores_of(attempt.in_startup, seconds(now_ - attempt.start));
  }
  return cores;
}

std::optional<Nanos> Machine::startup_over() const {
  std::optional<Nanos> soonest;
  for (const auto& [id, attempt] : running_) {
    const auto startup = stats(attempt).brief_startup_seconds();
    if (!startup || !attempt.in_startup) continue;
    const Nanos at = attempt.start + static_cast<Nanos>(*startup * 1e9);
    if (at > now_) soonest = std::min(soonest.value_or(at), at);
  }
  return soonest;
}

bool Machine::host_fits(std::optional<double> cpus, std::int64_t need_bytes, std::optional<double> joins) const {
  if (running_.empty()) return true;
  if (cpus) {
    double declared = *cpus;
    for (const auto& [id, attempt] : running_) declared += attempt.profile.resources.cpus.value_or(0);
    if (declared > setup_.host.cores) return false;
  }
  if (joins && setup_.pack == PackMode::kPack && cores_counted() + *joins > kHostFactor * setup_.host.cores)
    return false;
  std::int64_t counted = need_bytes, coming = need_bytes;
  for (const auto& [id, attempt] : running_) {
    counted += std::max(attempt.host_need, attempt.host_now);
    coming += std::max<std::int64_t>(0, attempt.host_need - attempt.host_now);
  }
  if (setup_.host.memory_bytes > 0 && counted > most_host_bytes(setup_.host)) return false;
  const std::int64_t spare = scaled(setup_.host.memory_bytes, 1.0 - kHostMemory);
  return !host_available_ || coming <= *host_available_ - spare;
}

std::int64_t most_host_bytes(const HostFacts& host) { return scaled(host.memory_bytes, kHostMemory); }

const std::string& Machine::model_of(const RunningAttempt& attempt) const {
  return attempt.gpus.empty() ? no_gpu_ : gpu(attempt.gpus.front()).facts.model;
}

const GroupStats& Machine::stats(const RunningAttempt& attempt) const {
  return learned_.stats(attempt.profile.group, model_of(attempt));
}

Nanos Machine::remaining(const RunningAttempt& attempt) const {
  if (attempt.expected < 0) return -1;
  const auto done = static_cast<Nanos>(attempt.work.done_seconds * 1e9) + (now_ - attempt.last_reading);
  return std::max(attempt.expected / 10, attempt.expected - done);
}

// Where nothing is known of what its group does on a GPU, company is not held to slow it.
double Machine::predicted_speed(const RunningAttempt& attempt) const {
  double speed = 1;
  if (!stats(attempt).util_known()) return speed;
  for (const GpuIndex index : attempt.gpus) {
    const Gpu& on = gpu(index);
    const auto at = std::find(on.running.begin(), on.running.end(), attempt.id);
    if (at == on.running.end()) continue;
    const std::vector<double> speeds = work_speeds(loads(on), on.packer.parallelism());
    speed = std::min(speed, speeds[static_cast<std::size_t>(at - on.running.begin())]);
  }
  return speed;
}

// The work rate of a GPU that is full of such tasks, in tasks' worth: its kernels, its memory or the rule is the limit.
double Machine::full_rate(const Gpu& gpu, const GroupStats& of) const {
  const double most = setup_.pack == PackMode::kOnePerGpu ? 1
                      : setup_.pack == PackMode::kFixed   ? setup_.per_gpu
                                                          : kMaxPerGpu;
  const double memory = static_cast<double>(std::max<std::int64_t>(1, of.expected_bytes(gpu.facts.memory_bytes)));
  const double fit =
      setup_.pack == PackMode::kPack ? std::max(1.0, static_cast<double>(limit_bytes(gpu)) / memory) : most;
  return std::min({most, fit, std::max(1.0, gpu.packer.parallelism() / std::max(of.load(), 1.0 / kMaxPerGpu))});
}

std::vector<double> Machine::prices() const {
  std::vector<double> prices(learned_.group_count(), 0);
  for (std::size_t group = 0; group < prices.size(); ++group) {
    double rate = 0, cores = 0;
    for (const Gpu& gpu : gpus_) {
      const GroupStats& of = learned_.stats(static_cast<GroupIndex>(group), gpu.facts.model);
      if (!gpu.usable || !of.util_known()) continue;
      rate += full_rate(gpu, of);
      cores = std::max(cores, of.cores());
    }
    if (cores > 0) rate = std::min(rate, setup_.host.cores / cores);
    if (rate > 0) prices[group] = 1 / rate;
  }
  return prices;
}

AloneTime Machine::alone_time(const RunningAttempt& attempt, Nanos now) const {
  const double elapsed = seconds(now - attempt.start);
  if (!attempt.had_company) {
    const bool tenants = std::any_of(attempt.gpus.begin(), attempt.gpus.end(), [&](GpuIndex index) {
      const auto& seen = gpu(index).tenant_seen;
      return seen && *seen >= attempt.start;
    });
    return {.done_seconds = elapsed, .whole = !tenants};
  }
  const double speed = predicted_speed(attempt);
  if (!attempt.seen) return {.done_seconds = speed * elapsed, .speed = speed, .measured = false};
  // Since the last reading as fast as before it.
  const double rest = seconds(now - attempt.last_reading);
  const double before = std::max(0.1, seconds(attempt.last_reading - attempt.start));
  return {.done_seconds = attempt.work.done_seconds * (1 + rest / before),
          .speed = speed,
          .measured = attempt.work.all_measured,
          .counted = attempt.work.all_counted && attempt.work.steps.value_or(0) > 0};
}

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

std::string_view Fit::in_the_way(TaskIndex task, const Gpu& gpu, const Need& need, double gain) const {
  const bool fixed = setup_.pack == PackMode::kFixed, joins = !fixed && !gpu.running.empty();
  if (!gpu.usable) return "it cannot be used any more";
  if (has_lone_attempt(gpu)) return "what runs on it has it alone";
  if (joins && setup_.pack == PackMode::kOnePerGpu) return "one runs on it, and may not be more";
  if (static_cast<int>(gpu.running.size()) >= (fixed ? setup_.per_gpu : kMaxPerGpu)) return kFull;
  if (joins && gpu.others_compute) return "another user computes on it";
  if (!memory_fits(gpu, need)) return kNoMemory;
  if (!host_fits(task, joins)) return "the host's cores or memory are taken";
  if (!joins) return "";
  const GroupIndex group = graph_.profile(task).group;
  if (need.probe && probe_runs(group)) return "waits until the first of its group has shown what it needs";
  if (is_measured_alone(group, gpu)) return "waits until tasks of its group have shown what they do alone";
  if (!gpu.packer.admits(machine_.now(), machine_.loads(gpu), need.load, gain))
    return "one more task on it would not raise its measured rate of work";
  return "";
}

bool Fit::fits(TaskIndex task, GpuIndex index, const Need& need, double gain) const {
  return in_the_way(task, machine_.gpu(index), need, gain).empty();
}

std::string Fit::obstacle(TaskIndex task, GpuIndex index, double gain) const {
  const Gpu& gpu = machine_.gpu(index);
  const Need need = need_of(task, index);
  const std::size_t count = gpu.running.size();
  if (gpu.usable && count > 0 && wants_whole_gpus(task)) return fmt::format("needs it alone, {} run on it", count);
  const std::string_view words = in_the_way(task, gpu, need, gain);
  if (words == kFull) return fmt::format(kFull, count);
  if (words != kNoMemory) return std::string(words);
  const std::int64_t free = machine_.limit_bytes(gpu) - (count == 0 ? 0 : machine_.counted_bytes(gpu));
  return fmt::format(kNoMemory, human_bytes(count == 0 ? need.alone_bytes : need.bytes),
                     human_bytes(std::max<std::int64_t>(0, free)));
}

}  // namespace headroom::scheduler
