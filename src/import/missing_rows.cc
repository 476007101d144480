// SPDX-License-Identifier: Apache-2.0
#include "import/missing_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "import/log_order.h"
#include "model/events.h"

namespace headroom {

namespace {

// A log of whole seconds skips one now and then, because a period is never exactly 1 s: dmon's 12:00:01, 12:00:02,
// 12:00:04. No row is missing there unless another GPU has one in between.
bool is_rounding(const LogData& data, std::size_t index, std::size_t row, Nanos interval) {
  const PackedNumbers& at = data.gpus[index].at;
  if (!data.whole_seconds || at[row] - at[row - 1] > interval + kSecond) return false;
  for (const GpuLog& other : data.gpus) {
    const auto next = std::upper_bound(other.at.begin(), other.at.end(), at[row - 1]);
    if (next != other.at.end() && *next < at[row]) return false;
  }
  return true;
}

// How many rows a GPU has fewer than its span has room for, where they come so unevenly that a space alone tells
// nothing: none within what the unevenness explains. Of rows that come evenly, any number.
std::int64_t fewer_than_room(const PackedNumbers& at, Nanos interval) {
  constexpr std::int64_t kAnyNumber = std::numeric_limits<std::int64_t>::max();
  constexpr std::size_t kEnough = 20;
  constexpr double kUneven = 0.1;  // of the interval
  if (at.size() < kEnough) return kAnyNumber;
  PackedNumbers off;
  PackedNumbers::InOrder each = at.in_order();
  for (std::size_t i = 1; i < at.size(); ++i) off.push_back(std::abs(each[i] - each[i - 1] - interval));
  const double uneven = static_cast<double>(median(off)) / static_cast<double>(interval);
  if (uneven < kUneven) return kAnyNumber;
  const auto rows = static_cast<double>(at.size());
  const double fewer = static_cast<double>(at.back() - at.front()) / static_cast<double>(interval) + 1 - rows;
  constexpr double kOfMedian = 1.25 * 1.48;  // its error, of the median deviation, where deviations are normal
  return fewer > 2 * kOfMedian * uneven * std::sqrt(rows) ? static_cast<std::int64_t>(fewer) : 0;
}

// Whether the log ends within a round: the GPUs that come later in each one have no row in the last.
bool cut_before(const LogData& data, const GpuLog& gpu) {
  const auto last = std::max_element(data.gpus.begin(), data.gpus.end(),
                                     [](const GpuLog& a, const GpuLog& b) { return a.lines.back() < b.lines.back(); });
  return last->lines.size() > 1 && gpu.lines.back() > last->lines[last->lines.size() - 2] &&
         gpu.lines.back() < last->lines.back() && gpu.at.back() < last->at.back();
}

// Which rows come after a space that is the pace there: one of many alike. A log has several paces where another
// monitor began or ended to write into it.
std::vector<char> at_another_pace(const PackedNumbers& at) {
  constexpr std::size_t kManyAlike = 20;
  constexpr Nanos kAlike = 10;  // within a tenth
  std::vector<char> paced(at.size(), 0);
  PackedNumbers::InOrder each = at.in_order();
  for (std::size_t first = 1, next = 1; first < at.size(); first = next) {
    const Nanos space = each[first] - each[first - 1];
    for (next = first; next < at.size() && std::abs(each[next] - each[next - 1] - space) <= space / kAlike;) ++next;
    if (next - first >= kManyAlike)
      std::fill(paced.begin() + static_cast<std::ptrdiff_t>(first), paced.begin() + static_cast<std::ptrdiff_t>(next),
                1);
  }
  return paced;
}

std::int64_t intervals_in(Nanos time, Nanos interval) { return (time + interval / 2) / interval; }

// An interval of 1 ns has more of them than a count may hold.
constexpr std::int64_t kMostMissing = 1'000'000'000'000;

// Rows that the spaces between those of a GPU have room for.
std::int64_t missing_between(const LogData& data, std::size_t index, Nanos interval) {
  const PackedNumbers& at = data.gpus[index].at;
  const std::vector<char> paced = at_another_pace(at);
  std::int64_t missing = 0;
  PackedNumbers::InOrder each = at.in_order();
  for (std::size_t i = 1; i < at.size(); ++i) {
    if (paced[i]) continue;
    const std::int64_t room =
        std::clamp<std::int64_t>(intervals_in(each[i] - each[i - 1], interval) - 1, 0, kMostMissing);
    if (room > 0 && !is_rounding(data, index, i, interval)) missing += room;
  }
  return missing;
}

}  // namespace

void count_missing(LogData& data, const std::vector<std::size_t>& order, Nanos interval, bool nominal) {
  Nanos first = std::numeric_limits<Nanos>::max(), last = 0;
  for (const GpuLog& gpu : data.gpus) {
    first = std::min(first, gpu.at.front());
    last = std::max(last, gpu.at.back());
  }
  const auto intervals = [&](Nanos time) { return intervals_in(time, interval); };
  std::int64_t missing = 0, seen = 0;
  std::string per_gpu;
  for (const std::size_t index : order) {
    const GpuLog& gpu = data.gpus[index];
    const std::int64_t after = intervals(last - gpu.at.back());
    std::int64_t lost = intervals(gpu.at.front() - first) + (after == 1 && cut_before(data, gpu) ? 0 : after);
    if (nominal)  // someone says how often rows should come: hold the number of rows against it
      lost = std::max<std::int64_t>(0, intervals(last - first) + 1 - static_cast<std::int64_t>(gpu.at.size()));
    else  // irregular logs lack no rows: only a space that has room for another one counts
      lost = std::min(lost + missing_between(data, index, interval), fewer_than_room(gpu.at, interval));
    lost = std::min(lost, kMostMissing);
    seen += static_cast<std::int64_t>(gpu.at.size());
    missing += lost;
    if (lost > 0) per_gpu += fmt::format("{}GPU {}: {}", per_gpu.empty() ? "" : ", ", gpu.device.index, lost);
  }
  data.losses.add(LossKind::kMissingRow, missing, [&] {
    return fmt::format("{} of {} rows expected at {:.3f} s are not there ({}); {} are", missing, missing + seen,
                       seconds(interval), per_gpu, seen);
  });
}

namespace {

bool rows_are_lines(LogFormat format) {
  return format == LogFormat::kNvidiaSmi || format == LogFormat::kDmon || format == LogFormat::kMonitorCsv;
}

}  // namespace

void find_gaps(LogData& data, std::size_t index, Nanos interval) {
  const GpuLog& gpu = data.gpus[index];
  const Nanos usual = std::max(interval, median_spacing(gpu.at));
  PackedNumbers::InOrder each = gpu.at.in_order();
  for (std::size_t i = 1; i < gpu.at.size(); ++i) {
    const Nanos space = each[i] - each[i - 1];
    if (space / 3 <= usual) continue;
    const LossPlace place{gpu.at[i - 1], gpu.at[i] - usual, static_cast<SourceId>(index)};
    data.events.push_back(to_event(events::Gap{"no rows in the log", static_cast<std::uint32_t>(gpu.lines[i])},
                                   place.begin, place.source, place.end));
    data.losses.add(
        LossKind::kGap, 1,
        [&] {
          const std::string where =
              rows_are_lines(data.format) ? fmt::format("line {}", gpu.lines[i]) : fmt::format("its reading {}", i + 1);
          return fmt::format("first at {}: {:.3f} s without a row of GPU {}; rows are {:.3f} s apart otherwise", where,
                             seconds(space), gpu.device.index, seconds(usual));
        },
        place);
  }
}

}  // namespace headroom
