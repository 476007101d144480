// SPDX-License-Identifier: Apache-2.0
#include "scheduler/machine.h"

#include <algorithm>

#include "scheduler/scaled.h"

namespace headroom::scheduler {

namespace {

constexpr double kHostFactor = 1.5;   // of the cores: a step waits for the GPU now and then
constexpr double kHostMemory = 0.95;  // of the host's, for everybody together

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
      cores += known.cores_of(attempt.in_startup);
  }
  return cores;
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

}  // namespace headroom::scheduler
