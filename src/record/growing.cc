// SPDX-License-Identifier: Apache-2.0
#include "record/growing.h"

#include <sys/stat.h>
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "model/entities.h"
#include "model/events.h"
#include "record/file_reader.h"

namespace headroom {

void forget_rows(Track& track, Nanos instant) {
  const auto rows = std::lower_bound(track.at.begin(), track.at.end(), instant) - track.at.begin();
  const auto cut = [rows](auto& list) { list.erase(list.begin(), list.begin() + std::min(rows, std::ssize(list))); };
  cut(track.at);
  for (Column& column : track.columns) {
    cut(column.values);
    cut(column.absent);
  }
}

namespace {

// A row of these kinds holds until the next one.
bool holds(SourceKind kind) { return kind == SourceKind::kMarks || kind == SourceKind::kProcessWaits; }

void forget_list_rows(Track& track, SourceKind kind, Nanos instant) {
  auto first = std::lower_bound(track.lists.begin(), track.lists.end(), instant,
                                [](const ListRow& row, Nanos at) { return row.at < at; });
  if (holds(kind) && first != track.lists.begin() && (first == track.lists.end() || first->at > instant))
    (--first)->at = instant;
  track.lists.erase(track.lists.begin(), first);
}

bool is_of_a_lost_gpu(const Event& event) {
  const auto kind = event_kind_of(event.kind);
  return kind == EventKind::kDeviceLost || kind == EventKind::kDeviceBack;
}

}  // namespace

void forget_before(Recording& recording, Nanos instant) {
  RecordingMeta& meta = recording.meta;
  if (instant <= meta.start) return;
  if (meta.start_realtime != 0) meta.start_realtime += instant - meta.start;
  meta.start = instant;
  meta.end = std::max(meta.end, instant);
  for (std::size_t i = 0; i < recording.tracks.size(); ++i) {
    forget_rows(recording.tracks[i], instant);
    forget_list_rows(recording.tracks[i], recording.sources[i].kind, instant);
  }
  std::erase_if(recording.events, [instant](const Event& event) {
    return event.end.value_or(event.at) < instant && !is_of_a_lost_gpu(event);
  });
}

namespace {

// With the list row before it, which may hold.
Track rows_from(const Track& track, Nanos instant) {
  const auto first = std::lower_bound(track.at.begin(), track.at.end(), instant) - track.at.begin();
  const auto rest = [first](const auto& list) {
    return std::decay_t<decltype(list)>(list.begin() + std::min(first, std::ssize(list)), list.end());
  };
  Track rows{.at = rest(track.at), .columns = {}};
  rows.columns.reserve(track.columns.size());
  for (const Column& column : track.columns)
    rows.columns.push_back({column.metric, rest(column.values), rest(column.absent)});
  auto list = std::lower_bound(track.lists.begin(), track.lists.end(), instant,
                               [](const ListRow& row, Nanos at) { return row.at < at; });
  if (list != track.lists.begin()) --list;
  rows.lists.assign(list, track.lists.end());
  return rows;
}

struct Kernels {
  std::optional<Nanos> last;  // that was seen before the instant
  bool any = false;           // ever, or a process had the GPU
};
void look_for_kernels(const Track& track, Nanos until, Kernels& kernels) {
  const Column* util = track.find(Metric::kGpuUtil);
  for (std::size_t row = util ? track.at.size() : 0; row-- > 0;) {
    if (!util->has(row) || util->values[row] <= 0) continue;
    kernels.any = true;
    if (track.at[row] > until) continue;
    kernels.last = std::max(kernels.last.value_or(track.at[row]), track.at[row]);
    return;
  }
}

}  // namespace

Nanos last_kernels_before(const Recording& recording, Nanos until) {
  Nanos from = until;
  std::map<SourceId, Kernels> gpus;
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    const Source& source = recording.sources[i];
    const auto id = static_cast<SourceId>(i);
    if (source.kind == SourceKind::kGpu || source.kind == SourceKind::kGpuUtilRing)
      look_for_kernels(recording.tracks[i], until, gpus[source.kind == SourceKind::kGpu ? id : source.parent]);
    if (source.kind == SourceKind::kGpuProcess && !recording.tracks[i].at.empty()) gpus[source.parent].any = true;
  }
  for (const auto& [gpu, kernels] : gpus)
    if (kernels.any) from = std::min(from, kernels.last.value_or(recording.meta.start) - kSecond);
  return from;
}

RecentPart::RecentPart(Recording& whole, Nanos instant) : whole_(whole) {
  part_.meta = whole.meta;
  part_.events = whole.events;
  part_.losses = whole.losses;
  part_.tracks.reserve(whole.tracks.size());
  for (const Track& track : whole.tracks) part_.tracks.push_back(rows_from(track, instant));
  exchange_what_is_lent();
  forget_before(part_, instant);
}

RecentPart::~RecentPart() { exchange_what_is_lent(); }

void RecentPart::exchange_what_is_lent() {
  std::swap(part_.sources, whole_.sources);
  std::swap(part_.texts, whole_.texts);
  std::swap(part_.lists, whole_.lists);
}

namespace {

constexpr Nanos kPowerSamples = 5 * kSecond;
constexpr auto kNotSampled = static_cast<std::uint8_t>(Absent::kNotSampled);

std::uint8_t code_of(const Column& column, std::size_t row) {
  return column.absent.empty() ? std::uint8_t{0} : column.absent[row];
}

bool are_equal(const Track& track, std::size_t one, std::size_t other) {
  return std::all_of(track.columns.begin(), track.columns.end(), [&](const Column& column) {
    const std::uint8_t a = code_of(column, one), b = code_of(column, other);
    return a == kNotSampled || b == kNotSampled || (a == b && (a != 0 || column.values[one] == column.values[other]));
  });
}

void put_cell(Column& column, std::size_t from, std::size_t to) {
  column.values[to] = column.values[from];
  if (!column.absent.empty()) column.absent[to] = column.absent[from];
}

// Puts a later row that is equal in the place of an earlier one.
void join_rows(Track& track, std::size_t later, std::size_t earlier) {
  track.at[earlier] = track.at[later];
  for (Column& column : track.columns)
    if (code_of(column, later) != kNotSampled) put_cell(column, later, earlier);
}

void move_row(Track& track, std::size_t from, std::size_t to) {
  if (from == to) return;
  track.at[to] = track.at[from];
  for (Column& column : track.columns) put_cell(column, from, to);
}

// From that row on, which stays.
void join_equal(Track& track, std::size_t first, Nanos every) {
  std::size_t kept = first + 1;
  for (std::size_t row = first + 1; row < track.at.size(); ++row) {
    const bool says_nothing = kept >= 3 && track.at[kept - 1] - track.at[kept - 3] <= every &&
                              are_equal(track, row, kept - 1) && are_equal(track, row, kept - 2) &&
                              are_equal(track, row, kept - 3);
    if (says_nothing) {
      join_rows(track, kept - 1, kept - 2);
      move_row(track, row, kept - 1);
    } else {
      move_row(track, row, kept++);
    }
  }
  track.at.resize(kept);
  for (Column& column : track.columns) {
    column.values.resize(kept);
    if (!column.absent.empty()) column.absent.resize(kept);
  }
  if (track.at.capacity() < 4 * kept + 64) return;
  track.at.shrink_to_fit();  // all of a recording was read at once
  for (Column& column : track.columns) {
    column.values.shrink_to_fit();
    column.absent.shrink_to_fit();
  }
}

std::vector<bool> at_work(const Recording& recording) {
  std::multimap<std::int64_t, std::size_t> by_pid;
  std::vector<std::int64_t> on_gpus;
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    const Source& source = recording.sources[i];
    if (source.kind == SourceKind::kProcess) by_pid.emplace(process_of(source).pid, i);
    if (source.kind == SourceKind::kGpuProcess) on_gpus.push_back(context_of(source).pid);
  }
  std::vector<bool> works(recording.sources.size(), false);
  for (const std::int64_t pid : on_gpus)
    for (auto [entry, end] = by_pid.equal_range(pid); entry != end; ++entry) works[entry->second] = true;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pid, i] : by_pid) {
      const SourceId parent = recording.sources[i].parent;
      if (works[i] || parent == kNoSource || !works[static_cast<std::size_t>(parent)]) continue;
      works[i] = more = true;
    }
  }
  return works;
}

}  // namespace

void KeptShort::shorten(Recording& recording) {
  if (sources_ != recording.sources.size()) at_work_ = at_work(recording);
  sources_ = recording.sources.size();
  looked_at_.resize(sources_, std::numeric_limits<Nanos>::min());
  for (std::size_t i = 0; i < sources_; ++i) {
    Track& track = recording.tracks[i];
    if (recording.sources[i].kind == SourceKind::kGpuPowerRing) forget_rows(track, recording.meta.end - kPowerSamples);
    if (recording.sources[i].kind != SourceKind::kProcess || track.at.empty()) continue;
    if (!at_work_[i]) {
      const auto known = std::upper_bound(track.at.begin(), track.at.end(), looked_at_[i]) - track.at.begin();
      join_equal(track, static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, known - 1)), every_);
    }
    looked_at_[i] = track.at.back();
  }
}

GrowingRecording::GrowingRecording(std::string path, std::span<const Metric> leave_out, std::string id)
    : path_(std::move(path)), leave_out_(leave_out), id_(std::move(id)) {}
GrowingRecording::GrowingRecording(GrowingRecording&&) noexcept = default;
GrowingRecording& GrowingRecording::operator=(GrowingRecording&&) noexcept = default;
GrowingRecording::~GrowingRecording() = default;

const Recording& GrowingRecording::recording() const {
  HR_CHECK(reader_ != nullptr, "a recording is there once it was read");
  return reader_->recording();
}

void GrowingRecording::forget_before(Nanos instant) {
  HR_CHECK(reader_ != nullptr, "what was read is forgotten");
  reader_->forget_before(instant);
}

RecentPart GrowingRecording::recent(Nanos instant) {
  HR_CHECK(reader_ != nullptr, "a recording is there once it was read");
  return reader_->recent(instant);
}

Nanos GrowingRecording::begin() const {
  HR_CHECK(reader_ != nullptr, "a recording is there once it was read");
  return reader_->begin();
}

GrowingRecording::File GrowingRecording::file() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

Result<void> GrowingRecording::read_on() {
  const File now = file();
  HR_TRY(OpenedFile opened, OpenedFile::open(path_));
  const std::uint64_t most = believable_values(path_);
  if (reader_ && !remembers_ && reader_->can_go_on() && opened.cut().empty() && now == read_from_ &&
      reader_->read(opened, path_, most))
    return {};
  auto fresh = std::make_unique<FileReader>(leave_out_);
  if (short_) fresh->keep_short(*short_);
  const auto read = fresh->read(opened, path_, most);
  if (!read) return tl::unexpected(within(path_, opened.explained(read.error())));
  const std::string& id = fresh->recording().meta.id;
  if (!id_.empty() && id != id_) return fail(Errc::kNotFound, "another recording lies there now");
  id_ = id;
  reader_ = std::move(fresh);
  read_from_ = now;
  remembers_ = false;
  return {};
}

}  // namespace headroom
