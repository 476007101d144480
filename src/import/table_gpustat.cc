// SPDX-License-Identifier: Apache-2.0
// What gpustat prints and writes as JSON, and JSON of others with a time and a list "gpus".
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/strings.h"
#include "import/json_members.h"
#include "import/listed_processes.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

using Json = nlohmann::json;

// The time within a line, such as "box  Mon Oct  9 15:20:11 2023  driver": five words that are one; "": none.
std::string time_within(std::string_view line) {
  std::vector<std::string_view> words = split(line, ' ');
  std::erase(words, "");
  constexpr std::size_t kWords = 5;
  for (std::size_t i = 0; i + kWords <= words.size(); ++i) {
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(i);
    std::string time = join(std::vector<std::string>(first, first + kWords), " ");
    if (time.find(':') != std::string::npos && TimeReader({}).read(time)) return time;
  }
  return "";
}

// Whose processes were on a GPU, by gpustat's "alice:python/41201(38198M) bob(512M)": "alice python".
void take_users(std::string_view cell, const std::string& gpu, const std::string& time, ListedProcesses& processes) {
  std::vector<std::string> names;
  for (const std::string_view process : split(cell, ' ')) {
    const std::string_view who = process.substr(0, process.find_first_of("/("));  // also of "alice(512M)"
    if (who.size() == process.size()) continue;
    processes.user(gpu, who);
    names.emplace_back(process.substr(0, process.find('(')));
  }
  processes.answer(gpu, std::move(names), time);
}

// The same of {"username": "alice", "command": "python", "pid": 41201}.
void take_users(const Json& list, const std::string& gpu, const std::string& time, ListedProcesses& processes) {
  std::vector<std::string> names;
  for (const Json& process : list) {
    if (!process.is_object()) continue;
    const std::string user = json_member(process, "username"), command = json_member(process, "command");
    const std::string who = fmt::format("{}{}{}", user, user.empty() || command.empty() ? "" : " ", command);
    processes.user(gpu, who);
    const std::string pid = json_member(process, "pid");
    names.push_back(fmt::format("{}{}{}", pid, pid.empty() || who.empty() ? "" : " ", who));
  }
  processes.answer(gpu, std::move(names), time);
}

// "box  Mon Oct  9 15:20:11 2023  525.125.06", then a line for each GPU:
// "[0] NVIDIA GeForce RTX 3090 | 71°C,  99 % | 23010 / 24576 MB | alice(23001M)"
LogTable table_of_gpustat_text(std::string_view text) {
  LogTable table;
  std::string time;
  ListedProcesses processes;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    const auto close = line.find(']');
    const auto cells = split(line, '|');
    if (!line.starts_with('[') || close == std::string_view::npos || cells.size() < 3) {
      if (auto stamp = time_within(line); !stamp.empty()) time = std::move(stamp);
      continue;
    }
    const auto percent = cells[1].rfind('%');  // a fan's stands before it
    const auto comma = cells[1].rfind(',', percent), slash = cells[2].find('/');
    if (comma == std::string_view::npos || slash == std::string_view::npos || percent == std::string_view::npos)
      continue;
    LogTable::Row row{
        {"index", std::string(trim(line.substr(1, close - 1)))},
        {"name", std::string(trim(cells[0].substr(close + 1)))},
        {"temperature.gpu", std::string(trim(cells[1].substr(0, cells[1].find_first_not_of(" 0123456789"))))},
        {"utilization.gpu", std::string(trim(cells[1].substr(comma + 1, percent - comma - 1)))},
        {"memory.used", std::string(trim(cells[2].substr(0, slash)))},
        {"memory.total", std::string(trim(cells[2].substr(slash + 1, cells[2].find_last_of("0123456789") - slash)))}};
    if (!time.empty()) row["timestamp"] = time;
    // gpustat -P: "65°C,  99 %,  338 / 400 W"
    const std::string_view power = cells[1].substr(percent + 1);
    if (const auto over = power.find('/');
        over != std::string_view::npos && power.find('W') != std::string_view::npos) {
      row["power.draw"] = trim(power.substr(0, over).substr(power.find_first_not_of(" ,")));
      row["power.limit"] = trim(power.substr(over + 1, power.find('W') - over - 1));
    }
    if (cells.size() > 3) take_users(cells[3], row["index"], time, processes);
    table.add(row);
  }
  processes.tell(table.extra);
  return table;
}

// gpustat's query_time, or what a monitor of one's own calls the time.
std::string time_of_answer(const Json& answer) {
  if (std::string time = json_member(answer, "query_time"); !time.empty()) return time;
  for (const auto& [name, value] : answer.items())
    if (!value.is_structured() && has_role(name, ColumnRole::kTimestamp)) return json_cell(value);
  return "";
}

LogTable::Row row_of_gpustat(const Json& gpu) {
  LogTable::Row row;
  put_json_members(gpu, "", row);
  for (const auto& [name, column] :
       {std::pair{"utilization.enc", "utilization.encoder"}, std::pair{"utilization.dec", "utilization.decoder"}})
    if (auto cell = row.extract(std::string(name))) cell.key() = column, row.insert(std::move(cell));
  return row;
}

void add_gpustat_json(std::string_view text, LogTable& table) {
  ListedProcesses processes;
  for (const std::string_view object : objects_of(text)) {
    const Json answer = parse_json<Json>(object);
    if (!answer.is_object() || !answer.contains("gpus") || !answer["gpus"].is_array()) continue;
    const std::string time = time_of_answer(answer);
    for (const Json& gpu : answer["gpus"]) {
      if (!gpu.is_object()) continue;
      LogTable::Row row = row_of_gpustat(gpu);
      row["driver_version"] = json_member(answer, "driver_version");
      if (!time.empty()) row["timestamp"] = time;
      if (const auto list = gpu.find("processes"); list != gpu.end() && list->is_array())
        take_users(*list, json_member(gpu, "index"), time, processes);
      table.add(row);
    }
  }
  processes.tell(table.extra);
}

}  // namespace

Result<LogTable> table_of_gpustat(std::string_view text) {
  LogTable table = trim(text).starts_with('{') ? LogTable{} : table_of_gpustat_text(text);
  add_gpustat_json(text, table);
  if (table.empty()) return fail(Errc::kInvalidInput, "no readings of GPUs in it", "gpustat --json >> gpus.json");
  return table;
}

}  // namespace headroom
