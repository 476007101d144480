// SPDX-License-Identifier: Apache-2.0
#include "report/batch_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/json_values.h"
#include "report/layout.h"
#include "report/progress_json.h"
#include "report/progress_words.h"

namespace headroom::report {

namespace {

template <class Pairs>
auto value_in(const Pairs& pairs, std::string_view name) -> const decltype(pairs.front().second)* {
  const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == name; });
  return found == pairs.end() ? nullptr : &found->second;
}

// In the order in which they first appear.
template <class Pairs>
void add_names(const Pairs& pairs, std::vector<std::string>& names) {
  for (const auto& [name, value] : pairs)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

struct TableColumns {
  std::vector<std::string> parameters, metrics;
  std::set<std::string> courses;  // metrics of which a row has several values
};
TableColumns columns_of(const std::vector<TableRow>& rows) {
  TableColumns columns;
  for (const TableRow& row : rows) {
    add_names(row.parameters, columns.parameters);
    add_names(row.metrics, columns.metrics);
    for (const SaidMetric& course : row.courses) columns.courses.insert(course.name);
  }
  return columns;
}

// What stands in one cell of a terminal.
std::string cell(std::string_view text) {
  std::string shown(text);
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, ' ');
  return shown;
}

using Lines = std::vector<std::vector<std::string>>;  // the first is the header

// What stands beside the last value of a metric, of which a row has several.
enum class Beside : std::uint8_t { kNothing, kValues, kCurve };

const SaidMetric* course_in(const TableRow& row, std::string_view name) {
  const auto found = std::find_if(row.courses.begin(), row.courses.end(),
                                  [&](const SaidMetric& course) { return course.name == name; });
  return found == row.courses.end() ? nullptr : &*found;
}

// How the cells are written.
struct Writing {
  std::string time_name, memory_name;
  std::string (*time)(Nanos);
  std::string (*memory)(std::int64_t);
  std::string (*beside_name)(const std::string& metric, const char* what);
  Beside beside = Beside::kNothing;
  bool to_read = false;  // by people: a cell may say more than one thing
};

constexpr Nanos kShort = 3 * kSecond;  // six looks, of which two fall into its start and its end

// What it took is found out a few times only, if at all: not the most that it took.
bool ran_shortly(const Attempt& attempt) {
  return !attempt.gpu_uuids.empty() && attempt.outcome != AttemptOutcome::kNotStarted && attempt.end &&
         *attempt.end - attempt.start < kShort;
}

// That it failed, and of what, where more is known than that.
std::string state_cell(const TableRow& row) {
  std::string words(state_words(row.state, row.last));
  const bool more = row.state == TaskState::kFailed && row.outcome && *row.outcome != AttemptOutcome::kFailed;
  return more ? fmt::format("{}, {}", words, info(*row.outcome).label) : words;
}

std::string memory_cell(const TableRow& row, const Writing& writing) {
  std::string figure = row.gpu_bytes ? writing.memory(*row.gpu_bytes) : "";
  if (!row.too_short || !writing.to_read) return figure;
  return figure.empty() ? "*" : "* " + figure;
}

std::string number_text(double value) { return fmt::format("{}", value); }

void add_course(std::vector<std::string>& line, const SaidMetric* course, Beside beside) {
  constexpr std::size_t kCells = 8;
  if (beside == Beside::kNothing) return;
  line.push_back(course != nullptr ? number_text(course->first) : "");
  line.push_back(course != nullptr && course->best() ? number_text(*course->best()) : "");
  if (beside == Beside::kCurve) line.push_back(course != nullptr ? curve_text(course->curve, kCells) : "");
}

std::vector<std::string> header_of(const TableColumns& columns, const Writing& writing) {
  std::vector<std::string> header{"task"};
  for (const std::string& name : columns.parameters) header.push_back(parameter_label(name));
  for (const std::string& name : columns.metrics) {
    header.push_back(name);
    if (writing.beside == Beside::kNothing || !columns.courses.contains(name)) continue;
    for (const char* what : {"first", "best"}) header.push_back(writing.beside_name(name, what));
    if (writing.beside == Beside::kCurve) header.push_back(writing.beside_name(name, "curve"));
  }
  header.insert(header.end(), {writing.time_name, writing.memory_name, "state"});
  if (!writing.to_read) header.insert(header.end(), {"outcome", "too_short"});
  return header;
}

std::vector<std::string> cells_of(const TableRow& row, const TableColumns& columns, const Writing& writing) {
  std::vector<std::string> line{row.task};
  for (const std::string& name : columns.parameters) {
    const auto* value = value_in(row.parameters, name);
    line.push_back(value != nullptr ? *value : "");
  }
  for (const std::string& name : columns.metrics) {
    const auto* value = value_in(row.metrics, name);
    line.push_back(value != nullptr ? number_text(*value) : "");
    if (columns.courses.contains(name)) add_course(line, course_in(row, name), writing.beside);
  }
  line.push_back(row.took ? writing.time(*row.took) : "");
  line.push_back(memory_cell(row, writing));
  line.push_back(writing.to_read ? state_cell(row) : std::string(state_words(row.state, row.last)));
  if (!writing.to_read)
    line.insert(line.end(), {row.outcome ? std::string(info(*row.outcome).name) : "", row.too_short ? "yes" : ""});
  return line;
}

Lines lines_of(const std::vector<TableRow>& rows, const Writing& writing) {
  const TableColumns columns = columns_of(rows);
  Lines lines{header_of(columns, writing)};
  for (const TableRow& row : rows) lines.push_back(cells_of(row, columns, writing));
  return lines;
}

// It may go to a terminal: what could speak to one is an escape here; JSON has it as it is.
std::string csv_field(const std::string& value) {
  std::string text = visible_lines(value);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// A number where it is one, so that 10 comes after 9; a text else; nothing comes last.
struct Key {
  bool missing = true;
  std::optional<double> number;
  std::string text;
};
Key key_of(const TableRow& row, const std::string& by) {
  const auto number = [](double value) { return Key{.missing = std::isnan(value), .number = value, .text = {}}; };
  if (const auto* metric = value_in(row.metrics, by)) return number(*metric);
  for (const auto& [name, value] : row.parameters)
    if (name == by || parameter_label(name) == by)
      return {.missing = false, .number = parse_number<double>(value), .text = value};
  if (by == "task") return {.missing = false, .number = {}, .text = row.task};
  if (by == "time" && row.took) return number(seconds(*row.took));
  if (by == "gpu_memory" && row.gpu_bytes) return number(static_cast<double>(*row.gpu_bytes));
  return {};
}
bool less(const Key& a, const Key& b) {
  if (a.number && b.number) return *a.number < *b.number;
  if (a.number.has_value() != b.number.has_value()) return a.number.has_value();  // numbers before texts
  return a.text < b.text;
}

}  // namespace

std::string parameter_label(const std::string& name) { return parse_number<unsigned>(name) ? "{" + name + "}" : name; }

TableRow table_row(const TaskAndState& task, const std::vector<std::pair<std::string, std::string>>& parameters,
                   const std::vector<const Attempt*>& attempts, Nanos now) {
  TableRow row{.task = task.name,
               .state = task.state,
               .last = task.last,
               .parameters = parameters,
               .metrics = {},
               .courses = {},
               .took = {},
               .gpu_bytes = {},
               .outcome = {}};
  if (task.state == TaskState::kRunning) {
    if (!attempts.empty() && !attempts.back()->end) row.took = std::max<Nanos>(0, now - attempts.back()->start);
    return row;
  }
  const Attempt* told = nullptr;
  for (const Attempt* attempt : attempts) {
    const bool succeeded = told != nullptr && told->outcome == AttemptOutcome::kSucceeded;
    if (attempt->end && (!succeeded || attempt->outcome == AttemptOutcome::kSucceeded)) told = attempt;
  }
  if (told == nullptr) return row;
  for (const auto& pair : told->parameters_resolved)
    if (value_in(row.parameters, pair.first) == nullptr) row.parameters.push_back(pair);
  row.metrics = told->metrics;
  // A course that ends otherwise is of something else of that name.
  for (const SaidMetric& course : told->courses)
    if (const auto* last = value_in(row.metrics, course.name);
        last != nullptr && (*last == course.last || (std::isnan(*last) && std::isnan(course.last))))
      row.courses.push_back(course);
  row.took = *told->end - told->start;
  row.gpu_bytes = told->peak_gpu_bytes;
  row.outcome = told->outcome;
  row.too_short = ran_shortly(*told);
  return row;
}

Result<void> sort_table(std::vector<TableRow>& rows, const std::string& by, bool descending) {
  std::vector<std::pair<Key, std::size_t>> keys;
  for (std::size_t i = 0; i < rows.size(); ++i) keys.emplace_back(key_of(rows[i], by), i);
  if (std::all_of(keys.begin(), keys.end(), [](const auto& key) { return key.first.missing; }) && !rows.empty()) {
    const TableColumns columns = columns_of(rows);
    std::vector<std::string> known = columns.metrics;
    for (const std::string& name : columns.parameters) known.push_back(parameter_label(name));
    known.insert(known.end(), {"task", "time", "gpu_memory"});
    return fail(Errc::kInvalidInput, fmt::format("no task has '{}'", by), "there are: " + join(known, ", "));
  }
  // What a task has of itself when it fails is no result. Its name and parameters are what they are.
  const bool by_result =
      by == "time" || by == "gpu_memory" ||
      std::any_of(rows.begin(), rows.end(), [&](const TableRow& row) { return value_in(row.metrics, by) != nullptr; });
  const auto reached = [&](std::size_t row) { return !by_result || rows[row].state == TaskState::kSucceeded; };
  std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
    if (reached(a.second) != reached(b.second)) return reached(a.second);
    if (a.first.missing || b.first.missing) return !a.first.missing && b.first.missing;
    return descending ? less(b.first, a.first) : less(a.first, b.first);
  });
  std::vector<TableRow> sorted;
  for (const auto& [key, index] : keys) sorted.push_back(std::move(rows[index]));
  rows = std::move(sorted);
  return {};
}

namespace {

std::string text_with(const std::vector<TableRow>& rows, Beside beside) {
  Lines lines = lines_of(rows, {.time_name = "time",
                                .memory_name = "GPU memory",
                                .time = [](Nanos took) { return human_duration(took); },
                                .memory = [](std::int64_t bytes) { return human_bytes(bytes); },
                                .beside_name = [](const std::string&, const char* what) { return std::string(what); },
                                .beside = beside,
                                .to_read = true});
  std::vector<std::size_t> widths(lines[0].size());
  std::vector<bool> numbers(lines[0].size(), true);
  for (std::size_t i = 0; i < lines.size(); ++i)
    for (std::size_t c = 0; c < lines[i].size(); ++c) {
      lines[i][c] = cell(lines[i][c]);
      widths[c] = std::max(widths[c], display_width(lines[i][c]));
      if (i > 0 && !lines[i][c].empty() && !parse_number<double>(lines[i][c])) numbers[c] = false;
    }
  numbers[numbers.size() - 2] = numbers[numbers.size() - 3] = true;  // time and memory, with their units
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t c = 0; c < line.size(); ++c)
      row += (c == 0 ? "" : "  ") + (numbers[c] ? pad_left(line[c], widths[c]) : pad_right(line[c], widths[c]));
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

bool fits(std::string_view text, std::size_t width) {
  const auto lines = split(text, '\n');
  return std::all_of(lines.begin(), lines.end(), [&](std::string_view line) { return display_width(line) <= width; });
}

}  // namespace

std::string table_text(const std::vector<TableRow>& rows, std::size_t width) {
  const bool marks = std::any_of(rows.begin(), rows.end(), [](const TableRow& row) { return row.too_short; });
  const std::string below =
      marks ? fmt::format("* too short to measure (less than {}): the most that a look found it to hold, if one did\n",
                          human_duration(kShort))
            : "";
  for (const Beside beside : {Beside::kCurve, Beside::kValues})
    if (std::string text = text_with(rows, beside); fits(text, width)) return text + below;
  return text_with(rows, Beside::kNothing) + below;
}

std::string table_csv(const std::vector<TableRow>& rows) {
  const Lines lines =
      lines_of(rows, {.time_name = "seconds",
                      .memory_name = "gpu_memory_bytes",
                      .time = [](Nanos took) { return fmt::format("{:.3f}", seconds(took)); },
                      .memory = [](std::int64_t bytes) { return fmt::format("{}", bytes); },
                      .beside_name = [](const std::string& metric, const char* what) { return metric + ":" + what; },
                      .beside = Beside::kValues,
                      .to_read = false});
  std::string text;
  for (const auto& line : lines) {
    std::vector<std::string> fields;
    for (const std::string& field : line) fields.push_back(csv_field(field));
    text += join(fields, ",") + "\n";
  }
  return text;
}

std::string table_json(const std::vector<TableRow>& rows) {
  Json list = Json::array();
  for (const TableRow& row : rows) {
    Json parameters = Json::object(), metrics = Json::object();
    for (const auto& [name, value] : row.parameters) parameters[name] = value;
    for (const auto& [name, value] : row.metrics) metrics[name] = std::isfinite(value) ? Json(value) : Json(nullptr);
    list.push_back({{"task", row.task},
                    {"state", name(row.state)},
                    {"interrupted", row.state == TaskState::kReady && row.last == LastAttempt::kInterrupted},
                    {"parameters", parameters},
                    {"metrics", metrics},
                    {"metric_values", metric_values_json(row.courses)},
                    {"seconds", row.took ? Json(seconds(*row.took)) : Json(nullptr)},
                    {"gpu_memory_bytes", optional_json(row.gpu_bytes)},
                    {"outcome", row.outcome ? Json(info(*row.outcome).name) : Json(nullptr)},
                    {"too_short", row.too_short}});
  }
  return dump({{"schema", "headroom.batch-table/1"}, {"tasks", list}}, 1);
}

}  // namespace headroom::report
