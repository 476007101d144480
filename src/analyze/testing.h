// SPDX-License-Identifier: Apache-2.0
// Builders of recordings for tests of the pure half; not part of the program.
#pragma once
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/evidence.h"
#include "analyze/stack_evidence.h"
#include "base/strings.h"
#include "model/entities.h"
#include "model/events.h"
#include "model/recording.h"

namespace headroom::testing {

// The devices' time by the evidence that the recording has.
inline std::vector<DeviceTime> times_of(const Recording& recording) {
  const JobView job = job_view(recording);
  const StackView stacks = stack_view(recording, stacks::Families());
  return device_times(recording, job, {}, evidence_of(recording, job, stacks, stacks::Families(), {})).devices;
}
inline Window whole(const Recording& recording) { return {recording.meta.start, recording.meta.end}; }

inline Cell cell(Metric metric, std::int64_t value) { return {metric, value, std::nullopt}; }

// What a RecordingBuilder is told with more than a few facts; times are seconds from its start.
struct TestProcess {
  std::int64_t pid = 0, ppid = 0;
  double from = 0, to = 0, cpu = 0;
  bool in_job = true;
  std::vector<Cell> extra = {};
  std::optional<int> exit_code = {};
};
struct TestContext {
  std::int64_t pid = 0;
  int gpu = 0;
  double from = 0, to = 0, sm = 0.5;
  ContextKind kind = ContextKind::kCompute;
  std::int64_t memory = std::int64_t{1} << 30;
};
struct TestStacks {
  std::int64_t pid = 0;
  double from = 0, to = 0;
  std::vector<std::string> frames = {};
  int thread = 0;
  bool has_interpreter = false;
};
struct TestAttempt {
  std::string task;
  std::int64_t pid = 0;
  std::vector<int> gpus = {};
  double from = 0, to = 0;
  std::string outcome = "succeeded";
  events::AttemptEnd more = {};
};
struct TestTask {
  std::string name;
  std::int64_t pid = 0;
  std::vector<int> gpus = {};
  double from = 0, to = 0, startup = 0;
  std::string outcome = "succeeded";
  events::AttemptEnd more = {};
};

// A recording built step by step; times are seconds from its start.
class RecordingBuilder {
 public:
  explicit RecordingBuilder(double length, double interval = 1.0) : interval_(ns(interval)) {
    meta_.start = kStart;
    meta_.end = kStart + ns(length);
    meta_.interval = interval_;
    meta_.origin = "run";
    meta_.stop_reason = "job_ended";
    meta_.tiers = "NP";
    meta_.start_realtime = 1'760'000'000 * kSecond;
  }

  static Nanos ns(double s) { return static_cast<Nanos>(s * 1e9); }
  static Nanos at(double s) { return kStart + ns(s); }

  RecordingBuilder& gpu(int index, const std::function<double(double)>& util, double memory_used = 1e9) {
    Device device;
    device.uuid = "GPU-" + std::to_string(index);
    device.index = index;
    device.memory_total_bytes = std::int64_t{48} << 30;
    Source source{SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)};
    const SourceId id = sink_.add_source(source);
    for (Nanos t = kStart + interval_; t <= meta_.end; t += interval_)
      sink_.add_row(id, t,
                    std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util(seconds(t - kStart)))),
                               cell(Metric::kMemoryUsed, static_cast<std::int64_t>(memory_used)),
                               cell(Metric::kComputeProcesses, 0)});
    return *this;
  }

  // The driver's ring buffer of a GPU's utilisation: five readings a second.
  RecordingBuilder& util_ring(int index, const std::function<double(double)>& util) {
    const std::string uuid = "GPU-" + std::to_string(index);
    const SourceId gpu = *sink_.recording().find(SourceKind::kGpu, uuid);
    const SourceId ring = sink_.add_source({SourceKind::kGpuUtilRing, uuid, gpu, {}});
    for (Nanos t = kStart + kSecond / 5; t <= meta_.end; t += kSecond / 5)
      sink_.add_row(ring, t,
                    std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util(seconds(t - kStart))))});
    return *this;
  }

  // The machine: its cores, and how many of them are used.
  RecordingBuilder& machine(int cores, double used) {
    Host host;
    host.cores = cores;
    const SourceId id = sink_.add_source({SourceKind::kHost, "host", kNoSource, to_attrs(host)});
    for (Nanos t = kStart; t <= meta_.end; t += interval_)
      sink_.add_row(
          id, t,
          std::array{cell(Metric::kHostCpuBusy, static_cast<std::int64_t>(used * static_cast<double>(t - kStart)))});
    return *this;
  }

  // Of processes from now on: where their main threads sleep, and cores that their other threads use.
  RecordingBuilder& sleeping_in(WaitChannel wait, double other_threads = 0) {
    wait_ = wait;
    other_threads_ = other_threads;
    return *this;
  }

  // A process of the job (or not) that lives over [from, to], using `cpu` cores on its main thread.
  RecordingBuilder& process(std::int64_t pid, std::int64_t ppid, double from, double to, double cpu) {
    return process({.pid = pid, .ppid = ppid, .from = from, .to = to, .cpu = cpu});
  }
  RecordingBuilder& process(const TestProcess& told) {
    Process process;
    process.pid = told.pid;
    process.ppid = told.ppid;
    process.start = at(told.from);
    process.end = at(told.to);
    process.comm = "python3";
    process.in_job = told.in_job;
    process.exit_code = told.exit_code;
    const SourceId parent = ids_.contains(told.ppid) ? ids_[told.ppid] : kNoSource;
    const std::string key = std::to_string(told.pid) + "/" + std::to_string(process.start);
    const SourceId id = sink_.add_source({SourceKind::kProcess, key, parent, to_attrs(process)});
    ids_[told.pid] = id;
    for (Nanos t = kStart; t <= meta_.end; t += interval_) {
      if (t < process.start || t > *process.end) continue;
      const auto used = static_cast<std::int64_t>(told.cpu * static_cast<double>(t - process.start));
      const auto others = static_cast<std::int64_t>(other_threads_ * static_cast<double>(t - process.start));
      std::vector<Cell> cells{cell(Metric::kCpuUser, used + others),
                              cell(Metric::kCpuSystem, 0),
                              cell(Metric::kMainCpu, used),
                              cell(Metric::kProcessState, told.cpu > 0.5 ? 'R' : 'S'),
                              cell(Metric::kWaitChannel, static_cast<std::int64_t>(wait_)),
                              cell(Metric::kThreads, other_threads_ > 0 ? 2 : 1)};
      for (Cell c : told.extra) {  // rates per second become counters
        c.value = static_cast<std::int64_t>(static_cast<double>(c.value) * seconds(t - process.start));
        cells.push_back(c);
      }
      sink_.add_row(id, t, cells);
    }
    return *this;
  }

  RecordingBuilder& rank(std::int64_t pid, std::int64_t number) {
    const std::string key = sink_.recording().sources[static_cast<std::size_t>(ids_.at(pid))].key;
    sink_.add_source({SourceKind::kProcess, key, kNoSource, {{"rank", std::to_string(number)}}});
    return *this;
  }

  // Until then it had no file of a GPU open; at `opened` it had one.
  RecordingBuilder& no_gpu_until(std::int64_t pid, double until, std::optional<double> opened = {}) {
    const std::string key = sink_.recording().sources[static_cast<std::size_t>(ids_.at(pid))].key;
    Attrs attrs{{"no_gpu_until_ns", std::to_string(at(until))}};
    if (opened) attrs["gpu_open_ns"] = std::to_string(at(*opened));
    sink_.add_source({SourceKind::kProcess, key, kNoSource, std::move(attrs)});
    return *this;
  }

  // From the beginning on, what this process waits for when it sleeps, and bytes per second over that connection.
  RecordingBuilder& waits_for(std::int64_t pid, const WaitTarget& target, std::int64_t sent = 0,
                              std::int64_t received = 0) {
    const SourceId id = sink_.add_source(
        {SourceKind::kProcessWaits, std::to_string(pid), ids_.at(pid), {{"pid", std::to_string(pid)}}});
    sink_.add_list_row(id, {kStart, sink_.intern_list(std::array{sink_.intern(to_text(target))}), 0});
    for (Nanos t = kStart; t <= meta_.end && sent + received > 0; t += interval_) {
      const auto passed = static_cast<std::int64_t>(seconds(t - kStart));
      sink_.add_row(id, t,
                    std::array{cell(Metric::kConnectionSent, sent * passed),
                               cell(Metric::kConnectionReceived, received * passed)});
    }
    return *this;
  }

  RecordingBuilder& context(std::int64_t pid, int gpu, double from, double to, double sm = 0.5) {
    return context({.pid = pid, .gpu = gpu, .from = from, .to = to, .sm = sm});
  }
  RecordingBuilder& context(const TestContext& told) {
    const std::string uuid = "GPU-" + std::to_string(told.gpu);
    const SourceId parent = *sink_.recording().find(SourceKind::kGpu, uuid);
    const GpuContext context{told.pid, told.kind, std::nullopt};
    const std::string key = uuid + "/" + std::to_string(told.pid) + "/0";
    const SourceId id = sink_.add_source({SourceKind::kGpuProcess, key, parent, to_attrs(context)});
    for (Nanos t = kStart + interval_; t <= meta_.end; t += interval_)
      if (t >= at(told.from) && t <= at(told.to))
        sink_.add_row(id, t,
                      std::array{cell(Metric::kProcessGpuMemory, told.memory),
                                 cell(Metric::kProcessSmUtil, from_unit(Metric::kProcessSmUtil, told.sm))});
    return *this;
  }

  // The lines of the frames that come are those that ran.
  RecordingBuilder& lines() {
    lines_ = true;
    return *this;
  }

  // Stacks of a thread of a process at 20 Hz over (from, to]; thread 0 is the main one.
  RecordingBuilder& stacks(std::int64_t pid, double from, double to, const std::vector<std::string>& frames,
                           int thread = 0) {
    return stacks({.pid = pid, .from = from, .to = to, .frames = frames, .thread = thread});
  }
  RecordingBuilder& stacks(const TestStacks& told) {
    if (meta_.tiers.find('Y') == std::string::npos) meta_.tiers += 'Y';
    const SourceId process = ids_.at(told.pid);
    const SourceId id = sink_.add_source({SourceKind::kPythonThread,
                                          std::to_string(told.pid) + "/" + std::to_string(told.thread),
                                          process,
                                          {{"main", told.thread == 0 ? "true" : "false"}}});
    if (lines_)
      sink_.add_source({SourceKind::kPythonThread,
                        sink_.recording().sources[static_cast<std::size_t>(id)].key,
                        process,
                        {{"lines", "own"}}});
    std::vector<TextId> texts;
    for (const std::string& frame : told.frames) texts.push_back(sink_.intern(frame));
    const ListId list = sink_.intern_list(texts);
    Nanos& last = last_stack_[id];
    const std::int64_t looks = std::lround((told.to - told.from) * 20);
    for (std::int64_t i = 1; i <= looks; ++i)
      if (const Nanos when = at(told.from) + i * kSecond / 20; when >= last)
        sink_.add_list_row(id, {.at = last = when, .list = list, .value = told.has_interpreter ? 1 : 0});
    return *this;
  }

  // The phases that a thread of a process is in, each from an instant on ("a/b": b within a; "": none), and steps done
  // by then.
  RecordingBuilder& marks(std::int64_t pid, const std::string& via,
                          const std::vector<std::pair<double, std::string>>& phases,
                          const std::vector<std::pair<double, std::int64_t>>& steps = {}, std::int64_t samples = 0) {
    const SourceId id =
        sink_.add_source({SourceKind::kMarks, std::to_string(pid) + "/0/1/" + via, ids_.at(pid), {{"via", via}}});
    for (const auto& [from, name] : phases) {
      std::vector<TextId> texts;
      for (const std::string_view part : split(name, '/'))
        if (!part.empty()) texts.push_back(sink_.intern(part));
      sink_.add_list_row(id, {.at = at(from), .list = sink_.intern_list(texts)});
    }
    for (const auto& [when, count] : steps)
      sink_.add_row(id, at(when), std::array{cell(Metric::kSteps, count), cell(Metric::kSamples, count * samples)});
    return *this;
  }

  // What a batch tells its recording: how many tasks wait, and one run of a task ("" for one that never ended).
  RecordingBuilder& queue(double when, int waiting) {
    meta_.origin = "batch";
    sink_.add_event(to_event(events::QueueLength{waiting}, at(when)));
    return *this;
  }
  RecordingBuilder& attempt(const std::string& task, std::int64_t pid, const std::vector<int>& gpus, double from,
                            double to) {
    return attempt({.task = task, .pid = pid, .gpus = gpus, .from = from, .to = to});
  }
  RecordingBuilder& attempt(const TestAttempt& told) {
    meta_.origin = "batch";
    events::AttemptStart start{.task = told.task, .group = "g", .attempt = ++attempts_, .pid = told.pid};
    for (const int gpu : told.gpus) start.gpus.push_back("GPU-" + std::to_string(gpu));
    sink_.add_event(to_event(start, at(told.from)));
    if (told.outcome.empty()) return *this;
    events::AttemptEnd end = told.more;
    end.start = start;
    for (const OutcomeInfo& known : kOutcomes)
      if (known.name == told.outcome) end.outcome = known.id;
    if (!end.proof) end.proof = PlacementProof::kUnseen;
    sink_.add_event(to_event(end, at(told.to)));
    return *this;
  }
  // The same with its process, and with a context on each GPU from `startup` seconds after its begin on.
  RecordingBuilder& task(const std::string& name, std::int64_t pid, const std::vector<int>& gpus, double from,
                         double to) {
    return task({.name = name, .pid = pid, .gpus = gpus, .from = from, .to = to});
  }
  RecordingBuilder& task(const TestTask& told) {
    process(told.pid, 1, told.from, told.to, 0.9);
    for (const int gpu : told.gpus) context(told.pid, gpu, told.from + told.startup, told.to);
    return attempt({told.name, told.pid, told.gpus, told.from, told.to, told.outcome, told.more});
  }

  [[nodiscard]] MemorySink& sink() { return sink_; }
  [[nodiscard]] RecordingMeta& meta() { return meta_; }
  [[nodiscard]] Recording build() {
    sink_.set_meta(meta_);
    return sink_.take();
  }

 private:
  static constexpr Nanos kStart = 1000 * kSecond;
  WaitChannel wait_ = WaitChannel::kPoll;
  double other_threads_ = 0;
  Nanos interval_;
  RecordingMeta meta_;
  MemorySink sink_;
  std::map<std::int64_t, SourceId> ids_;
  bool lines_ = false;
  std::map<SourceId, Nanos> last_stack_;
  AttemptId attempts_ = 0;
};

}  // namespace headroom::testing
