// SPDX-License-Identifier: Apache-2.0
#include "import/log_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "import/log_time.h"
#include "model/events.h"

namespace headroom {

namespace {

constexpr Nanos kLatestOrdered = 4'200'000'000 * kSecond;  // the year 2103: within the bounds of recordings

struct Span {
  Nanos begin = 0, end = 0;
};

bool overlaps(const std::vector<Span>& spans, Span one) {
  return std::any_of(spans.begin(), spans.end(), [&](Span s) { return one.begin <= s.end && s.begin <= one.end; });
}

// Rows [begin, end) in the order of the log, whose times do not step back by more than the tolerance.
struct Stretch {
  std::size_t begin = 0, end = 0;
  Span span;
};

std::vector<Stretch> stretches(const PackedNumbers& at, Nanos tolerance, std::size_t& out_of_order,
                               std::size_t& first_out_of_order) {
  std::vector<Stretch> found;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (i == 0 || at[i] < found.back().span.end - tolerance) {
      found.push_back({i, i + 1, {at[i], at[i]}});
      continue;
    }
    Stretch& last = found.back();
    if (at[i] < last.span.end && out_of_order++ == 0) first_out_of_order = i;
    last.end = i + 1;
    last.span.begin = std::min(last.span.begin, at[i]);
    last.span.end = std::max(last.span.end, at[i]);
  }
  return found;
}

// True if the stretch begins as a copy of rows that are already there.
bool is_copy(const GpuLog& gpu, const Stretch& stretch) {
  for (std::size_t i = 0; i < stretch.begin; ++i)
    if (gpu.at[i] == gpu.at[stretch.begin] && rows_equal(gpu, i, stretch.begin)) return true;
  return false;
}

void place_stretches(LogData& data, std::size_t index, Nanos spacing) {
  GpuLog& gpu = data.gpus[index];
  std::size_t out_of_order = 0, first = 0;
  const auto parts = stretches(gpu.at, 2 * spacing, out_of_order, first);
  data.losses.add(LossKind::kOutOfOrderRow, static_cast<std::int64_t>(out_of_order),
                  [&] { return fmt::format("first at line {}: sorted by time", gpu.lines[first]); });
  constexpr std::size_t kStretchLimit = 256;  // beyond it the times are no clock that was set, but out of order
  if (parts.size() > kStretchLimit) {
    data.losses.add(LossKind::kOutOfOrderRow, static_cast<std::int64_t>(parts.size() - 1),
                    [&] { return fmt::format("first at line {}: sorted by time", gpu.lines[parts[1].begin]); },
                    std::nullopt, {.least = Severity::kDataLoss});
    return;
  }
  std::vector<Span> placed;
  Nanos shift = 0;
  for (const Stretch& part : parts) {
    Span span{part.span.begin + shift, part.span.end + shift};
    const auto line = static_cast<std::uint32_t>(gpu.lines[part.begin]);
    if (!placed.empty() && overlaps(placed, span) && !(shift == 0 && is_copy(gpu, part))) {
      Nanos to = placed.back().end + spacing;
      if (overlaps(placed, {to, to + (span.end - span.begin)}))
        for (const Span s : placed) to = std::max(to, s.end + spacing);
      if (to > kLatestOrdered - (span.end - span.begin)) break;  // sorted as they are
      const Nanos delta = to - span.begin;
      shift += delta;
      span = {span.begin + delta, span.end + delta};
      data.events.push_back(to_event(events::ClockStep{-delta, line}, span.begin, static_cast<SourceId>(index)));
      data.losses.add(LossKind::kClockStepBack, 1, [&] {
        return fmt::format(
            "first at line {}: {:.3f} s back; rows from there on are moved forward, so that durations hold", line,
            seconds(delta - spacing));
      });
    } else if (!placed.empty() && span.begin < placed.back().begin) {
      data.losses.add(LossKind::kBackwardTimestamp, 1, [&] {
        return fmt::format("first at line {}: an earlier run follows a later one; sorted by time", line);
      });
    }
    for (std::size_t i = part.begin; i < part.end && shift != 0; ++i) gpu.at.set(i, gpu.at[i] + shift);
    placed.push_back(span);
  }
}

// Those of the rows of one instant that are no copies of others.
std::vector<std::uint32_t> without_copies(LogData& data, const GpuLog& gpu, std::span<const std::uint32_t> run) {
  constexpr std::size_t kCopyLimit = 64;  // rows of one instant that are compared with each other
  std::vector<std::uint32_t> rows;
  for (const std::uint32_t row : run) {
    // In a log of whole seconds neighbours may be equal and yet two samples; rows from far apart are copies.
    const bool copy = rows.size() < kCopyLimit && std::any_of(rows.begin(), rows.end(), [&](std::uint32_t r) {
                        const bool neighbour = data.whole_seconds && r + 1 == row;
                        return !neighbour && rows_equal(gpu, r, row);
                      });
    if (!copy)
      rows.push_back(row);
    else
      data.losses.add(LossKind::kDuplicateRow, 1, [&] {
        return fmt::format("first at line {}: equal to an earlier row of the same time; kept once", gpu.lines[row]);
      });
  }
  return rows;
}

// Those of the rows of one instant that are kept, with times of their own before the next row's.
std::vector<std::uint32_t> settle_equal(LogData& data, GpuLog& gpu, std::span<const std::uint32_t> run,
                                        Nanos until_next) {
  std::vector<std::uint32_t> rows = without_copies(data, gpu, run);
  const auto extra = static_cast<std::int64_t>(rows.size()) - 1;
  if (!data.whole_seconds && data.spread_over == 0) {
    data.losses.add(LossKind::kDuplicateTimestamp, extra, [&] {
      return fmt::format("first at line {}: the time of the row before; the last row of a time is kept",
                         gpu.lines[rows.back()]);
    });
    return {rows.back()};
  }
  const bool minutes = data.spread_over > 0;
  data.losses.add(minutes ? LossKind::kSharedMinute : LossKind::kSharedSecond, extra, [&] {
    const std::string_view unit = minutes ? "minute" : "second";
    return fmt::format("times tell whole {}s: rows of one {} are spread over it, first at line {}", unit, unit,
                       gpu.lines[rows[1]]);
  });
  const Nanos whole = data.spread_over > 0 ? data.spread_over : kSecond;
  const Nanos step = std::max<Nanos>(1, std::min(whole, until_next) / static_cast<Nanos>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) gpu.at.set(rows[i], gpu.at[rows[i]] + static_cast<Nanos>(i) * step);
  return rows;
}

template <class Values>
void pick(Values& values, const std::vector<std::uint32_t>& rows) {
  Values picked;
  for (const std::uint32_t row : rows) picked.push_back(values[row]);
  values = std::move(picked);
}

void keep_rows(GpuLog& gpu, const std::vector<std::uint32_t>& rows) {
  pick(gpu.at, rows);
  pick(gpu.lines, rows);
  for (PackedColumn& column : gpu.columns) {
    pick(column.values, rows);
    if (!column.absent.empty()) pick(column.absent, rows);
  }
}

}  // namespace

bool rows_equal(const GpuLog& gpu, std::size_t a, std::size_t b) {
  return std::all_of(gpu.columns.begin(), gpu.columns.end(), [&](const PackedColumn& column) {
    const std::size_t size = column.values.size();
    if (a >= size || b >= size) return a >= size && b >= size;
    return column.at(a) == column.at(b);
  });
}

void fill_columns(GpuLog& gpu) {
  for (PackedColumn& column : gpu.columns) pad(column, gpu.at.size());
}

bool grows(const PackedNumbers& at) {
  PackedNumbers::InOrder each = at.in_order();
  for (std::size_t i = 1; i < at.size(); ++i)
    if (each[i] <= each[i - 1]) return false;
  return true;
}

Nanos median_spacing(const PackedNumbers& at) {
  PackedNumbers spacings;
  PackedNumbers::InOrder each = at.in_order();
  for (std::size_t i = 1; i < at.size(); ++i)
    if (const Nanos spacing = each[i] - each[i - 1]; spacing > 0) spacings.push_back(spacing);
  if (spacings.empty()) return 0;
  return median(spacings);
}

void put_in_order(LogData& data, std::size_t index) {
  GpuLog& gpu = data.gpus[index];
  fill_columns(gpu);
  const auto& at = gpu.at;
  if (grows(at)) return;
  const Nanos spacing = std::clamp<Nanos>(median_spacing(at), 1, kDay);
  place_stretches(data, index, spacing);
  std::vector<std::uint32_t> order(at.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return at[a] < at[b]; });
  std::vector<std::uint32_t> kept;
  kept.reserve(order.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    for (end = begin + 1; end < order.size() && at[order[end]] == at[order[begin]];) ++end;
    if (end == begin + 1) {
      kept.push_back(order[begin]);
      continue;
    }
    const Nanos until_next = end < order.size() ? at[order[end]] - at[order[begin]] : std::numeric_limits<Nanos>::max();
    const auto rows = settle_equal(data, gpu, std::span(order).subspan(begin, end - begin), until_next);
    kept.insert(kept.end(), rows.begin(), rows.end());
  }
  keep_rows(gpu, kept);
}

namespace {

// The rows beside a space of more than a year, in which no GPU has one.
struct Leap {
  Nanos before, after;
};

std::vector<Leap> leaps_of(const std::vector<GpuLog>& gpus) {
  constexpr Nanos kLeap = 366 * kDay;
  std::vector<Span> runs;  // of rows of a GPU without one
  for (const GpuLog& gpu : gpus)
    for (std::size_t i = 0; i < gpu.at.size(); ++i)
      if (i == 0 || gpu.at[i] - gpu.at[i - 1] > kLeap)
        runs.push_back({gpu.at[i], gpu.at[i]});
      else
        runs.back().end = gpu.at[i];
  std::sort(runs.begin(), runs.end(), [](Span a, Span b) { return a.begin < b.begin; });
  std::vector<Leap> leaps;
  for (Nanos last = runs.empty() ? 0 : runs[0].end; const Span run : runs) {
    if (run.begin - last > kLeap) leaps.push_back({last, run.begin});
    last = std::max(last, run.end);
  }
  return leaps;
}

}  // namespace

void close_leaps(LogData& data) {
  const std::vector<Leap> leaps = leaps_of(data.gpus);
  if (leaps.empty()) return;
  const Nanos spacing = std::clamp<Nanos>(median_spacing(data.gpus[0].at), 1, kDay);
  const auto moved = [&](Nanos at) {
    Nanos sum = at;
    for (const Leap& leap : leaps)
      if (at <= leap.before) sum += leap.after - leap.before - spacing;
    return sum;
  };
  for (const Leap& leap : leaps) {
    const Nanos delta = leap.after - leap.before - spacing;
    data.events.push_back(to_event(events::ClockStep{delta, 0}, leap.after, kNoSource));
    data.losses.add(LossKind::kClockStepAhead, 1, [&] {
      return fmt::format(
          "the clock jumps ahead by {:.1f} days; earlier rows are moved up to it, so that durations hold",
          seconds(delta) / 86'400);
    });
  }
  for (GpuLog& gpu : data.gpus) gpu.at.change_all(moved);
  for (Event& event : data.events) {
    event.at = moved(event.at);
    if (event.end) event.end = moved(*event.end);
  }
  data.losses.move_places(moved);
}

}  // namespace headroom
