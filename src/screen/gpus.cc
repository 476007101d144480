// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/human.h"
#include "base/strings.h"
#include "screen/accounts.h"
#include "screen/parts.h"

namespace headroom::screen {

namespace {

constexpr std::size_t kMostRowsOfStrip = 6, kGpuMargin = 7;

const view::Series* series(const view::Gpu& gpu, Metric metric) {
  const auto found =
      std::find_if(gpu.series.begin(), gpu.series.end(), [&](const auto& s) { return s.metric == metric; });
  return found == gpu.series.end() ? nullptr : &*found;
}

std::string gib(double bytes) { return fmt::format("{:.1f}", bytes / (1024.0 * 1024 * 1024)); }

// "PCIe 1.2 MiB/s sent, 310 MiB/s received"
std::string pcie_of(const view::Gpu& gpu) {
  std::vector<std::string> parts;
  if (gpu.pcie_sent) parts.push_back(human_bytes(static_cast<std::int64_t>(*gpu.pcie_sent)) + "/s sent");
  if (gpu.pcie_received) parts.push_back(human_bytes(static_cast<std::int64_t>(*gpu.pcie_received)) + "/s received");
  return parts.empty() ? "" : "PCIe " + join(parts, ", ");
}

// "util 61 %  12.1/48.0 GiB  301/300 W  64 C": the last readings, as far as there are any, and room for them.
std::string figures_of(const view::Gpu& gpu, std::size_t columns) {
  const bool all = columns >= 60;
  std::vector<std::string> parts;
  if (const std::string pcie = pcie_of(gpu); columns >= 140 && !pcie.empty()) parts.push_back(pcie);
  if (gpu.fan && columns >= 100) parts.push_back(fmt::format("fan {:.0f} %", 100 * *gpu.fan));
  if (gpu.sm_clock_mhz && columns >= 100) parts.push_back(fmt::format("{:.0f} MHz", *gpu.sm_clock_mhz));
  if (const auto* util = series(gpu, Metric::kGpuUtil))
    parts.push_back(fmt::format("util {:.0f} %", 100 * *util->last));
  if (const auto* memory = series(gpu, Metric::kMemoryUsed))
    parts.push_back(memory->whole && all ? fmt::format("{}/{} GiB", gib(*memory->last), gib(*memory->whole))
                                         : gib(*memory->last) + " GiB");
  if (const auto* power = series(gpu, Metric::kPower))
    parts.push_back(power->whole && all ? fmt::format("{:.0f}/{:.0f} W", *power->last, *power->whole)
                                        : fmt::format("{:.0f} W", *power->last));
  if (const auto* heat = series(gpu, Metric::kTemperature); heat && all)
    parts.push_back(fmt::format("{:.0f} C", *heat->last));
  return join(parts, "  ");
}

// What a strip of so many bins is of. Of what goes on the bins stand still in time and are always as long, so that what
// was drawn moves on as it is: the last one fills up, and until the recording is as old as the window the first are
// empty.
struct Stretch {
  Nanos begin = 0, end = 0;
};
Stretch stretch_of(const Scene& scene, const State& state, std::size_t bins) {
  const view::View& view = scene.view;
  const Nanos bin = state.window / static_cast<Nanos>(std::max<std::size_t>(1, bins));
  if (!view.goes_on || state.at || bin == 0) return {view.begin, view.end};
  const Nanos end = scene.begin + ((view.end - scene.begin - 1) / bin + 1) * bin;
  return {end - static_cast<Nanos>(bins) * bin, end};
}

view::Strip strip_of(const Scene& scene, const State& state, std::size_t device, std::size_t bins) {
  const Stretch stretch = stretch_of(scene, state, bins);
  return view::strip_of(scene.explanation.slices[device], stretch.begin, stretch.end, bins);
}

// The same account all the time: one row of it says all.
bool is_uniform(const view::Strip& strip) {
  std::optional<Account> first;
  for (const auto& bin : strip.bins)
    for (const view::Share& share : bin)
      if (share.account != first.value_or(share.account))
        return false;
      else
        first = share.account;
  return true;
}

// Title, bar and strip, as far as they are shown; returns the row after them.
std::size_t put_gpu(Canvas& canvas, std::size_t row, std::size_t strip_rows, const Scene& scene, const State& state,
                    std::size_t device) {
  const std::size_t first = row;
  const std::size_t columns = canvas.size().columns, room = columns - kGpuMargin;
  const Device& facts = scene.explanation.ledger.devices[device];
  const std::string figures = figures_of(scene.view.gpus[device], columns);
  const std::size_t begin = canvas.put_right(row, columns, figures);
  const std::string title =
      facts.name.empty() ? fmt::format("GPU {}", facts.index) : fmt::format("GPU {}  {}", facts.index, facts.name);
  canvas.put(row++, 0, title, kBold, begin > 2 ? begin - 2 : 0);
  if (state.shows(Box::kBars)) {
    canvas.put(row, 0, "ledger", kFaint);
    put_bar(canvas, row++, kGpuMargin, room, scene.view.gpus[device].ledger);
  }
  if (strip_rows > 0) {
    canvas.put(row, 0, "time", kFaint);
    const view::Strip strip = strip_of(scene, state, device, room);
    if (is_uniform(strip)) strip_rows = 1;
    put_strip(canvas, row, kGpuMargin, strip_rows, strip);
    row += strip_rows;
  }
  canvas.is_about(first, row - first, {Spot::Kind::kGpu, device});
  return row;
}

// All in one row: bar, strip, figures.
void put_gpu_row(Canvas& canvas, std::size_t row, const Scene& scene, const State& state, std::size_t device) {
  const std::size_t columns = canvas.size().columns;
  // Beside the bar and the strip there is less room.
  const std::string figures = figures_of(scene.view.gpus[device], columns >= 100 ? columns - 40 : 0);
  canvas.put(row, 0, fmt::format("{:<3}", scene.explanation.ledger.devices[device].index), kBold);
  const std::size_t begin = columns >= 60 ? canvas.put_right(row, columns, figures) : columns + 1;
  const std::size_t room = begin - 1 - 4;
  const bool bars = state.shows(Box::kBars), strips = state.shows(Box::kStrips);
  const std::size_t bar = !bars ? 0 : strips ? room / 4 : room, strip = bars ? bar + 1 : 0;
  if (bars) put_bar(canvas, row, 4, bar, scene.view.gpus[device].ledger);
  if (strips) put_strip(canvas, row, 4 + strip, 1, strip_of(scene, state, device, room - strip));
  canvas.is_about(row, 1, {Spot::Kind::kGpu, device});
}

// Which GPUs are shown: all that have room, the chosen one alone.
std::vector<std::size_t> shown_of(const Scene& scene, const State& state, std::size_t most) {
  const std::size_t n = scene.view.gpus.size();
  if (state.gpu && *state.gpu < n) return {*state.gpu};
  std::vector<std::size_t> shown;
  for (std::size_t device = 0; device < std::min(n, most); ++device) shown.push_back(device);
  return shown;
}

std::size_t put_axis(Canvas& canvas, std::size_t row, const Scene& scene, const State& state) {
  const std::size_t columns = canvas.size().columns, bins = columns - kGpuMargin;
  const Stretch stretch = stretch_of(scene, state, bins);
  const Nanos begin = std::max(scene.begin, stretch.begin);
  const auto bin = static_cast<std::size_t>(static_cast<double>(begin - stretch.begin) /
                                            static_cast<double>(std::max<Nanos>(1, stretch.end - stretch.begin)) *
                                            static_cast<double>(bins));
  const std::string end = human_duration(scene.view.end - scene.begin), first = human_duration(begin - scene.begin);
  if (bin + first.size() + end.size() < bins) canvas.put(row, kGpuMargin + bin, first, kFaint);
  canvas.put_right(row, columns, end, kFaint);
  return row + 1;
}

}  // namespace

std::size_t rows_for_gpus(const Scene& scene, const State& state, std::size_t rows) {
  const std::size_t n = state.gpu ? 1 : scene.view.gpus.size();
  const std::size_t head = state.shows(Box::kBars) ? 2 : 1, strip = state.shows(Box::kStrips) ? 1 : 0;
  constexpr std::size_t kAxisAndLegend = 2;
  const std::size_t least = n * (head + strip) + kAxisAndLegend;
  const std::size_t most = n * (head + strip * kMostRowsOfStrip) + kAxisAndLegend;
  return std::min(std::max(least, rows / 2), std::min(most, rows * 2 / 3));
}

std::size_t put_gpus(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state) {
  if (scene.view.gpus.empty() || rows < 2) return row;
  const std::size_t n = state.gpu ? 1 : scene.view.gpus.size();
  const bool strips = state.shows(Box::kStrips);
  const std::size_t room = rows - 1;  // and the legend
  const std::size_t each = room > 1 ? (room - 1) / n : 0, head = state.shows(Box::kBars) ? 2 : 1;
  if (each >= head + (strips ? 1 : 0)) {
    const std::size_t strip = strips ? std::min(kMostRowsOfStrip, each - head) : 0;
    for (const std::size_t device : shown_of(scene, state, n)) row = put_gpu(canvas, row, strip, scene, state, device);
    if (strips) row = put_axis(canvas, row, scene, state);
  } else {
    const std::size_t most = n <= room ? n : room - 1;
    for (const std::size_t device : shown_of(scene, state, most)) put_gpu_row(canvas, row++, scene, state, device);
    if (most < n)
      canvas.put(row++, 0, fmt::format("and {}: right and left show one at a time", count_of(n - most, "more GPU")),
                 kFaint);
  }
  if (!strips && !state.shows(Box::kBars)) return row;
  put_legend(canvas, row, state.gpu ? scene.view.gpus[shown_of(scene, state, 1).front()].ledger : scene.view.ledger);
  return row + 1;
}

}  // namespace headroom::screen
