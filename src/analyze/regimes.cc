// SPDX-License-Identifier: Apache-2.0
#include "analyze/regimes.h"

#include <algorithm>
#include <utility>

#include "base/median.h"

namespace headroom {

namespace {

// What a row says of a busy device; nothing where it is not busy, or where one of the three is absent.
struct BusyRow {
  std::size_t row = 0;
  double watts = 0, memory = 0;
};

std::vector<BusyRow> busy_rows(const Track& track, const Window& window, const Thresholds& limits) {
  const Column *util = track.find(Metric::kGpuUtil), *power = track.find(Metric::kPower),
               *memory = track.find(Metric::kMemoryUtil);
  std::vector<BusyRow> rows;
  if (!util || !power || !memory) return rows;
  rows.reserve(track.at.size());
  std::optional<double> watts, used;  // they may be read more seldom than the utilisation: the last reading holds
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (power->has(row)) watts = to_unit(Metric::kPower, power->values[row]);
    if (memory->has(row)) used = to_unit(Metric::kMemoryUtil, memory->values[row]);
    if (watts && used && window.holds(track.at[row]) && util->has(row) &&
        to_unit(Metric::kGpuUtil, util->values[row]) >= limits[Threshold::kFullBusy])
      rows.push_back({row, *watts, *used});
  }
  return rows;
}

}  // namespace

std::optional<Stall> find_stall(const Track& track, const std::vector<Slice>& slices, const Window& window,
                                const Thresholds& limits) {
  const auto rows = busy_rows(track, window, limits);
  std::vector<double> working;  // watts of the rows whose memory is in use
  working.reserve(rows.size());
  for (const BusyRow& row : rows)
    if (row.memory > limits[Threshold::kStallMemory]) working.push_back(row.watts);
  if (working.empty()) return std::nullopt;
  const double usual = median(working);
  const auto stalls = [&](const BusyRow& row) {
    return row.memory <= limits[Threshold::kStallMemory] && row.watts <= limits[Threshold::kStallPower] * usual;
  };
  Stall longest{{}, 0, usual};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!stalls(rows[i])) continue;
    const Nanos begin = rows[i].row > 0 ? std::max(track.at[rows[i].row - 1], window.begin) : track.at[rows[i].row];
    double watts = 0;
    std::size_t j = i;
    for (; j < rows.size() && stalls(rows[j]) && rows[j].row == rows[i].row + (j - i); ++j) watts += rows[j].watts;
    const Window time{begin, track.at[rows[j - 1].row]};
    if (time.length() > longest.time.length()) {
      longest.time = time;
      longest.watts = watts / static_cast<double>(j - i);
    }
    i = j - 1;
  }
  const bool useful = std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
    return slice.account == Account::kUseful && slice.end > longest.time.begin && slice.begin < longest.time.end;
  });
  if (!useful || longest.time.length() < limits.time(Threshold::kStallShortest)) return std::nullopt;
  return longest;
}

std::optional<QuietEnd> find_quiet_end(const Track& track, const std::vector<Slice>& slices, const Window& window,
                                       const Thresholds& limits) {
  QuietEnd end;
  Nanos pause = 0, longest = 0;
  for (const Slice& slice : slices) {
    if (slice.account == Account::kUnobserved) continue;
    if (!is_busy(slice.account)) {
      if (end.from > 0) pause += slice.end - slice.begin;
      continue;
    }
    longest = std::max(longest, std::exchange(pause, 0));
    end.from = slice.end;
  }
  if (end.from == 0 || pause < limits.time(Threshold::kHeldLong) ||
      static_cast<double>(pause) < limits[Threshold::kQuietEnd] * static_cast<double>(longest))
    return std::nullopt;
  const Column* memory = track.find(Metric::kMemoryUsed);
  for (std::size_t row = 0; memory && row < track.at.size(); ++row) {
    if (!window.holds(track.at[row]) || !memory->has(row)) continue;
    (track.at[row] <= end.from ? end.memory_before : end.memory_after) =
        to_unit(Metric::kMemoryUsed, memory->values[row]);
  }
  return end;
}

}  // namespace headroom
