// SPDX-License-Identifier: Apache-2.0
// Where the planner puts tasks: memory, the host, measured gain, whole GPUs, and who is given way.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/planner_state.h"

namespace headroom::scheduler {

namespace {

constexpr std::size_t kRefused = 8;
constexpr double kHostMargin = 1.15;     // on the largest host memory seen of a group
constexpr double kBackfillMargin = 1.2;  // a task may run before a claimed GPU empties if it surely ends by then
constexpr Nanos kYoung = 12 * kSecond;   // a task older than this that still grows does not keep others waiting
constexpr double kSeenMargin = 1.03;     // on the largest GPU memory seen of a group

std::int64_t scaled(std::int64_t bytes, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
}

}  // namespace

int Planner::State::slots() const {
  return setup.slots > 0 ? setup.slots : std::max(1, static_cast<int>(setup.host.cores));
}

std::size_t Planner::State::usable_gpus() const {
  return static_cast<std::size_t>(std::count_if(gpus.begin(), gpus.end(), [](const Gpu& gpu) { return gpu.usable; }));
}

bool Planner::State::wants_whole(const TaskRecord& task) const {
  const ResourceRequest& need = profile(task).resources;
  if (need.gpus == 0) return false;
  return need.alone || task.alone || (need.gpus > 1 && setup.pack != PackMode::kFixed);
}

std::int64_t Planner::State::counted(const Gpu& gpu) const {
  std::int64_t bytes = 0;
  for (const AttemptId id : gpu.running) {
    const Running& attempt = running.at(id);
    const Group& of = groups[static_cast<std::size_t>(profile(tasks[attempt.task]).group)];
    const auto stats = of.stats.find(gpu.facts.model);
    if (stats == of.stats.end())
      bytes += std::max(attempt.memory.reserved_bytes, attempt.memory.peak_bytes);
    else
      bytes += counted_bytes(attempt.memory, stats->second, gpu.facts.memory_bytes, now);
  }
  return bytes;
}

std::int64_t Planner::State::limit(const Gpu& gpu) const {
  const bool tenant = gpu.tenant_seen && now - *gpu.tenant_seen < setup.tenant_memory;
  const double share = kMemoryLimit - (tenant ? kTenantReserve : 0.0);
  return scaled(gpu.facts.memory_bytes, share) - gpu.others_bytes;
}

std::vector<double> Planner::State::loads(const Gpu& gpu) {
  std::vector<double> loads;
  for (const AttemptId id : gpu.running) {
    const Running& attempt = running.at(id);
    loads.push_back(stats(profile(tasks[attempt.task]).group, attempt).load());
  }
  return loads;
}

double Planner::State::cores_counted() const {
  double cores = 0;
  for (const auto& [id, attempt] : running) {
    const Profile& of = profile(tasks[attempt.task]);
    const auto& stats = groups[static_cast<std::size_t>(of.group)].stats;
    const std::string_view model =
        attempt.gpus.empty() ? "" : std::string_view(gpus[static_cast<std::size_t>(attempt.gpus.front())].facts.model);
    const auto found = stats.find(model);
    if (of.resources.cpus)
      cores += *of.resources.cpus;
    else
      cores += found == stats.end() ? 1.0 : attempt.in_startup ? found->second.startup_cores() : found->second.cores();
  }
  return cores;
}

std::int64_t Planner::State::host_need(const TaskRecord& task) {
  const Profile& of = profile(task);
  const std::int64_t learned = scaled(group(of.group).host_peak.value_or(0), kHostMargin);
  return std::max(task.host_reserve, of.resources.host_memory_bytes.value_or(learned));
}

// `extra`: it would join others on a GPU. The first on a GPU does not ask for cores that nobody declared: an idle GPU
// is worse than a busy host.
bool Planner::State::host_fits(const TaskRecord& task, bool extra) {
  if (running.empty()) return true;
  const ResourceRequest& request = profile(task).resources;
  if (request.cpus) {
    double declared = *request.cpus;
    for (const auto& [id, attempt] : running) declared += profile(tasks[attempt.task]).resources.cpus.value_or(0);
    if (declared > setup.host.cores) return false;
  }
  if (extra && setup.pack == PackMode::kPack &&
      cores_counted() + request.cpus.value_or(1.0) > kHostFactor * setup.host.cores)
    return false;
  const std::int64_t need = host_need(task);
  std::int64_t counted = need, coming = need;
  for (const auto& [id, attempt] : running) {
    counted += std::max(attempt.host_need, attempt.host_now);
    coming += std::max<std::int64_t>(0, attempt.host_need - attempt.host_now);
  }
  if (setup.host.memory_bytes > 0 && counted > scaled(setup.host.memory_bytes, kHostMemory)) return false;
  const std::int64_t spare = scaled(setup.host.memory_bytes, 1.0 - kHostMemory);
  return !host_available || coming <= *host_available - spare;
}

Planner::State::Need Planner::State::need_of(const TaskRecord& task, GpuIndex index) {
  const Gpu& gpu = gpus[static_cast<std::size_t>(index)];
  const Profile& of = profile(task);
  const GroupStats& learned = stats_on(of.group, index);
  const std::int64_t total = gpu.facts.memory_bytes;
  Need need{.load = learned.load()};
  if (of.resources.gpu_memory_bytes) {
    need.alone_bytes = *of.resources.gpu_memory_bytes;
    need.bytes = std::max(need.alone_bytes, task.reserve);
  } else {
    need.probe = !learned.memory_known();
    need.bytes = std::max(learned.expected_bytes(total), task.reserve);
    // What it was seen to need; a reservation after an OOM is a guess, and an empty GPU is all there is to have.
    need.alone_bytes = need.probe ? learned.expected_bytes(total) : scaled(learned.peak_bytes(), kSeenMargin);
  }
  // Nobody can have more than a card.
  const std::int64_t most = scaled(total, kMemoryLimit);
  need.alone_bytes = std::min(need.alone_bytes, most);
  return need;
}

bool Planner::State::memory_fits(const Gpu& gpu, const Need& need) const {
  if (setup.pack == PackMode::kFixed) return true;
  if (gpu.running.empty()) return need.alone_bytes <= limit(gpu);
  return counted(gpu) + need.bytes <= limit(gpu);
}

Nanos Planner::State::longest_before_claim() const {
  Nanos last = 0;
  for (const GpuIndex index : claim_->gpus) {
    for (const AttemptId id : gpus[static_cast<std::size_t>(index)].running) {
      const Nanos left = remaining(running.at(id));
      if (left < 0) return 0;
      last = std::max(last, left);
    }
  }
  return static_cast<Nanos>(static_cast<double>(last) / kBackfillMargin);
}

bool Planner::State::claimed(GpuIndex gpu, const TaskRecord& task, bool behind_claim) const {
  if (!claim_ || !behind_claim || &task == &tasks[claim_->task]) return false;
  const auto& taken = claim_->gpus;
  if (std::find(taken.begin(), taken.end(), gpu) == taken.end()) return false;
  return task.expected < 0 || task.expected > longest_before_claim();
}

Nanos Planner::State::remaining(const Running& attempt) const {
  const Nanos expected = tasks[attempt.task].expected;
  if (expected < 0) return -1;
  const auto done = static_cast<Nanos>(attempt.done_seconds * 1e9) + (now - attempt.last_reading);
  return std::max(expected / 10, expected - done);
}

// Beside others one unknown task at a time in the whole box, until it has shown how it begins.
bool Planner::State::probe_runs(GroupIndex of) {
  return std::any_of(running.begin(), running.end(), [&](const auto& entry) {
    const Running& attempt = entry.second;
    const bool young = attempt.in_startup || attempt.memory.peak_bytes == 0 || now - attempt.start < kYoung;
    const GroupIndex group = profile(tasks[attempt.task]).group;
    return attempt.memory.probe && young && !attempt.gpus.empty() && (group == of || attempt.had_company) &&
           !stats(group, attempt).memory_known();
  });
}

bool Planner::State::fits(const TaskRecord& task, GpuIndex index, const Need& need) {
  Gpu& gpu = gpus[static_cast<std::size_t>(index)];
  if (!gpu.usable) return false;
  const int count = static_cast<int>(gpu.running.size());
  if (std::any_of(gpu.running.begin(), gpu.running.end(), [&](AttemptId id) { return running.at(id).alone; }))
    return false;
  if (setup.pack == PackMode::kFixed) return count < setup.per_gpu && host_fits(task, false);
  if (count == 0) return memory_fits(gpu, need) && host_fits(task, false) && !delays_critical(task, index, need.load);
  if (setup.pack == PackMode::kOnePerGpu || count >= kMaxPerGpu || gpu.others_compute) return false;
  if (!memory_fits(gpu, need) || !host_fits(task, true)) return false;
  if (need.probe && probe_runs(profile(task).group)) return false;
  const bool last_round = !setup.space_sharing && 2 * queue.size() <= running.size();
  const bool known = unknown_lengths == 0 && !setup.space_sharing;
  const double gain = last_round ? kWorthItLast : known ? kWorthItKnown : kWorthIt;
  return gpu.packer.admits(now, loads(gpu), need.load, gain) && !delays_critical(task, index, need.load);
}

bool Planner::State::try_slot(TaskIndex index) {
  if (on_slots >= slots() || !host_fits(tasks[index], false)) return false;
  start(index, {}, {});
  return true;
}

// The GPU with the least load takes it.
bool Planner::State::try_shared(TaskIndex index, bool behind_claim) {
  std::optional<GpuIndex> best;
  Need best_need;
  double least = 0;
  for (GpuIndex gpu = 0; gpu < static_cast<GpuIndex>(gpus.size()); ++gpu) {
    const Gpu& candidate = gpus[static_cast<std::size_t>(gpu)];
    if (!candidate.usable || claimed(gpu, tasks[index], behind_claim)) continue;
    const Need need = need_of(tasks[index], gpu);
    const std::vector<double> there = loads(candidate);
    const double load = setup.pack == PackMode::kFixed ? static_cast<double>(there.size())
                                                       : std::accumulate(there.begin(), there.end(), 0.0);
    if (best && load >= least) continue;
    if (!fits(tasks[index], gpu, need)) continue;
    best = gpu, best_need = need, least = load;
  }
  if (!best) return false;
  start(index, {*best}, best_need);
  return true;
}

bool Planner::State::try_whole(TaskIndex index, bool behind_claim) {
  const TaskRecord& task = tasks[index];
  const auto wanted = static_cast<std::size_t>(profile(task).resources.gpus);
  const bool whole = wants_whole(task);
  std::vector<GpuIndex> found;
  Need most;
  for (GpuIndex gpu = 0; gpu < static_cast<GpuIndex>(gpus.size()) && found.size() < wanted; ++gpu) {
    const Gpu& candidate = gpus[static_cast<std::size_t>(gpu)];
    if (claimed(gpu, task, behind_claim) || (whole && !candidate.running.empty())) continue;
    const Need need = need_of(task, gpu);
    if (!fits(task, gpu, need)) continue;
    found.push_back(gpu);
    if (need.bytes > most.bytes) most = need;
  }
  if (found.size() < wanted) return false;
  start(index, std::move(found), most);
  return true;
}

bool Planner::State::try_start(TaskIndex index, bool behind_claim) {
  const TaskRecord& task = tasks[index];
  const Profile& of = profile(task);
  const Group& in = group(of.group);
  if (in.max_running && in.running >= *in.max_running) return false;
  if (behind_claim && claim_ && claim_->host && claim_->task != index) return false;
  if (of.resources.gpus == 0) return try_slot(index);
  return of.resources.gpus > 1 || wants_whole(task) ? try_whole(index, behind_claim) : try_shared(index, behind_claim);
}

// The first blocked task in the queue that needs whole GPUs, or was overtaken too often, gets the GPUs that empty
// soonest: nothing behind it may take them.
void Planner::State::claim(TaskIndex index, int times_overtaken) {
  const TaskRecord& task = tasks[index];
  const bool whole = wants_whole(task) || profile(task).resources.gpus > 1;
  if (!whole && times_overtaken < kOvertaken) return;
  const Group& in = group(profile(task).group);
  if (in.max_running && in.running >= *in.max_running) return;
  if (claim_ && claim_->task == index) return;
  Claim wanted{.task = index, .host = !host_fits(task, !whole) || profile(task).resources.gpus == 0};
  std::vector<GpuIndex> free;
  for (GpuIndex gpu = 0; gpu < static_cast<GpuIndex>(gpus.size()); ++gpu) {
    const Gpu& candidate = gpus[static_cast<std::size_t>(gpu)];
    if (candidate.usable && need_of(task, gpu).alone_bytes <= limit(candidate)) free.push_back(gpu);
  }
  const auto many = static_cast<std::size_t>(profile(task).resources.gpus);
  if (free.size() < many) return;
  const auto effort = [&](GpuIndex gpu) {
    Nanos longest = 0;
    for (const AttemptId id : gpus[static_cast<std::size_t>(gpu)].running)
      longest = std::max(longest, remaining(running.at(id)));
    return std::pair(longest, gpus[static_cast<std::size_t>(gpu)].running.size());
  };
  std::stable_sort(free.begin(), free.end(), [&](GpuIndex a, GpuIndex b) { return effort(a) < effort(b); });
  free.resize(many);
  wanted.gpus = std::move(free);
  claim_ = std::move(wanted);
}

void Planner::State::start(TaskIndex index, std::vector<GpuIndex> on, const Need& need) {
  unqueue(index);
  outlook_.reset();
  set_state(index, TaskState::kRunning);
  TaskRecord& task = tasks[index];
  const Profile& of = profile(task);
  Running attempt{.id = next_attempt++, .task = index, .gpus = std::move(on), .start = now, .alone = wants_whole(task)};
  if (free_slots.empty())
    attempt.slot = next_slot++;
  else
    attempt.slot = free_slots.extract(free_slots.begin()).value();
  attempt.last_reading = attempt.last_progress = now;
  attempt.host_need = host_need(task);
  attempt.memory = {
      .declared = of.resources.gpu_memory_bytes.has_value(), .victim = task.ooms > 0, .probe = need.probe};
  attempt.memory.start = attempt.memory.last_growth = now;
  attempt.memory.reserved_bytes = need.bytes;
  for (const GpuIndex gpu : attempt.gpus) {
    Gpu& onto = gpus[static_cast<std::size_t>(gpu)];
    if (onto.running.empty() && setup.pack != PackMode::kFixed)
      attempt.memory.reserved_bytes = std::max(need.alone_bytes, std::min(need.bytes, limit(onto)));
    if (!onto.running.empty() || onto.others_compute) attempt.had_company = true;
    for (const AttemptId other : onto.running) running.at(other).had_company = true;
    onto.running.push_back(attempt.id);
  }
  if (attempt.gpus.empty()) ++on_slots;
  ++group(of.group).running;
  ++task.attempts;
  act(StartAttempt{attempt.id, index, task.attempts, attempt.gpus, attempt.slot,
                   attempt.gpus.empty() ? 0 : attempt.memory.reserved_bytes, need.probe, attempt.alone});
  running.emplace(attempt.id, std::move(attempt));
}

// Starts the bucket's first task or, where it would only be too long for GPUs that another one waits for, the first
// that is short enough.
bool Planner::State::try_bucket(const QueueKey& head, ReadyQueue::Bucket bucket) {
  const bool behind = claim_ && key_of(claim_->task) < head;
  if (try_start(head.task, behind)) return true;
  if (!behind || tasks[head.task].expected < 0) return false;
  const auto shorter = queue.from(bucket, {head.minus_priority, -longest_before_claim(), 0});
  return shorter && *shorter != head && shorter->minus_priority == head.minus_priority &&
         try_start(shorter->task, behind);
}

void Planner::State::place() {
  if (draining) return;
  look_through();
  const auto idle = [](const Gpu& gpu) { return gpu.usable && gpu.running.empty(); };
  if (queue.empty() || std::none_of(gpus.begin(), gpus.end(), idle)) return;
  use_outlook = false;  // no GPU idles for the sake of a better one
  look_through();
  use_outlook = true;
}

// A task of the group that asks for no less than one that found no place just now: it finds none either. Known lengths
// matter for a place, so those are asked one by one.
bool Planner::State::hopeless(const TaskRecord& task, std::span<const TaskIndex> refused) const {
  if (task.expected >= 0 || task.reserve > 0 || task.host_reserve > 0) return false;
  const ResourceRequest& more = profile(task).resources;
  return std::any_of(refused.begin(), refused.end(), [&](TaskIndex index) {
    const ResourceRequest& less = profile(tasks[index]).resources;
    return profile(tasks[index]).group == profile(task).group && tasks[index].alone == task.alone &&
           less.gpus == more.gpus && less.alone == more.alone &&
           less.gpu_memory_bytes.has_value() == more.gpu_memory_bytes.has_value() &&
           less.gpu_memory_bytes <= more.gpu_memory_bytes && less.cpus.has_value() == more.cpus.has_value() &&
           less.cpus <= more.cpus && less.host_memory_bytes.has_value() == more.host_memory_bytes.has_value() &&
           less.host_memory_bytes <= more.host_memory_bytes;
  });
}

void Planner::State::look_through() {
  std::vector<ReadyQueue::Bucket> blocked;
  std::vector<TaskIndex> refused;  // a few that stand for the others
  auto at = queue.heads().begin();
  while (at != queue.heads().end() && blocked.size() < kLookThrough) {
    const auto [key, bucket] = *at;
    const bool asked = !hopeless(tasks[key.task], refused);
    if (asked && try_bucket(key, bucket)) {
      for (const ReadyQueue::Bucket other : blocked) ++overtaken[other];
      overtaken[bucket] = 0;
      refused.clear();  // what was in the way may have begun
      at = queue.heads().lower_bound({key, bucket});
      continue;
    }
    if (asked && refused.size() < kRefused && tasks[key.task].expected < 0 && tasks[key.task].reserve == 0 &&
        tasks[key.task].host_reserve == 0)
      refused.push_back(key.task);
    if (!claim_ || key < key_of(claim_->task)) claim(key.task, overtaken[bucket]);
    blocked.push_back(bucket);
    ++at;
  }
}

}  // namespace headroom::scheduler
