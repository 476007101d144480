// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < line.size();) {
    while (i < line.size() && (line[i] == ' ' || line[i] == '\t')) ++i;
    const std::size_t begin = i;
    while (i < line.size() && line[i] != ' ' && line[i] != '\t') ++i;
    if (i > begin) words.push_back(line.substr(begin, i - begin));
  }
  return words;
}

void NamedProcesses::add(std::string_view gpu, std::string_view pid, std::string_view type, std::string_view name) {
  constexpr std::size_t kMost = 1000, kLongest = 40;
  if (type.find('C') == std::string_view::npos || !parse_number<std::int64_t>(pid)) return;
  auto known = processes_.find(pid);
  if (known == processes_.end()) {
    if (processes_.size() >= kMost) return;
    const auto slash = name.rfind('/');  // of a path the end
    if (slash != std::string_view::npos && slash + 1 < name.size()) name.remove_prefix(slash + 1);
    known =
        processes_.emplace(pid, std::pair(std::string(trim(name).substr(0, kLongest)), std::set<std::string>())).first;
  }
  known->second.second.emplace(gpu);
}

std::string NamedProcesses::words() const {
  constexpr std::size_t kNamed = 6;
  std::vector<std::string> words;
  for (const auto& [pid, process] : processes_) {
    const auto& [name, gpus] = process;
    if (words.size() < kNamed)
      words.push_back(fmt::format("{}{}{} ({} {})", pid, name.empty() ? "" : " ", name,
                                  gpus.size() == 1 ? "GPU" : "GPUs", fmt::join(gpus, ", ")));
  }
  if (processes_.size() > kNamed) words.push_back(fmt::format("and {} others", processes_.size() - kNamed));
  return join(words, ", ");
}

namespace {

// "#Entity   GPUTL  POWER" and a line of units; then "GPU 0     98     288.1". "GPU-I 0" is an instance of a GPU that
// is split (MIG): it is read where whole GPUs are not there.
class DcgmRows {
 public:
  explicit DcgmRows(bool whole) : whole_(whole) {}
  void header(const std::vector<std::string_view>& words) {  // behind the "#", which may stand alone
    if (words.empty() || lower(words[0]) != "entity") return;
    columns_.clear();
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto column = dcgm_column(words[i]);
      columns_.push_back(column.empty() ? std::nullopt : std::optional(table_.column(column)));
    }
  }
  void add(const std::vector<std::string_view>& words, const std::string& time) {
    if (words.size() != columns_.size() + 2 || words[0] != (whole_ ? "GPU" : "GPU-I")) return;
    row_.clear();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i]) row_.put(*columns_[i], words[i + 2]);
    if (row_.empty()) return;
    if (!time.empty()) row_.put(table_.column("timestamp"), time);
    row_.put(index_, words[1]);
    if (!whole_) row_.put(name_, fmt::format("MIG instance {}", words[1]));
    table_.add(row_);
  }
  [[nodiscard]] LogTable table() { return std::move(table_); }

 private:
  bool whole_;
  LogTable table_;
  const std::size_t index_ = table_.column("index"), name_ = table_.column("name");
  std::vector<std::optional<std::size_t>> columns_;  // of the table, by the header's words
  LogTable::Line row_;
};

}  // namespace

// Without any time but that of a line above.
Result<LogTable> table_of_dcgm(std::string_view text) {
  DcgmRows rows(text.find("\nGPU ") != std::string_view::npos);
  LineCursor lines(text);
  std::string stamp;
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (line.starts_with('#')) {
      rows.header(words_of(line.substr(1)));
      continue;
    }
    auto time = line.starts_with("GPU") ? std::nullopt : time_of_line(line);
    if (time) stamp = std::move(*time);
    rows.add(words_of(line), stamp);
  }
  LogTable table = rows.table();
  if (table.empty())
    return fail(Errc::kInvalidInput, "no row of a GPU with a field that a recording can hold",
                "dcgmi dmon -e 203,204,155,252,1002,1004,1005");
  return table;
}

// Rows of GPUs of our own CSV; those of processes and of the host have no columns of a device.
Result<LogTable> table_of_export(std::string_view text) {
  LogTable table;
  const std::size_t timestamp = table.column("timestamp"), uuid = table.column("uuid"), index = table.column("index");
  LineCursor lines(text);
  std::vector<std::size_t> columns;  // of the table, by the header's cells
  std::vector<std::string_view> cells;
  LogTable::Line row;
  while (lines.next()) {
    split_cells(lines.line(), ',', cells);
    if (columns.empty()) {
      for (const std::string_view name : cells) columns.push_back(table.column(name));
      continue;
    }
    if (cells.size() != columns.size() || cells.size() < 5 || cells[2] != "gpu") continue;
    row.clear();
    row.put(timestamp, cells[1]);
    row.put(uuid, cells[3]);
    if (!cells[4].empty()) row.put(index, cells[4]);
    for (std::size_t i = 5; i < cells.size(); ++i)
      if (!cells[i].empty()) row.put(columns[i], cells[i]);
    table.add(row);
  }
  if (table.empty()) return fail(Errc::kInvalidInput, "no row of a GPU", "headroom export REC --format csv");
  return table;
}

}  // namespace headroom
