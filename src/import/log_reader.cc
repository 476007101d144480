// SPDX-License-Identifier: Apache-2.0
#include "import/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/strings.h"
#include "base/visible.h"
#include "import/column_rows.h"
#include "import/column_words.h"
#include "import/unknown_file.h"
#include "model/events.h"
#include "model/gpu_vendor.h"

namespace headroom {

namespace {

constexpr std::int64_t kNoteLimit = 100;  // events for odd lines; all of them are counted
constexpr std::string_view kNoTime = " as a time";

bool tells_of_a_lost_gpu(std::string_view text) {
  return text.find("GPU is lost") != std::string_view::npos ||
         text.find("Unable to determine the device handle") != std::string_view::npos;
}

// 1 where the cell was put together elsewhere.
std::size_t column_of(std::string_view cell, std::string_view line) {
  const std::less<> before;
  if (before(cell.data(), line.data()) || before(line.data() + line.size(), cell.data())) return 1;
  return static_cast<std::size_t>(cell.data() - line.data()) + 1;
}

}  // namespace

std::string shorten(std::string_view text) {
  constexpr std::size_t kLimit = 120;
  std::string printable(text.substr(0, kLimit));
  for (char& c : printable)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  return text.size() > kLimit ? printable + "…" : printable;
}

bool LineCursor::next() {
  begun_.clear();
  const auto begin = [this](std::string_view part) { begun_ += part.substr(0, kLongestLine - begun_.size()); };
  std::size_t size = rest_.find('\n');
  while (size == std::string_view::npos && bytes_) {
    begin(rest_);
    rest_ = bytes_->next();
    size = rest_.find('\n');
    if (rest_.empty()) bytes_ = nullptr;
  }
  if (rest_.empty() && begun_.empty()) return false;
  complete_ = size != std::string_view::npos;
  line_ = rest_.substr(0, size);
  rest_.remove_prefix(complete_ ? size + 1 : rest_.size());
  if (!begun_.empty()) {
    begin(line_);
    line_ = begun_;
  }
  if (number_++ == 0 && line_.starts_with(kByteOrderMark)) line_.remove_prefix(kByteOrderMark.size());
  if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
  return true;
}

std::string_view LineCursor::rest() {
  if (!bytes_) return rest_;
  all_ = rest_;
  for (auto more = bytes_->next(); !more.empty(); more = bytes_->next()) all_ += more;
  bytes_ = nullptr;
  return rest_ = all_;
}

void LogReader::assume_order(std::string_view first, DateOrder order, std::string_view why) {
  times_.set_order(order);
  const std::string_view leading = order == DateOrder::kDayFirst    ? "day"
                                   : order == DateOrder::kYearFirst ? "year"
                                                                    : "month";
  builder_.data().losses.add(LossKind::kAssumedDateOrder, 1, [&] {
    return fmt::format(
        "all times are of one date ('{}'), read with the {} first{} (--date-order says it; it changes the "
        "date of the report and nothing else)",
        shorten(first), leading, why);
  });
}

void LogReader::number_rows() { builder_.data().by_order = true; }

void LogReader::had_decimal_commas(const std::string& number) {
  std::string point = number;
  std::replace(point.begin(), point.end(), ',', '.');
  builder_.data().extra["decimal_commas"] = fmt::format("'{}' as {}", number, point);
}

void LogReader::had_other_runs(std::string words) {
  if (!words.empty()) builder_.data().extra["other_runs"] = std::move(words);
}

Nanos LogReader::time_of_day(Nanos time) {
  constexpr Nanos kMostDays = 10'000;  // a log that jumps to and fro is not longer than that
  days_used_ = true;
  if (last_time_of_day_ && time < *last_time_of_day_ - kDay / 2 && day_ < kMostDays * kDay)
    day_ += kDay;  // past midnight
  last_time_of_day_ = time;
  return times_.to_unix(options_.start_date.value_or(0) + day_ + time);
}

Nanos LogReader::since_beginning(Nanos length) {
  since_beginning_ = true;
  return options_.start_date ? times_.to_unix(*options_.start_date) + length : length;
}

Nanos LogReader::round_time(std::size_t gpu) {
  rounds_used_ = true;
  // GPUs are written in the order of the first round, whatever their numbers: this one begins the next.
  if (gpu <= last_gpu_ || round_ < 0) ++round_;
  last_gpu_ = gpu;
  const Nanos start = first_date_.value_or(options_.start_date.value_or(0));
  return times_.to_unix(start) + round_ * (options_.interval > 0 ? options_.interval : kSecond);
}

namespace {

// "node1:0", "node1/gpu3" and "gpu-box-2:cuda:1" name the host with the GPU, as a column of their own does else; a
// number alone may be anything.
std::string host_of(const LogColumns& columns, std::string_view host, std::string_view identity) {
  if (columns.host && columns.numbered_hosts) return fmt::format("host {}", host);
  if (columns.host) return parse_number<double>(host) || absence_of(host) ? std::string() : std::string(host);
  if (!columns.index || columns.uuid) return "";
  const auto sign = identity.find_first_of(":/@");
  if (sign == std::string_view::npos || sign == 0 || sign + 1 >= identity.size()) return "";
  const std::string_view front = identity.substr(0, sign);
  const auto letters = front.substr(0, front.find_first_of("0123456789-_. "));
  constexpr std::array<std::string_view, 8> kOfGpus{"gpu", "cuda", "nvidia", "device", "dev", "card", "hip", "xpu"};
  const bool of_gpu =
      std::find(kOfGpus.begin(), kOfGpus.end(), lower(letters)) != kOfGpus.end() && letters.size() == front.size();
  return of_gpu || parse_number<double>(front) ? std::string() : std::string(front);
}

}  // namespace

std::optional<Nanos> LogReader::read_timestamp(const LogColumns& columns, std::string_view text) {
  times_.set_unit(columns.time_unit);
  if (columns.elapsed)
    if (const auto length = times_.read_duration(text)) return since_beginning(*length);
  if (const auto at = times_.read(text)) return times_.since_beginning() ? since_beginning(*at) : *at;
  if (const auto time = parse_time_of_day(text)) return time_of_day(*time);
  const auto length = parse_elapsed(text);
  if (!length) return std::nullopt;
  const bool of_day = *length < kDay && text.find("day") == std::string_view::npos;  // "9:05:03"
  return of_day ? time_of_day(*length) : since_beginning(*length);
}

std::optional<Nanos> LogReader::instant(const LogColumns& columns, const std::vector<std::string_view>& cells) {
  if (const auto clock = columns.clock())
    minutes_only_ = minutes_only_ && std::count(cells[*clock].begin(), cells[*clock].end(), ':') == 1;
  if (columns.timestamp) return read_timestamp(columns, cells[*columns.timestamp]);
  if (!columns.time) return columns.date ? parse_date(cells[*columns.date]) : std::nullopt;
  const auto time = parse_time_of_day(cells[*columns.time]);
  if (!columns.date) return time ? std::optional(time_of_day(*time)) : std::nullopt;
  const auto date = time ? parse_date(cells[*columns.date]) : std::nullopt;
  if (date) return times_.to_unix(*date + *time);
  return times_.read(fmt::format("{} {}", cells[*columns.date], cells[*columns.time]));
}

namespace {
// "Epoch 3, step 120, loss 0.31" has as many parts as a row has cells by chance: words where the time and the readings
// are.
bool is_a_message(const LogColumns& columns, const std::vector<std::string_view>& cells, std::size_t time) {
  const auto begins_with_a_letter = [&](std::size_t column) {
    const char first = cells[column].empty() ? '\0' : cells[column][0];
    return (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
  };
  if (cells[time].starts_with('{')) return true;  // "{'loss': 0.31, 'epoch': 2.0}"
  return begins_with_a_letter(time) && !columns.metrics.empty() &&
         std::all_of(columns.metrics.begin(), columns.metrics.end(), [&](const LogField& field) {
           return begins_with_a_letter(field.column) && !absence_of(cells[field.column]);
         });
}
}  // namespace

bool LogReader::has_identity(const LogColumns& columns, std::string_view identity, const LineCursor& at) {
  const auto name = columns.identity();
  const bool digit_first = !identity.empty() && is_digit(identity[0]);  // as no word for an absence has it
  if (name && !digit_first && absence_of(identity)) {
    if (tells_of_a_lost_gpu(identity)) note_lost_gpu(identity, at);
    problem(at.number(), column_of(identity, at.line()),
            fmt::format("cannot tell the GPU from '{}'", shorten(identity)));
    return false;
  }
  const bool uuid = identity.starts_with("GPU-") || identity.starts_with("MIG-");
  if (columns.index && name == columns.index && !uuid && (identity.empty() || !is_digit(identity.back()))) {
    problem(at.number(), column_of(identity, at.line()), fmt::format("'{}' is no GPU's index", shorten(identity)));
    return false;
  }
  return true;
}

void LogReader::row(LogColumns& columns, const std::vector<std::string_view>& cells, const LineCursor& at) {
  const auto text_at = [&](const std::optional<std::size_t>& column) {
    return column ? cells[*column] : std::string_view();
  };
  const auto name = columns.identity();
  const std::string_view identity = text_at(name);
  if (!has_identity(columns, identity, at)) return;
  // The time first: a line that has none is no row, and must not bring a GPU into being.
  const auto clock = columns.clock();
  const auto stamp = clock ? clock : columns.date;
  std::optional<Nanos> when = instant(columns, cells);
  if (stamp && !when && is_a_message(columns, cells, *stamp)) return message(at);
  if (stamp && !when)
    return problem(at.number(), column_of(cells[*stamp], at.line()),
                   fmt::format("cannot read '{}'{}", shorten(cells[*stamp]), kNoTime));
  if (stamp && !clock && !first_date_) first_date_ = when;
  const std::string host = host_of(columns, text_at(columns.host), identity);
  const std::size_t gpu = builder_.gpu(identity, text_at(columns.uuid), text_at(columns.index), host);
  if (gpu == LogBuilder::kTooMany)
    return problem(at.number(), column_of(identity, at.line()), "too many different GPUs");
  if (!clock) when = round_time(gpu);
  builder_.data().names_gpus = name.has_value() || builder_.data().gpus.size() > 1;  // by their hosts
  builder_.row(gpu, *when, at.number());
  if (rows() == 1)
    for (Event& event : builder_.data().events) event.at = *when;  // of the lines above the first row
  last_at_ = *when;
  readings(columns, cells, gpu, at);
}

void LogReader::readings(LogColumns& columns, const std::vector<std::string_view>& cells, std::size_t gpu,
                         const LineCursor& at) {
  Device& device = builder_.data().gpus[gpu].device;
  if (columns.pci && device.pci_bus_id.empty()) device.pci_bus_id = lower(cells[*columns.pci]);
  if (columns.phase) builder_.phase(cells[*columns.phase], at.number());
  for (LogField& field : columns.metrics) reading(field, cells[field.column], at);
  if (!columns.reasons.empty()) reason_bits(columns, cells, at);
  if (columns.free) {
    const CellValue free = read_cell(cells[columns.free->column], columns.free->rule);
    builder_.free_memory(free);
    if (free.absent == static_cast<std::uint8_t>(Absent::kGarbage)) bad_value(free, cells[columns.free->column], at);
  }
  for (const LogField& field : columns.facts) builder_.fact(field.rule, cells[field.column]);
}

// "21873MiB / 49140MiB" and "221 / 300 W": what is in use or drawn, of what there is or may be. The unit of the second
// is that of both.
CellValue LogReader::first_of_two(LogField& field, std::string_view text) {
  const auto slash = text.find('/');
  const Metric metric = builder_.data().slots[field.slot];
  const bool both = slash != std::string_view::npos && (metric == Metric::kMemoryUsed || metric == Metric::kPower);
  if (!both) return read_cell(text, field.rule);
  const std::string_view whole = trim(text.substr(slash + 1));
  std::string part(trim(text.substr(0, slash)));
  const auto unit = whole.find_first_not_of("0123456789., ");
  if (!part.empty() && is_digit(part.back()) && unit != std::string_view::npos) part += whole.substr(unit);
  auto rule = csv_column(metric == Metric::kPower ? "power.limit [W]" : "memory.total [MiB]");
  if (rule && metric == Metric::kPower)
    builder_.cell(builder_.slot(Metric::kPowerLimit), read_cell(whole, *rule));
  else if (rule)
    builder_.fact(*rule, whole);
  return read_cell(part, field.rule);
}

void LogReader::reading(LogField& field, std::string_view text, const LineCursor& at) {
  CellValue value = read_cell(text, field.rule);
  if (value.unreadable) value = first_of_two(field, text);
  if (field.rule.says_percent && field.rule.of_one)
    for (auto& scale : builder_.data().scales) scale.says_percent = scale.says_percent || scale.slot == field.slot;
  builder_.cell(field.slot, value);
  const Metric metric = builder_.data().slots[field.slot];
  const bool tells_use = metric == Metric::kGpuUtil || metric == Metric::kGraphicsActive;
  if (value.absent == static_cast<std::uint8_t>(Absent::kGarbage)) bad_value(value, text, at, tells_use);
}

void LogReader::reason_bits(LogColumns& columns, const std::vector<std::string_view>& cells, const LineCursor& at) {
  CellValue mask{0, static_cast<std::uint8_t>(Absent::kNotSupported), false};
  for (LogField& field : columns.reasons) {
    const CellValue bit = read_cell(cells[field.column], field.rule);
    if (bit.unreadable) bad_value(bit, cells[field.column], at);
    if (bit.absent) continue;
    mask.absent = 0;
    mask.value |= bit.value;
  }
  builder_.cell(columns.reasons_slot, mask);
}

void LogReader::bad_value(const CellValue& value, std::string_view text, const LineCursor& at, bool tells_use) {
  const auto place = [&] {
    return fmt::format("first at line {}, column {}: '{}'", at.number(), column_of(text, at.line()), shorten(text));
  };
  if (first_bad_value_.empty()) first_bad_value_ = place();
  auto& losses = builder_.data().losses;
  losses.add(value.unreadable ? LossKind::kUnreadableValue : LossKind::kValueOutOfRange, 1, place, std::nullopt,
             {.most = tells_use ? Severity::kError : Severity::kNotice});
}

void LogReader::note(Event event) {
  auto& events = builder_.data().events;
  if (events.size() < kNoteLimit) events.push_back(std::move(event));
}

void LogReader::note_lost_gpu(std::string_view text, const LineCursor& at) {
  if (std::exchange(lost_gpu_noted_, true)) return;  // the driver says so again and again
  note(to_event(events::DeviceLost{.index = std::nullopt, .text = shorten(text), .line = at.number()}, last_at_));
}

void LogReader::message(const LineCursor& at) {
  const std::string_view text = trim(at.line());
  builder_.data().losses.add(LossKind::kInterleavedMessage, 1,
                             [&] { return fmt::format("first at line {}: '{}'", at.number(), shorten(text)); });
  if (first_problem_.empty()) first_problem_ = fmt::format("{}: '{}'", at.number(), shorten(text));
  if (const FailedTool* failed = failed_ ? nullptr : failed_tool(text))
    failed_ = failed, failed_line_ = fmt::format("{}: '{}'", at.number(), shorten(text));
  if (tells_of_a_lost_gpu(text))
    note_lost_gpu(text, at);
  else
    note(to_event(events::Note{.text = shorten(text), .line = at.number()}, last_at_));
}

void LogReader::repeated_header(std::uint32_t line) {
  builder_.data().losses.add(LossKind::kRepeatedHeader, 1,
                             [&] { return fmt::format("first at line {}: runs were appended to one file", line); });
  note(to_event(events::RepeatedHeader{line}, last_at_));
}

namespace {
// Cells that are digits alone, two for each that is too many: the parts of "89,5" between commas.
bool may_have_decimal_commas(std::string_view line, std::size_t too_many) {
  if (separator_of(line) != ',') return false;
  std::vector<std::string_view> cells;
  split_cells(line, ',', cells);
  const auto digits = std::count_if(cells.begin(), cells.end(), [](std::string_view cell) {
    return !cell.empty() && std::all_of(cell.begin(), cell.end(), is_digit);
  });
  return static_cast<std::size_t>(digits) >= 2 * too_many;
}
}  // namespace

void LogReader::odd_row(const LineCursor& at, std::size_t cells, std::size_t expected) {
  auto& losses = builder_.data().losses;
  if (cells < expected && !at.complete()) {
    losses.add(LossKind::kTruncatedLastLine, 1,
               [&] { return fmt::format("line {}: {} of {} cells; left out", at.number(), cells, expected); });
  } else {
    losses.add(cells < expected ? LossKind::kShortRow : LossKind::kLongRow, 1, [&] {
      return fmt::format("first at line {}: {} cells where the header has {}; left out", at.number(), cells, expected);
    });
  }
  if (first_problem_.empty())
    first_problem_ = fmt::format("{}: {} cells where the header has {}", at.number(), cells, expected);
  if (cells > expected) decimal_commas_ = decimal_commas_ || may_have_decimal_commas(at.line(), cells - expected);
}

void LogReader::unfinished(const LineCursor& at, bool cut) {
  auto& losses = builder_.data().losses;
  if (cut)
    losses.add(LossKind::kTruncatedLastLine, 1,
               [&] { return fmt::format("line {}: its last cell is cut; left out", at.number()); });
  else
    losses.add(LossKind::kNoFinalNewline, 1,
               [&] { return fmt::format("line {}: the last value may have lost digits", at.number()); });
}

void LogReader::problem(std::uint32_t line, std::size_t column, std::string what) {
  builder_.data().losses.add(LossKind::kUnreadableRow, 1,
                             [&] { return fmt::format("first at line {}, column {}: {}", line, column, what); });
  if (first_problem_.empty()) first_problem_ = fmt::format("{}:{}: {}", line, column, what);
}

// Utilisation that is there and was not understood is no log without one.
Result<void> LogReader::check_utilization() {
  const LogData& data = builder_.data();
  bool known = false, read = false, garbage = false;
  for (const GpuLog& gpu : data.gpus)
    for (const PackedColumn& column : gpu.columns) {
      const Metric metric = column.metric;
      if (metric != Metric::kGpuUtil && metric != Metric::kGraphicsActive && metric != Metric::kSmActive) continue;
      known = true;
      const auto& absent = column.absent;
      constexpr auto kGarbage = static_cast<std::uint8_t>(Absent::kGarbage);
      read = read || absent.empty() || std::find(absent.begin(), absent.end(), 0) != absent.end();
      garbage = garbage || std::find(absent.begin(), absent.end(), kGarbage) != absent.end();
    }
  if (garbage && !read)
    return fail(Errc::kInvalidInput,
                fmt::format("{}: no value of the utilisation can be read: {}", data.name, first_bad_value_),
                fmt::format("a log of {} has one number in each cell", log_command(vendor_of(data.extra))));
  if (!known && !unknown_utilization_.empty())
    return fail(
        Errc::kInvalidInput,
        fmt::format("{}: no column is known as the utilisation of the GPU, and '{}' may be it", data.name,
                    shorten(unknown_utilization_)),
        fmt::format("--columns {0} says that it is, --columns {1} that it is not",
                    typed_word(unknown_utilization_ + "=utilization.gpu"), typed_word(unknown_utilization_ + "=-")));
  return {};
}

namespace {
// How to say, or to write, the times of a log that has none.
std::string_view with_times(LogFormat format) {
  if (format == LogFormat::kDmon) return "nvidia-smi dmon -o DT writes times";
  if (format == LogFormat::kPmon) return "nvidia-smi pmon -o DT writes times";
  if (format == LogFormat::kDcgm) return "dcgmi dmon writes no times";
  if (format == LogFormat::kJsonRows || format == LogFormat::kSmiText) return "a date above each answer says it, too";
  return "--columns NAME=timestamp names a column of times";
}
}  // namespace

// What the times do not say, and was assumed.
void LogReader::tell_times() {
  LogData& data = builder_.data();
  if (since_beginning_ && !options_.start_date)
    data.losses.add(LossKind::kNoDate, 1, [] {
      return std::string("times count from the log's beginning: that is taken as 1970-01-01 (--start-date says it)");
    });
  if (days_used_ && !options_.start_date)
    data.losses.add(LossKind::kNoDate, 1, [] {
      return std::string("times carry no date: the first is taken as 1970-01-01 (--start-date says it)");
    });
  if (times_.year_was_missing() && !options_.start_date)
    data.losses.add(LossKind::kNoDate, 1, [] {
      return fmt::format("times carry no year: taken as of {} (--start-date says it)", kFirstYear);
    });
  if (times_.zone_was_named())
    data.losses.add(LossKind::kNamedZone, 1, [&] {
      return fmt::format("a zone given by letters is ambiguous and not used{} (--utc-offset says it)",
                         times_.summer_time_changed() ? ", but for the hour that summer time is ahead" : "");
    });
  if (times_.zone_was_missing()) {
    data.extra["time_zone"] = options_.utc_offset ? "given" : "assumed UTC";
    if (!options_.utc_offset && !rounds_used_)
      data.losses.add(LossKind::kAssumedTimeZone, 1,
                      [] { return std::string("times carry no zone: read as UTC (--utc-offset says otherwise)"); });
  }
}

Result<PackedRecording> LogReader::finish() {
  LogData& data = builder_.data();
  const std::int64_t bad = data.losses.count(LossKind::kUnreadableRow) + data.losses.count(LossKind::kShortRow) +
                           data.losses.count(LossKind::kLongRow);
  const bool other_shape = data.losses.count(LossKind::kShortRow) + data.losses.count(LossKind::kLongRow) > bad / 2;
  std::string next = other_shape ? "; --columns names the columns of its rows, in order, and - skips one" : "";
  if (other_shape && decimal_commas_)
    next +=
        "; numbers with decimal commas between commas (89,5), of which nothing says where they are: write points "
        "(LC_ALL=C) or semicolons between cells; or --columns with a name for each cell, and - for those behind a "
        "decimal comma";
  if (first_problem_.ends_with(kNoTime))
    next +=
        "; times are read as 2025-11-05 10:00:00, as date(1) writes them, as seconds since 1970 or since the "
        "beginning; --columns NAME=timestamp names another column of them";
  if (rows() == 0 && failed_)
    return fail(Errc::kInvalidInput,
                fmt::format("{}:{}: nothing was read, as {}", data.name, failed_line_, failed_->means),
                std::string(failed_->next));
  if (rows() == 0)
    return fail(Errc::kInvalidInput,
                first_problem_.empty() ? fmt::format("{}: a header and no rows", data.name)
                                       : fmt::format("{}:{}", data.name, first_problem_),
                fmt::format("the log has no row that can be used{}; headroom import --help lists the formats", next));
  if (bad > rows())
    return fail(
        Errc::kInvalidInput, fmt::format("{}:{}", data.name, first_problem_),
        fmt::format("{} of {} rows cannot be read: is the log what its header says?{}", bad, bad + rows(), next));
  if (rounds_used_ && round_ > 0 && options_.interval == 0)
    return fail(Errc::kInvalidInput, fmt::format("{}: no column says when a row was taken", data.name),
                fmt::format("--log-interval 1s says how far apart the rows are, --start-date 2025-11-05 when the first "
                            "was; {}",
                            with_times(data.format)));
  HR_TRYV(check_utilization());
  data.has_times = !rounds_used_;
  data.whole_seconds = !rounds_used_ && times_.all_whole_seconds();
  data.whole_minutes = !rounds_used_ && !days_used_ && minutes_only_;
  if (rounds_used_ &&
      std::any_of(data.gpus.begin(), data.gpus.end(), [](const GpuLog& gpu) { return gpu.at.size() > 1; }))
    data.losses.add(LossKind::kNoTimestamps, 1, [&] {
      return fmt::format("rows carry no time: {:.9g} s apart, as --log-interval says", seconds(options_.interval));
    });
  tell_times();
  data.extra["utc_offset_seconds"] = fmt::format("{}", times_.last_offset_seconds());
  return finish_log(std::move(data), options_);
}

}  // namespace headroom
