// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

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

// "61 % busy  12.1/48.0 GiB  301/300 W  64 C": the last readings, as far as there are any.
std::string figures_of(const view::Gpu& gpu, bool all) {
  std::vector<std::string> parts;
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

view::Strip strip_of(const Scene& scene, std::size_t device, std::size_t bins) {
  return view::strip_of(scene.explanation.slices[device], scene.view.begin, scene.view.end, bins);
}

// Title, bar and strip, as far as they are shown; returns the row after them.
std::size_t put_gpu(Canvas& canvas, std::size_t row, std::size_t strip_rows, const Scene& scene, const State& state,
                    std::size_t device) {
  const std::size_t first = row;
  const std::size_t columns = canvas.size().columns, room = columns - kGpuMargin;
  const Device& facts = scene.explanation.ledger.devices[device];
  const std::string figures = figures_of(scene.view.gpus[device], columns >= 60);
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
    put_strip(canvas, row, kGpuMargin, strip_rows, strip_of(scene, device, room));
    row += strip_rows;
  }
  canvas.is_about(first, row - first, {Spot::Kind::kGpu, device});
  return row;
}

// All in one row: bar, strip, figures.
void put_gpu_row(Canvas& canvas, std::size_t row, const Scene& scene, const State& state, std::size_t device) {
  const std::size_t columns = canvas.size().columns;
  const std::string figures = figures_of(scene.view.gpus[device], columns >= 100);
  canvas.put(row, 0, fmt::format("{:<3}", scene.explanation.ledger.devices[device].index), kBold);
  const std::size_t begin = columns >= 60 ? canvas.put_right(row, columns, figures) : columns + 1;
  const std::size_t room = begin - 1 - 4;
  const bool bars = state.shows(Box::kBars), strips = state.shows(Box::kStrips);
  const std::size_t bar = !bars ? 0 : strips ? room / 4 : room, strip = bars ? bar + 1 : 0;
  if (bars) put_bar(canvas, row, 4, bar, scene.view.gpus[device].ledger);
  if (strips) put_strip(canvas, row, 4 + strip, 1, strip_of(scene, device, room - strip));
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

std::size_t put_axis(Canvas& canvas, std::size_t row, const Scene& scene) {
  const view::View& view = scene.view;
  canvas.put(row, kGpuMargin, human_duration(view.begin - scene.begin), kFaint);
  canvas.put_right(row, canvas.size().columns, human_duration(view.end - scene.begin), kFaint);
  return row + 1;
}

}  // namespace

std::size_t put_gpus(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state) {
  if (scene.view.gpus.empty() || rows < 2) return row;
  const std::size_t n = state.gpu ? 1 : scene.view.gpus.size();
  const bool strips = state.shows(Box::kStrips);
  const std::size_t room = rows - 1;  // and the legend
  const std::size_t each = room > 1 ? (room - 1) / n : 0, head = state.shows(Box::kBars) ? 2 : 1;
  if (each >= head + (strips ? 1 : 0)) {
    const std::size_t strip = strips ? std::min(kMostRowsOfStrip, each - head) : 0;
    for (const std::size_t device : shown_of(scene, state, n)) row = put_gpu(canvas, row, strip, scene, state, device);
    if (strips) row = put_axis(canvas, row, scene);
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
