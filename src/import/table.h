// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "import/import.h"
#include "model/recording.h"

namespace headroom {

// Logs that are no table, as the CSV that nvidia-smi would have written: columns by its names, or by those of metrics.
class LogTable {
 public:
  using Row = std::map<std::string, std::string, std::less<>>;  // cells by the name of their column
  void add(const Row& row);
  // The same where rows are many: cells by the number of their column, in one text.
  class Line {
   public:
    void put(std::size_t column, std::string_view cell);  // once
    [[nodiscard]] std::optional<std::string_view> find(std::size_t column) const;
    [[nodiscard]] bool empty() const { return ends_.empty(); }
    void clear() { text_.clear(), ends_.clear(); }

   private:
    friend class LogTable;
    std::string text_;
    std::vector<std::pair<std::size_t, std::size_t>> ends_;  // column, and where its cell ends in the text
  };
  [[nodiscard]] std::size_t column(std::string_view name);
  void add(const Line& line);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string csv() const;

  Attrs extra;                        // for RecordingMeta::extra
  bool by_order = false;              // rows of one time are of one GPU each, in their order: nothing else tells them
  std::vector<std::string> left_out;  // metrics and columns that it has no place for, by the log's names

 private:
  struct Cell {
    std::uint32_t column = 0, size = 0;
  };
  std::map<std::string, std::size_t, std::less<>> columns_;  // numbers, in the order in which they came
  std::string text_;                                         // of all cells
  std::vector<Cell> cells_;
  std::vector<std::size_t> rows_;  // where each row's cells end
};

// The processes that answers name on GPUs: "4101 python (GPU 0), 4177 python (GPU 1)". What only draws is left out.
class NamedProcesses {
 public:
  // `type` as nvidia-smi has it: "C", "G", "C+G".
  void add(std::string_view gpu, std::string_view pid, std::string_view type, std::string_view name);
  [[nodiscard]] std::string words() const;

 private:
  std::map<std::string, std::pair<std::string, std::set<std::string>>, std::less<>> processes_;  // by pid: name, GPUs
};
inline constexpr std::string_view kNamedProcesses = "named_processes";  // in LogTable::extra

[[nodiscard]] std::vector<std::string_view> words_of(std::string_view line);  // apart by blanks or tabs

// A cell of CSV, in quotes where it needs them.
void put_quoted(std::string_view cell, std::string& text);

// A line between answers that says when the next one was asked for, such as date(1)'s: the time in it.
[[nodiscard]] std::optional<std::string> time_of_line(std::string_view line);

// kInvalidInput, without a name in front, where there is no reading.
[[nodiscard]] Result<LogTable> table_of_smi_xml(std::string_view text);    // nvidia-smi -q -x, once or again and again
[[nodiscard]] Result<LogTable> table_of_smi_text(std::string_view text);   // nvidia-smi's box, again and again
[[nodiscard]] Result<LogTable> table_of_rocm_text(std::string_view text);  // rocm-smi's table, again and again
[[nodiscard]] Result<LogTable> table_of_amd_monitor(std::string_view text);   // amd-smi monitor
[[nodiscard]] Result<LogTable> table_of_tegrastats(std::string_view text);    // of a Jetson
[[nodiscard]] Result<LogTable> table_of_powermetrics(std::string_view text);  // of a Mac
[[nodiscard]] Result<LogTable> table_of_radeontop(std::string_view text);     // radeontop -d
[[nodiscard]] Result<LogTable> table_of_afterburner(std::string_view text);   // MSI Afterburner's .hml
[[nodiscard]] Result<LogTable> table_of_typeperf(std::string_view text);      // of Windows
[[nodiscard]] Result<LogTable> table_of_influx(std::string_view text);        // InfluxDB's line protocol
[[nodiscard]] Result<LogTable> table_of_lines(std::string_view text);         // of a monitor of one's own: see below
[[nodiscard]] Result<LogTable> table_of_smi_query(std::string_view text);     // nvidia-smi -q, once or again and again
[[nodiscard]] Result<LogTable> table_of_scrapes(std::string_view text);  // dcgm-exporter's answers, one after the other
[[nodiscard]] Result<LogTable> table_of_long(std::string_view text);     // CSV with a row per metric
[[nodiscard]] Result<LogTable> table_of_gpustat(std::string_view text);  // gpustat --json, once or again and again
[[nodiscard]] Result<LogTable> table_of_json_rows(std::string_view text);   // JSON objects that are rows: see below
[[nodiscard]] Result<LogTable> table_of_gputil(std::string_view text);      // GPUtil.showUtilization() of Python
[[nodiscard]] Result<LogTable> table_of_prometheus(std::string_view text);  // a range query of dcgm-exporter
[[nodiscard]] Result<LogTable> table_of_dcgm(std::string_view text);        // dcgmi dmon -e
[[nodiscard]] Result<LogTable> table_of_pmon(std::string_view text);        // nvidia-smi pmon
[[nodiscard]] Result<LogTable> table_of_export(std::string_view text);      // headroom export -f csv

// The column for a field of DCGM, by its name in an exporter ("DCGM_FI_DEV_GPU_UTIL") or in dmon ("GPUTL"); "" for one
// that a recording has no place for.
[[nodiscard]] std::string_view dcgm_column(std::string_view field);

// Whether a header is of a table with a row per metric, by its names and a row; and whether a text is one, by its first
// rows, too.
[[nodiscard]] bool is_long_header(const std::vector<std::string_view>& names, const std::vector<std::string_view>& row);
[[nodiscard]] bool is_long_table(std::string_view text);

// Objects of JSON that are rows of a table, with a time and a reading of a GPU each: one a line, or in lists below
// lines that say when, as `date; nvtop -s` writes them.
[[nodiscard]] bool are_json_rows(std::string_view text);

// The objects of a text of JSON, one after another, however they are laid out.
[[nodiscard]] std::vector<std::string_view> objects_of(std::string_view text);

// The time that a line begins with, and what comes behind it: "[2025-06-03 14:02:11,532] INFO …".
[[nodiscard]] std::optional<std::pair<std::string, std::string_view>> time_in_front(std::string_view line);

// Lines of Graphite: "servers.node7.gpu0.utilization 88 1764400000".
[[nodiscard]] bool are_graphite_lines(std::string_view text);

// What `nvidia-smi stats` prints: "0, gpuUtil    , 1754150543000132, 47".
[[nodiscard]] bool are_smi_stats(std::string_view text);

// A header of amd-smi monitor without commas.
[[nodiscard]] bool is_amd_header(std::string_view line);

// Points of InfluxDB's line protocol with a reading of a GPU; and whether a measurement is of GPUs, by its name.
[[nodiscard]] bool are_influx_points(std::string_view text);
[[nodiscard]] bool measures_gpus(std::string_view measurement);

// The second line of a GPU in nvidia-smi's box, which people keep alone: "| N/A 47C P0 180W / 350W | 20000MiB / …".
[[nodiscard]] bool is_reading_of_box(std::string_view line);

inline constexpr std::string_view kGputilHeader = "| ID | GPU | MEM |";

// Series as promtool query range prints them; and the same as Prometheus answers them.
[[nodiscard]] bool are_promtool_series(std::string_view text);
[[nodiscard]] std::string range_of_promtool(std::string_view text);

// Lines with a time in front and readings by their names: "2025-06-03 14:02:11,532 INFO GPU 0: util=87% power=242W".
[[nodiscard]] bool are_monitor_lines(std::string_view text);
[[nodiscard]] bool are_lines_without_times(std::string_view text);  // and else the same

// The column of a series: by dcgm-exporter's name, or by its words; "" for one that is no GPU's.
[[nodiscard]] std::string column_of_series(const std::string& name);
// What an exporter of GPUs' readings answers: it begins with a line that tells such a series.
[[nodiscard]] bool are_scrapes(std::string_view text);

// An annotation of InfluxDB ("#group,…", "#datatype,…"); and the first line that is not empty and none.
[[nodiscard]] bool is_annotation(std::string_view line);
[[nodiscard]] std::string_view without_annotations(std::string_view text);

// The format of a log that is no table, by its beginning; kUnknown for all others.
[[nodiscard]] LogFormat sniff_table(std::string_view text);
// Its table; the format must be one of these.
[[nodiscard]] Result<LogTable> table_of(LogFormat format, std::string_view text);

}  // namespace headroom
