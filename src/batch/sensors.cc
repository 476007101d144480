// SPDX-License-Identifier: Apache-2.0
#include "batch/sensors.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <span>

#include "base/strings.h"
#include "model/events.h"

namespace headroom::batch {

// Outlives the session's threads, one of which may be left behind in a driver call.
struct Sensors::Shared {
  Loop* loop = nullptr;  // guarded, like all but the flags; null once nobody listens
  std::function<void(Sensed)> on_sensed;
  std::function<void(Error)> on_trouble;
  std::mutex mutex;
  Sensed now;
  bool trouble_told = false;
  std::atomic<bool> gpus_ring{false};  // the GPUs come last in a tick, and end it
  std::atomic<bool> look{false};

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
class Sensors::Tee final : public RecordingSink {
 public:
  Tee(std::shared_ptr<Shared> shared, std::optional<OpenRecording> recording)
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
  static std::optional<double> ratio(std::span<const Cell> cells, Metric metric) {
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
    Sensed& now = shared_->now;
    switch (known.kind) {
      case SourceKind::kGpu:
        now.gpus.push_back({.uuid = known.key,
                            .util_ratio = ratio(cells, Metric::kGpuUtil),
                            .used_bytes = value(cells, Metric::kMemoryUsed),
                            .processes_listed = value(cells, Metric::kComputeProcesses).has_value()});
        break;
      case SourceKind::kGpuProcess:
        now.gpu_processes.push_back({.uuid = known.key.substr(0, known.key.find('/')),
                                     .pid = known.pid,
                                     .kind = known.context,
                                     .memory_bytes = value(cells, Metric::kProcessGpuMemory),
                                     .sm_util_ratio = ratio(cells, Metric::kProcessSmUtil)});
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

// Ends a tick: what was seen goes to the loop.
class Sensors::Bell final : public Reader {
 public:
  Bell(std::shared_ptr<Shared> shared, bool with_gpus) : shared_(std::move(shared)), with_gpus_(with_gpus) {
    if (with_gpus) shared_->gpus_ring = true;
  }
  void read(Nanos at, RecordingSink&) override {
    if (shared_->gpus_ring != with_gpus_) return;
    Sensed sensed;
    {
      const std::lock_guard lock(shared_->mutex);
      sensed = std::exchange(shared_->now, {});
    }
    sensed.at = at;
    shared_->post([shared = shared_, sensed = std::move(sensed)] { shared->on_sensed(sensed); });
  }

 private:
  std::shared_ptr<Shared> shared_;
  bool with_gpus_;
};

class Sensors::Nudge final : public Reader {
 public:
  Nudge(std::shared_ptr<Shared> shared, NvmlReader* gpus) : shared_(std::move(shared)), gpus_(gpus) {}
  void read(Nanos, RecordingSink&) override {
    if (shared_->look.exchange(false)) gpus_->ask_all();
  }

 private:
  std::shared_ptr<Shared> shared_;
  NvmlReader* gpus_;
};

// Says once, after the GPUs were announced, which of them get tasks.
class Sensors::Given final : public Reader {
 public:
  explicit Given(std::map<std::string, bool> given) : given_(std::move(given)) {}
  void read(Nanos, RecordingSink& sink) override {
    for (const auto& [uuid, given] : given_)
      sink.add_source({.kind = SourceKind::kGpu, .key = uuid, .attrs = {{"given", given ? "true" : "false"}}});
    given_.clear();
  }

 private:
  std::map<std::string, bool> given_;
};

Sensors::Sensors(Loop& loop, SessionOptions session, std::unique_ptr<NvmlReader> gpus, std::vector<std::string> given,
                 std::function<void(Sensed)> on_sensed, std::function<void(Error)> on_trouble)
    : shared_(std::make_shared<Shared>()) {
  shared_->loop = &loop;
  shared_->on_sensed = std::move(on_sensed);
  shared_->on_trouble = std::move(on_trouble);
  session.open_recording = [shared = shared_, open = std::move(session.open_recording)]() -> Result<OpenRecording> {
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
    auto tee = std::make_unique<Tee>(shared, std::move(recording));
    Tee* raw = tee.get();
    return OpenRecording{.sink = std::move(tee),
                         .path = path,
                         .close = [raw] { return raw->close(); },
                         .failure = [raw]() -> std::optional<Error> {
                           raw->check();
                           return std::nullopt;  // looking goes on
                         }};
  };
  EvidenceSource& host = session.source('P');
  host.open = [shared = shared_, open = std::move(host.open)]() -> Result<OpenSource> {
    HR_TRY(OpenSource opened, open());
    opened.readers.push_back(std::make_unique<Bell>(shared, false));
    return opened;
  };
  session.source('N').open = nullptr;
  if (gpus) {
    gpus->speak_from(session.meta.start);  // tasks start before the first look, which may be late
    auto held = std::make_shared<std::unique_ptr<NvmlReader>>(std::move(gpus));
    std::map<std::string, bool> gets_tasks;
    for (const Device& device : (*held)->devices())
      gets_tasks[device.uuid] = std::find(given.begin(), given.end(), device.uuid) != given.end();
    session.source('N').open = [shared = shared_, held, gets_tasks]() -> Result<OpenSource> {
      OpenSource readers;
      NvmlReader* raw = held->get();
      readers.gpus = raw->devices().size();
      readers.before_last_look = [raw] { raw->ask_all(); };
      readers.readers.push_back(std::make_unique<Nudge>(shared, raw));
      readers.readers.push_back(std::move(*held));
      readers.readers.push_back(std::make_unique<Given>(gets_tasks));
      readers.readers.push_back(std::make_unique<Bell>(shared, true));
      return readers;
    };
  }
  session_ = std::make_unique<Session>(std::move(session));
}

Sensors::~Sensors() {
  const std::lock_guard lock(shared_->mutex);
  shared_->loop = nullptr;
}

void Sensors::add_event(const Event& event) { session_->add_event(event); }
void Sensors::look_at_processes() { shared_->look = true; }
SessionResult Sensors::finish(const SessionEnd& end) { return session_->finish(end); }

}  // namespace headroom::batch
