// SPDX-License-Identifier: Apache-2.0
#include "screen/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/human.h"
#include "base/strings.h"
#include "report/layout.h"
#include "report/words.h"

namespace headroom::screen {

namespace {

constexpr const char* kNotKnown = "-";

struct Column {
  std::string_view title;
  std::size_t width;
  bool right;
  std::size_t from;  // columns of the terminal
  std::function<std::string(const Row&)> text;
};

std::string bytes(const std::optional<std::int64_t>& value) { return value ? human_bytes(*value) : kNotKnown; }

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}", 100 * *share) : kNotKnown;
}

std::string gpus(const Scene& scene, const Row& row) {
  if (row.gpus.empty()) return kNotKnown;
  std::vector<std::string> indices;
  for (const std::size_t gpu : row.gpus)
    indices.push_back(fmt::format("{}", scene.explanation.ledger.devices[gpu].index));
  return join(indices, ",");
}

// The first column is the name; what the row does and, of a process, its command have the rest.
std::vector<Column> columns_of(const Scene& scene, bool tasks) {
  return {
      {"PID", 8, true, 70, [](const Row& row) { return row.pid > 0 ? std::to_string(row.pid) : kNotKnown; }},
      {tasks ? "TASK" : "NAME", 16, false, 0, [](const Row& row) { return row.name; }},
      {"GPU", 4, true, 0, [&](const Row& row) { return gpus(scene, row); }},
      {"GPU MEM", 9, true, 0, [](const Row& row) { return bytes(row.gpu_bytes); }},
      {"SM %", 4, true, 110, [](const Row& row) { return percent(row.sm_util); }},
      {"CPU", 6, true, 60, [](const Row& row) { return row.cores ? fmt::format("{:.2f}", *row.cores) : kNotKnown; }},
      {"MEMORY", 9, true, 90, [](const Row& row) { return bytes(row.resident_bytes); }},
      {"W", 5, true, 80, [](const Row& row) { return row.watts ? fmt::format("{:.0f}", *row.watts) : kNotKnown; }},
      {"FOR", 8, true, 100, [](const Row& row) { return human_duration(row.lasted); }},
  };
}

std::size_t put_fields(Canvas& canvas, std::size_t row, const std::vector<Column>& columns, Style style,
                       const std::function<std::string(const Column&)>& text) {
  std::size_t at = 0;
  for (const Column& column : columns) {
    if (canvas.size().columns < column.from) continue;
    const std::string field = text(column);
    const std::size_t width = std::min(column.width, width_of(field, canvas.look().utf8));
    canvas.put(row, at + (column.right ? column.width - width : 0), field, style, column.width);
    at += column.width + 1;
  }
  return at;
}

std::size_t put_detail(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const Row& chosen) {
  std::string text = fmt::format("{} {}: GPU {}, GPU memory {}, memory {}, CPU {} cores, {} W, for {}. {}", chosen.name,
                                 chosen.pid, gpus(scene, chosen), bytes(chosen.gpu_bytes), bytes(chosen.resident_bytes),
                                 chosen.cores ? fmt::format("{:.2f}", *chosen.cores) : kNotKnown,
                                 chosen.watts ? fmt::format("{:.0f}", *chosen.watts) : kNotKnown,
                                 human_duration(chosen.lasted), chosen.doing);
  if (chosen.command != chosen.name) text += fmt::format("\n{}", chosen.command);
  std::size_t used = 0;
  for (const auto part : split(text, '\n'))
    for (const std::string& line : lines_of(report::wrap(part, canvas.size().columns, "  ", "  ")))
      if (used < rows) canvas.put(row + used++, 0, line);
  return row + used;
}

bool shows_tasks(const Scene& scene, const State& state) { return has_tasks(scene) && !state.processes; }

std::string title_of(const Scene& scene, const State& state, std::size_t rows) {
  const bool tasks = shows_tasks(scene, state);
  std::string text = tasks ? count_of(rows, "task") : count_of(rows, "process", "processes");
  if (!state.filter.empty()) text += fmt::format(" match '{}'", state.filter);
  if (!tasks && scene.view.processes_left_out > 0)
    text += fmt::format(", {} not listed", scene.view.processes_left_out);
  return text;
}

void put_titles(Canvas& canvas, std::size_t row, const std::vector<Column>& columns, const std::string& right) {
  const std::size_t doing =
      put_fields(canvas, row, columns, kBold, [](const Column& column) { return std::string(column.title); });
  canvas.put(row, doing, "DOES", kBold);
  if (doing + 6 + width_of(right) < canvas.size().columns) canvas.put_right(row, canvas.size().columns, right, kFaint);
}

void put_row(Canvas& canvas, std::size_t row, const std::vector<Column>& columns, const Row& one, bool task) {
  const Style style = one.lives ? kPlain : kFaint;
  const std::size_t doing =
      put_fields(canvas, row, columns, style, [&](const Column& column) { return column.text(one); });
  std::string words = one.doing;
  if (!task && one.command != one.name) words += (words.empty() ? "" : "  ") + one.command;
  canvas.put(row, doing, words, style);
}

std::string with_advice(std::string text, const std::string& advice) {
  text += ".";
  if (!advice.empty()) text += fmt::format(" Try: {}.", advice);
  return text;
}

std::string finding_words(const Explanation& e, const Finding& finding) {
  const double share = static_cast<double>(finding.cost()) / static_cast<double>(std::max<Nanos>(1, e.ledger.budget()));
  std::string text = finding.title;
  if (finding.cost() > 0)
    text +=
        fmt::format(": {} {}, {} of the window's GPU time", report::is_unknown_time(finding) ? "unknown for" : "costs",
                    human_duration(finding.cost()), human_percent(share));
  return with_advice(std::move(text), finding.advice);
}

// Alarms, then the finding of the window, then what else stands; of a picture that stands still that of the window
// alone. None twice.
std::vector<std::string> findings_of(const Scene& scene, const State& state) {
  const Explanation& e = scene.explanation;
  const auto first = first_finding(e);
  std::vector<std::string> said, others;
  bool first_is_alarm = false;
  for (const report::StandingFinding& one : scene.now) {
    if (state.at) break;
    const bool is_first = first && e.findings[*first].title == one.title;
    first_is_alarm |= is_first && one.alarm;
    if (is_first && !one.alarm) continue;
    const std::string words = fmt::format("Now: {}, for {}", one.title, human_duration(scene.end - one.since));
    (one.alarm ? said : others).push_back(with_advice(words, one.advice));
  }
  if (first && !first_is_alarm) said.push_back(finding_words(e, e.findings[*first]));
  said.insert(said.end(), others.begin(), others.end());
  return said;
}

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const auto line : split(text, '\n')) lines.emplace_back(line);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::size_t put_table(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state) {
  if (rows == 0) return row;
  const std::vector<Row> table = rows_of(scene, state);
  if (table.empty()) {
    canvas.put(row, 0, title_of(scene, state, 0), kFaint);
    return row + 1;
  }
  const std::vector<Column> columns = columns_of(scene, shows_tasks(scene, state));
  put_titles(canvas, row++, columns, title_of(scene, state, table.size()));
  const std::size_t for_detail = state.detail && rows > 4 ? std::min<std::size_t>(4, rows - 2) : 0;
  const std::size_t room = rows - 1 - for_detail;
  const std::size_t chosen = std::min(state.row, table.size() - 1);
  const bool marked = state.row > 0 || state.detail || state.prompt == Prompt::kSignal;
  const std::size_t first = chosen >= room ? chosen - room + 1 : 0;
  for (std::size_t i = first; i < table.size() && i - first < room; ++i, ++row) {
    put_row(canvas, row, columns, table[i], shows_tasks(scene, state));
    if (i == chosen && marked) canvas.restyle(row, kChosen);
    canvas.is_about(row, 1, {Spot::Kind::kRow, i});
  }
  return for_detail > 0 ? put_detail(canvas, row, for_detail, scene, table[chosen]) : row;
}

std::size_t put_finding(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state) {
  if (rows == 0) return row;
  const std::vector<std::string> findings = findings_of(scene, state);
  if (findings.empty()) {
    canvas.put(row, 0,
               scene.explanation.too_few ? "Too short a time to tell what costs."
                                         : "No finding costs device time in this window.",
               kFaint);
    return row + 1;
  }
  const std::size_t end = row + rows;
  for (const std::string& text : findings) {
    Style style{.ink = Colour::kYellow, .bold = true};
    for (const std::string& line : lines_of(report::wrap(text, canvas.size().columns, "! ", "  "))) {
      if (row == end) return row;
      canvas.put(row++, 0, line, std::exchange(style, kPlain));
    }
  }
  return row;
}

}  // namespace headroom::screen
