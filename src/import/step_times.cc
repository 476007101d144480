// SPDX-License-Identifier: Apache-2.0
#include "import/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/fnv.h"
#include "base/strings.h"
#include "import/log_losses.h"
#include "import/log_reader.h"
#include "model/bounds.h"

namespace headroom {

namespace {

struct Columns {
  std::size_t count = 0, worker = 0, step = 0, length = 0;
  double unit_ns = 0;  // of a length; 0: not said
  std::string length_name;
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "step_time_ms" says milliseconds; "batch_time_norm" nothing.
std::optional<double> unit_of(std::string_view name) {
  if (name == "batch_time_norm") return 0.0;
  for (const std::string_view stem : {"step_time", "batch_time", "iteration_time"}) {
    if (!name.starts_with(stem)) continue;
    const std::string_view unit = name.substr(stem.size());
    if (unit.empty()) return 0.0;
    if (unit == "_s") return 1e9;
    if (unit == "_ms") return 1e6;
    if (unit == "_us") return 1e3;
    if (unit == "_ns") return 1.0;
  }
  return std::nullopt;
}

std::optional<Columns> columns_of(std::string_view header) {
  Columns columns;
  std::optional<std::size_t> worker, step, length;
  for (const std::string_view cell : csv_cells(header)) {
    const std::string name = lower(trim(cell));
    const std::size_t place = columns.count++;
    if (is_one_of(name, {"worker", "rank"})) worker = place;
    if (is_one_of(name, {"step", "iteration", "time"})) step = place;
    if (const auto unit = unit_of(name); unit && !length) {
      length = place;
      columns.unit_ns = *unit;
      columns.length_name = name;
    }
  }
  if (!worker || !step || !length) return std::nullopt;
  columns.worker = *worker, columns.step = *step, columns.length = *length;
  return columns;
}

// Adds what each worker counted, as marks; the end of the last step of all.
Nanos add_workers(const std::map<std::int64_t, std::map<std::int64_t, Nanos>>& lengths, MemorySink& sink,
                  std::uint64_t& hash) {
  Nanos end = 0;
  for (const auto& [worker, steps] : lengths) {
    const SourceId source = sink.add_source({SourceKind::kMarks,
                                             fmt::format("worker/{}", worker),
                                             kNoSource,
                                             {{"via", "table"}, {"worker", fmt::format("{}", worker)}}});
    Nanos at = 0;
    std::int64_t done = 0;
    sink.add_row(source, at, std::array{Cell{Metric::kSteps, 0, std::nullopt}});
    for (const auto& [step, length] : steps) {
      at = std::min(at + length, kLatest);
      sink.add_row(source, at, std::array{Cell{Metric::kSteps, ++done, std::nullopt}});
      hash = fnv1a(static_cast<std::uint64_t>(length), hash);
    }
    end = std::max(end, at);
  }
  return end;
}

}  // namespace

bool is_step_times(std::string_view text) {
  return columns_of(text.substr(0, std::min(text.find('\n'), std::size_t{4096}))).has_value();
}

Result<Recording> read_step_times(const std::string& name, std::string_view text) {
  LineCursor lines(text);
  const auto columns = lines.next() ? columns_of(lines.line()) : std::nullopt;
  if (!columns)
    return fail(Errc::kInvalidInput, fmt::format("{}:1: no columns worker, step and step_time in the header", name),
                "write them as worker,step,step_time_s");
  std::map<std::int64_t, std::map<std::int64_t, Nanos>> lengths;  // by worker and step
  LogLosses losses;
  const double unit = columns->unit_ns > 0 ? columns->unit_ns : 1e6;
  while (lines.next()) {
    if (trim(lines.line()).empty()) continue;
    const auto cells = csv_cells(lines.line());
    const auto worker =
        cells.size() == columns->count ? parse_number<std::int64_t>(trim(cells[columns->worker])) : std::nullopt;
    const auto step = worker ? parse_number<std::int64_t>(trim(cells[columns->step])) : std::nullopt;
    const auto length = step ? parse_number<double>(trim(cells[columns->length])) : std::nullopt;
    constexpr double kLongest = 366.0 * 86'400e9;
    if (!length || !std::isfinite(*length) || *length < 0 || *length * unit > kLongest) {
      losses.add(LossKind::kUnreadableRow, 1,
                 [&] { return fmt::format("first at line {}: '{}'", lines.number(), lines.line().substr(0, 80)); });
      continue;
    }
    lengths[*worker][*step] = std::max<Nanos>(1, static_cast<Nanos>(*length * unit));
  }
  if (lengths.empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: no row with a worker, a step and its time", name));
  if (columns->unit_ns <= 0)
    losses.add(LossKind::kAssumedUnit, 1, [&] {
      return fmt::format("column {} has no unit: taken as milliseconds; ratios are true, lengths need not be",
                         columns->length_name);
    });
  MemorySink sink;
  RecordingMeta meta;
  std::uint64_t hash = fnv1a(name);
  meta.end = add_workers(lengths, sink, hash);
  meta.id = fmt::format("{:016x}", hash);
  meta.origin = "import:step-times";
  meta.writer = "headroom " HEADROOM_VERSION;
  meta.tiers = "L";
  for (const char tier : {'N', 'P', 'Y', 'X', 'C'})
    meta.missing_tiers.push_back({tier, "a table of step times has nothing else"});
  meta.extra["source_file"] = name;
  sink.set_meta(meta);
  for (const Loss& loss : losses.all()) sink.add_loss(loss);
  Recording recording = sink.take();
  keep_in_bounds(recording);
  return recording;
}

}  // namespace headroom
