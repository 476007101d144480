// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "import/import.h"
#include "import/log_column.h"
#include "import/log_losses.h"
#include "model/entities.h"
#include "model/packed_recording.h"

namespace headroom {

// One GPU of a log while it is read. columns[s] holds metric slots[s] of the builder; a column may be shorter than `at`
// (its rows at the end are not sampled).
struct GpuLog {
  std::string key;       // UUID, or "gpu<index>"
  std::string identity;  // the text that rows name the GPU by
  std::string host;      // that rows name
  Device device;
  bool has_index = false;
  bool has_enforced_limit = false;
  PackedNumbers at;
  PackedNumbers lines;  // where each row stands in the log
  std::vector<PackedColumn> columns;
  PackedColumn free_memory;                     // in bytes; may be shorter than `at`
  std::array<std::string, kDeviceFacts> facts;  // as read last

  [[nodiscard]] PackedColumn* column(Metric metric);  // nullptr: the log has none
};

// Makes `column` as long as `rows`: what is missing was not sampled.
void pad(PackedColumn& column, std::size_t rows);

// Everything read from a log, not yet in order of time.
struct LogData {
  std::string name;
  LogFormat format = LogFormat::kUnknown;
  std::vector<Metric> slots;
  struct Scale {
    std::size_t slot = 0;
    bool open = false;          // stored to 1/kOfOneScale of what it should be, until all values are known
    bool says_percent = false;  // a header or a cell has a unit
  };
  std::vector<Scale> scales;  // of ratios
  std::vector<GpuLog> gpus;
  struct Phase {
    std::uint32_t line = 0;  // from this row on, in the order of the log
    std::string name;        // "": none
  };
  static constexpr std::size_t kMostPhases = 100'000;  // a text that differs from row to row is no phase
  std::vector<Phase> phases;  // that rows tell of; one more than kMostPhases where there are more
  std::vector<Event> events;  // `source` is an index into gpus, or kNoSource
  LogLosses losses;
  Attrs extra;                 // for RecordingMeta::extra
  std::string time_column;     // by its name in the header
  std::string may_tell_apart;  // a column that may say which GPU rows are about, and is called otherwise
  Nanos spread_over = 0;       // rows of one time are samples of one GPU over as long as this; 0: not so
  bool has_times = false;      // rows say when they were taken
  bool whole_seconds = false;  // every time was a whole second: several rows may share one
  bool whole_minutes = false;  // no time has seconds, as where a spreadsheet left them out
  bool names_gpus = false;     // rows say which GPU they are about
  bool by_order = false;       // rows name their GPU by their place below the line with their time
  bool of_processes = false;   // a column names processes, or whose they are
};

// Collects the rows of a log.
class LogBuilder {
 public:
  explicit LogBuilder(std::string name, LogFormat format) {
    data_.name = std::move(name);
    data_.format = format;
  }

  // The slot of a metric's column.
  [[nodiscard]] std::size_t slot(Metric metric);
  static constexpr std::size_t kMostGpus = 256, kTooMany = static_cast<std::size_t>(-1);
  // The GPU that rows name by `identity`, of one host by that of others apart, but where it is a UUID; made, with its
  // key and index, when it is new. kTooMany beyond kMostGpus.
  [[nodiscard]] std::size_t gpu(std::string_view identity, std::string_view uuid, std::string_view index,
                                std::string_view host = {});
  // Starts a row; the cells that follow are its own.
  void row(std::size_t gpu, Nanos at, std::uint32_t line);
  void cell(std::size_t slot, const CellValue& value);
  void fact(const ColumnRule& rule, std::string_view text);
  void free_memory(const CellValue& value);
  // What the job was at, by the current row.
  void phase(std::string_view name, std::uint32_t line);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] LogData& data() { return data_; }

 private:
  LogData data_;
  std::size_t gpu_ = 0;       // of the current row
  std::size_t last_gpu_ = 0;  // where the search for the next row's begins
  std::int64_t rows_ = 0;
};

// The phases that rows tell of, which are in order of time; a row speaks of the time since the one before it. None, and
// that is counted, where rows of several GPUs tell different ones, or more than kMostPhases.
struct PhaseBegin {
  Nanos at = 0;
  std::string name;  // "": none
};
[[nodiscard]] std::vector<PhaseBegin> phases_of_rows(LogData& data, Nanos interval);
void add_phases(const std::vector<PhaseBegin>& phases, Recording& recording);  // as marks of nobody

// Puts the rows in order of time, mends what can be mended, counts everything, and makes the recording.
[[nodiscard]] Result<PackedRecording> finish_log(LogData data, const ImportOptions& options);

}  // namespace headroom
