// SPDX-License-Identifier: Apache-2.0
#include "analyze/attempts.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "model/entities.h"
#include "model/events.h"

namespace headroom {

namespace {

// /proc counts starts in ticks of 10 ms, and an event is written a little before or after what it tells.
constexpr Nanos kStartTolerance = 100 * kMillisecond;

// Puts the events together.
class Collector {
 public:
  explicit Collector(const Recording& recording) : recording_(recording) {
    for (const SourceId id : recording.all(SourceKind::kGpu))
      devices_[recording.sources[static_cast<std::size_t>(id)].key] = id;
  }

  BatchView collect() {
    for (const Event& event : recording_.events) {
      if (const auto queue = of_event<events::QueueLength>(event))
        view_.queue.push_back({event.at, queue->waiting > 0});
      else if (const auto started = of_event<events::AttemptStart>(event))
        start(event.at, *started);
      else if (const auto ended = of_event<events::AttemptEnd>(event))
        end(event.at, *ended);
    }
    // A full disk ends the recording and not the batch.
    if (goes_on(recording_.meta) || recording_.meta.stop_reason == "disk_full")
      for (const auto& [id, index] : open_) view_.attempts[index].running = true;
    view_.present = !view_.queue.empty() || !view_.attempts.empty();
    return std::move(view_);
  }

 private:
  void start(Nanos at, const events::AttemptStart& told) {
    TaskAttempt attempt;
    attempt.task = task_of(told.task);
    attempt.group = told.group;
    attempt.id = told.attempt;
    attempt.pid = told.pid;
    attempt.begin = std::clamp(at, recording_.meta.start, recording_.meta.end);
    attempt.end = recording_.meta.end;
    for (const std::string& uuid : told.gpus)
      if (const auto known = devices_.find(uuid); known != devices_.end()) attempt.devices.push_back(known->second);
    open_[attempt.id] = view_.attempts.size();
    view_.attempts.push_back(std::move(attempt));
  }

  void end(Nanos at, const events::AttemptEnd& told) {
    const auto known = open_.find(told.start.attempt);
    if (known == open_.end()) {  // one that could not be started has no place
      if (told.outcome == AttemptOutcome::kNotStarted) view_.never_started.push_back({task_of(told.start.task), at});
      return;
    }
    TaskAttempt& attempt = view_.attempts[known->second];
    open_.erase(known);
    attempt.end = std::clamp(at, attempt.begin, recording_.meta.end);
    attempt.outcome = told.outcome;
    attempt.reason = told.reason.value_or("");
    attempt.proof = told.proof;
    attempt.cpu_time = told.cpu_time;
    attempt.peak_gpu_bytes = told.peak_gpu_bytes;
  }

  std::int32_t task_of(const std::string& name) {
    const auto [entry, is_new] = tasks_.try_emplace(name, static_cast<std::int32_t>(view_.tasks.size()));
    if (is_new) view_.tasks.push_back(name);
    return entry->second;
  }

  const Recording& recording_;
  BatchView view_;
  std::map<std::string, SourceId> devices_;
  std::unordered_map<std::string, std::int32_t> tasks_;
  std::unordered_map<AttemptId, std::size_t> open_;
};

using AttemptsByPid = std::unordered_map<std::int64_t, std::vector<std::int32_t>>;

// The attempt whose first process this is, or -1.
std::int32_t rooted(const BatchView& view, const AttemptsByPid& by_pid, const Process& process) {
  const auto found = by_pid.find(process.pid);
  if (found == by_pid.end()) return -1;
  std::int32_t best = -1;
  for (const std::int32_t index : found->second) {
    const TaskAttempt& attempt = view.attempts[static_cast<std::size_t>(index)];
    if (process.start >= attempt.begin - kStartTolerance && process.start <= attempt.end) best = index;
  }
  return best;
}

void assign_processes(const Recording& recording, BatchView& view) {
  AttemptsByPid by_pid;
  for (std::size_t i = 0; i < view.attempts.size(); ++i)
    by_pid[view.attempts[i].pid].push_back(static_cast<std::int32_t>(i));
  auto& of = view.attempt_of_process;
  of.assign(recording.sources.size(), -1);
  std::vector<bool> done(recording.sources.size(), false);
  std::vector<SourceId> chain;
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    chain.clear();
    std::int32_t attempt = -1;
    for (SourceId at = id; at != kNoSource; at = recording.sources[static_cast<std::size_t>(at)].parent) {
      const auto i = static_cast<std::size_t>(at);
      if (done[i]) {
        attempt = of[i];
        break;
      }
      done[i] = true;
      chain.push_back(at);
      attempt = rooted(view, by_pid, process_of(recording.sources[i]));
      if (attempt >= 0) break;
    }
    for (const SourceId below : chain) of[static_cast<std::size_t>(below)] = attempt;
  }
}

}  // namespace

bool BatchView::waiting(Nanos at) const {
  const auto next = std::upper_bound(queue.begin(), queue.end(), at,
                                     [](Nanos t, const QueueChange& change) { return t < change.at; });
  return next != queue.begin() && std::prev(next)->waiting;
}

BatchView batch_view(const Recording& recording) {
  if (recording.meta.origin != "batch") return {};
  BatchView view = Collector(recording).collect();
  if (view.present) assign_processes(recording, view);
  return view;
}

}  // namespace headroom
