// SPDX-License-Identifier: Apache-2.0
#include "analyze/uses.h"

#include <algorithm>
#include <utility>

namespace headroom {

namespace {

bool only_holds(const Track* track) {
  const Column* util = track ? track->find(Metric::kProcessSmUtil) : nullptr;
  if (!util) return false;
  for (std::size_t row = 0; row < track->at.size(); ++row)
    if (util->has(row) && util->values[row] > 0) return false;
  return true;
}

const std::vector<Activity>* did(const JobView& job, SourceId process) {
  return &job.did[static_cast<std::size_t>(process)];
}

Use complete(const Recording& recording, const JobView& job, Use use) {
  const ContextUse& context = use.context;
  if (context.source != kNoSource) use.track = &recording.tracks[static_cast<std::size_t>(context.source)];
  use.only_holds = !context.ours && only_holds(use.track);
  if (context.attempt >= 0) {
    const TaskAttempt& attempt = job.batch.attempts[static_cast<std::size_t>(context.attempt)];
    use.task = attempt.task;
    use.hung = attempt.outcome == AttemptOutcome::kHung;  // the batch's own verdict
    if (!attempt.counted()) use.kernels = attempt.running ? Account::kUnderWay : Account::kDiscarded;
  }
  if (context.ours && context.process && (use.claim == Claim::kContext || use.claim == Claim::kUnseen)) {
    const auto below = descendants(job, *context.process);
    // Which process of an unseen attempt drove the device is only clear where there was one.
    if (use.claim == Claim::kContext || below.empty()) use.host.owner = did(job, *context.process);
    for (const SourceId id : below)
      if (!job.holds[static_cast<std::size_t>(id)]) use.host.helpers.push_back(did(job, id));
  }
  return use;
}

// An attempt that was given this device never held it if the batch said so while it ran, or if it ran so long that it
// must have been seen here.
Claim claim_of(const JobView& job, const TaskAttempt& attempt, bool here, bool elsewhere, Nanos must_be_seen) {
  if (here) return Claim::kAttempt;
  if (!job.has_contexts) return Claim::kUnseen;
  if (attempt.proof == PlacementProof::kCpuFallback || attempt.proof == PlacementProof::kMisplaced)
    return Claim::kNeverHeld;
  // Proven by a list that the recording did not keep; of a task with several GPUs the proof is for those it was seen
  // on.
  const bool proven = attempt.proof == PlacementProof::kVerified && !elsewhere;
  return !proven && attempt.end - attempt.begin >= must_be_seen ? Claim::kNeverHeld : Claim::kUnseen;
}

// Who held the device all that time would have been listed.
bool read_often(const std::vector<Nanos>& looks, Nanos begin, Nanos end, const Thresholds& limits) {
  const auto first = std::upper_bound(looks.begin(), looks.end(), begin);
  const auto count = std::lower_bound(first, std::max(first, looks.end()), end) - first;
  return static_cast<double>(count) >= limits[Threshold::kListings];
}

// Whether the list was read so often while the attempt ran that it would have been found there; not where the list
// named somebody whom nobody knows.
bool looked_for(const JobView& job, const TaskAttempt& attempt, SourceId gpu, const std::vector<Nanos>& looks,
                const Thresholds& limits) {
  if (attempt.proof == PlacementProof::kVerified || !read_often(looks, attempt.begin, attempt.end, limits))
    return false;
  return std::none_of(job.uses.begin(), job.uses.end(), [&](const ContextUse& use) {
    return use.device == gpu && !use.process && use.begin < attempt.end && use.end > attempt.begin;
  });
}

}  // namespace

bool may_have_used_a_gpu(const JobView& job, SourceId process, Nanos begin, Nanos end, const Thresholds& limits) {
  const auto id = static_cast<std::size_t>(process);
  return job.opened_gpu[id] || end - std::max(begin, job.no_gpu_until[id]) >= limits.time(Threshold::kMakesAContext);
}

namespace {

// What is known of an attempt's use of any GPU, from the files that its processes had open.
struct Opened {
  Nanos none_until = 0;  // before that nothing of it ran on one
  bool never = false;    // nor after: it ended without
  bool seen = false;     // a process had one open
};

// Most of its processes are helpers that never open a GPU: they do not matter, however shortly they lived.
Opened opened_by(const JobView& job, const std::vector<SourceId>& processes, const std::vector<Window>& lives,
                 const TaskAttempt& attempt, const Thresholds& limits) {
  const bool listed = attempt.proof == PlacementProof::kVerified;
  Opened opened{attempt.end, !attempt.running && !processes.empty() && !listed};
  for (const SourceId id : processes) {
    const auto process = static_cast<std::size_t>(id);
    const Nanos born = id == processes.front() ? attempt.begin : lives[process].begin;
    const Nanos until = std::max(born, job.no_gpu_until[process]), end = std::min(attempt.end, lives[process].end);
    opened.seen = opened.seen || job.opened_gpu[process];
    const bool could = may_have_used_a_gpu(job, id, born, end, limits);
    if (could) opened.never = false;
    if (could || until == attempt.begin) opened.none_until = std::min(opened.none_until, until);
  }
  if (processes.empty()) opened.none_until = attempt.begin;
  opened.none_until = std::max(attempt.begin, opened.none_until);
  return opened;
}

// The attempts that were given the device.
void add_attempts(const Recording& recording, const JobView& job, SourceId gpu, const Thresholds& limits,
                  std::vector<Use>& uses) {
  const auto& attempts = job.batch.attempts;
  if (attempts.empty()) return;
  const Nanos must_be_seen = limits.time(Threshold::kMustBeSeen);
  const std::vector<Nanos> looks = list_readings(recording, gpu);
  std::vector<bool> here(attempts.size(), false), elsewhere(attempts.size(), false);
  for (const ContextUse& use : job.uses)
    if (use.attempt >= 0) (use.device == gpu ? here : elsewhere)[static_cast<std::size_t>(use.attempt)] = true;
  std::vector<std::vector<SourceId>> processes(attempts.size());
  std::vector<Window> lives(recording.sources.size());  // by SourceId of a process
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const std::int32_t index = job.batch.attempt_of_process[static_cast<std::size_t>(id)];
    if (index < 0) continue;
    processes[static_cast<std::size_t>(index)].push_back(id);
    const Process process = process_of(recording.sources[static_cast<std::size_t>(id)]);
    lives[static_cast<std::size_t>(id)] = {process.start, process.end.value_or(recording.meta.end)};
  }
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const TaskAttempt& attempt = attempts[i];
    if (std::find(attempt.devices.begin(), attempt.devices.end(), gpu) == attempt.devices.end()) continue;
    Use use;
    use.claim = claim_of(job, attempt, here[i], elsewhere[i], must_be_seen);
    const Opened opened = opened_by(job, processes[i], lives, attempt, limits);
    use.opened = opened.seen;
    use.looked_for = looked_for(job, attempt, gpu, looks, limits) || opened.never;
    use.context.device = gpu;
    if (!processes[i].empty()) use.context.process = processes[i].front();
    use.context.pid = attempt.pid;
    use.context.ours = true;
    use.context.begin = use.context.first_seen = attempt.begin;
    use.context.held_from = opened.none_until;
    use.context.end = use.context.last_seen = use.context.seen_until = attempt.end;
    use.context.attempt = static_cast<std::int32_t>(i);
    uses.push_back(complete(recording, job, std::move(use)));
  }
}

}  // namespace

Unlisted may_have_held(const Recording& recording, const JobView& job, SourceId gpu, const Thresholds& limits) {
  Unlisted unlisted;
  const bool any_listed = std::any_of(job.uses.begin(), job.uses.end(), [](const ContextUse& use) { return use.ours; });
  const bool masked = device_of(recording.sources[static_cast<std::size_t>(gpu)]).given == false;
  if (!job.has_job || job.batch.present || any_listed || masked) return unlisted;
  const std::vector<Nanos> looks = list_readings(recording, gpu);
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const auto process = static_cast<std::size_t>(id);
    if (!job.in_job[process]) continue;
    const Process facts = process_of(recording.sources[process]);
    const Nanos end = std::min(facts.end.value_or(recording.meta.end), recording.meta.end);
    const Nanos from = job.no_gpu_until[process];
    // Where looks are rare, the last one at the job itself may be long before its end.
    const bool late = facts.pid == recording.meta.job_pid && from > recording.meta.start &&
                      may_have_used_a_gpu(job, id, from, end, limits);
    if ((!job.opened_gpu[process] && !late) || from >= end || read_often(looks, from, end, limits)) continue;
    unlisted.windows.push_back({from, end});
    unlisted.opened = unlisted.opened || job.opened_gpu[process];
  }
  return unlisted;
}

std::vector<Use> uses_of(const Recording& recording, const JobView& job, SourceId gpu, const Thresholds& limits) {
  std::vector<Use> uses;
  for (const ContextUse& context : job.uses)
    if (context.device == gpu) uses.push_back(complete(recording, job, {context}));
  add_attempts(recording, job, gpu, limits, uses);
  std::stable_sort(uses.begin(), uses.end(),
                   [](const Use& a, const Use& b) { return a.context.begin < b.context.begin; });
  return uses;
}

}  // namespace headroom
