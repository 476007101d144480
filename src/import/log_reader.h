// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/iso_time.h"
#include "base/strings.h"
#include "import/import.h"
#include "import/log_builder.h"
#include "import/log_column.h"
#include "import/log_time.h"

namespace headroom {

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // in front of the first line: no part of it

// Walks over the lines of a text, or of bytes as they come; line ends are LF or CRLF.
class LineCursor {
 public:
  explicit LineCursor(std::string_view text) : rest_(text) {}
  explicit LineCursor(ByteStream& bytes) : bytes_(&bytes) {}
  LineCursor(const LineCursor&) = delete;
  LineCursor& operator=(const LineCursor&) = delete;
  [[nodiscard]] bool next();
  // Until next(). Of bytes as they come a line is at most kLongestLine long: what follows in it is left out.
  [[nodiscard]] std::string_view line() const { return line_; }
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20;
  // What is read as the line instead; it outlives this line.
  void put(std::string_view line) { line_ = line; }
  // What is in memory of what comes behind the line.
  [[nodiscard]] std::string_view at_hand() const { return rest_; }
  // All that comes behind the line, which is in memory from then on.
  [[nodiscard]] std::string_view rest();
  [[nodiscard]] std::uint32_t number() const { return number_; }
  // False for a last line without a line end: whoever wrote it may have been stopped in the middle.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  ByteStream* bytes_ = nullptr;  // what comes behind rest_
  std::string begun_;            // of a line, in blocks that were left
  std::string all_;              // what rest_ is part of, once rest() was called
  std::string_view rest_, line_;
  std::uint32_t number_ = 0;
  bool complete_ = true;
};

// For messages: on one line, and no longer than one.
[[nodiscard]] std::string shorten(std::string_view text);

struct FailedTool;

// A column of the log that is kept: where it stands, how it is read, where it goes.
struct LogField {
  std::size_t column = 0;
  ColumnRule rule;
  std::size_t slot = 0;
};

// What a header says.
struct LogColumns {
  std::size_t count = 0;
  std::vector<LogField> metrics, facts, reasons;
  std::optional<LogField> free;  // memory
  std::optional<std::size_t> timestamp, date, time, index, uuid, pci, serial, host, phase;
  Nanos time_unit = 0;          // of the timestamps, where the header names it
  bool elapsed = false;         // by their name, the timestamps count from the log's beginning
  bool numbered_hosts = false;  // hosts are named by numbers
  std::size_t reasons_slot = 0;
  [[nodiscard]] std::optional<std::size_t> identity() const;
  [[nodiscard]] std::optional<std::size_t> clock() const { return timestamp ? timestamp : time; }
};

using ColumnFinder = std::function<std::optional<ColumnRule>(std::string_view header)>;

// What the readers of all formats share: columns, instants, and counting what cannot be used.
class LogReader {
 public:
  LogReader(const std::string& name, LogFormat format, const ImportOptions& options)
      : options_(options), builder_(name, format), times_(options.utc_offset) {
    if (const auto year =
            options.start_date ? parse_number<int>(iso_time(*options.start_date).substr(0, 4)) : std::nullopt)
      times_.set_year(*year);
  }

  // Works out the columns from their names; counts those that are not kept.
  [[nodiscard]] LogColumns columns(const std::vector<std::string_view>& names, const ColumnFinder& find,
                                   std::uint32_t line);
  void set_order(DateOrder order) { times_.set_order(order); }
  // Of dates that are all one, such as `first`: either reading tells the same of the log. `why` it is this one: ", as
  // …".
  void assume_order(std::string_view first, DateOrder order, std::string_view why = {});
  void set_excel_days() { times_.set_excel_days(); }
  // Rows are told apart by their order below the line with their time.
  void number_rows();
  // Commas were read as decimal points, as in `number`.
  void had_decimal_commas(const std::string& number);
  void had_other_runs(std::string words);  // "": none
  // A column that may tell rows of one time apart, and is not called so.
  void set_candidate(std::string_view column) { builder_.data().may_tell_apart = column; }
  // One row of readings; `cells` has as many texts as the columns. Skipped, and counted, when its time cannot be read.
  void row(LogColumns& columns, const std::vector<std::string_view>& cells, const LineCursor& at);
  // A line that is no row: a message of the driver or of nvidia-smi.
  void message(const LineCursor& at);
  void repeated_header(std::uint32_t line);
  // A line with too few or too many cells.
  void odd_row(const LineCursor& at, std::size_t cells, std::size_t expected);
  // A last row without a line end: was its last cell cut, or can nobody tell?
  void unfinished(const LineCursor& at, bool cut);
  void problem(std::uint32_t line, std::size_t column, std::string what);

  [[nodiscard]] std::int64_t rows() const { return builder_.rows(); }
  // The recording, or the error that says why there is none.
  [[nodiscard]] Result<PackedRecording> finish();

 private:
  // False, and told, where a row does not say which GPU it is about.
  bool has_identity(const LogColumns& columns, std::string_view identity, const LineCursor& at);
  [[nodiscard]] std::optional<Nanos> read_timestamp(const LogColumns& columns, std::string_view text);
  // By the row's own times; nothing where it has none, or none that can be read.
  [[nodiscard]] std::optional<Nanos> instant(const LogColumns& columns, const std::vector<std::string_view>& cells);
  // The cells that are no time, and name no GPU.
  void readings(LogColumns& columns, const std::vector<std::string_view>& cells, std::size_t gpu, const LineCursor& at);
  bool take_sm_share(std::size_t column, const ColumnFinder& find, LogColumns& columns);
  void settle_scale(ColumnRule& rule, std::size_t slot);
  [[nodiscard]] Nanos time_of_day(Nanos time);
  [[nodiscard]] Nanos since_beginning(Nanos length);
  [[nodiscard]] Nanos round_time(std::size_t gpu);
  void reading(LogField& field, std::string_view text, const LineCursor& at);
  [[nodiscard]] CellValue first_of_two(LogField& field, std::string_view text);
  void reason_bits(LogColumns& columns, const std::vector<std::string_view>& cells, const LineCursor& at);
  // `tells_use`: what the GPU did in that time rests on it; else the row tells that without it.
  void bad_value(const CellValue& value, std::string_view text, const LineCursor& at, bool tells_use = false);
  void note(Event event);
  void note_lost_gpu(std::string_view text, const LineCursor& at);
  [[nodiscard]] Result<void> check_utilization();
  void tell_times();

  const ImportOptions& options_;
  LogBuilder builder_;
  TimeReader times_;
  std::optional<Nanos> last_time_of_day_, first_date_;
  Nanos day_ = 0;
  std::size_t last_gpu_ = 0;
  std::int64_t round_ = -1;
  Nanos last_at_ = 0;
  bool lost_gpu_noted_ = false;
  bool decimal_commas_ = false;  // a row with too many cells has them, perhaps
  bool minutes_only_ = true;     // no time of a row has seconds
  bool rounds_used_ = false, days_used_ = false, since_beginning_ = false;
  std::string first_problem_;
  const FailedTool* failed_ = nullptr;  // a tool said that it has no readings
  std::string failed_line_;             // with which, and its place
  std::string first_bad_value_;         // and its place
  std::string unknown_utilization_;     // a column that may be it, and is not known
};

// The formats. `name` is for messages.
[[nodiscard]] Result<PackedRecording> read_csv_log(const std::string& name, ByteStream& bytes, LogFormat format,
                                                   const ImportOptions& options);
[[nodiscard]] Result<Recording> read_dmon_log(const std::string& name, std::string_view text,
                                              const ImportOptions& options);
// A header of processes with the memory of each, such as nvidia-smi --query-compute-apps writes: no log of GPUs.
[[nodiscard]] bool is_process_header(const std::vector<std::string_view>& names);
// True for a line that is the header of such a log.
[[nodiscard]] bool is_csv_header(const std::vector<std::string_view>& names);
[[nodiscard]] std::vector<std::string_view> csv_cells(std::string_view line);
// The same in two steps, where rows are many: what stands between cells, by the header, and the cells of a row.
[[nodiscard]] char separator_of(std::string_view line);
void split_cells(std::string_view line, char separator, std::vector<std::string_view>& cells);
[[nodiscard]] bool is_dmon_header(std::string_view line);

}  // namespace headroom
