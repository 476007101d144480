// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "base/human.h"
#include "base/strings.h"
#include "report/layout.h"
#include "report/text.h"
#include "report/time_limit.h"
#include "screen/accounts.h"
#include "screen/table.h"

namespace headroom::screen {

namespace {

constexpr std::string_view kHelp = R"(headroom top: what the GPUs did, and what they waited for

  q          quit                            ?   this page
  space      stand still, go on              e   the end: live again
  t T        next, previous reading          b   the beginning
  j J        forward, back by a time         > < play faster, slower
  + -        a longer, a shorter window      w   why: the report of the window
  left right one GPU, all GPUs               /   filter by name or pid; !x: all but x
  up down    choose a row                    o   sort, then m c r t p n u
  Enter      all of the chosen row           Tab tasks or processes of a batch
  Esc        back                            k   signal to the chosen process
  1 to 9     one GPU, the first is 1; once more: all
  B S P F    bars, accounts over time, table, finding: hide, and show again
  mouse      click on a GPU: it alone, and all again; on a row: choose it, and
             all of the chosen one; the wheel scrolls

The first line says what the GPUs did in the window, which ends now, or where a
replay stands. Bars and strips show the accounts of the ledger in that window:
the legend below them names them (docs/ledger.md). A strip shows them over time,
the oldest on the left, computing at the bottom.

Computing: a kernel was on the GPU (the driver may count copies, too).
CPU is in cores, between the last two readings. W is a GPU's power where
nothing else is on that GPU.
Signals ask first, go to processes of the recording's job on this machine only,
and to none with --readonly or while the picture stands still.
)";

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

// Title and bar, as far as that is shown; returns the row after them, as the next does.
std::size_t put_gpu_head(Canvas& canvas, std::size_t row, const Scene& scene, const State& state, std::size_t device) {
  const std::size_t columns = canvas.size().columns;
  const Device& facts = scene.explanation.ledger.devices[device];
  const std::string figures = figures_of(scene.view.gpus[device], columns);
  const std::size_t begin = canvas.put_right(row, columns, figures);
  const std::string title = facts.name.empty() ? gpu_name(facts) : fmt::format("{}  {}", gpu_name(facts), facts.name);
  canvas.put(row++, 0, title, kBold, begin > 2 ? begin - 2 : 0);
  if (state.shows(Box::kBars)) {
    canvas.put(row, 0, "ledger", kFaint);
    put_bar(canvas, row++, kGpuMargin, columns - kGpuMargin, scene.view.gpus[device].ledger);
  }
  return row;
}

std::size_t put_gpu_strip(Canvas& canvas, std::size_t row, std::size_t most_rows, const view::Strip& strip) {
  const std::size_t rows = is_uniform(strip) ? 1 : most_rows;
  canvas.put(row, 0, "time", kFaint);
  put_strip(canvas, row, kGpuMargin, rows, strip);
  return row + rows;
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

std::size_t count_wanted(const Scene& scene, const State& state) { return state.gpu ? 1 : scene.view.gpus.size(); }

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

// How many of so many rows the GPUs have where others need rows, too: at least one for each strip, if two thirds will
// do.
std::size_t rows_for_gpus(const Scene& scene, const State& state, std::size_t rows) {
  const std::size_t n = count_wanted(scene, state);
  const std::size_t head = state.shows(Box::kBars) ? 2 : 1, strip = state.shows(Box::kStrips) ? 1 : 0;
  constexpr std::size_t kAxisAndLegend = 2;
  const std::size_t least = n * (head + strip) + kAxisAndLegend;
  const std::size_t most = n * (head + strip * kMostRowsOfStrip) + kAxisAndLegend;
  return std::min(std::max(least, rows / 2), std::min(most, rows * 2 / 3));
}

// All of them, with strips of so many rows each.
std::size_t put_gpus_tall(Canvas& canvas, std::size_t row, std::size_t strip_rows, const Scene& scene,
                          const State& state) {
  const std::size_t bins = canvas.size().columns - kGpuMargin;
  for (const std::size_t device : shown_of(scene, state, count_wanted(scene, state))) {
    const std::size_t first = row;
    row = put_gpu_head(canvas, row, scene, state, device);
    if (strip_rows > 0) row = put_gpu_strip(canvas, row, strip_rows, strip_of(scene, state, device, bins));
    canvas.is_about(first, row - first, {Spot::Kind::kGpu, device});
  }
  return strip_rows > 0 ? put_axis(canvas, row, scene, state) : row;
}

// As many as these rows hold, a row each.
std::size_t put_gpus_flat(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state) {
  const std::size_t n = count_wanted(scene, state), most = n <= rows ? n : rows - 1;
  for (const std::size_t device : shown_of(scene, state, most)) put_gpu_row(canvas, row++, scene, state, device);
  if (most < n)
    canvas.put(row++, 0, fmt::format("and {}: right and left show one at a time", count_of(n - most, "more GPU")),
               kFaint);
  return row;
}

std::size_t put_gpus(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state) {
  if (scene.view.gpus.empty() || rows < 2) return row;
  const bool strips = state.shows(Box::kStrips);
  const std::size_t room = rows - 1;  // and the legend
  const std::size_t each = room > 1 ? (room - 1) / count_wanted(scene, state) : 0;
  const std::size_t head = state.shows(Box::kBars) ? 2 : 1;
  if (each >= head + (strips ? 1 : 0))
    row = put_gpus_tall(canvas, row, strips ? std::min(kMostRowsOfStrip, each - head) : 0, scene, state);
  else
    row = put_gpus_flat(canvas, row, room, scene, state);
  if (!strips && !state.shows(Box::kBars)) return row;
  put_legend(canvas, row, state.gpu ? scene.view.gpus[shown_of(scene, state, 1).front()].ledger : scene.view.ledger);
  return row + 1;
}

constexpr std::size_t kMostOfSentence = 3, kRowsForAll = 16;

std::string status_of(const Scene& scene, const State& state) {
  const view::View& view = scene.view;
  std::string mode = "recording";
  if (view.goes_on)
    mode = state.at ? "live, paused" : "live";
  else if (state.plays)
    mode = state.speed > 1 ? fmt::format("replay, {}x", state.speed) : "replay";
  std::string text = fmt::format("{}: {} to {} of {}", mode, human_duration(view.begin - scene.begin),
                                 human_duration(view.end - scene.begin), human_duration(scene.end - scene.begin));
  if (const RecordingMeta& meta = scene.explanation.meta; meta.start_realtime > 0)
    text += fmt::format(", {} UTC", clock_time(meta.start_realtime + (view.end - meta.start)));
  if (view.goes_on && !state.at && scene.behind)
    text += fmt::format(", last reading {} ago", human_duration(*scene.behind));
  return text;
}

// The first rows; returns the next one.
std::size_t put_head(Canvas& canvas, const Scene& scene, const State& state) {
  const std::size_t columns = canvas.size().columns;
  const std::size_t most = canvas.size().rows < kRowsForAll ? 2 : kMostOfSentence;
  std::size_t row = 0;
  for (const std::string& line : lines_of(report::wrap(scene.explanation.sentence, columns, "", ""))) {
    if (row == most) break;
    canvas.put(row++, 0, line, kBold);
  }
  if (scene.view.goes_on && scene.explanation.progress) canvas.put(row++, 0, report::progress_of(scene.explanation));
  canvas.put(row, 0, status_of(scene, state), kFaint);
  const std::size_t used = width_of(status_of(scene, state));
  if (used + 3 < columns) {
    const std::size_t room = columns - used - 3;
    if (const std::size_t width = std::min(room, width_of(scene.name)); width >= 8)
      canvas.put(row, columns - width, scene.name, kFaint, width);
  }
  ++row;
  for (const std::string& line : scene.lacks)
    if (row + 1 < canvas.size().rows) canvas.put(row++, 0, line, {.ink = Colour::kYellow});
  return row;
}

void put_foot(Canvas& canvas, const Scene& scene, const State& state) {
  const std::size_t row = canvas.size().rows - 1;
  const std::string cursor = "_";
  switch (state.prompt) {
    case Prompt::kFilter:
      canvas.put(row, 0, "filter (! before it: all others): " + state.typed + cursor, kChosen);
      return;
    case Prompt::kForward:
    case Prompt::kBack:
      canvas.put(
          row, 0,
          fmt::format("{} by (30s, 3m, 1h; nothing: {}): {}{}", state.prompt == Prompt::kBack ? "back" : "forward",
                      human_duration(state.window), state.typed, cursor),
          kChosen);
      return;
    case Prompt::kSort:
      canvas.put(row, 0, "sort by: m GPU memory, c CPU, r resident, t time, p pid, n name, u as usual", kChosen);
      return;
    case Prompt::kSignal:
      canvas.put(row, 0,
                 fmt::format("signal to {} ({}): t TERM, i INT, K KILL; any other key: none", state.target.pid,
                             state.target.name),
                 kChosen);
      return;
    case Prompt::kNone:
      break;
  }
  if (!state.message.empty())
    canvas.put(row, 0, state.message, kBold);
  else if (!scene.trouble.empty())
    canvas.put(row, 0, scene.trouble, kAlarm);
  else
    canvas.put(row, 0,
               state.page == Page::kMain
                   ? "q quit  ? help  space pause  t T j J time  w why  / filter  o sort  arrows choose  k signal"
                   : "q quit  Esc back  up, down scroll",
               kFaint);
}

void put_page(Canvas& canvas, const State& state, const std::vector<std::string>& lines) {
  const std::size_t rows = canvas.size().rows - 1;
  const std::size_t first = std::min(state.scrolled, lines.size() > rows ? lines.size() - rows : 0);
  for (std::size_t row = 0; row < rows && first + row < lines.size(); ++row) canvas.put(row, 0, lines[first + row]);
}

void put_why(Canvas& canvas, const Scene& scene, const State& state) {
  report::TextOptions options;
  options.width = canvas.size().columns;
  options.utf8 = canvas.look().utf8;
  options.full = true;
  put_page(canvas, state, lines_of(report::to_text(scene.explanation, options)));
}

// How many rows each part may have.
void put_main(Canvas& canvas, const Scene& scene, const State& state) {
  const std::size_t rows = canvas.size().rows;
  std::size_t row = put_head(canvas, scene, state);
  const std::size_t listed = rows_of(scene, state).size();
  const std::size_t finding = !state.shows(Box::kFinding) ? 0 : rows < 14 ? 1 : rows < 30 ? 2 : 4;
  const std::size_t kept = finding + 1;  // and the last row
  const std::size_t room = rows - std::min(rows, row + kept);
  const std::size_t wanted = 1 + listed;
  // The strips of the GPUs shrink before rows of the table are left out; what the table does not need is theirs.
  const std::size_t most = room - std::min(room, rows_for_gpus(scene, state, room));
  const std::size_t for_table =
      state.shows(Box::kTable) ? std::min(wanted, std::max<std::size_t>(most, room > 4 ? 3 : 1)) : 0;
  row = put_gpus(canvas, row, room - std::min(room, for_table), scene, state);
  const std::size_t left = rows - std::min(rows, row + kept);
  if (state.shows(Box::kTable)) row = put_table(canvas, row, left, scene, state);
  if (state.shows(Box::kFinding))
    put_finding(canvas, row, std::min(rows - 1 - std::min(rows - 1, row), std::max<std::size_t>(finding, 4)), scene,
                state);
}

}  // namespace

std::vector<Line> head(const Scene& scene, const State& state, Size size, Look look) {
  if (state.page != Page::kMain || size.columns < kSmallest.columns || size.rows < kSmallest.rows) return {};
  Canvas canvas({std::min(size.columns, kLargest.columns), std::min(size.rows, kRowsForAll)}, look);
  const std::size_t rows = put_head(canvas, scene, state);
  std::vector<Line> lines = std::move(canvas).take().lines;
  lines.resize(rows);
  for (Line& line : lines) line.resize(size.columns);
  return lines;
}

Picture picture(const Scene& scene, const State& state, Size size, Look look) {
  const Size drawn{std::min(size.columns, kLargest.columns), std::min(size.rows, kLargest.rows)};
  Canvas canvas(drawn, look);
  if (drawn.columns < kSmallest.columns || drawn.rows < kSmallest.rows) {
    canvas.put(0, 0, fmt::format("too small: {} x {}", kSmallest.columns, kSmallest.rows));
  } else {
    if (state.page == Page::kHelp)
      put_page(canvas, state, lines_of(kHelp));
    else if (state.page == Page::kWhy)
      put_why(canvas, scene, state);
    else
      put_main(canvas, scene, state);
    put_foot(canvas, scene, state);
  }
  Picture whole = std::move(canvas).take();
  for (Line& line : whole.lines) line.resize(size.columns);
  whole.lines.resize(size.rows, Line(size.columns));
  whole.spots.resize(size.rows);
  return whole;
}

}  // namespace headroom::screen
