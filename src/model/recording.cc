// SPDX-License-Identifier: Apache-2.0
#include "model/recording.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/enum_table.h"
#include "base/result.h"
#include "model/dictionary.h"
#include "model/losses.h"

namespace headroom {

namespace {
template <class Enum>
struct Name {
  Enum id;
  std::string_view name;
};
constexpr std::array kSourceKinds{
    Name<SourceKind>{SourceKind::kGpu, "gpu"},
    Name<SourceKind>{SourceKind::kGpuUtilRing, "gpu_util_ring"},
    Name<SourceKind>{SourceKind::kGpuPowerRing, "gpu_power_ring"},
    Name<SourceKind>{SourceKind::kGpuProcess, "gpu_process"},
    Name<SourceKind>{SourceKind::kProcess, "process"},
    Name<SourceKind>{SourceKind::kHost, "host"},
    Name<SourceKind>{SourceKind::kCgroup, "cgroup"},
    Name<SourceKind>{SourceKind::kRecorder, "recorder"},
    Name<SourceKind>{SourceKind::kPythonThread, "python_thread"},
    Name<SourceKind>{SourceKind::kMarks, "marks"},
    Name<SourceKind>{SourceKind::kGpuWork, "gpu_work"},
    Name<SourceKind>{SourceKind::kCallThread, "call_thread"},
    Name<SourceKind>{SourceKind::kProcessWaits, "process_waits"},
    Name<SourceKind>{SourceKind::kPart, "part"},
};
static_assert(in_order_of_ids(kSourceKinds));
constexpr std::array kSeverities{
    Name<Severity>{Severity::kInfo, "info"},
    Name<Severity>{Severity::kNotice, "notice"},
    Name<Severity>{Severity::kDataLoss, "data_loss"},
    Name<Severity>{Severity::kError, "error"},
};
static_assert(in_order_of_ids(kSeverities));

template <class Enum, std::size_t kSize>
std::optional<Enum> find_name(const std::array<Name<Enum>, kSize>& names, std::string_view name) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const auto& entry) { return entry.name == name; });
  return found == names.end() ? std::nullopt : std::optional(found->id);
}
}  // namespace

std::string_view source_kind_name(SourceKind kind) { return kSourceKinds[static_cast<std::size_t>(kind)].name; }
std::optional<SourceKind> source_kind_of(std::string_view name) { return find_name(kSourceKinds, name); }
std::string_view severity_name(Severity severity) { return kSeverities[static_cast<std::size_t>(severity)].name; }
std::optional<Severity> severity_of(std::string_view name) { return find_name(kSeverities, name); }

bool goes_on(const RecordingMeta& meta) { return meta.stop_reason.empty() && !meta.origin.starts_with("import"); }

const Column* Track::find(Metric metric) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.metric == metric; });
  return found == columns.end() ? nullptr : &*found;
}

std::optional<SourceId> Recording::find(SourceKind kind, std::string_view key) const {
  const auto found =
      std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return s.kind == kind && s.key == key; });
  if (found == sources.end()) return std::nullopt;
  return static_cast<SourceId>(found - sources.begin());
}

std::vector<SourceId> Recording::all(SourceKind kind) const {
  std::vector<SourceId> ids;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].kind == kind) ids.push_back(static_cast<SourceId>(i));
  return ids;
}

SourceId MemorySink::add_source(const Source& source) {
  const auto [entry, is_new] =
      ids_.try_emplace({source.kind, source.key}, static_cast<SourceId>(recording_.sources.size()));
  if (is_new) {
    recording_.sources.push_back(source);
    recording_.tracks.emplace_back();
  } else {
    auto& known = recording_.sources[static_cast<std::size_t>(entry->second)];
    for (const auto& [name, value] : source.attrs) known.attrs[name] = value;
    if (source.parent != kNoSource) known.parent = source.parent;
  }
  return entry->second;
}

void MemorySink::add_row(SourceId source, Nanos at, std::span<const Cell> cells) {
  auto& track = recording_.tracks[static_cast<std::size_t>(source)];
  HR_CHECK(track.at.empty() || at >= track.at.back(), "rows of a source must come in order of time");
  const std::size_t row = track.at.size();
  track.at.push_back(at);
  for (const Cell& cell : cells) {
    auto column = std::find_if(track.columns.begin(), track.columns.end(),
                               [&](const auto& c) { return c.metric == cell.metric; });
    if (column == track.columns.end()) {
      track.columns.push_back({cell.metric, std::vector<std::int64_t>(row, 0), {}});
      column = track.columns.end() - 1;
      if (row > 0) column->absent.assign(row, static_cast<std::uint8_t>(Absent::kNotSampled));
    }
    column->values.resize(row + 1);
    if (cell.absent && column->absent.empty()) column->absent.assign(row + 1, 0);
    if (!column->absent.empty()) {
      column->absent.resize(row + 1, static_cast<std::uint8_t>(Absent::kNotSampled));
      column->absent[row] = cell.absent ? static_cast<std::uint8_t>(*cell.absent) : std::uint8_t{0};
    }
    column->values[row] = cell.absent ? 0 : cell.value;
  }
  for (auto& column : track.columns) {
    if (column.values.size() > row) continue;
    column.values.resize(row + 1, 0);
    if (column.absent.empty()) column.absent.assign(row, 0);
    column.absent.resize(row + 1, static_cast<std::uint8_t>(Absent::kNotSampled));
  }
}

void MemorySink::add_event(const Event& event) { recording_.events.push_back(event); }

void MemorySink::add_loss(const Loss& loss) { count_loss(recording_.losses, loss); }

MemorySink::MemorySink() = default;
MemorySink::~MemorySink() = default;

TextId MemorySink::intern(std::string_view text) {
  if (!dictionary_) dictionary_ = std::make_unique<Dictionary>();
  const TextId id = dictionary_->text(text);
  if (id == recording_.texts.size()) recording_.texts.emplace_back(text);
  return id;
}

ListId MemorySink::intern_list(std::span<const TextId> texts) {
  if (!dictionary_) dictionary_ = std::make_unique<Dictionary>();
  const ListId id = dictionary_->list(texts);
  if (id == recording_.lists.size()) recording_.lists.emplace_back(texts.begin(), texts.end());
  return id;
}

void MemorySink::add_list_row(SourceId source, const ListRow& row) {
  HR_CHECK(source >= 0 && static_cast<std::size_t>(source) < recording_.tracks.size(), "rows need an added source");
  HR_CHECK(row.list < recording_.lists.size(), "list rows need a list that was interned");
  recording_.tracks[static_cast<std::size_t>(source)].lists.push_back(row);
}

Recording MemorySink::take() {
  std::stable_sort(recording_.events.begin(), recording_.events.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  ids_.clear();
  dictionary_.reset();
  return std::exchange(recording_, Recording{});
}

}  // namespace headroom
