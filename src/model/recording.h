// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/absent.h"
#include "model/metric.h"

namespace headroom {

// Small facts as text, sorted by name. Numbers are decimal; the names used are listed where they are written.
using Attrs = std::map<std::string, std::string>;

// What rows can be about. The number and the name are stored in recordings: append only.
enum class SourceKind : std::uint8_t {
  kGpu = 0,           // key: GPU UUID. One row per tick. attrs: see Device
  kGpuUtilRing = 1,   // key: GPU UUID, parent: the GPU. kGpuUtil from the driver's ring buffer, at its own instants
  kGpuPowerRing = 2,  // likewise kPower
  kGpuProcess = 3,    // key: "<uuid>/<pid>/<start>", parent: the GPU. attrs: pid, context=compute|graphics|mps
  kProcess = 4,       // key: "<pid>/<start ns>", parent: the parent process's source. attrs: see Process
  kHost = 5,          // key: "host". attrs: cores, cores_usable, memory_total_bytes, kernel
  kCgroup = 6,        // key: the cgroup's path. attrs: cpu_quota_cores, cpuset_cores, memory_max_bytes
  kRecorder = 7,      // key: "recorder"; "recorder/<tier>" for a tier that is sampled on a thread of its own
  // key: "<pid>/<start ns>/<tid>", parent: the process. attrs: pid, tid, main=true|false, python. List rows only: its
  // stack, outermost frame first, "qualname (file:first line)"; value 1: it holds the GIL, 0: it does not, 2: not
  // known.
  kPythonThread = 8,
  // key: "<pid>/<start ns>/<tid>/<via>", parent: the process, if it is known. What the job says of itself. attrs:
  // via=marks|nvtx|output|trace|table, and pid and tid where these are known; worker: the rank's number. List rows: the
  // phases that are open from then on, the outermost first (none: no phase); value: the how many-th time, or 0.
  // Columns: kSteps and kSamples, at the instant of the last step counted.
  kMarks = 9,
  // key: GPU UUID, parent: the GPU. Exact, by a profiler. List rows: what ran on it from then on, all streams together
  // (names of kGpuWorks, model/gpu_work.h); an empty list: nothing. Value: kernels that began until the next row.
  kGpuWork = 10,
  // key: "<pid>/<start ns>/<tid>", parent: the process. attrs: pid, tid. Exact, by a profiler. List rows: the operator
  // and the CUDA call, by their names, that were open on the thread from then on, the outermost first.
  kCallThread = 11,
  // key: "<pid>/<start ns>", parent: the process. attrs: pid, tid. What its main thread sleeps for, when looked at:
  // list rows with the texts of WaitTarget (model/wait_target.h), the first of which that is ready ends the wait; they
  // hold until the next row. An empty list: not known. Columns: kConnectionSent and kConnectionReceived, where it is
  // one connection.
  kProcessWaits = 12,
  // key: how it is called. One of several recordings that were joined (model/parts.h), without rows; the sources behind
  // it, up to the next one, are its. attrs: what its meta and its losses were.
  kPart = 13,
};
[[nodiscard]] std::string_view source_kind_name(SourceKind kind);  // "gpu", "gpu_util_ring", "gpu_process", …
[[nodiscard]] std::optional<SourceKind> source_kind_of(std::string_view name);

using SourceId = std::int32_t;  // position in Recording::sources; kNoSource where there is none
inline constexpr SourceId kNoSource = -1;

struct Source {
  SourceKind kind = SourceKind::kHost;
  std::string key;  // unique within its kind
  SourceId parent = kNoSource;
  Attrs attrs;
  bool operator==(const Source&) const = default;
};

// One reading of one metric: a stored integer, or the reason why there is none.
struct Cell {
  Metric metric{};
  std::int64_t value = 0;
  std::optional<Absent> absent;
  bool operator==(const Cell&) const = default;
};

// Something that happened. `kind` is a name of kEventKinds (model/events.h), or one that a newer program wrote.
// `source` is what it is about, or kNoSource; `end` is set for things that lasted.
struct Event {
  Nanos at = 0;
  std::optional<Nanos> end;
  std::string kind;
  SourceId source = kNoSource;
  Attrs attrs;
  bool operator==(const Event&) const = default;
};

enum class Severity : std::uint8_t { kInfo = 0, kNotice = 1, kDataLoss = 2, kError = 3 };
[[nodiscard]] std::string_view severity_name(Severity severity);
[[nodiscard]] std::optional<Severity> severity_of(std::string_view name);

// Where a loss happened: what is known of [begin, end] is incomplete. kNoSource: of every source.
struct LossPlace {
  Nanos begin = 0, end = 0;
  SourceId source = kNoSource;
  bool operator==(const LossPlace&) const = default;
};

// A way in which data was lost or had to be mended, counted. `what` is a name of kLosses (model/losses.h), or one that
// a newer program wrote; `detail` is for people, and names the first place where it happened.
struct Loss {
  std::string what;
  std::int64_t count = 0;
  Severity severity = Severity::kNotice;
  std::string detail;
  std::vector<LossPlace> places{};  // in the order in which they were found; empty: not known for all that was counted
  bool operator==(const Loss&) const = default;
};

// Evidence tiers of DESIGN: N NVML, P /proc, L output lines, Y Python stacks, X marks, C CUPTI, S studies and tasks.
struct MissingTier {
  char tier = 'N';
  std::string why;
  bool operator==(const MissingTier&) const = default;
};

struct RecordingMeta {
  std::string id;      // random, 16 hex digits
  std::string origin;  // "run", "record", "batch", or "import:<format>"
  std::string writer;  // "headroom 0.1.0"
  std::string host;
  std::string boot_id;
  std::string stop_reason;  // "", "job_ended", "interrupted", "duration", "disk_full", "recovered"
  std::vector<std::string> command;
  std::string cwd;
  std::string tiers;  // e.g. "NP"
  std::vector<MissingTier> missing_tiers;
  Nanos start = 0;  // first and last instant the recording speaks about (not: first and last sample)
  Nanos end = 0;
  Nanos start_realtime = 0;  // Unix time of `start`, ns
  Nanos interval = 0;        // nominal time between rows of a GPU
  std::optional<std::int64_t> job_pid;
  std::optional<int> exit_code;  // of the job; 128+n for signal n
  Attrs extra;                   // anything a newer or foreign writer knew
  bool operator==(const RecordingMeta&) const = default;
};

// Somebody is still writing it: it has no end yet, and what it has may lack the last seconds.
[[nodiscard]] bool goes_on(const RecordingMeta& meta);

// One metric of one source. `absent` is empty when every value was read; else it holds, per row, 0 or an Absent.
struct Column {
  Metric metric{};
  std::vector<std::int64_t> values;
  std::vector<std::uint8_t> absent;

  [[nodiscard]] bool has(std::size_t row) const { return absent.empty() || absent[row] == 0; }
  [[nodiscard]] Reading<std::int64_t> at(std::size_t row) const {
    if (has(row)) return values[row];
    return tl::unexpected(static_cast<Absent>(absent[row]));
  }
  bool operator==(const Column&) const = default;
};

// Texts that come again and again (frames of stacks, names of marks) are kept once, and so are lists of them (stacks).
using TextId = std::uint32_t;  // position in Recording::texts
using ListId = std::uint32_t;  // position in Recording::lists
inline constexpr TextId kNoText = UINT32_MAX;
inline constexpr ListId kNoList = UINT32_MAX;

// A row whose value is a list of texts, with a number of its own where its source has a use for one. Of stacks a day
// has tens of millions: 16 bytes each.
struct ListRow {
  Nanos at = 0;
  ListId list = kNoList;
  std::int32_t value = 0;
  bool operator==(const ListRow&) const = default;
};

// All rows of one source, in order of time. Every column has as many values as `at`.
struct Track {
  std::vector<Nanos> at;
  std::vector<Column> columns;
  std::vector<ListRow> lists{};  // at instants of their own

  [[nodiscard]] const Column* find(Metric metric) const;
  bool operator==(const Track&) const = default;
};

// A recording in memory: everything the pure half of Headroom ever sees. tracks[i] belongs to sources[i].
struct Recording {
  RecordingMeta meta;
  std::vector<Source> sources;
  std::vector<Track> tracks;
  std::vector<Event> events;  // in order of time
  std::vector<Loss> losses;
  std::vector<std::string> texts;          // no two are equal
  std::vector<std::vector<TextId>> lists;  // likewise

  [[nodiscard]] std::optional<SourceId> find(SourceKind kind, std::string_view key) const;
  [[nodiscard]] std::vector<SourceId> all(SourceKind kind) const;
  bool operator==(const Recording&) const = default;
};

// Where rows go: a recording file, a recording in memory, or a test. Calls come from one thread.
class RecordingSink {
 public:
  RecordingSink() = default;
  RecordingSink(const RecordingSink&) = delete;
  RecordingSink& operator=(const RecordingSink&) = delete;
  virtual ~RecordingSink() = default;

  // Announces a source, or changes its attrs (merged by name); the same (kind, key) always gets the same id.
  virtual SourceId add_source(const Source& source) = 0;
  // Rows of a source come in order of time. Cells not named in a row are kNotSampled there.
  virtual void add_row(SourceId source, Nanos at, std::span<const Cell> cells) = 0;
  // The number of a text, and of a list of texts that have numbers: the same ones always get the same. kNoText and
  // kNoList when there are too many.
  virtual TextId intern(std::string_view text) = 0;
  virtual ListId intern_list(std::span<const TextId> texts) = 0;
  // List rows of a source come in order of time, whatever its other rows.
  virtual void add_list_row(SourceId source, const ListRow& row) = 0;
  virtual void add_event(const Event& event) = 0;
  // Adds to the counter named `what` (count_loss in model/losses.h).
  virtual void add_loss(const Loss& loss) = 0;
  // The last call before the sink is closed or dropped wins.
  virtual void set_meta(const RecordingMeta& meta) = 0;
};

class Dictionary;

// Collects a Recording in memory (imports, tests).
class MemorySink final : public RecordingSink {
 public:
  MemorySink();
  ~MemorySink() override;
  SourceId add_source(const Source& source) override;
  void add_row(SourceId source, Nanos at, std::span<const Cell> cells) override;
  TextId intern(std::string_view text) override;
  ListId intern_list(std::span<const TextId> texts) override;
  void add_list_row(SourceId source, const ListRow& row) override;
  void add_event(const Event& event) override;
  void add_loss(const Loss& loss) override;
  void set_meta(const RecordingMeta& meta) override { recording_.meta = meta; }

  // Room for so many: where they are millions, growing would take as much memory again.
  void reserve_list_rows(SourceId source, std::size_t rows) {
    recording_.tracks[static_cast<std::size_t>(source)].lists.reserve(rows);
  }
  [[nodiscard]] const Recording& recording() const { return recording_; }
  // Events are sorted by time; the sink is empty afterwards.
  [[nodiscard]] Recording take();

 private:
  Recording recording_;
  std::map<std::pair<SourceKind, std::string>, SourceId> ids_;
  std::unique_ptr<Dictionary> dictionary_;  // made when it is used
};

// Every source, row, event, loss and the meta of `recording`, in an order a file writer likes (rows by time).
void replay(const Recording& recording, RecordingSink& sink);

[[nodiscard]] inline const Track& track_of(const Recording& recording, SourceId source) {
  return recording.tracks[static_cast<std::size_t>(source)];
}

// Empty where the source does not say it.
[[nodiscard]] inline std::string attr(const Source& source, const std::string& name) {
  const auto found = source.attrs.find(name);
  return found == source.attrs.end() ? "" : found->second;
}

}  // namespace headroom
