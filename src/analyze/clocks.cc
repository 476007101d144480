// SPDX-License-Identifier: Apache-2.0
#include "analyze/clocks.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom {

namespace {

struct Counter {
  Metric metric;
  std::int64_t reason;
};
constexpr std::array kCounters{
    Counter{Metric::kEventPowerCap, kReasonSwPowerCap}, Counter{Metric::kEventSwThermal, kReasonSwThermal},
    Counter{Metric::kEventHwThermal, kReasonHwThermal}, Counter{Metric::kEventPowerBrake, kReasonHwPowerBrake}};
constexpr std::int64_t kLimits =
    kReasonSwPowerCap | kReasonHwSlowdown | kReasonSwThermal | kReasonHwThermal | kReasonHwPowerBrake;

// The slices of a device, asked for one time after another: in order of their begin.
class Slices {
 public:
  explicit Slices(const std::vector<Slice>& all) : all_(all) {}
  Nanos useful_within(const Window& time) {
    while (next_ < all_.size() && all_[next_].end <= time.begin) ++next_;
    Nanos sum = 0;
    for (std::size_t i = next_; i < all_.size() && all_[i].begin < time.end; ++i)
      if (all_[i].account == Account::kUseful)
        sum += std::min(all_[i].end, time.end) - std::max(all_[i].begin, time.begin);
    return sum;
  }

 private:
  const std::vector<Slice>& all_;
  std::size_t next_ = 0;
};

void add(ClockLimits& sum, Slices& slices, const Window& time, Nanos limited) {
  const Nanos useful = slices.useful_within(time);
  sum.kernels += useful;
  const Nanos part = std::min(limited, useful);
  if (part <= 0) return;
  sum.limited_kernels += part;
  sum.times.push_back({time, static_cast<double>(part) / static_cast<double>(useful)});
}

// The counters are read together. Limits may hold at once: the largest growth is the least that was limited.
void by_counters(ClockLimits& sum, const Track& track, Slices slices, const Window& window) {
  std::array<const Column*, kCounters.size()> columns{};
  for (std::size_t i = 0; i < kCounters.size(); ++i) columns[i] = track.find(kCounters[i].metric);
  std::optional<std::size_t> before;
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    const bool read = std::any_of(columns.begin(), columns.end(), [&](const Column* c) { return c && c->has(row); });
    if (!read) continue;
    const auto last = std::exchange(before, row);
    if (!last || !window.holds(track.at[row])) continue;
    sum.counted = true;
    Nanos most = 0;
    for (std::size_t i = 0; i < kCounters.size(); ++i) {
      if (!columns[i] || !columns[i]->has(row) || !columns[i]->has(*last)) continue;
      const Nanos growth = std::max<Nanos>(0, columns[i]->values[row] - columns[i]->values[*last]);
      if (growth > 0) sum.reasons |= kCounters[i].reason;
      most = std::max(most, growth);
    }
    add(sum, slices, {std::max(track.at[*last], window.begin), track.at[row]}, most);
  }
}

void by_looks(ClockLimits& sum, const Track& track, Slices slices, const Window& window, const Thresholds& limits) {
  const Column *util = track.find(Metric::kGpuUtil), *reasons = track.find(Metric::kEventReasons);
  if (!util || !reasons) return;
  const std::int64_t running = from_unit(Metric::kGpuUtil, limits[Threshold::kThrottleUtil]);
  std::optional<Nanos> before;  // the look before this one
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    if (!reasons->has(row)) continue;
    const Nanos since = std::exchange(before, track.at[row]).value_or(row > 0 ? track.at[row - 1] : track.at[row]);
    if (!window.holds(track.at[row]) || !util->has(row) || util->values[row] < running) continue;
    ++sum.looks;
    const std::int64_t named = reasons->values[row] & kLimits;
    if ((reasons->values[row] & kReasonApplicationClocks) != 0) sum.clocks_set = true;
    if (named != 0) ++sum.limited;
    if (sum.counted) continue;
    sum.reasons |= named;
    const Window time{std::max(since, window.begin), track.at[row]};
    add(sum, slices, time, named != 0 ? time.length() : 0);
  }
}

// The clock that all but a twentieth of these rows stay below; nothing where none has one.
std::optional<double> usual_clock(const Track& track, const std::vector<std::size_t>& rows) {
  const Column& clock = *track.find(Metric::kSmClock);
  std::vector<std::int64_t> values;
  for (const std::size_t row : rows) values.push_back(clock.values[row]);
  if (values.empty()) return std::nullopt;
  const auto high = values.begin() + static_cast<std::ptrdiff_t>(values.size() * 19 / 20);
  std::nth_element(values.begin(), high, values.end());
  return static_cast<double>(*high);
}

// Rows of the window with these columns and at least so much utilisation.
std::vector<std::size_t> rows_under_load(const Track& track, const Window& window, double util,
                                         std::initializer_list<const Column*> columns) {
  const Column* const busy = track.find(Metric::kGpuUtil);
  std::vector<std::size_t> rows;
  if (!busy || std::any_of(columns.begin(), columns.end(), [](const Column* c) { return c == nullptr; })) return rows;
  const std::int64_t running = from_unit(Metric::kGpuUtil, util);
  for (std::size_t row = 0; row < track.at.size(); ++row)
    if (window.holds(track.at[row]) && busy->has(row) && busy->values[row] >= running &&
        std::all_of(columns.begin(), columns.end(), [&](const Column* c) { return c->has(row); }))
      rows.push_back(row);
  return rows;
}

// Whether the clock sank for a minute and more, in each quarter of that time; no step, and no saw.
std::optional<ClockFall> clock_fall(const Track& track, const std::vector<std::size_t>& rows) {
  constexpr std::size_t kFewest = 20, kQuarters = 4;          // readings of the fall
  constexpr double kNear = 0.03, kSteps = 0.1, kStays = 0.1;  // of the clock; of the fall; of the clock at its end
  const Column& clock = *track.find(Metric::kSmClock);
  if (rows.size() < 2 * kFewest) return std::nullopt;
  std::vector<double> sorted;
  for (const std::size_t row : rows) sorted.push_back(static_cast<double>(clock.values[row]));
  std::sort(sorted.begin(), sorted.end());
  const double high = sorted[sorted.size() * 99 / 100], low = sorted[sorted.size() / 20];
  const auto at = [&](std::size_t i) { return static_cast<double>(clock.values[rows[i]]); };
  std::size_t end = 0;
  while (end < rows.size() && at(end) > (1 + kNear) * low) ++end;
  std::size_t begin = end;
  for (std::size_t i = 0; i < end; ++i)
    if (at(i) >= (1 - kNear) * high) begin = i;
  if (end - begin < kFewest || track.at[rows[end]] - track.at[rows[begin]] < 60 * kSecond) return std::nullopt;
  double before = high;
  for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
    const std::size_t from = begin + quarter * (end - begin) / kQuarters,
                      to = begin + (quarter + 1) * (end - begin) / kQuarters;
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += at(i);
    const double mean = sum / static_cast<double>(to - from);
    if (before - mean < kSteps * (high - low)) return std::nullopt;
    before = mean;
  }
  for (std::size_t i = end; i < rows.size(); ++i)
    if (at(i) > (1 + kStays) * low) return std::nullopt;
  return ClockFall{{track.at[rows[begin]], track.at[rows[end]]}, high, low};
}

// A log with clocks and temperatures and no reasons.
void by_heat(ClockLimits& sum, const Track& track, Slices slices, const Window& window, const Thresholds& limits) {
  constexpr std::int64_t kHot = 80;  // degrees C: GPUs lower their clocks somewhere above
  constexpr double kLower = 0.9;     // of the clock before
  const Column *clock = track.find(Metric::kSmClock), *heat = track.find(Metric::kTemperature);
  const auto rows = rows_under_load(track, window, limits[Threshold::kThrottleUtil], {clock, heat});
  auto before = rows.empty() ? std::nullopt : usual_clock(track, rows);
  if (!before) return;
  auto fall = clock_fall(track, rows);
  if (fall) before = fall->from_mhz;  // which it had for less than a twentieth of the time, perhaps
  const auto hot_and_low = [&](std::size_t row) {
    return heat->values[row] >= kHot && static_cast<double>(clock->values[row]) < kLower * *before;
  };
  if (fall && std::none_of(rows.begin(), rows.end(), hot_and_low)) fall.reset();
  for (const std::size_t row : rows) {
    if (row == 0) continue;
    const bool low = fall ? track.at[row] > fall->time.begin : hot_and_low(row);
    const Window time{std::max(track.at[row - 1], window.begin), track.at[row]};
    add(sum, slices, time, low ? time.length() : 0);
  }
  if (!sum.times.empty()) sum.clock_before_mhz = before, sum.fall = fall, sum.hot = true;
}

// Rows under load that are `low` without a break for as long as no exchange between GPUs takes.
template <class Low>
ClockLimits lasting_where(const Track& track, const std::vector<std::size_t>& rows, Slices slices, const Window& window,
                          const Thresholds& limits, const Low& low) {
  ClockLimits found;
  for (std::size_t i = 0, next = 0; i < rows.size(); i = std::max(next, i + 1)) {
    for (next = i; next < rows.size() && low(rows[next]) && rows[next] == rows[i] + (next - i);) ++next;
    const bool lasts =
        next > i && track.at[rows[next - 1]] - track.at[rows[i]] >= limits.time(Threshold::kStallShortest);
    for (std::size_t j = i; j < std::max(next, i + 1); ++j) {
      if (rows[j] == 0) continue;
      const Window time{std::max(track.at[rows[j] - 1], window.begin), track.at[rows[j]]};
      add(found, slices, time, lasts ? time.length() : 0);
    }
  }
  return found;
}

// A log with clocks and power and no reasons. Clocks alone may have been set, or fall where more power is drawn;
// kernels that only wait touch no memory.
void by_fall(ClockLimits& sum, const Track& track, const Slices& slices, const Window& window,
             const Thresholds& limits) {
  constexpr double kFar = 2.0 / 3;  // of the clock, and of the power at that clock
  const Column *clock = track.find(Metric::kSmClock), *power = track.find(Metric::kPower);
  const Column* memory = track.find(Metric::kMemoryUtil);
  const auto rows = rows_under_load(track, window, limits[Threshold::kFullBusy], {clock, power});
  const auto before = rows.empty() ? std::nullopt : usual_clock(track, rows);
  if (!before) return;
  const auto slow = [&](std::size_t row) { return static_cast<double>(clock->values[row]) < kFar * *before; };
  double drawn = 0, fast = 0;
  for (const std::size_t row : rows)
    if (!slow(row)) drawn += static_cast<double>(power->values[row]), ++fast;
  const auto weak = [&](std::size_t row) {
    const bool works = !memory || !memory->has(row) ||
                       to_unit(Metric::kMemoryUtil, memory->values[row]) > limits[Threshold::kStallMemory];
    return works && slow(row) && static_cast<double>(power->values[row]) * fast < kFar * drawn;
  };
  ClockLimits found = lasting_where(track, rows, slices, window, limits, weak);
  if (found.times.empty()) return;
  found.clock_before_mhz = before;
  sum = std::move(found);
}

// A log that has the highest clock. Boards stay within a fifth of one that they never reach.
void by_maximum(ClockLimits& sum, const Track& track, const Slices& slices, const Window& window,
                const Thresholds& limits, double maximum) {
  constexpr double kFar = 0.75;  // of it
  const Column *clock = track.find(Metric::kSmClock), *reasons = track.find(Metric::kEventReasons);
  const auto rows = rows_under_load(track, window, limits[Threshold::kFullBusy], {clock});
  const auto low = [&](std::size_t row) {
    const bool idle = reasons && reasons->has(row) && (reasons->values[row] & kReasonGpuIdle) != 0;  // at that instant
    return !idle && static_cast<double>(clock->values[row]) < kFar * maximum;
  };
  ClockLimits found = lasting_where(track, rows, slices, window, limits, low);
  if (found.times.empty()) return;
  sum.times = std::move(found.times);
  sum.limited_kernels = found.limited_kernels, sum.kernels = found.kernels;
  sum.below_maximum = true;
}

// Utilisation is of the last second, clocks are of the instant: a reading at the end of the kernels shows the clock of
// an idle GPU. So kernels must run in the next reading, too.
std::optional<double> mean_then(const ClockLimits& sum, const Track& track, Metric metric, const Thresholds& limits,
                                bool limited_time = true) {
  const Column *util = track.find(Metric::kGpuUtil), *column = track.find(metric);
  if (!util || !column) return std::nullopt;
  const std::int64_t running = from_unit(Metric::kGpuUtil, limits[Threshold::kThrottleUtil]);
  double total = 0, rows = 0;
  auto limited = sum.times.begin();
  for (std::size_t row = 0; row + 1 < track.at.size(); ++row) {
    while (limited != sum.times.end() && limited->time.end < track.at[row]) ++limited;
    const bool within = limited != sum.times.end() && track.at[row] > limited->time.begin;
    if (within != limited_time || !column->has(row)) continue;
    if (!util->has(row) || util->values[row] < running) continue;
    if (util->has(row + 1) && util->values[row + 1] < running) continue;
    const double share = within ? limited->share : 1;
    total += to_unit(metric, column->values[row]) * share;
    rows += share;
  }
  return rows > 0 ? std::optional(total / rows) : std::nullopt;
}

void count_idle(ClockLimits& sum, const Track& track, const Window& window) {
  const Column* reasons = track.find(Metric::kEventReasons);
  for (std::size_t row = 0; reasons && row < track.at.size(); ++row) {
    if (!reasons->has(row) || !window.holds(track.at[row])) continue;
    ++sum.all;
    if ((reasons->values[row] & kReasonGpuIdle) != 0) ++sum.idle;
  }
}

}  // namespace

ClockLimits clock_limits(const Track& track, const std::vector<Slice>& slices, const Window& window,
                         const Thresholds& limits, std::optional<std::int64_t> maximum_mhz) {
  ClockLimits sum;
  by_counters(sum, track, Slices(slices), window);
  by_looks(sum, track, Slices(slices), window, limits);
  count_idle(sum, track, window);
  sum.recorded = sum.counted || track.find(Metric::kEventReasons) != nullptr;
  if (!sum.recorded) by_heat(sum, track, Slices(slices), window, limits);
  if (!sum.recorded && !sum.clock_before_mhz) by_fall(sum, track, Slices(slices), window, limits);
  if (sum.times.empty() && maximum_mhz.value_or(0) > 0)
    by_maximum(sum, track, Slices(slices), window, limits, static_cast<double>(*maximum_mhz));
  sum.limited_clock_mhz = mean_then(sum, track, Metric::kSmClock, limits);
  sum.limited_watts = mean_then(sum, track, Metric::kPower, limits);
  sum.other_watts = mean_then(sum, track, Metric::kPower, limits, false);
  if (sum.kernels - sum.limited_kernels >= limits.time(Threshold::kStallShortest))
    sum.other_clock_mhz = mean_then(sum, track, Metric::kSmClock, limits, false);
  return sum;
}

}  // namespace headroom
