// SPDX-License-Identifier: Apache-2.0
#include "export/chrome.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/decimal.h"
#include "base/json.h"
#include "export/slices.h"
#include "model/entities.h"
#include "model/events.h"

namespace headroom {

namespace {

using Json = nlohmann::ordered_json;

// Trace "processes": the job's processes, events, stacks, phases, then the GPUs from 10 on.
constexpr int kHostGroup = 1, kEventGroup = 2, kStackGroup = 3, kPhaseGroup = 4, kWorkGroup = 5, kCallGroup = 6,
              kWaitGroup = 7, kFirstGpuGroup = 10;
constexpr Nanos kLongestLook = 200 * kMillisecond;  // a stack says nothing of what comes long after it
// Threads that are no processes: above every pid that Linux gives (2^22 at most). 0 is the idle thread to viewers.
constexpr std::int64_t kMostPid = 1 << 22;
constexpr std::int64_t kLedgerThread = kMostPid + 1, kFindingsThread = kMostPid + 2, kPartsThread = kMostPid + 3,
                       kTasksThread = kMostPid + 4, kEventThread = kMostPid + 5, kFirstFreeThread = kMostPid + 6;

std::string one_line(const Json& json) { return json_text(json); }

class TraceWriter {
 public:
  TraceWriter(const Recording& recording, const Explanation& explanation, const Output& output)
      : recording_(recording), explanation_(explanation), out_(output), origin_(first_instant(recording)) {
    for (const Event& event : recording.events)
      if (const auto started = of_event<events::AttemptStart>(event))
        tasks_[started->pid].emplace_back(event.at, started->task);
    for (const SourceId id : recording.all(SourceKind::kGpu))
      group_of_uuid_[recording.sources[static_cast<std::size_t>(id)].key] = gpu_group(id);
  }

  Result<void> write() {
    out_.text() =
        std::string(kChromeBeginning) + ",\"writer\":" + one_line(recording_.meta.writer) + "},\"traceEvents\":[\n";
    HR_TRYV(name_group(kHostGroup, "processes"));
    HR_TRYV(name_group(kEventGroup, "events"));
    HR_TRYV(name_thread(kEventGroup, kEventThread, "events"));
    HR_TRYV(name_thread(kEventGroup, kFindingsThread, "findings"));
    for (std::size_t i = 0; i < recording_.sources.size(); ++i) HR_TRYV(write_source(i));
    for (const auto& event : recording_.events) HR_TRYV(write_event(event));
    for (std::size_t i = 0; i < explanation_.slices.size(); ++i) HR_TRYV(write_ledger(i));
    for (const Finding& finding : explanation_.findings) HR_TRYV(write_finding(finding));
    write_attempts();
    HR_TRYV(write_loose());
    out_.text() += "\n]}\n";
    return out_.flush();
  }

 private:
  // Viewers drop what is before 0: processes may be older than the recording.
  static Nanos first_instant(const Recording& recording) {
    Nanos first = recording.meta.start;
    for (const Source& source : recording.sources)
      if (source.kind == SourceKind::kProcess)
        if (const Nanos start = process_of(source).start; start > 0) first = std::min(first, start);
    for (const Track& track : recording.tracks) {
      if (!track.at.empty()) first = std::min(first, track.at.front());
      if (!track.lists.empty()) first = std::min(first, track.lists.front().at);
    }
    for (const Event& event : recording.events) first = std::min(first, event.at);
    return first;
  }
  [[nodiscard]] std::string micros(Nanos at) const { return decimal(at - origin_, 3); }

  Result<void> put(std::string_view entry) {
    if (!first_) out_.text() += ",\n";
    first_ = false;
    out_.text() += entry;
    return out_.line_done();
  }
  Result<void> name_group(int group, const std::string& name) {
    if (!named_groups_.insert(group).second) return {};
    return put(one_line({{"ph", "M"}, {"name", "process_name"}, {"pid", group}, {"args", {{"name", name}}}}));
  }
  Result<void> name_thread(int group, std::int64_t thread, const std::string& name) {
    return put(
        one_line({{"ph", "M"}, {"name", "thread_name"}, {"pid", group}, {"tid", thread}, {"args", {{"name", name}}}}));
  }
  [[nodiscard]] int gpu_group(SourceId gpu) const { return kFirstGpuGroup + static_cast<int>(gpu); }

  Result<void> write_source(std::size_t id) {
    const Source& source = recording_.sources[id];
    const auto self = static_cast<SourceId>(id);
    switch (source.kind) {
      case SourceKind::kGpu: {
        const Device device = device_of(source);
        HR_TRYV(name_group(gpu_group(self), fmt::format("{} {}", gpu_name(device), device.name)));
        return write_counters(id, gpu_group(self), "");
      }
      case SourceKind::kGpuUtilRing:
      case SourceKind::kGpuPowerRing:
        return source.parent == kNoSource ? Result<void>()
                                          : write_counters(id, gpu_group(source.parent), " (driver's samples)");
      case SourceKind::kGpuProcess:
        return source.parent == kNoSource ? Result<void>() : write_context(id);
      case SourceKind::kProcess:
        return write_process(id);
      case SourceKind::kCgroup:
        return write_counters(id, kHostGroup,
                              recording_.all(SourceKind::kCgroup).size() > 1 ? fmt::format(" ({})", source.key) : "");
      case SourceKind::kHost:
      case SourceKind::kRecorder:
        return write_counters(id, kHostGroup, "");
      case SourceKind::kPythonThread:
        return write_lists(id, kStackGroup, "Python stacks", kLongestLook);
      case SourceKind::kMarks:
        return write_lists(id, kPhaseGroup, "phases", recording_.meta.end);
      case SourceKind::kGpuWork:
        return write_lists(id, kWorkGroup, "kernels and copies", recording_.meta.end);
      case SourceKind::kCallThread:
        return write_lists(id, kCallGroup, "operators and CUDA calls", recording_.meta.end);
      case SourceKind::kProcessWaits:
        return write_lists(id, kWaitGroup, "what main threads wait for", recording_.meta.end);
      case SourceKind::kPart:
        return {};
    }
    return {};
  }

  // Stacks and phases, each thread a track of its own.
  Result<void> write_lists(std::size_t id, int group, const std::string& name, Nanos longest) {
    const std::vector<ListRow>& rows = recording_.tracks[id].lists;
    if (rows.empty()) return {};
    const Attrs& attrs = recording_.sources[id].attrs;
    const auto attr = [&](const char* key) {
      const auto found = attrs.find(key);
      return found == attrs.end() ? std::string() : found->second;
    };
    HR_TRYV(name_group(group, name));
    const auto thread = static_cast<std::int64_t>(id) + 1;  // threads of several containers may have one number
    HR_TRYV(name_thread(group, thread, fmt::format("pid {} thread {} {}", attr("pid"), attr("tid"), attr("via"))));
    for (const NestedSlice& slice : nested_slices(recording_, rows, longest, recording_.meta.end))
      HR_TRYV(put_slice(recording_.texts[slice.name], group, thread, {slice.begin, slice.end}, "{}"));
    return {};
  }

  // A line that never moves shows nothing.
  static bool constant(const Track& track, const Column& column) {
    std::optional<std::int64_t> first;
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      if (!column.has(row)) continue;
      if (first && *first != column.values[row]) return false;
      first = column.values[row];
    }
    return true;
  }

  Result<void> write_counters(std::size_t id, int group, std::string_view suffix) {
    const Track& track = recording_.tracks[id];
    for (const Column& column : track.columns) {
      const MetricInfo& metric = info(column.metric);
      if (metric.kind != MetricKind::kGauge || constant(track, column)) continue;
      const std::string name = one_line(fmt::format("{}{}", metric.name, suffix));
      for (std::size_t row = 0; row < track.at.size(); ++row) {
        if (!column.has(row)) continue;
        HR_TRYV(put(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"value":{}}}}})", name, group,
                                micros(track.at[row]), decimal(column.values[row], metric.exp10))));
      }
    }
    return {};
  }

  // A slice: its times are written as exact decimals, which JSON numbers built from doubles would not be.
  Result<void> put_slice(const std::string& name, int group, std::int64_t thread, Extent stretch,
                         const std::string& args) {
    return put(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{}}})", one_line(name),
                           group, thread, micros(stretch.begin), decimal(stretch.end - stretch.begin, 3), args));
  }

  // A point of a track that has slices of others, too.
  Result<void> put_instant(const std::string& name, std::int64_t thread, Nanos at, const Json& args) {
    return put(fmt::format(R"({{"ph":"i","s":"g","name":{},"pid":{},"tid":{},"ts":{},"args":{}}})", one_line(name),
                           kEventGroup, thread, micros(at), one_line(args)));
  }

  void put_loose(LooseSlice slice) {
    slice.stretch.end = std::max(slice.stretch.begin, slice.stretch.end);
    loose_.push_back(std::move(slice));
  }
  // Numbers that no Linux gives (of recordings from anybody) get one that is free.
  std::int64_t thread_of(std::int64_t pid) {
    if (pid > 0 && pid <= kMostPid) return pid;
    return foreign_.try_emplace(pid, kFirstFreeThread + static_cast<std::int64_t>(foreign_.size())).first->second;
  }

  Result<void> write_loose() {
    for (const auto& [slice, thread, opens] :
         place(loose_, kFirstFreeThread + static_cast<std::int64_t>(foreign_.size()))) {
      if (opens) HR_TRYV(name_thread(slice->group, thread, slice->track));
      HR_TRYV(put_slice(slice->name, slice->group, thread, slice->stretch, slice->args));
    }
    return {};
  }

  Result<void> write_context(std::size_t id) {
    const Track& track = recording_.tracks[id];
    if (track.at.empty()) return {};
    const GpuContext context = context_of(recording_.sources[id]);
    const std::string name = fmt::format("pid {} ({})", context.pid, context_kind_name(context.kind));
    put_loose({.group = gpu_group(recording_.sources[id].parent),
               .thread = thread_of(context.pid),
               .stretch = {track.at.front(), track.at.back()},
               .track = fmt::format("context of pid {}", context.pid),
               .name = name,
               .args = "{}"});
    return {};
  }

  Result<void> write_process(std::size_t id) {
    const Process process = process_of(recording_.sources[id]);
    const Track& track = recording_.tracks[id];
    Nanos begin = process.start, end = process.end.value_or(recording_.meta.end);
    if (begin == 0) begin = track.at.empty() ? recording_.meta.start : track.at.front();
    if (end < begin) end = begin;
    Json args{{"pid", process.pid}, {"command", process.cmdline}};
    if (process.exit_code) args["exit_code"] = *process.exit_code;
    std::string name = process.comm.empty() ? fmt::format("pid {}", process.pid) : process.comm;
    if (const std::string task = task_of(process.pid, begin); !task.empty()) args["task"] = name = task;
    put_loose({.group = kHostGroup,
               .thread = thread_of(process.pid),
               .stretch = {begin, end},
               .track = name,
               .name = name,
               .args = one_line(args)});
    return {};
  }

  // The tasks of a batch by their names, on each GPU that they were given; those without a GPU beside the processes.
  void write_attempts() {
    for (const AttemptSlice& slice : attempt_slices(recording_)) {
      std::vector<int> groups;
      for (const std::string& uuid : slice.attempt.gpus)
        if (const auto gpu = group_of_uuid_.find(uuid); gpu != group_of_uuid_.end()) groups.push_back(gpu->second);
      if (groups.empty()) groups.push_back(kHostGroup);
      const Json args{{"attempt", slice.attempt.number},
                      {"outcome", slice.outcome ? info(*slice.outcome).label : "no end is recorded"}};
      for (const int group : groups)
        put_loose({.group = group,
                   .thread = kTasksThread,
                   .stretch = slice.stretch,
                   .track = group == kHostGroup ? "tasks without a GPU" : "tasks",
                   .name = slice.attempt.task,
                   .args = one_line(args)});
    }
  }

  // The task of a batch that was started as this process; "" for all others. Pids come again.
  [[nodiscard]] std::string task_of(std::int64_t pid, Nanos begin) const {
    constexpr Nanos kStartTolerance = kSecond;  // an event is written a little before or after what it tells
    const auto known = tasks_.find(pid);
    if (known == tasks_.end()) return "";
    for (const auto& [at, task] : known->second)
      if (std::abs(at - begin) <= kStartTolerance) return task;
    return "";
  }

  // Of a device of the ledger; where the recording does not have it, its place in the ledger.
  [[nodiscard]] int group_of_device(std::size_t device) const {
    const auto known = group_of_uuid_.find(explanation_.ledger.devices[device].uuid);
    return known != group_of_uuid_.end() ? known->second : kFirstGpuGroup + static_cast<int>(device);
  }

  Result<void> write_ledger(std::size_t device) {
    const int group = group_of_device(device);
    HR_TRYV(name_thread(group, kLedgerThread, "where its time went"));
    HR_TRYV(name_thread(group, kFindingsThread, "findings"));
    HR_TRYV(name_thread(group, kPartsThread, "parts of findings"));
    const auto& slices = explanation_.slices[device];
    for (std::size_t i = 0; i < slices.size();) {
      const Slice& first = slices[i];
      std::size_t next = i + 1;
      while (next < slices.size() && slices[next].account == first.account && slices[next].task == first.task &&
             slices[next].where == first.where)
        ++next;
      Json args{{"account", info(first.account).cause}, {"confidence", confidence_name(first.confidence)}};
      if (first.task >= 0) args["task"] = explanation_.ledger.tasks[static_cast<std::size_t>(first.task)];
      if (first.where >= 0) args["where"] = explanation_.ledger.places[static_cast<std::size_t>(first.where)];
      HR_TRYV(put_slice(std::string(info(first.account).label), group, kLedgerThread,
                        {first.begin, slices[next - 1].end}, one_line(args)));
      i = next;
    }
    return {};
  }

  // A slice over each stretch that it claims, and an instant where the first begins; at the start, if it claims none.
  Result<void> write_finding(const Finding& finding) {
    Json args{{"confidence", confidence_name(finding.confidence)}};
    if (finding.cause) args["cause"] = info(*finding.cause).id;
    if (!finding.advice.empty()) args["try"] = finding.advice;
    if (!finding.bound.empty()) args["gain"] = finding.bound;
    const Claims& claims = finding.claims;
    Nanos first = claims.empty() ? explanation_.ledger.begin : claims.front().begin;
    for (const ClaimedPiece& piece : claims) first = std::min(first, piece.begin);
    HR_TRYV(put_instant(finding.title, kFindingsThread, first, args));
    for (std::size_t i = 0; i < claims.size();) {
      std::size_t next = i + 1;
      while (next < claims.size() && claims[next].device == claims[i].device &&
             claims[next].begin == claims[next - 1].end)
        ++next;
      HR_TRYV(put_slice(finding.title, group_of_device(claims[i].device),
                        finding.part_of ? kPartsThread : kFindingsThread, {claims[i].begin, claims[next - 1].end},
                        one_line(args)));
      i = next;
    }
    return {};
  }

  Result<void> write_event(const Event& event) {
    Json args = Json::object();
    for (const auto& [name, value] : event.attrs) args[name] = value;
    if (!event.end) return put_instant(event.kind, kEventThread, event.at, args);
    put_loose({.group = kEventGroup,
               .thread = kEventThread,
               .stretch = {event.at, *event.end},
               .track = "events",
               .name = event.kind,
               .args = one_line(args)});
    return {};
  }

  const Recording& recording_;
  const Explanation& explanation_;
  BlockOutput out_;
  Nanos origin_;
  std::map<std::int64_t, std::vector<std::pair<Nanos, std::string>>> tasks_;  // by pid
  std::map<std::string, int> group_of_uuid_;
  std::vector<LooseSlice> loose_;
  std::map<std::int64_t, std::int64_t> foreign_;  // threads of pids that can be none
  std::set<int> named_groups_;
  bool first_ = true;
};

}  // namespace

Result<void> write_chrome_trace(const Recording& recording, const Explanation& explanation, const Output& output) {
  return TraceWriter(recording, explanation, output).write();
}

}  // namespace headroom
