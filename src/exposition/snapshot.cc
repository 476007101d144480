// SPDX-License-Identifier: Apache-2.0
#include "exposition/snapshot.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "model/events.h"

namespace headroom::exposition {

namespace {

// What the metric is now. Dearer readings are taken less often: then the last one holds. What could not be read any
// more (a GPU that was lost) is not as it was.
std::optional<std::int64_t> latest(const Column& column) {
  for (std::size_t row = column.values.size(); row-- > 0;) {
    const Reading<std::int64_t> reading = column.at(row);
    if (reading) return *reading;
    if (reading.error() != Absent::kNotSampled && reading.error() != Absent::kNoData) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::int64_t> latest(const Track& track, Metric metric) {
  const Column* column = track.find(metric);
  return column == nullptr ? std::nullopt : latest(*column);
}

void add_counted(const Counted& counted, std::vector<Gpu>& gpus) {
  for (const CountedGpu& told : counted.gpus)
    for (Gpu& gpu : gpus)
      if (gpu.device.uuid == told.uuid)
        gpu.accounts = told.accounts, gpu.useful = told.useful, gpu.discarded = told.discarded;
}

// Those that were recorded, and those that the ledger alone knows.
std::vector<Gpu> gpus_of(const Recording& recording, const Ledger& ledger) {
  std::vector<Gpu> gpus;
  for (const SourceId id : recording.all(SourceKind::kGpu)) {
    const auto place = static_cast<std::size_t>(id);
    Gpu& gpu = gpus.emplace_back();
    gpu.device = device_of(recording.sources[place]);
    for (const Column& column : recording.tracks[place].columns)
      if (const auto value = latest(column)) gpu.readings.emplace_back(column.metric, *value);
  }
  for (const Device& device : ledger.devices)
    if (std::none_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.device.uuid == device.uuid; }))
      gpus.push_back({.device = device});
  std::stable_sort(gpus.begin(), gpus.end(),
                   [](const Gpu& a, const Gpu& b) { return a.device.index < b.device.index; });
  return gpus;
}

// Positions in `gpus` of the ledger's devices.
std::vector<std::size_t> places_of(const Ledger& ledger, const std::vector<Gpu>& gpus) {
  std::vector<std::size_t> places;
  for (const Device& device : ledger.devices)
    places.push_back(static_cast<std::size_t>(
        std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.device.uuid == device.uuid; }) -
        gpus.begin()));
  return places;
}

std::string cause_of(const Finding& finding) {
  if (finding.cause) return std::string(info(*finding.cause).id);
  std::vector<std::string> names;
  for (const Cause cause : finding.candidates) names.emplace_back(info(cause).id);
  return join(names, ",");
}

std::vector<FindingCost> findings_of(const Explanation& explanation, const std::vector<std::size_t>& places,
                                     std::size_t gpus) {
  std::vector<FindingCost> costs;
  for (const Finding& finding : explanation.findings) {
    FindingCost& told = costs.emplace_back();
    told.cause = cause_of(finding);
    told.confidence = finding.confidence;
    told.part = finding.part_of.has_value();
    if (finding.claims.empty()) continue;
    told.cost.assign(gpus, 0);
    for (const ClaimedPiece& piece : finding.claims) told.cost[places[piece.device]] += piece.end - piece.begin;
  }
  return costs;
}

// By how the last attempt of a task ended. What is no fault of its own runs again.
TaskState state_after(std::optional<AttemptOutcome> outcome) {
  switch (outcome.value_or(AttemptOutcome::kInterrupted)) {
    case AttemptOutcome::kSucceeded:
      return TaskState::kSucceeded;
    case AttemptOutcome::kFailed:
    case AttemptOutcome::kTimedOut:
    case AttemptOutcome::kHung:
    case AttemptOutcome::kMisplaced:
    case AttemptOutcome::kNotStarted:
      return TaskState::kFailed;
    case AttemptOutcome::kCancelled:
      return TaskState::kCancelled;
    case AttemptOutcome::kGpuOutOfMemory:
    case AttemptOutcome::kHostOutOfMemory:
    case AttemptOutcome::kInterrupted:
    case AttemptOutcome::kDeviceLost:
      break;
  }
  return TaskState::kReady;
}

void add_batch(const Recording& recording, Snapshot& snapshot) {
  std::map<std::string, TaskState> tasks;
  std::map<AttemptId, std::vector<std::string>> running;
  for (const Event& event : recording.events) {
    if (const auto started = of_event<events::AttemptStart>(event)) {
      tasks[started->task] = TaskState::kRunning;
      running[started->attempt] = started->gpus;
    } else if (const auto ended = of_event<events::AttemptEnd>(event)) {
      tasks[ended->start.task] = state_after(ended->outcome);
      running.erase(ended->start.attempt);
    } else if (const auto queue = of_event<events::QueueLength>(event)) {
      snapshot.tasks_waiting = queue->waiting;
    }
  }
  if (tasks.empty()) return;
  for (const TaskState state :
       {TaskState::kReady, TaskState::kRunning, TaskState::kSucceeded, TaskState::kFailed, TaskState::kCancelled})
    snapshot.tasks.emplace_back(
        state, std::count_if(tasks.begin(), tasks.end(), [&](const auto& task) { return task.second == state; }));
  for (Gpu& gpu : snapshot.gpus)
    gpu.tasks = std::count_if(running.begin(), running.end(), [&](const auto& attempt) {
      return std::find(attempt.second.begin(), attempt.second.end(), gpu.device.uuid) != attempt.second.end();
    });
}

void add_xids(const Recording& recording, std::vector<Gpu>& gpus) {
  for (const Event& event : recording.events) {
    const auto xid = of_event<events::Xid>(event);
    if (!xid || event.source == kNoSource) continue;
    const std::string& uuid = recording.sources[static_cast<std::size_t>(event.source)].key;
    for (Gpu& gpu : gpus)
      if (gpu.device.uuid == uuid) gpu.last_xid = xid->code;
  }
}

}  // namespace

Snapshot snapshot_of(const Recording& recording, const Explanation& explanation) {
  Counted counted;
  count_on(counted, explanation, countable(explanation));
  return snapshot_of(recording, explanation, counted);
}

Snapshot snapshot_of(const Recording& recording, const Explanation& explanation, const Counted& counted) {
  const RecordingMeta& meta = recording.meta;
  const Ledger& ledger = explanation.ledger;
  Snapshot snapshot{.recording = meta.id,
                    .origin = meta.origin,
                    .writer = meta.writer,
                    .host = meta.host,
                    .elapsed = counted.until,
                    .end_realtime = meta.start_realtime + (meta.end - meta.start),
                    .gpus = gpus_of(recording, ledger),
                    .losses = explanation.losses};
  const std::vector<std::size_t> places = places_of(ledger, snapshot.gpus);
  add_counted(counted, snapshot.gpus);
  snapshot.findings = findings_of(explanation, places, snapshot.gpus.size());
  add_batch(recording, snapshot);
  add_xids(recording, snapshot.gpus);
  for (const SourceId id : recording.all(SourceKind::kRecorder)) {
    const Track& track = recording.tracks[static_cast<std::size_t>(id)];
    if (const auto cpu = latest(track, Metric::kRecorderCpu)) snapshot.recorder_cpu_ns = cpu;
    if (const auto rss = latest(track, Metric::kRecorderRss)) snapshot.recorder_rss_bytes = rss;
  }
  return snapshot;
}

}  // namespace headroom::exposition
