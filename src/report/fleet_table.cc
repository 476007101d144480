// SPDX-License-Identifier: Apache-2.0
#include "report/fleet_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/human.h"
#include "base/visible.h"

namespace headroom::report {

namespace {

constexpr Nanos kMinute = 60 * kSecond, kHour = 60 * kMinute;

}  // namespace

GpuUnit::GpuUnit(Nanos total)
    : ns(total >= 10 * kHour     ? kHour
         : total >= 10 * kMinute ? kMinute
                                 : kSecond),
      name(ns == kHour     ? "GPU-hours"
           : ns == kMinute ? "GPU-minutes"
                           : "GPU-seconds") {}

std::string GpuUnit::shown(std::int64_t tenths) { return fmt::format("{}.{}", human_count(tenths / 10), tenths % 10); }

std::vector<std::int64_t> tenths_of(const std::vector<Nanos>& times, const GpuUnit& unit) {
  const Nanos step = unit.ns / 10;
  std::vector<std::int64_t> tenths;
  for (const Nanos time : times) tenths.push_back(time / step);
  const Nanos all = std::accumulate(times.begin(), times.end(), Nanos{0});
  std::int64_t left = unit.tenths(all) - std::accumulate(tenths.begin(), tenths.end(), std::int64_t{0});
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return times[x] % step > times[y] % step; });
  for (std::size_t i = 0; i < order.size() && left > 0; ++i, --left) ++tenths[order[i]];
  return tenths;
}

double share_of(Nanos part, Nanos whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string name_cell(std::string_view name, FleetBy by, std::size_t width, const TextOptions& options) {
  const std::string text = name.empty() ? "(not recorded)" : visible(name);
  const std::size_t wide = display_width(text);
  if ((by != FleetBy::kProject && by != FleetBy::kJob) || wide <= width) return pad_right(text, width);
  std::size_t from = 0;
  const auto starts = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80; };
  for (std::size_t left = wide - width + 1; left > 0 || (from < text.size() && !starts(from)); ++from)
    if (starts(from)) --left;
  return (options.utf8 ? "…" : "~") + text.substr(from);
}

}  // namespace headroom::report
