// SPDX-License-Identifier: Apache-2.0
#include "record/kept_short.h"

#include <algorithm>
#include <limits>
#include <map>

#include "model/entities.h"
#include "record/forget.h"

namespace headroom {

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

}  // namespace headroom
