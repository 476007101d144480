// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

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

// "#Entity" and "# Entity" are the same.
std::vector<std::string_view> header_words(std::string_view line) {
  line.remove_prefix(1);
  return words_of(line);
}

}  // namespace

// "#Entity   GPUTL  POWER" and a line of units; then "GPU 0     98     288.1", without any time. "GPU-I 0" is an
// instance of a GPU that is split (MIG): it is read where whole GPUs are not there.
Result<LogTable> table_of_dcgm(std::string_view text) {
  LogTable table;
  const std::size_t index = table.column("index"), name = table.column("name");
  const bool whole = text.find("\nGPU ") != std::string_view::npos;
  std::vector<std::optional<std::size_t>> columns;  // of the table, by the header's words
  LogTable::Line row;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (line.starts_with('#')) {
      const auto words = header_words(line);
      if (words.empty() || lower(words[0]) != "entity") continue;
      columns.clear();
      for (std::size_t i = 1; i < words.size(); ++i) {
        const auto column = dcgm_column(words[i]);
        columns.push_back(column.empty() ? std::nullopt : std::optional(table.column(column)));
      }
      continue;
    }
    const auto words = words_of(line);
    if (words.size() != columns.size() + 2 || words[0] != (whole ? "GPU" : "GPU-I")) continue;
    row.clear();
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i]) row.put(*columns[i], words[i + 2]);
    if (row.empty()) continue;
    row.put(index, words[1]);
    if (!whole) row.put(name, fmt::format("MIG instance {}", words[1]));
    table.add(row);
  }
  if (table.empty())
    return fail(Errc::kInvalidInput, "no row of a GPU with a field that a recording can hold",
                "dcgmi dmon -e 203,204,155,252,1002,1004,1005");
  return table;
}

namespace {

// The processes of a GPU in one round, together: each has a share of the time.
struct PmonRound {
  LogTable::Row row;
  std::set<std::string, std::less<>> pids;
  std::map<std::string_view, double> sums;
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPmonColumns{{{"sm", "utilization.gpu"},
                                                                                     {"mem", "utilization.memory"},
                                                                                     {"enc", "utilization.encoder"},
                                                                                     {"dec", "utilization.decoder"}}};

void finish_round(PmonRound& round, LogTable& table) {
  if (round.row.empty()) return;
  constexpr double kAll = 100;
  for (const auto& [name, column] : kPmonColumns)
    if (const auto sum = round.sums.find(name); sum != round.sums.end())
      round.row[std::string(column)] = fmt::format("{:g}", std::min(kAll, sum->second));
  table.add(round.row);
  round = {};
}

// What a log of processes says of one of them.
struct PmonProcess {
  std::string command;
  std::set<std::string, std::less<>> gpus;
  double shares = 0;  // of the SMs, percent
  std::int64_t readings = 0;
};

// "4101 python 25 %, 4177 python 25 %": the busiest first, where there are several; "" of one. Of several GPUs with
// each one's own behind it.
std::string processes_words(const std::map<std::string, PmonProcess, std::less<>>& processes, bool several_gpus) {
  constexpr std::size_t kNamed = 6;
  std::vector<std::pair<double, std::string>> means;
  for (const auto& [pid, process] : processes) {
    const double mean = process.shares / static_cast<double>(std::max<std::int64_t>(1, process.readings));
    const std::string gpus = several_gpus ? fmt::format(" (GPU {})", fmt::join(process.gpus, ", ")) : "";
    means.emplace_back(-mean, fmt::format("{} {} {:.0f} %{}", pid, process.command, mean, gpus));
  }
  std::sort(means.begin(), means.end());
  std::string words;
  for (std::size_t i = 0; i < std::min(kNamed, means.size()); ++i) words += (i > 0 ? ", " : "") + means[i].second;
  if (means.size() > kNamed) words += fmt::format(", and {} others", means.size() - kNamed);
  return means.size() > 1 ? words : "";
}

}  // namespace

// "# gpu pid type sm mem enc dec command", with "-o DT" behind date and time. A GPU without a process has one row of
// "-".
Result<LogTable> table_of_pmon(std::string_view text) {
  LogTable table;
  std::vector<std::string> names;
  std::map<std::string, PmonRound, std::less<>> rounds;  // by GPU
  std::map<std::string, PmonProcess, std::less<>> processes;
  LineCursor lines(text);
  std::string blanks;  // the line without the commas of --format csv
  while (lines.next()) {
    blanks = lines.line();
    std::replace(blanks.begin(), blanks.end(), ',', ' ');
    const std::string_view line = trim(blanks);
    if (line.starts_with('#')) {
      const auto words = header_words(line);
      if (std::find(words.begin(), words.end(), "pid") == words.end()) continue;
      names.clear();
      for (const std::string_view word : words) names.push_back(lower(word));
      continue;
    }
    const auto words = words_of(line);
    if (names.empty() || words.size() < names.size()) continue;  // a command may have blanks
    const auto cell = [&](std::string_view name) {
      const auto at = std::find(names.begin(), names.end(), name);
      return at == names.end() ? std::string_view() : words[static_cast<std::size_t>(at - names.begin())];
    };
    const std::string gpu(cell("gpu")), pid(cell("pid"));
    if (!parse_number<int>(gpu)) continue;
    std::string time(cell("time"));
    if (const auto date = cell("date"); date.size() == 8)
      time = fmt::format("{}-{}-{} {}", date.substr(0, 4), date.substr(4, 2), date.substr(6), time);
    PmonRound& round = rounds[gpu];
    const auto before = round.row.find("timestamp");
    const bool same = time.empty() ? !round.pids.contains(pid) : before != round.row.end() && before->second == time;
    if (!same) finish_round(round, table);
    round.row["index"] = gpu;
    if (!time.empty()) round.row["timestamp"] = time;
    round.pids.insert(pid);
    if (parse_number<std::int64_t>(pid)) {
      PmonProcess& process = processes[pid];
      process.command = cell("command"), process.shares += parse_number<double>(cell("sm")).value_or(0);
      process.gpus.insert(gpu);
      ++process.readings;
    }
    for (const auto& [name, column] : kPmonColumns) {
      const auto value = parse_number<double>(cell(name));
      // "-" where nothing was sampled: of the SMs and the memory that is a process at rest, or none.
      const bool at_rest = cell(name) == "-" && (name == "sm" || name == "mem");
      if (value || at_rest) round.sums[name] += std::max(0.0, value.value_or(0));
    }
  }
  for (auto& [gpu, round] : rounds) finish_round(round, table);
  if (table.empty()) return fail(Errc::kInvalidInput, "no row of a GPU", "nvidia-smi pmon -o DT");
  if (std::find(names.begin(), names.end(), "sm") == names.end())
    return fail(Errc::kInvalidInput, "processes and their memory, as of pmon -s m, and nothing that the GPU did",
                "nvidia-smi pmon -s um -o DT > pmon.log");
  if (std::string words = processes_words(processes, rounds.size() > 1); !words.empty())
    table.extra["processes"] = std::move(words);
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
