// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "report/layout.h"
#include "report/text.h"
#include "report/time_limit.h"
#include "screen/parts.h"

namespace headroom::screen {

namespace {

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
  for (const std::string& line : lines_of(report::wrap(sentence_of(scene), columns, "", ""))) {
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

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const auto line : split(text, '\n')) lines.emplace_back(line);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

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
