// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "batch/batch.h"
#include "batch/sweep.h"

// What the batch sees of its attempts while they run, and what it makes of that at the end.
namespace headroom::batch {

namespace {

constexpr Nanos kForgetProcess = 15 * kSecond;  // rows of quiet processes come every 8 s at the latest
constexpr Nanos kAskAgain = 5 * kSecond;        // whose a process is that was nobody's
constexpr Nanos kNewPlacement = 5 * kSecond;    // process lists are read at every tick for so long after a start
constexpr Nanos kLong = 20 * kSecond;           // an attempt so long would have been seen on a GPU
constexpr Nanos kWarnAfter = 60 * kSecond;

// Of the GPU's model, if enough of its tasks were measured to speak for the others.
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

std::optional<AttemptId> Batch::attempt_of(std::int64_t pid, Nanos now) {
  if (const auto direct = processes_->attempt_of(static_cast<pid_t>(pid))) return direct;
  TreeProcess& process = tree_[pid];
  if (process.attempt && live_.contains(*process.attempt)) return process.attempt;
  if (process.asked != 0 && now - process.asked < kAskAgain) return std::nullopt;
  process.asked = now;
  process.attempt = attempt_of_process(static_cast<pid_t>(pid), parts_.journal.batch_id());
  if (process.attempt && !live_.contains(*process.attempt)) process.attempt.reset();
  return process.attempt;
}

void Batch::sensed(const Sensed& now) {
  if (done_) return;
  const Nanos elapsed = last_sensed_ == 0 ? 0 : now.at - last_sensed_;
  last_sensed_ = now.at;
  acting_ = true;
  for (const auto& uuid : now.lost) tell_lost(uuid, true);
  for (const auto& uuid : now.back) tell_lost(uuid, false);
  feed_later(now.at);
  look_at_trees(now);
  look_at_gpus(now);
  account(elapsed);
  feed(readings(now));
  for (auto& [id, live] : live_) check_fallback(live, now.at);
  acting_ = false;
  act();
}

void Batch::tell_lost(const std::string& uuid, bool lost) {
  for (std::size_t i = 0; i < options_.gpus.size(); ++i) {
    if (options_.gpus[i].uuid != uuid) continue;
    const auto gpu = static_cast<scheduler::GpuIndex>(i);
    if (lost)
      feed(scheduler::GpuLost{.gpu = gpu, .reason = "the driver has lost it"});
    else
      feed(scheduler::GpuBack{.gpu = gpu});
  }
}

void Batch::look_at_trees(const Sensed& now) {
  for (const ProcessNow& seen : now.processes) {
    (void)attempt_of(seen.pid, now.at);
    TreeProcess& process = tree_[seen.pid];
    if (const auto direct = processes_->attempt_of(static_cast<pid_t>(seen.pid))) process.attempt = direct;
    process.looked = now.at;
    process.cpu = std::max(process.cpu, seen.cpu_time.value_or(0));
    process.core_wait = std::max(process.core_wait, seen.core_wait.value_or(0));
    process.rss = seen.rss_bytes.value_or(0);
    process.io = std::max(process.io, seen.io_bytes.value_or(0));
  }
  std::erase_if(tree_, [&](const auto& entry) {
    return now.at - std::max(entry.second.looked, entry.second.asked) > kForgetProcess;
  });
}

void Batch::look_at_gpus(const Sensed& now) {
  bool listed = false;
  for (const GpuNow& gpu : now.gpus) {
    gpu_now_[gpu.uuid] = gpu;
    listed = listed || gpu.processes_listed;
  }
  if (!listed) return;
  lists_read_ = now.at;
  std::unordered_map<AttemptId, std::unordered_map<std::string, std::int64_t>> bytes;
  std::unordered_map<AttemptId, double> util;
  std::unordered_map<std::string, std::int64_t> ours;
  others_compute_.clear();
  for (const GpuProcessNow& process : now.gpu_processes) {
    const auto attempt = options_.gpu_processes_visible ? attempt_of(process.pid, now.at) : std::optional<AttemptId>();
    const auto found = attempt ? live_.find(*attempt) : live_.end();
    if (found == live_.end()) {
      if (process.kind != ContextKind::kGraphics) others_compute_.insert(process.uuid);
      continue;
    }
    ours[process.uuid] += process.memory_bytes.value_or(0);
    if (process.kind == ContextKind::kGraphics) continue;
    note_placement(found->second, process.uuid, process.pid);
    if (process.memory_bytes) bytes[*attempt][process.uuid] += *process.memory_bytes;
    if (process.sm_util_ratio) util[*attempt] += *process.sm_util_ratio;
  }
  for (auto& [id, live] : live_) {
    live.gpu_bytes.reset(), live.gpu_util.reset();
    for (const auto& [uuid, used] : bytes[id]) live.gpu_bytes = std::max(live.gpu_bytes.value_or(0), used);
    if (live.gpu_bytes) live.facts.peak_gpu_bytes = std::max(*live.gpu_bytes, live.facts.peak_gpu_bytes.value_or(0));
    if (const auto used = util.find(id); used != util.end()) live.gpu_util = used->second;
    if (live.gpu_util && *live.gpu_util > 0 && !live.first_kernel) live.first_kernel = now.at;
  }
  others_.clear();
  if (!options_.gpu_processes_visible) return;
  for (const GpuNow& gpu : now.gpus)
    if (gpu.used_bytes && gpu.processes_listed)
      others_[gpu.uuid] = std::max<std::int64_t>(0, *gpu.used_bytes - ours[gpu.uuid]);
}

void Batch::note_placement(Live& live, const std::string& uuid, std::int64_t pid) {
  if (!live.seen.insert(uuid).second || live.gpus.empty()) return;
  const auto& given = live.facts.gpu_uuids;
  if (std::find(given.begin(), given.end(), uuid) != given.end() || live.misplaced_told) return;
  live.misplaced_told = true;
  note(NoteKind::kProblem, fmt::format("{}: computes on {}, but was given {} (process {})", spec(live.facts.task).name,
                                       gpu_name(uuid), gpu_name(given.front()), pid));
  if (!options_.stop_misplaced) return;
  live.stopped_as = AttemptOutcome::kMisplaced;
  processes_->stop(live.facts.id);
}

// The driver's lists are read at least every second; what they never showed in so long was not there.
PlacementProof Batch::proof_of(const Live& live, Nanos end) const {
  if (live.gpus.empty() || !options_.gpu_processes_visible) return PlacementProof::kUnseen;
  if (live.seen.empty()) {
    const bool looked = lists_read_ != 0 && lists_read_ > live.start + kLong / 2;
    return looked && end - live.start >= kLong ? PlacementProof::kCpuFallback : PlacementProof::kUnseen;
  }
  const auto& given = live.facts.gpu_uuids;
  const bool elsewhere = std::any_of(live.seen.begin(), live.seen.end(), [&](const std::string& uuid) {
    return std::find(given.begin(), given.end(), uuid) == given.end();
  });
  return elsewhere ? PlacementProof::kMisplaced : PlacementProof::kVerified;
}

void Batch::check_fallback(Live& live, Nanos now) {
  if (live.fallback_told || live.gpus.empty() || !live.seen.empty() || !live.started) return;
  if (!options_.gpu_processes_visible || now - live.start < kWarnAfter || lists_read_ < now - 5 * kSecond) return;
  live.fallback_told = true;
  note(NoteKind::kProblem, fmt::format("{}: no process of it has used a GPU for {}: it may be computing on the CPU",
                                       spec(live.facts.task).name, human_duration(now - live.start)));
}

void Batch::watch_new_placements() {
  if (sensors_ && unseen_since_ != 0 && boottime_now() - unseen_since_ < kNewPlacement) sensors_->look_at_processes();
}

void Batch::account(Nanos elapsed) {
  const double time = seconds(elapsed);
  for (const BatchGpu& gpu : options_.gpus) {
    GpuUse& use = use_[gpu.uuid];
    if (const auto now = gpu_now_.find(gpu.uuid); now != gpu_now_.end() && now->second.util_ratio)
      use.busy_seconds += *now->second.util_ratio * time;
  }
  for (std::size_t i = 0; i < options_.gpus.size(); ++i) {
    const auto running = planner_.gpu(static_cast<scheduler::GpuIndex>(i)).running.size();
    GpuUse& use = use_[options_.gpus[i].uuid];
    if (running > 0) use.seconds_with_work += time;
    use.task_seconds += static_cast<double>(running) * time;
  }
  for (auto& [id, live] : live_) {
    if (!live.gpu_util) continue;
    live.gpu_seconds += *live.gpu_util * time;
    live.gpu_time_known = true;
  }
}

scheduler::AttemptReading Batch::reading_of(AttemptId id, Live& live, Nanos now) {
  scheduler::AttemptReading reading{.attempt = id, .gpu_bytes = live.gpu_bytes, .gpu_util_ratio = live.gpu_util};
  const auto& tree = totals_[id];
  if (tree.processes > 0) {
    reading.host_bytes = tree.rss;
    reading.io_bytes = tree.io;
    live.facts.peak_host_bytes = std::max(tree.rss, live.facts.peak_host_bytes.value_or(0));
    if (live.cpu_before && now > live.cpu_at) {
      const auto per_time = [&](Nanos amount) {
        return static_cast<double>(std::max<Nanos>(0, amount)) / static_cast<double>(now - live.cpu_at);
      };
      reading.cores = per_time(tree.cpu - *live.cpu_before);
      reading.cores_wanted = *reading.cores + per_time(tree.core_wait - *live.core_wait_before);
    }
    live.cpu_before = tree.cpu, live.core_wait_before = tree.core_wait;
    live.cpu_at = now;
  }
  reading.in_startup = !live.gpus.empty() && !live.first_kernel;
  if (options_.count_steps) reading.steps = options_.count_steps(live.facts);
  return reading;
}

scheduler::Readings Batch::readings(const Sensed& now) {
  scheduler::Readings result{.host_available_bytes = now.host_available_bytes};
  for (std::size_t i = 0; i < options_.gpus.size(); ++i) {
    const std::string& uuid = options_.gpus[i].uuid;
    scheduler::GpuReading reading{.gpu = static_cast<scheduler::GpuIndex>(i),
                                  .others_compute = others_compute_.contains(uuid)};
    if (const auto bytes = others_.find(uuid); bytes != others_.end()) reading.others_bytes = bytes->second;
    result.gpus.push_back(reading);
  }
  totals_.clear();
  for (const auto& [pid, process] : tree_) {
    if (!process.attempt || process.looked == 0) continue;
    TreeTotals& totals = totals_[*process.attempt];
    totals.processes += 1;
    totals.cpu += process.cpu, totals.core_wait += process.core_wait, totals.rss += process.rss,
        totals.io += process.io;
  }
  for (auto& [id, live] : live_)
    if (live.started) {
      count_alone(live, now.at);
      result.attempts.push_back(reading_of(id, live, now.at));
    }
  return result;
}

std::string Batch::gpu_name(const std::string& uuid) const {
  for (const BatchGpu& gpu : options_.gpus)
    if (gpu.uuid == uuid) return fmt::format("GPU {}", gpu.index);
  return uuid;
}

void Batch::count(const Attempt& facts) {
  summary_.attempts += 1;
  for (const auto& uuid : facts.gpu_uuids) {
    GpuUse& use = use_[uuid];
    use.steps += facts.steps.value_or(0);
    if (facts.outcome != AttemptOutcome::kSucceeded) continue;
    use.tasks += 1;
    if (!facts.steps) use.without_steps += 1;
  }
  if (facts.gpu_uuids.empty()) return;
  if (facts.proof == PlacementProof::kVerified) summary_.verified += 1;
  if (facts.proof == PlacementProof::kUnseen) summary_.unseen += 1;
  if (facts.proof == PlacementProof::kCpuFallback) cpu_fallbacks_.push_back(spec(facts.task).name);
  if (facts.proof == PlacementProof::kMisplaced)
    summary_.misplaced.push_back({.task = spec(facts.task).name,
                                  .wanted = join(facts.gpu_uuids, ","),
                                  .found = join(facts.seen_gpu_uuids, ",")});
}

Progress Batch::progress() const {
  Progress progress{.counts = planner_.counts(), .elapsed = boottime_now() - start_};
  progress.draining = draining_;
  progress.waiting_for = planner_.why_waiting();
  const auto alone = planner_.alone_rates();
  for (std::size_t i = 0; i < options_.gpus.size(); ++i) {
    const BatchGpu& gpu = options_.gpus[i];
    const auto view = planner_.gpu(static_cast<scheduler::GpuIndex>(i));
    Progress::Gpu row{.gpu = gpu, .running = view.running.size(), .usable = view.usable};
    if (const auto now = gpu_now_.find(gpu.uuid); now != gpu_now_.end()) {
      row.used_bytes = now->second.used_bytes;
      row.util_ratio = now->second.util_ratio;
    }
    if (const auto use = use_.find(gpu.uuid); use != use_.end() && use->second.seconds_with_work > 0)
      row.tasks_per_second = static_cast<double>(use->second.tasks) / use->second.seconds_with_work;
    if (const auto* rate = rate_of(alone, gpu.model)) row.alone_tasks_per_second = tasks_per_second(*rate);
    progress.gpus.push_back(row);
  }
  const Nanos now = boottime_now();
  std::vector<scheduler::Eta::Running> running;
  for (const auto& [id, live] : live_) {
    if (!live.started) continue;
    progress.running.push_back({.task = spec(live.facts.task).name,
                                .elapsed = now - live.start,
                                .attempt = id,
                                .log_path = live.facts.log_path});
    const double done = live.alone_seconds + live.speed * seconds(now - live.alone_at);
    running.push_back({.task = live.facts.task, .done = static_cast<Nanos>(done * 1e9), .speed = live.speed});
  }
  std::sort(progress.running.begin(), progress.running.end(),
            [](const auto& a, const auto& b) { return a.elapsed > b.elapsed; });
  if (const auto expected = eta_ ? eta_->estimate(running) : std::nullopt)
    progress.left = expected->left, progress.left_low = expected->low, progress.left_high = expected->high;
  return progress;
}

void Batch::add_packing(const BatchGpu& gpu, const std::vector<scheduler::AloneRate>& alone) {
  const GpuUse& use = use_[gpu.uuid];
  if (use.seconds_with_work <= 0) return;
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
  summary_.packing.push_back(packing);
}

BatchEnd Batch::summary() {
  BatchEnd end;
  const auto counts = planner_.counts();
  summary_.tasks = {.total = counts.total,
                    .succeeded = counts.succeeded,
                    .failed = counts.failed,
                    .skipped = counts.skipped,
                    .cancelled = counts.cancelled,
                    .left = counts.waiting + counts.ready + counts.running + counts.backing_off};
  summary_.wall_seconds = seconds(boottime_now() - start_);
  const auto alone = planner_.alone_rates();
  for (const BatchGpu& gpu : options_.gpus) {
    const GpuUse& use = use_[gpu.uuid];
    BatchSummary::DeviceUse device{.uuid = gpu.uuid, .index = gpu.index, .tasks = use.tasks};
    if (last_sensed_ != 0 && summary_.wall_seconds > 0)
      device.busy_ratio = std::clamp(use.busy_seconds / summary_.wall_seconds, 0.0, 1.0);
    device.quarantined = quarantined_.contains(gpu.uuid);
    summary_.devices.push_back(device);
    add_packing(gpu, alone);
  }
  summary_.journal = parts_.journal.path();
  end.reason = stopping_ ? "stopped" : draining_ ? "drained" : summary_.tasks.left > 0 ? "failed" : "finished";
  end.failed = failed_;
  end.cpu_fallbacks = cpu_fallbacks_;
  end.signal = signal_;
  end.unwritten = parts_.journal.results_pending();
  end.summary = summary_;
  return end;
}

}  // namespace headroom::batch
