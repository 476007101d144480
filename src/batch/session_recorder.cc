// SPDX-License-Identifier: Apache-2.0
#include "batch/session_recorder.h"

#include <atomic>
#include <map>
#include <mutex>
#include <span>

#include "base/strings.h"
#include "device/nvml_reader.h"
#include "model/events.h"

namespace headroom::batch {

// Outlives the session's threads, one of which may be left behind in a driver call.
struct SessionRecorder::Shared {
  Loop* loop = nullptr;  // guarded, like all but the flags; null once nobody listens
  std::function<void(const Snapshot&)> on_snapshot;
  std::function<void(const Error&)> on_trouble;
  std::mutex mutex;
  Snapshot now;
  bool trouble_told = false;
  std::atomic<bool> gpus_come_last{false};  // in a tick, and end it
  std::atomic<bool> lists_wanted{false};

  void post(Loop::Handler handler) {
    const std::lock_guard lock(mutex);
    if (loop != nullptr) loop->post(std::move(handler));
  }
  void tell(const Error& error) {
    {
      const std::lock_guard lock(mutex);
      if (std::exchange(trouble_told, true)) return;
    }
    post([this, error] { on_trouble(error); });
  }
};

// Passes everything on and keeps what the batch wants to know.
class SessionRecorder::WatchedSink final : public RecordingSink {
 public:
  WatchedSink(std::shared_ptr<Shared> shared, std::optional<OpenRecording> recording)
      : shared_(std::move(shared)), recording_(std::move(recording)) {}

  SourceId add_source(const Source& source) override {
    const SourceId id = recording_ ? recording_->sink->add_source(source) : own_ids_.add_source(source);
    Known& known = known_[id];
    known.kind = source.kind;
    known.key = source.key;
    if (const auto pid = source.attrs.find("pid"); pid != source.attrs.end())
      known.pid = parse_number<std::int64_t>(std::string_view(pid->second)).value_or(0);
    if (source.kind == SourceKind::kGpuProcess) known.context = context_of(source).kind;
    return id;
  }
  void add_row(SourceId source, Nanos at, std::span<const Cell> cells) override {
    if (recording_) recording_->sink->add_row(source, at, cells);
    const auto known = known_.find(source);
    if (known == known_.end()) return;
    const std::lock_guard lock(shared_->mutex);
    shared_->now.at = at;
    take(known->second, cells);
  }
  TextId intern(std::string_view text) override { return recording_ ? recording_->sink->intern(text) : kNoText; }
  ListId intern_list(std::span<const TextId> texts) override {
    return recording_ ? recording_->sink->intern_list(texts) : kNoList;
  }
  void add_list_row(SourceId source, const ListRow& row) override {
    if (recording_) recording_->sink->add_list_row(source, row);
  }
  void add_event(const Event& event) override {
    if (recording_) recording_->sink->add_event(event);
    const bool lost = is<events::DeviceLost>(event);
    if (!lost && !is<events::DeviceBack>(event)) return;
    const auto known = known_.find(event.source);
    if (known == known_.end()) return;
    const std::lock_guard lock(shared_->mutex);
    (lost ? shared_->now.lost : shared_->now.back).push_back(known->second.key);
  }
  void add_loss(const Loss& loss) override {
    if (recording_) recording_->sink->add_loss(loss);
  }
  void set_meta(const RecordingMeta& meta) override {
    if (recording_) recording_->sink->set_meta(meta);
  }
  [[nodiscard]] Result<void> close() { return recording_ ? recording_->close() : Result<void>{}; }
  void check() {
    if (!recording_) return;
    if (const auto error = recording_->failure()) shared_->tell(*error);
  }

 private:
  struct Known {
    SourceKind kind = SourceKind::kHost;
    std::string key;
    std::int64_t pid = 0;
    ContextKind context = ContextKind::kCompute;
  };
  static std::optional<std::int64_t> value(std::span<const Cell> cells, Metric metric) {
    for (const Cell& cell : cells)
      if (cell.metric == metric && !cell.absent) return cell.value;
    return std::nullopt;
  }
  static std::optional<double> in_units(std::span<const Cell> cells, Metric metric) {
    const auto stored = value(cells, metric);
    if (!stored) return std::nullopt;
    return to_unit(metric, *stored);
  }
  static std::optional<std::int64_t> sum(std::span<const Cell> cells, Metric a, Metric b) {
    const auto first = value(cells, a), second = value(cells, b);
    if (!first && !second) return std::nullopt;
    return first.value_or(0) + second.value_or(0);
  }
  void take(const Known& known, std::span<const Cell> cells) {
    Snapshot& now = shared_->now;
    switch (known.kind) {
      case SourceKind::kGpu:
        now.gpus.push_back({.uuid = known.key,
                            .util_ratio = in_units(cells, Metric::kGpuUtil),
                            .used_bytes = value(cells, Metric::kMemoryUsed),
                            .power_watts = in_units(cells, Metric::kPower),
                            .temperature_celsius = in_units(cells, Metric::kTemperature),
                            .processes_listed = value(cells, Metric::kComputeProcesses).has_value()});
        break;
      case SourceKind::kGpuProcess:
        now.gpu_processes.push_back({.uuid = known.key.substr(0, known.key.find('/')),
                                     .pid = known.pid,
                                     .kind = known.context,
                                     .memory_bytes = value(cells, Metric::kProcessGpuMemory),
                                     .sm_util_ratio = in_units(cells, Metric::kProcessSmUtil)});
        break;
      case SourceKind::kProcess:
        now.processes.push_back({.pid = known.pid,
                                 .cpu_time = sum(cells, Metric::kCpuUser, Metric::kCpuSystem),
                                 .core_wait = value(cells, Metric::kRunDelay),
                                 .rss_bytes = value(cells, Metric::kRss),
                                 .io_bytes = sum(cells, Metric::kReadChars, Metric::kWriteChars)});
        break;
      case SourceKind::kHost:
        if (const auto bytes = value(cells, Metric::kHostMemoryAvailable)) now.host_available_bytes = bytes;
        break;
      default:
        break;
    }
  }

  std::shared_ptr<Shared> shared_;
  std::optional<OpenRecording> recording_;
  MemorySink own_ids_;
  std::map<SourceId, Known> known_;
};

// The last reader of a tick: what was seen in it goes to the loop.
class SessionRecorder::EndOfTick final : public Reader {
 public:
  EndOfTick(std::shared_ptr<Shared> shared, bool after_gpus) : shared_(std::move(shared)), after_gpus_(after_gpus) {
    if (after_gpus) shared_->gpus_come_last = true;
  }
  void read(Nanos at, RecordingSink&) override {
    if (shared_->gpus_come_last != after_gpus_) return;
    Snapshot snapshot;
    {
      const std::lock_guard lock(shared_->mutex);
      snapshot = std::exchange(shared_->now, {});
    }
    snapshot.at = at;
    shared_->post([shared = shared_, snapshot = std::move(snapshot)] { shared->on_snapshot(snapshot); });
  }

 private:
  std::shared_ptr<Shared> shared_;
  bool after_gpus_;
};

// In front of the GPUs' reader: hands on that the process lists are wanted in this tick.
class SessionRecorder::ListRequests final : public Reader {
 public:
  ListRequests(std::shared_ptr<Shared> shared, NvmlReader* gpus) : shared_(std::move(shared)), gpus_(gpus) {}
  void read(Nanos, RecordingSink&) override {
    if (shared_->lists_wanted.exchange(false)) gpus_->ask_all();
  }

 private:
  std::shared_ptr<Shared> shared_;
  NvmlReader* gpus_;
};

Result<OpenRecording> SessionRecorder::open_watched(const std::shared_ptr<Shared>& shared,
                                                    const std::function<Result<OpenRecording>()>& open) {
  std::optional<OpenRecording> recording;
  std::string path;
  if (open) {
    auto opened = open();
    if (opened) {
      path = opened->path;
      recording = std::move(*opened);
    } else {
      shared->tell(opened.error());
    }
  }
  auto sink = std::make_unique<WatchedSink>(shared, std::move(recording));
  WatchedSink* raw = sink.get();
  return OpenRecording{.sink = std::move(sink),
                       .path = path,
                       .close = [raw] { return raw->close(); },
                       .failure = [raw]() -> std::optional<Error> {
                         raw->check();
                         return std::nullopt;  // looking goes on
                       }};
}

OpenSource SessionRecorder::gpu_source(const std::shared_ptr<Shared>& shared, std::unique_ptr<NvmlReader> gpus,
                                       const std::vector<std::string>& given) {
  OpenSource readers;
  NvmlReader* raw = gpus.get();
  readers.gpus = raw->devices().size();
  readers.before_last_look = [raw] { raw->ask_all(); };
  std::vector<Source> facts = given_facts(raw->devices(), given);
  readers.readers.push_back(std::make_unique<ListRequests>(shared, raw));
  readers.readers.push_back(std::move(gpus));
  readers.readers.push_back(std::make_unique<SourceFacts>(std::move(facts)));
  readers.readers.push_back(std::make_unique<EndOfTick>(shared, true));
  return readers;
}

SessionRecorder::SessionRecorder(Parts parts) : shared_(std::make_shared<Shared>()), tree_(parts.tree) {
  shared_->loop = &parts.loop;
  shared_->on_snapshot = std::move(parts.on_snapshot);
  shared_->on_trouble = std::move(parts.on_trouble);
  SessionOptions session = std::move(parts.session);
  session.open_recording = [shared = shared_, open = std::move(session.open_recording)] {
    return open_watched(shared, open);
  };
  EvidenceSource& host = session.source('P');
  host.open = [shared = shared_, open = std::move(host.open)]() -> Result<OpenSource> {
    HR_TRY(OpenSource opened, open());
    opened.readers.push_back(std::make_unique<EndOfTick>(shared, false));
    return opened;
  };
  session.source('N').open = nullptr;
  if (parts.gpus) {
    parts.gpus->speak_from(session.meta.start);  // tasks start before the first look, which may be late
    auto held = std::make_shared<std::unique_ptr<NvmlReader>>(std::move(parts.gpus));
    session.source('N').open = [shared = shared_, held, given = std::move(parts.given)]() -> Result<OpenSource> {
      return gpu_source(shared, std::move(*held), given);
    };
  }
  session_ = std::make_unique<Session>(std::move(session));
}

SessionRecorder::~SessionRecorder() {
  const std::lock_guard lock(shared_->mutex);
  shared_->loop = nullptr;
}

void SessionRecorder::add_event(const Event& event) { session_->add_event(event); }
void SessionRecorder::read_process_lists() { shared_->lists_wanted = true; }
void SessionRecorder::follow_tree_of(std::int64_t pid) {
  if (tree_ != nullptr) tree_->watch(pid);
}
void SessionRecorder::ended(std::int64_t pid) {
  if (tree_ != nullptr) tree_->ended(pid);
}
SessionResult SessionRecorder::finish(const SessionEnd& end) { return session_->finish(end); }

}  // namespace headroom::batch
