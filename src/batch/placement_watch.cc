// SPDX-License-Identifier: Apache-2.0
#include "batch/placement_watch.h"

#include <algorithm>
#include <utility>

#include "model/thresholds.h"

namespace headroom::batch {

namespace {

constexpr Nanos kMustBeSeen = Thresholds().time(Threshold::kMustBeSeen);
constexpr Nanos kNewPlacement = 5 * kSecond;  // process lists are read at every tick for so long after a start
constexpr Nanos kWarnAfter = 3 * kMustBeSeen;
constexpr Nanos kFresh = 5 * kSecond;  // lists older than this say nothing of now

bool contains(const std::vector<std::string>& uuids, const std::string& uuid) {
  return std::find(uuids.begin(), uuids.end(), uuid) != uuids.end();
}

}  // namespace

PlacementWatch::Look PlacementWatch::look(const Snapshot& now) {
  const Nanos elapsed = last_look_ == 0 ? 0 : now.at - last_look_;
  last_look_ = now.at;
  Look look;
  trees_.look(now);
  look_at_gpus(now, look);
  count_gpu_time(elapsed);
  look.readings.host_available_bytes = now.host_available_bytes;
  look.readings.gpus = gpu_readings();
  for (BookedAttempt* attempt : running()) look.readings.attempts.push_back(reading_of(*attempt, now.at));
  check_for_gpu_use(now.at, look);
  return look;
}

void PlacementWatch::look_at_gpus(const Snapshot& now, Look& look) {
  bool listed = false;
  for (const GpuSnapshot& gpu : now.gpus) {
    gpu_now_[gpu.uuid] = gpu;
    listed = listed || gpu.processes_listed;
  }
  if (!listed) return;
  lists_read_ = now.at;
  look_at_gpu_processes(now, look);
}

void PlacementWatch::look_at_gpu_processes(const Snapshot& now, Look& look) {
  GpuUse use;
  others_.compute.clear();
  for (const GpuProcessSnapshot& process : now.gpu_processes) {
    const auto id = processes_visible_ ? trees_.attempt_of(process.pid, now.at) : std::nullopt;
    if (BookedAttempt* attempt = id ? book_.under_way(*id) : nullptr)
      add_process(*attempt, process, use, look);
    else if (process.kind != ContextKind::kGraphics && !trees_.is_ours(process.pid))
      others_.compute.insert(process.uuid);
  }
  for (BookedAttempt* attempt : running()) take(*attempt, use, now.at);
  others_.bytes.clear();
  if (!processes_visible_) return;
  for (const GpuSnapshot& gpu : now.gpus)
    if (gpu.used_bytes && gpu.processes_listed)
      others_.bytes[gpu.uuid] = std::max<std::int64_t>(0, *gpu.used_bytes - use.bytes_of_gpu[gpu.uuid]);
}

void PlacementWatch::add_process(BookedAttempt& attempt, const GpuProcessSnapshot& process, GpuUse& use, Look& look) {
  use.bytes_of_gpu[process.uuid] += process.memory_bytes.value_or(0);
  if (process.kind == ContextKind::kGraphics) return;
  Sightings& seen = attempt.seen;
  seen.gpus.insert(process.uuid);
  if (!attempt.gpus.empty() && !seen.misplaced && !contains(attempt.facts.gpu_uuids, process.uuid)) {
    seen.misplaced = true;
    look.misplaced.push_back({.attempt = attempt.facts.id, .uuid = process.uuid, .pid = process.pid});
  }
  GpuUse::OfAttempt& its = use.attempts[attempt.facts.id];
  if (process.memory_bytes) its.bytes[process.uuid] += *process.memory_bytes;
  if (process.sm_util_ratio) its.util = its.util.value_or(0) + *process.sm_util_ratio;
}

void PlacementWatch::take(BookedAttempt& attempt, GpuUse& use, Nanos at) {
  const GpuUse::OfAttempt& its = use.attempts[attempt.facts.id];
  Sightings& seen = attempt.seen;
  seen.gpu_bytes.reset();
  for (const auto& [uuid, bytes] : its.bytes) seen.gpu_bytes = std::max(seen.gpu_bytes.value_or(0), bytes);
  auto& peak = attempt.facts.peak_gpu_bytes;
  if (seen.gpu_bytes) peak = std::max(*seen.gpu_bytes, peak.value_or(0));
  seen.gpu_util = its.util;
  if (its.util.value_or(0) > 0 && !seen.first_kernel) seen.first_kernel = at;
}

void PlacementWatch::count_gpu_time(Nanos elapsed) {
  for (BookedAttempt* attempt : running()) {
    Sightings& seen = attempt->seen;
    if (seen.gpu_util)
      seen.gpu_seconds_estimate = seen.gpu_seconds_estimate.value_or(0) + *seen.gpu_util * seconds(elapsed);
  }
}

std::vector<scheduler::GpuReading> PlacementWatch::gpu_readings() const {
  std::vector<scheduler::GpuReading> readings;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const std::string& uuid = gpus_[i].uuid;
    scheduler::GpuReading reading{.gpu = static_cast<scheduler::GpuIndex>(i),
                                  .others_compute = others_.compute.contains(uuid)};
    if (const auto bytes = others_.bytes.find(uuid); bytes != others_.bytes.end()) reading.others_bytes = bytes->second;
    readings.push_back(reading);
  }
  return readings;
}

scheduler::AttemptReading PlacementWatch::reading_of(BookedAttempt& attempt, Nanos now) {
  Sightings& seen = attempt.seen;
  scheduler::AttemptReading reading{
      .attempt = attempt.facts.id, .gpu_bytes = seen.gpu_bytes, .gpu_util_ratio = seen.gpu_util};
  const ProcessTrees::Use tree = trees_.use_of(attempt.facts.id);
  if (tree.processes > 0) {
    reading.host_bytes = tree.rss;
    reading.io_bytes = tree.io;
    attempt.facts.peak_host_bytes = std::max(tree.rss, attempt.facts.peak_host_bytes.value_or(0));
    if (seen.cpu_before && now > seen.cpu_at) {
      const auto per_time = [&](Nanos amount) {
        return static_cast<double>(std::max<Nanos>(0, amount)) / static_cast<double>(now - seen.cpu_at);
      };
      reading.cores = per_time(tree.cpu - *seen.cpu_before);
      reading.cores_wanted = *reading.cores + per_time(tree.core_wait - *seen.core_wait_before);
    }
    seen.cpu_before = tree.cpu, seen.core_wait_before = tree.core_wait;
    seen.cpu_at = now;
  }
  reading.in_startup = !attempt.gpus.empty() && !seen.first_kernel;
  return reading;
}

PlacementProof PlacementWatch::proof_of(const BookedAttempt& attempt, Nanos end) const {
  if (attempt.gpus.empty() || !processes_visible_) return PlacementProof::kUnseen;
  if (attempt.seen.gpus.empty()) {
    const bool looked = lists_read_ != 0 && lists_read_ > attempt.start + kMustBeSeen / 2;
    const bool long_enough = end - attempt.start >= kMustBeSeen;
    return looked && long_enough ? PlacementProof::kCpuFallback : PlacementProof::kUnseen;
  }
  return attempt.seen.misplaced ? PlacementProof::kMisplaced : PlacementProof::kVerified;
}

void PlacementWatch::check_for_gpu_use(Nanos now, Look& look) {
  if (!processes_visible_ || lists_read_ < now - kFresh) return;
  for (BookedAttempt* attempt : running()) {
    Sightings& seen = attempt->seen;
    if (attempt->gpus.empty() || !seen.gpus.empty() || now - attempt->start < kWarnAfter) continue;
    if (!std::exchange(seen.warned_of_no_gpu, true)) look.not_on_gpu.push_back(attempt->facts.id);
  }
}

bool PlacementWatch::wants_process_lists(Nanos now) const {
  return last_start_ != 0 && now - last_start_ < kNewPlacement;
}

const GpuSnapshot* PlacementWatch::gpu(const std::string& uuid) const {
  const auto found = gpu_now_.find(uuid);
  return found == gpu_now_.end() ? nullptr : &found->second;
}

}  // namespace headroom::batch
