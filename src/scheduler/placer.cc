// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placer.h"

#include <algorithm>
#include <numeric>

#include "base/result.h"

namespace headroom::scheduler {

void ReadyQueue::push(Bucket bucket, const QueueKey& key) {
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  auto& tasks = buckets_[bucket];
  if (!tasks.empty()) heads_.erase({*tasks.begin(), bucket});
  if (tasks.insert(key).second) ++size_;
  heads_.insert({*tasks.begin(), bucket});
}

bool ReadyQueue::erase(Bucket bucket, const QueueKey& key) {
  if (bucket >= buckets_.size()) return false;
  auto& tasks = buckets_[bucket];
  const auto found = tasks.find(key);
  if (found == tasks.end()) return false;
  heads_.erase({*tasks.begin(), bucket});
  tasks.erase(found);
  --size_;
  if (!tasks.empty()) heads_.insert({*tasks.begin(), bucket});
  return true;
}

std::optional<QueueKey> ReadyQueue::from(Bucket bucket, const QueueKey& key) const {
  if (bucket >= buckets_.size()) return std::nullopt;
  const auto found = buckets_[bucket].lower_bound(key);
  return found != buckets_[bucket].end() ? std::optional(*found) : std::nullopt;
}

namespace {

constexpr std::size_t kBucketsPerScan = 256;  // bounds an event's cost
constexpr std::size_t kRejectedKept = 8;
constexpr int kBypassLimit = 64;         // starts behind a blocked task, until GPUs are reserved for it
constexpr double kBackfillMargin = 1.2;  // a task may run before a reserved GPU empties if it surely ends by then

}  // namespace

Placer::Placer(const PlannerSetup& setup, TaskGraph& graph, Machine& machine, const Fit& fit)
    : setup_(setup),
      graph_(graph),
      machine_(machine),
      fit_(fit),
      critical_path_(setup, graph, machine, fit),
      next_attempt_(setup.first_attempt) {}

ReadyQueue::Bucket Placer::bucket_of(TaskIndex task) {
  // Retries and timeouts do not matter for a place, but tasks that differ in them are rarely many kinds.
  const TaskTries& tries = graph_.task(task).tries;
  const BucketKey key{graph_.task(task).profile, tries.alone, tries.gpu_bytes, tries.host_bytes};
  const auto [found, fresh] = bucket_index_.emplace(key, static_cast<ReadyQueue::Bucket>(bucket_index_.size()));
  if (fresh) passed_.push_back(0);
  return found->second;
}

QueueKey Placer::key_of(TaskIndex task) const {
  QueueKey key{.minus_priority = -graph_.task(task).priority, .task = task};
  if (graph_.task(task).expected >= 0) key.minus_expected = -graph_.task(task).expected;
  return key;
}

void Placer::add(TaskIndex task) {
  if (buckets_.size() < graph_.size()) buckets_.resize(graph_.size());
  buckets_[task] = bucket_of(task);
  queue_.push(buckets_[task], key_of(task));
}

void Placer::withdraw(TaskIndex task) {
  queue_.erase(buckets_[task], key_of(task));
  if (reservation_ && reservation_->task == task) reservation_.reset();
}

void Placer::gpu_lost(GpuIndex gpu) {
  if (reservation_ && std::count(reservation_->gpus.begin(), reservation_->gpus.end(), gpu) > 0) reservation_.reset();
}

std::span<StartAttempt> Placer::place() {
  started_.clear();
  critical_path_.forget();
  scan(LookAhead::kOn);
  const auto idle = [](const Gpu& gpu) { return gpu.usable && gpu.running.empty(); };
  // No GPU idles for the sake of a better one.
  if (!queue_.empty() && std::any_of(machine_.gpus().begin(), machine_.gpus().end(), idle)) scan(LookAhead::kOff);
  return started_;
}

void Placer::scan(LookAhead look_ahead) {
  look_ahead_ = look_ahead;
  std::vector<ReadyQueue::Bucket> blocked;
  std::vector<TaskIndex> rejected;  // a few that stand for the others
  auto at = queue_.heads().begin();
  while (at != queue_.heads().end() && blocked.size() < kBucketsPerScan) {
    ++looks_;
    const auto [key, bucket] = *at;
    const bool representative = plain(key.task);
    const bool asked = !representative || !dominated(key.task, rejected);
    if (asked && try_bucket(key, bucket)) {
      for (const ReadyQueue::Bucket other : blocked) ++passed_[other];
      passed_[bucket] = 0;
      rejected.clear();  // what was in the way may have begun
      at = queue_.heads().lower_bound({key, bucket});
      continue;
    }
    if (asked && rejected.size() < kRejectedKept && representative) rejected.push_back(key.task);
    if (!reservation_ || key < key_of(reservation_->task)) reserve(key.task, passed_[bucket]);
    blocked.push_back(bucket);
    ++at;
  }
}

// Asks for what its profile says, and its length is not known: known lengths matter for a place.
bool Placer::plain(TaskIndex task) const {
  const TaskTries& tries = graph_.task(task).tries;
  return graph_.task(task).expected < 0 && tries.gpu_bytes == 0 && tries.host_bytes == 0;
}

// Asks for no less than one of its group that found no place just now: it finds none either. Of plain tasks only.
bool Placer::dominated(TaskIndex task, std::span<const TaskIndex> rejected) const {
  const TaskProfile& mine = graph_.profile(task);
  const ResourceRequest& more = mine.resources;
  return std::any_of(rejected.begin(), rejected.end(), [&](TaskIndex index) {
    const TaskProfile& other = graph_.profile(index);
    const ResourceRequest& less = other.resources;
    return other.group == mine.group && graph_.task(index).tries.alone == graph_.task(task).tries.alone &&
           less.gpus == more.gpus && less.alone == more.alone &&
           less.gpu_memory_bytes.has_value() == more.gpu_memory_bytes.has_value() &&
           less.gpu_memory_bytes <= more.gpu_memory_bytes && less.cpus.has_value() == more.cpus.has_value() &&
           less.cpus <= more.cpus && less.host_memory_bytes.has_value() == more.host_memory_bytes.has_value() &&
           less.host_memory_bytes <= more.host_memory_bytes;
  });
}

// Starts the bucket's first task or, where it would only be too long for GPUs that another one waits for, the first
// that is short enough.
bool Placer::try_bucket(const QueueKey& head, ReadyQueue::Bucket bucket) {
  const bool behind = reservation_ && key_of(reservation_->task) < head;
  if (try_start(head.task, behind)) return true;
  if (!behind || graph_.task(head.task).expected < 0) return false;
  const auto shorter = queue_.from(bucket, {head.minus_priority, -longest_before_reservation(), 0});
  return shorter && *shorter != head && shorter->minus_priority == head.minus_priority &&
         try_start(shorter->task, behind);
}

bool Placer::try_start(TaskIndex task, bool behind) {
  const TaskProfile& of = graph_.profile(task);
  if (graph_.group_full(of.group)) return false;
  if (behind && reservation_ && reservation_->host && reservation_->task != task) return false;
  if (of.resources.gpus == 0) return try_slot(task);
  return of.resources.gpus > 1 || fit_.wants_whole_gpus(task) ? try_whole(task, behind) : try_shared(task, behind);
}

bool Placer::try_slot(TaskIndex task) {
  if (!machine_.slot_free() || !fit_.host_fits(task, false)) return false;
  start(task, {}, {});
  return true;
}

// The GPU with the least load takes it.
bool Placer::try_shared(TaskIndex task, bool behind) {
  std::optional<GpuIndex> best;
  Need best_need;
  double least = 0;
  for (GpuIndex gpu = 0; gpu < machine_.gpu_count(); ++gpu) {
    const Gpu& candidate = machine_.gpu(gpu);
    if (!candidate.usable || reserved(gpu, task, behind)) continue;
    const Need need = fit_.need_of(task, gpu);
    const std::vector<double> there = machine_.loads(candidate);
    const double load = setup_.pack == PackMode::kFixed ? static_cast<double>(there.size())
                                                        : std::accumulate(there.begin(), there.end(), 0.0);
    if (best && load >= least) continue;
    if (!fits(task, gpu, need)) continue;
    best = gpu, best_need = need, least = load;
  }
  if (!best) return false;
  start(task, {*best}, best_need);
  return true;
}

bool Placer::try_whole(TaskIndex task, bool behind) {
  const auto wanted = static_cast<std::size_t>(graph_.profile(task).resources.gpus);
  const bool whole = fit_.wants_whole_gpus(task);
  std::vector<GpuIndex> found;
  Need most;
  for (GpuIndex gpu = 0; gpu < machine_.gpu_count() && found.size() < wanted; ++gpu) {
    const Gpu& candidate = machine_.gpu(gpu);
    if (reserved(gpu, task, behind) || (whole && !candidate.running.empty())) continue;
    const Need need = fit_.need_of(task, gpu);
    if (!fits(task, gpu, need)) continue;
    found.push_back(gpu);
    if (need.bytes > most.bytes) most = need;
  }
  if (found.size() < wanted) return false;
  start(task, std::move(found), most);
  return true;
}

// What a further task on a GPU must add to its rate of work.
double Placer::gain() const {
  if (setup_.space_sharing) return kWorthIt;
  return 2 * queue_.size() <= machine_.running().size() ? kWorthItLast : kWorthItByTurns;
}

bool Placer::fits(TaskIndex task, GpuIndex gpu, const Need& need) {
  if (!fit_.fits(task, gpu, need, gain())) return false;
  if (setup_.pack == PackMode::kFixed || look_ahead_ == LookAhead::kOff) return true;
  return (reservation_ && reservation_->task == task) || !critical_path_.delayed_by(task, gpu, need.load);
}

Nanos Placer::longest_before_reservation() const {
  Nanos last = 0;
  for (const GpuIndex index : reservation_->gpus) {
    for (const AttemptId id : machine_.gpu(index).running) {
      const Nanos left = machine_.remaining(machine_.running().at(id));
      if (left < 0) return 0;
      last = std::max(last, left);
    }
  }
  return static_cast<Nanos>(static_cast<double>(last) / kBackfillMargin);
}

bool Placer::reserved(GpuIndex gpu, TaskIndex task, bool behind) const {
  if (!reservation_ || !behind || task == reservation_->task) return false;
  const auto& taken = reservation_->gpus;
  if (std::find(taken.begin(), taken.end(), gpu) == taken.end()) return false;
  return graph_.task(task).expected < 0 || graph_.task(task).expected > longest_before_reservation();
}

// The first blocked task in the queue that needs whole GPUs, or was passed too often, gets the GPUs that empty soonest.
void Placer::reserve(TaskIndex task, int times_passed) {
  const TaskProfile& of = graph_.profile(task);
  const bool whole = fit_.wants_whole_gpus(task) || of.resources.gpus > 1;
  if (!whole && times_passed < kBypassLimit) return;
  if (graph_.group_full(of.group)) return;
  if (reservation_ && reservation_->task == task) return;
  Reservation wanted{.task = task, .host = !fit_.host_fits(task, !whole) || of.resources.gpus == 0};
  std::vector<GpuIndex> free;
  for (GpuIndex gpu = 0; gpu < machine_.gpu_count(); ++gpu) {
    const Gpu& candidate = machine_.gpu(gpu);
    if (candidate.usable && fit_.need_of(task, gpu).alone_bytes <= machine_.limit_bytes(candidate)) free.push_back(gpu);
  }
  const auto many = static_cast<std::size_t>(of.resources.gpus);
  if (free.size() < many) return;
  const auto effort = [&](GpuIndex gpu) {
    Nanos longest = 0;
    for (const AttemptId id : machine_.gpu(gpu).running)
      longest = std::max(longest, machine_.remaining(machine_.running().at(id)));
    return std::pair(longest, machine_.gpu(gpu).running.size());
  };
  std::stable_sort(free.begin(), free.end(), [&](GpuIndex a, GpuIndex b) { return effort(a) < effort(b); });
  free.resize(many);
  wanted.gpus = std::move(free);
  reservation_ = std::move(wanted);
}

void Placer::start(TaskIndex task, std::vector<GpuIndex> on, const Need& need) {
  withdraw(task);
  critical_path_.forget();
  const int number = graph_.start(task);
  RunningAttempt attempt{.id = next_attempt_++,
                         .task = task,
                         .profile = graph_.profile(task),
                         .expected = graph_.task(task).expected,
                         .gpus = std::move(on),
                         .start = machine_.now(),
                         .last_reading = machine_.now(),
                         .host_need = fit_.host_bytes(task),
                         .alone = fit_.wants_whole_gpus(task)};
  attempt.work.last_progress = machine_.now();
  attempt.memory = {.declared = attempt.profile.resources.gpu_memory_bytes.has_value(),
                    .victim = graph_.task(task).tries.ooms > 0,
                    .probe = need.probe};
  attempt.memory.start = attempt.memory.last_growth = machine_.now();
  attempt.memory.reserved_bytes = need.bytes;
  for (const GpuIndex gpu : attempt.gpus)
    if (machine_.gpu(gpu).running.empty() && setup_.pack != PackMode::kFixed)
      attempt.memory.reserved_bytes =
          std::max(need.alone_bytes, std::min(need.bytes, machine_.limit_bytes(machine_.gpu(gpu))));
  const RunningAttempt& seated = machine_.seat(std::move(attempt));
  started_.push_back({seated.id, task, number, seated.gpus, seated.slot,
                      seated.gpus.empty() ? 0 : seated.memory.reserved_bytes, need.probe, seated.alone});
}

bool Placer::could_start_one() const {
  return std::any_of(queue_.heads().begin(), queue_.heads().end(), [&](const auto& head) {
    return graph_.profile(head.first.task).resources.gpus <= machine_.usable_gpus();
  });
}

std::string Placer::why_waiting() const {
  return queue_.empty() ? "" : why_waiting(queue_.heads().begin()->first.task);
}

std::string Placer::why_waiting(TaskIndex task) const {
  if (task >= graph_.size() || graph_.state(task) != TaskState::kReady) return "";
  const TaskProfile& of = graph_.profile(task);
  if (graph_.group_full(of.group))
    return fmt::format("{} of its group run, and the group may have no more", graph_.running_of_group(of.group));
  if (of.resources.gpus == 0) return fmt::format("all {} slots are taken", machine_.slots());
  if (of.resources.gpus > machine_.usable_gpus())
    return fmt::format("it needs {} GPUs, and {} of {} can be used", of.resources.gpus, machine_.usable_gpus(),
                       machine_.gpu_count());
  if (fit_.wants_whole_gpus(task)) return "it needs GPUs of its own, and waits for them to empty";
  if (!fit_.host_fits(task, true)) return "the host's cores or memory are taken";
  for (GpuIndex gpu = 0; gpu < machine_.gpu_count(); ++gpu) {
    if (!machine_.gpu(gpu).usable || !fit_.memory_fits(machine_.gpu(gpu), fit_.need_of(task, gpu))) continue;
    constexpr std::string_view kWaits = "waits ";
    const std::string why = obstacle(task, gpu);
    if (why.empty()) return "others come first";
    return why.starts_with(kWaits) ? why.substr(kWaits.size()) : "on a GPU with room for it: " + why;
  }
  // What runs may still take more than it holds now: that is why a GPU may look emptier than it is.
  GpuIndex first = 0;
  while (first + 1 < machine_.gpu_count() && !machine_.gpu(first).usable) ++first;
  return fmt::format("no GPU has enough memory to spare for it: {}", obstacle(task, first));
}

}  // namespace headroom::scheduler
