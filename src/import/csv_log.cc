// SPDX-License-Identifier: Apache-2.0
// nvidia-smi --query-gpu=… --format=csv, in all its shapes, and the CSV of home-made monitors: they differ in the names
// of their columns only.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/strings.h"
#include "import/column_rows.h"
#include "import/column_words.h"
#include "import/decimal_commas.h"
#include "import/gpu_columns.h"
#include "import/list_cells.h"
#include "import/log_date.h"
#include "import/log_reader.h"
#include "import/sensor_header.h"
#include "import/table.h"
#include "import/unknown_file.h"
#include "import/unnamed_columns.h"

namespace headroom {

namespace {

constexpr std::string_view kMonitorColumns = "timestamp,gpu_id,gpu_util_%,mem_util_%,mem_used_mb,mem_total_mb,temp_c";

constexpr std::string_view kSkipped = "-";

// "a, b, c", of so many as can be read.
template <class Names>
std::string in_short(const Names& names) {
  constexpr std::size_t kShown = 12;
  const std::size_t shown = names.size() > kShown + 1 ? kShown : names.size();
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  return shown < names.size() ? fmt::format("{} and {} others", text, names.size() - shown) : text;
}

class CsvReader {
 public:
  CsvReader(const std::string& name, ByteStream& bytes, LogFormat format, const ImportOptions& options)
      : name_(name),
        bytes_(bytes),
        format_(format),
        options_(options),
        reader_(name, format, options),
        commas_(bytes.peek(DecimalCommas::kHead)) {}

  Result<PackedRecording> read() {
    HR_TRYV(columns_from_options());
    LineCursor lines(bytes_);
    while (lines.next()) {
      lines.put(commas_.pointed(lines.line()));
      const std::string_view line = lines.line();
      if (line == header_) {
        below_header_ = lines.number();
        continue;
      }
      if (trim(line).empty() || is_rule(line) || (line[0] == '#' && is_annotation(line))) continue;  // of InfluxDB
      if (!has_columns_) {
        HR_TRYV(first_line(lines));
      } else {
        if (!dates_settled_) HR_TRYV(settle_dates(lines));
        data_line(lines);
      }
      below_header_ = std::exchange(other_header_, 0);
    }
    if (numbered_) reader_.number_rows();
    if (!commas_.first().empty()) reader_.had_decimal_commas(commas_.first());
    return reader_.finish();
  }

 private:
  Result<void> columns_from_options() {
    std::string_view names = options_.columns;
    if (names.empty() && options_.format && format_ == LogFormat::kMonitorCsv) names = kMonitorColumns;
    if (names.empty()) return {};
    split_cells(names, ',', cells_);
    const bool renames = names.find('=') != std::string_view::npos;
    for (std::string_view& given : cells_) {
      const std::size_t equals = given.find('=');
      if (renames && equals == std::string_view::npos)
        return fail(Errc::kInvalidInput, fmt::format("--columns: '{}' is no name=metric, as the others are", given));
      const std::string_view name = known_name(renames ? given.substr(equals + 1) : given);
      if (renames)
        renamed_.emplace_back(trim(given.substr(0, equals)), name);
      else
        given = name;
      if (options_.columns.empty() || name == kSkipped || csv_column(name)) continue;
      const auto guess = closest_column(name);
      return fail(Errc::kInvalidInput, fmt::format("--columns: no column is called '{}'", name),
                  guess.empty() ? "use nvidia-smi's names: timestamp,index,utilization.gpu,…; - skips a column"
                                : fmt::format("did you mean '{}'?", guess));
    }
    if (renames) return {};
    header_is_given_ = true;
    return use(cells_, 0);
  }

  // "gpu0_mem_used" for "gpu0_mem"; else the name as it is.
  std::string_view known_name(std::string_view name) {
    std::string used = fmt::format("{}_used", name);
    return !csv_column(name) && csv_column(used) ? made_names_.emplace_back(std::move(used)) : name;
  }

  // A name as --columns has it.
  std::string_view told(std::string_view name) const {
    const auto known =
        std::find_if(renamed_.begin(), renamed_.end(), [&](const auto& r) { return r.first == trim(name); });
    return known == renamed_.end() ? name : known->second;
  }

  // A header's names as --columns has them.
  std::vector<std::string_view> named(std::vector<std::string_view> names) const {
    for (std::string_view& name : names) name = told(name);
    return names;
  }

  Result<void> use(std::vector<std::string_view> names, std::uint32_t line) {
    for (std::string_view& name : names)
      if (name == kSkipped) name = {};
    cells_of_line_ = names.size();
    if (!stamp_.empty() && std::none_of(names.begin(), names.end(), is_clock)) names.emplace_back("timestamp");
    stamped_ = names.size() > cells_of_line_;
    numbered_ = stamped_ && round_ > 1 && std::none_of(names.begin(), names.end(), tells_gpu);
    if (numbered_) names.emplace_back("index");
    listed_ = 0;
    ColumnsPerGpu split = columns_per_gpu(names);
    gpus_ = std::move(split.gpus);
    reader_.had_other_runs(std::move(split.other_runs));
    const auto find = [&](std::string_view name) {
      return split.left_out.count(name) > 0 ? std::optional(ColumnRule{}) : csv_column(name);
    };
    LogColumns columns = reader_.columns(split.names, find, line);
    usable_ = !columns.metrics.empty();
    if (!usable_)
      return fail(
          Errc::kInvalidInput,
          fmt::format("{}:{}: no column that a recording can hold in: {}", name_, line, in_short(names)),
          "wanted: utilization.gpu, memory.used, power.draw or others of nvidia-smi --help-query-gpu; --columns "
          "NAME=utilization.gpu says which column is one");
    columns_ = std::move(columns);
    has_columns_ = true;
    return {};
  }

  static bool is_clock(std::string_view name) {
    const auto rule = csv_column(name);
    return rule &&
           (rule->role == ColumnRole::kTimestamp || rule->role == ColumnRole::kDate || rule->role == ColumnRole::kTime);
  }

  // A header above all times: the line below it is the first of them; else "".
  std::string time_below(const LineCursor& at) const {
    LineCursor below(at.at_hand());
    std::vector<std::string_view> cells;
    if (!below.next()) return "";
    split_cells(below.line(), separator_, cells);
    const bool row = cells.size() > 1 && cells.size() == cells_.size();  // "9/15/2025 14:00,40"
    return row ? "" : time_of_line(below.line()).value_or("");
  }

  static bool tells_gpu(std::string_view name) {
    const auto rule = csv_column(name);
    return rule && (rule->gpu || rule->role == ColumnRole::kIndex || rule->role == ColumnRole::kUuid ||
                    rule->role == ColumnRole::kPciBusId || rule->role == ColumnRole::kSerial);
  }

  // Lines before the columns are known: messages, the header, or a row of a log without one.
  Result<void> first_line(const LineCursor& at) {
    separator_ = separator_of(at.line());
    split_cells(at.line(), separator_, cells_);
    if (auto levels = two_levels(cells_, at.at_hand(), separator_)) {
      sensors_ = std::move(levels->names);
      above_rows_ = std::move(levels->last_line);
      return {};
    }
    if (!above_rows_.empty()) {
      if (at.line() != above_rows_) return {};
      header_ = at.line();
      return use({sensors_.begin(), sensors_.end()}, at.number());
    }
    if (are_sensors(cells_)) {
      sensors_.assign(cells_.begin(), cells_.end());
      return {};
    }
    if (!sensors_.empty()) {
      header_ = at.line();
      sensors_ = with_sensors(sensors_, cells_);
      return use(named({sensors_.begin(), sensors_.end()}), at.number());
    }
    const bool renamed = std::any_of(cells_.begin(), cells_.end(), [&](auto cell) { return told(cell) != cell; });
    const auto names = told_by_rows(named(cells_), at.at_hand(), separator_, made_names_);
    if (renamed || is_csv_header(names)) {
      header_ = at.line();
      reader_.set_candidate(may_tell_apart(names, at.at_hand(), separator_));
      if (stamp_.empty() && std::none_of(names.begin(), names.end(), is_clock)) stamp_ = time_below(at);
      if (!stamp_.empty()) round_ = rows_below_a_time(at.at_hand(), names.size(), separator_);
      return use(names, at.number());
    }
    return line_above_header(at);
  }

  // A time of the rows below, a message, or the header of something else; where it is a row, there is no header.
  Result<void> line_above_header(const LineCursor& at) {
    const bool row =
        cells_.size() > 1 && (TimeReader({}).read(cells_[0]) || is_time(cells_[0]) || read_as_number(cells_[0]));
    if (!row) {
      if (auto stamp = time_of_line(at.line())) return void(stamp_ = std::move(*stamp)), Result<void>{};
      if (cells_.size() > 1) names_.assign(cells_.begin(), cells_.end());
      reader_.message(at);
      return {};
    }
    if (names_.size() == cells_.size()) return tl::unexpected(unknown_table(name_, {names_.begin(), names_.end()}));
    return fail(Errc::kInvalidInput,
                fmt::format("{}:{}: there is no header, so what the {} columns mean is not known", name_, at.number(),
                            cells_.size()),
                columns_hint(cells_));
  }

  static bool read_as_number(std::string_view text) { return parse_number<double>(text).has_value(); }

  // Times that are numbers: days as Excel counts them, or seconds.
  Result<void> settle_excel_days(LineCursor& lines) {
    if (!columns_.timestamp || columns_.elapsed || columns_.time_unit > 0) return {};
    const std::size_t place = gpus_.empty() ? *columns_.timestamp : gpus_[0].cells[*columns_.timestamp];
    ExcelDaysFinder finder;
    std::vector<std::string_view> cells;
    const auto add = [&](std::string_view line) {
      split_cells(line, separator_, cells);
      return place < cells.size() && finder.add(cells[place]);
    };
    line_ = lines.line();
    lines.put(line_);
    if (!add(line_)) return {};
    const std::string first(cells[place]);
    constexpr std::uint32_t kMost = 300;
    LineCursor later(lines.at_hand());
    while (later.number() < kMost && later.next() && later.complete()) add(commas_.pointed(later.line()));
    if (finder.unclear())
      return fail(
          Errc::kInvalidInput,
          fmt::format("{}: whether times such as '{}' are days as Excel counts them, or seconds since a machine "
                      "began, no row tells",
                      name_, first),
          "--columns 'NAME=time (excel days)' or NAME=elapsed_s says it");
    if (finder.are_days()) reader_.set_excel_days();
    return {};
  }

  // Dates that have the day or the month first: which, all of them together tell.
  Result<void> settle_dates(LineCursor& lines) {
    const auto column = columns_.timestamp ? columns_.timestamp : columns_.date;
    HR_TRYV(settle_excel_days(lines));
    reader_.set_order(options_.date_order);
    dates_settled_ = !column || options_.date_order != DateOrder::kUnknown;
    if (dates_settled_) return {};
    const std::size_t place = gpus_.empty() ? *column : gpus_[0].cells[*column];
    split_cells(lines.line(), separator_, cells_);
    if (place >= cells_.size() && !stamped_) return {};
    dates_settled_ = true;
    const std::string first = stamped_ ? stamp_ : std::string(cells_[place]);
    DateOrderFinder finder;
    if (!finder.add(first)) return {};
    line_ = lines.line();
    lines.put(line_);
    LineCursor later(lines.rest());
    while (later.next()) {
      if (stamped_) {
        if (const auto stamp = time_of_line(later.line())) finder.add(*stamp);
        continue;
      }
      split_cells(commas_.pointed(later.line()), separator_, cells_);
      if (place < cells_.size()) finder.add(cells_[place]);
    }
    reader_.set_order(finder.order());
    return assume_order(finder, first, lines.number());
  }

  // What no row tells of dates such as `first`, and changes the date alone, is assumed.
  Result<void> assume_order(const DateOrderFinder& finder, const std::string& first, std::uint32_t line) {
    const bool open = finder.year_is_open() && finder.order() == DateOrder::kUnknown;
    if (!open && (finder.order() != DateOrder::kUnknown || TimeReader({}).read(first))) return {};
    const bool commas = !commas_.first().empty();
    if (open && !commas && finder.likely_order() == DateOrder::kYearFirst)
      reader_.assume_order(first, DateOrder::kYearFirst);
    else if (finder.one_day() && commas)
      reader_.assume_order(first, DateOrder::kDayFirst, ", as where numbers have decimal commas");
    else if (finder.one_day())
      reader_.assume_order(first, TimeReader({}).read(first) ? DateOrder::kDayFirst : DateOrder::kMonthFirst);
    else
      return fail(Errc::kInvalidInput, fmt::format("{}:{}: which is the day of '{}' no row tells", name_, line, first),
                  "--date-order day-first or month-first says it");
    return {};
  }

  // A list beside one number, "90" and "(3000, 24000)", is of one GPU: use and total.
  bool has_lists() const {
    const auto& metrics = columns_.metrics;
    const auto is_list = [&](const LogField& f) { return begins_list(cells_[f.column]); };
    const auto may_be = [&](const LogField& f) {
      return is_list(f) || cells_[f.column].empty() || absence_of(cells_[f.column]);
    };
    return listed_ > 0 || (std::any_of(metrics.begin(), metrics.end(), is_list) &&
                           std::all_of(metrics.begin(), metrics.end(), may_be));
  }

  // A list in each cell, "[97, 98, 96]", is a row of each GPU; without a list of their names they are counted.
  void rows_of_lists(const LineCursor& at) {
    std::map<std::size_t, std::vector<std::string_view>> lists;  // by column
    const auto look = [&](std::size_t column) {
      if (auto items = list_items(cells_[column]); !items.empty()) lists.emplace(column, std::move(items));
    };
    const auto identity = columns_.identity();
    if (identity && *identity < cells_.size()) look(*identity);
    for (const LogField& field : columns_.metrics) look(field.column);
    for (const LogField& field : columns_.facts) look(field.column);
    if (listed_ == 0 && reader_.rows() == 0 && !lists.empty()) {
      listed_ = lists.begin()->second.size();
      if (!identity) columns_.index = cells_.size();
    }
    const bool same =
        std::all_of(lists.begin(), lists.end(), [&](const auto& l) { return l.second.size() == listed_; });
    const bool named = columns_.index == cells_.size() || (identity && lists.count(*identity) > 0);
    if (lists.empty() || !same || !named)
      return reader_.problem(at.number(), 1, "lists in cells are not one for each GPU, as long as those before");
    for (std::size_t gpu = 0; gpu < listed_; ++gpu) {
      const std::string index = fmt::format("{}", gpu);
      cells_of_gpu_ = cells_;
      cells_of_gpu_.emplace_back(index);
      for (const auto& [column, items] : lists) cells_of_gpu_[column] = items[gpu];
      reader_.row(columns_, cells_of_gpu_, at);
    }
  }

  void row(const LineCursor& at) {
    if (gpus_.empty() && has_lists()) return rows_of_lists(at);
    if (gpus_.empty()) return reader_.row(columns_, cells_, at);
    for (const GpuOfRow& gpu : gpus_) {
      cells_of_gpu_.clear();
      for (const std::size_t cell : gpu.cells)
        cells_of_gpu_.push_back(cell == GpuOfRow::kNone        ? std::string_view()
                                : cell == GpuOfRow::kIndexCell ? std::string_view(gpu.index)
                                : cell == GpuOfRow::kHostCell  ? std::string_view(gpu.host)
                                                               : cells_[cell]);
      reader_.row(columns_, cells_of_gpu_, at);
    }
  }

  // HWiNFO ends a log with its header and, below it, the part of the machine that each column is of.
  bool names_parts() const {
    const auto clock = columns_.clock();
    return below_header_ > 0 && gpus_.empty() && clock && *clock < cells_.size() && cells_[*clock].empty();
  }

  // A line with a time and nothing else is that of the rows below it, where they have none.
  void stamped_by(std::string stamp, std::string_view at_hand) {
    stamp_ = std::move(stamp);
    below_time_ = 0;
    if (stamped_ || columns_.timestamp || columns_.date || columns_.time) return;
    round_ = rows_below_a_time(at_hand, cells_of_line_, separator_);
    std::vector<std::string_view> names;
    split_cells(options_.columns, ',', names);
    (void)use(names, 0);  // which it could before
  }

  void data_line(LineCursor& at) {
    if (stamped_ || (header_is_given_ && reader_.rows() == 0))
      if (auto stamp = time_of_line(at.line())) return stamped_by(std::move(*stamp), at.at_hand());
    split_cells(at.line(), separator_, cells_);
    if (names_parts()) return;
    if (below_header_ > 0 && !stamped_) reader_.repeated_header(below_header_);  // one at the end begins no run
    fit_cells(at);
    if (header_is_given_ && is_csv_header(cells_)) return reader_.repeated_header(at.number());
    if (is_other_header()) return take_other_header(at);
    if (!usable_) return reader_.problem(at.number(), 1, "a row below a header without a column that is kept");
    if (cells_.size() == cells_of_line_) return whole_row(at);
    odd_line(at);
  }

  // Cells that a line has more than the header: a decimal comma or a time makes two of one, the last is empty, or a
  // time stands in front.
  void fit_cells(LineCursor& at) {
    if (const auto line = commas_.pointed_row(at.line(), cells_.size()); line.data() != at.line().data()) {
      at.put(line);
      split_cells(line, separator_, cells_);
    }
    const auto one_more = [&] { return cells_.size() == cells_of_line_ + 1; };
    if (one_more() && cells_.back().empty()) cells_.pop_back();
    if (one_more() && reader_.rows() == 0) take_time_in_front(at);
    if (one_more()) join_time();
  }

  // A run with other columns was appended.
  void take_other_header(const LineCursor& at) {
    if (reader_.rows() > 0) other_header_ = at.number();
    header_ = at.line();
    if (auto known = use(named(cells_), at.number()); !known) reader_.problem(at.number(), 1, known.error().what);
  }

  void whole_row(const LineCursor& at) {
    if (stamped_) cells_.emplace_back(stamp_);
    if (numbered_ && below_time_ >= round_)
      return reader_.problem(at.number(), 1, "more rows below one time than below the others");
    if (numbered_) cells_.emplace_back(number_ = fmt::format("{}", below_time_++));
    if (!at.complete() && gpus_.empty()) doubt_last_cell(at);
    row(at);
  }

  void odd_line(const LineCursor& at) {
    const std::size_t stamp = columns_.timestamp.value_or(cells_.size());
    const bool timed = stamp < cells_.size() && TimeReader({}).read(cells_[stamp]).has_value();
    const bool wordy = !timed && (cells_.size() == 1 || columns_.timestamp == std::size_t{0});
    if (wordy && at.complete())
      reader_.message(at);
    else
      reader_.odd_row(at, cells_.size(), cells_of_line_);
  }

  // Whoever writes the time in front of each row of nvidia-smi keeps its header, which has no time then.
  void take_time_in_front(const LineCursor& at) {
    if (header_is_given_ || stamped_ || !gpus_.empty() || columns_.timestamp || columns_.date || columns_.time) return;
    constexpr std::size_t kUnixTime = 10;  // digits; a count of the rows has fewer
    const bool telling = cells_[0].find(':') != std::string_view::npos || cells_[0].size() >= kUnixTime;
    if (!telling || !TimeReader({}).read(cells_[0])) return;
    const std::vector<std::string_view> row = cells_;
    split_cells(header_, separator_, cells_);
    std::vector<std::string_view> names = told_by_rows(named(cells_), at.at_hand(), separator_, made_names_);
    names.insert(names.begin(), "timestamp");
    (void)use(std::move(names), at.number());  // as it could before
    cells_ = row;
    dates_settled_ = false;
  }

  // "2024-10-02T09:00:00,755374326+02:00" (date --iso-8601=ns) or Python's "1 day, 2:04:30" between commas: the part
  // behind the comma is no cell.
  void join_time() {
    if (!columns_.timestamp) return;
    const std::size_t at = gpus_.empty() ? *columns_.timestamp : gpus_[0].cells[*columns_.timestamp];
    if (at + 1 >= cells_.size()) return;
    const std::string_view part = cells_[at + 1];
    if (cells_[at].find(" day") != std::string_view::npos) {
      time_ = fmt::format("{}, {}", cells_[at], part);
      if (!parse_elapsed(time_)) return;
    } else {
      const auto zone = part.find_first_not_of("0123456789");  // without one it may be a reading
      if (cells_[at].find(':') == std::string_view::npos || zone == std::string_view::npos || zone < 3) return;
      time_ = fmt::format("{}.{}", cells_[at], part);
      if (!TimeReader({}).read(time_)) return;
    }
    cells_[at] = time_;
    cells_.erase(cells_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }

  // Rows have a digit where headers have a letter; only what has none is worth the longer look.
  bool is_other_header() const {
    if (cells_.size() == cells_of_line_ && (gpus_.empty() || columns_.timestamp)) {
      const std::size_t telling =
          stamped_ ? columns_.metrics[0].column : columns_.timestamp.value_or(columns_.metrics[0].column);
      const std::string_view cell = cells_[gpus_.empty() ? telling : gpus_[0].cells[telling]];
      if (cell.empty() || (cell[0] >= '0' && cell[0] <= '9') || cell[0] == '[' || cell[0] == '-') return false;
    }
    return is_csv_header(cells_);
  }

  // All cells are there, and yet the last may be cut: where its unit is gone, it is.
  void doubt_last_cell(const LineCursor& at) {
    const auto last = std::find_if(columns_.metrics.begin(), columns_.metrics.end(),
                                   [&](const LogField& f) { return f.column + 1 == columns_.count; });
    if (last == columns_.metrics.end() || absence_of(cells_.back())) return;
    const std::string_view unit = last->rule.cell_unit.data();
    const bool cut = !unit.empty() && !cells_.back().ends_with(unit);
    if (cut) cells_.back() = {};
    reader_.unfinished(at, cut);
  }

  const std::string& name_;
  ByteStream& bytes_;
  LogFormat format_;
  const ImportOptions& options_;
  LogReader reader_;
  DecimalCommas commas_;
  LogColumns columns_;
  std::vector<std::pair<std::string_view, std::string_view>> renamed_;  // by --columns
  std::deque<std::string> made_names_;                                  // by told_by_rows()
  std::vector<GpuOfRow> gpus_;                                          // empty: a row is about one GPU
  std::vector<std::string> names_;              // of a line that might be a header of something else
  std::size_t cells_of_line_ = 0, listed_ = 0;  // GPUs that a row has lists of
  bool has_columns_ = false, header_is_given_ = false, dates_settled_ = false;
  bool usable_ = false;  // the header read last has a column that is kept
  char separator_ = ',';
  std::string header_ = "\n";         // no line is equal to it
  std::vector<std::string> sensors_;  // of the header above the names; then the names that it gives
  std::string above_rows_;            // the last line of a header of two levels
  std::string stamp_;                 // a line that is a time, of the rows below it
  bool stamped_ = false;              // the rows have no time, and lines between them have
  // Rows below each such line, one of each GPU; whether they are numbered by their order; of the row that comes next.
  std::size_t round_ = 1, below_time_ = 0;
  bool numbered_ = false;
  std::string number_;
  std::uint32_t below_header_ = 0;  // the line of a header that came again, right above
  std::uint32_t other_header_ = 0;  // the line itself, where it has other columns
  std::string line_;                // whose dates were asked about
  std::string time_;                // of the row, in one cell
  std::vector<std::string_view> cells_, cells_of_gpu_;
};

}  // namespace

Result<PackedRecording> read_csv_log(const std::string& name, ByteStream& bytes, LogFormat format,
                                     const ImportOptions& options) {
  return CsvReader(name, bytes, format, options).read();
}

}  // namespace headroom
