// SPDX-License-Identifier: Apache-2.0
// What the tools of GPUs without nvidia-smi print: tegrastats of a Jetson, radeontop, powermetrics of a Mac, amd-smi
// monitor; and GPUtil of Python.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "import/column_words.h"
#include "import/log_reader.h"
#include "import/table.h"
#include "model/gpu_vendor.h"

namespace headroom {

namespace {

// The number that `text` begins with, as it is written; blanks may stand before it.
std::string_view number_at(std::string_view text) {
  text = text.substr(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_first_not_of("0123456789."));
}

// The number behind `name`, as it is written; "" where there is none.
std::string_view number_behind(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  return at == std::string_view::npos ? std::string_view() : number_at(text.substr(at + name.size()));
}

std::vector<std::string_view> blank_words(std::string_view line) {
  auto words = split(line, ' ');
  std::erase(words, "");
  return words;
}

}  // namespace

// 03-04-2025 10:15:01 RAM 5041/7620MB (lfb 4x2MB) CPU [12%@1510,off] EMC_FREQ 30% GR3D_FREQ 97%@[624] GPU@53.1C …
// The month stands first. Memory is the board's, of which the GPU's part is not told; so is the power.
Result<LogTable> table_of_tegrastats(std::string_view text) {
  LogTable table;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    const auto use = number_behind(line, "GR3D_FREQ ");
    if (use.empty()) continue;
    LogTable::Row row{{"utilization.gpu", std::string(use)}};
    const auto words = split(line, ' ');
    if (words.size() > 2 && words[0].size() == 10 && words[1].size() == 8 && words[0][2] == '-' && words[1][2] == ':')
      row["timestamp"] =
          fmt::format("{}-{}-{} {}", words[0].substr(6), words[0].substr(0, 2), words[0].substr(3, 2), words[1]);
    for (const std::string_view name : {" GPU@", " gpu@"})
      if (const auto temperature = number_behind(line, name); !temperature.empty())
        row["temperature.gpu"] = temperature;
    table.add(row);
  }
  if (table.empty()) return fail(Errc::kInvalidInput, "no line with GR3D_FREQ", "tegrastats --interval 1000 > gpu.log");
  return table;
}

// 1741600000.123456: bus 03, gpu 48.33%, ee 0.00%, vgt 5.83%, …, vram 20.10% 1608.00mb, gtt 3.10% 254.42mb,
// mclk 100.00% 0.875ghz, sclk 43.19% 0.760ghz
// The bus is that of the GPU's PCI address; older ones do not tell it.
Result<LogTable> table_of_radeontop(std::string_view text) {
  LogTable table;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    const auto use = number_behind(line, " gpu ");
    const auto time = number_at(line);
    if (use.empty() || time.size() == line.size() || line[time.size()] != ':') continue;
    LogTable::Row row{{"timestamp", std::string(time)}, {"utilization.gpu", std::string(use)}};
    if (const auto bus = line.find(" bus "); bus != std::string_view::npos)
      row["pci.bus_id"] = line.substr(bus + 5, line.find(',', bus) - bus - 5);
    for (const std::string_view part : split(line, ',')) {
      const auto words = words_of(part);
      if (words.size() != 3) continue;
      if (words[0] == "vram" && words[2].ends_with("mb")) row["memory.used [MiB]"] = number_at(words[2]);
      const auto gigahertz = parse_number<double>(number_at(words[2]));
      if (words[0] == "sclk" && words[2].ends_with("ghz") && gigahertz)
        row["clocks.sm"] = fmt::format("{:.0f}", 1000 * *gigahertz);
    }
    table.add(row);
  }
  if (table.empty())
    return fail(Errc::kInvalidInput, "radeontop's dump without a line of a GPU", "radeontop -d gpu.log -i 1");
  table.extra.emplace(kVendor, "amd");
  return table;
}

// *** Sampled system activity (Tue Mar  4 10:00:00 2025 +0100) (1004.98ms elapsed) ***
// GPU HW active residency:  87.50% (444 MHz: .5% …)
// GPU Power: 17400 mW
Result<LogTable> table_of_powermetrics(std::string_view text) {
  constexpr std::string_view kSampled = "*** Sampled system activity (";
  LogTable table;
  LogTable::Row row;
  const auto done = [&] {
    if (row.contains("timestamp") && row.contains("utilization.gpu")) table.add(row);
    row.clear();
  };
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (line.starts_with(kSampled)) {
      done();
      const std::string_view time = line.substr(kSampled.size());
      row["timestamp"] = time.substr(0, time.find(')'));
    }
    for (const auto& [words, column] :
         {std::pair{"GPU HW active residency:", "utilization.gpu"},
          std::pair{"GPU active residency:", "utilization.gpu"}, std::pair{"GPU Power:", "power.draw [mW]"},
          std::pair{"GPU HW active frequency:", "clocks.sm"}})
      if (const auto number = line.starts_with(words) ? number_behind(line, words) : ""; !number.empty())
        row[column] = number;
  }
  done();
  if (table.empty())
    return fail(Errc::kInvalidInput, "no sample of a GPU", "sudo powermetrics --samplers gpu_power -i 1000 > gpu.log");
  return table;
}

namespace {

// What MSI Afterburner calls it, of the only GPU or, as "GPU2 usage", of the second one.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kAfterburnerColumns{
    {{"usage", "utilization.gpu"},
     {"temperature", "temperature.gpu"},
     {"memory usage", "memory.used [MiB]"},
     {"core clock", "clocks.sm"},
     {"power", "power.draw"},
     {"fan speed", "fan.speed"}}};

struct AfterburnerColumn {
  std::string gpu;
  std::string_view column;
};

std::optional<AfterburnerColumn> afterburner_column(std::string_view name) {
  std::string gpu = "0";
  const bool of_gpu = name.starts_with("GPU");
  if (of_gpu) {
    name.remove_prefix(3);
    const std::string_view digits = name.substr(0, name.find_first_not_of("0123456789"));
    if (const auto number = parse_number<int>(digits); number && *number > 0) gpu = fmt::format("{}", *number - 1);
    name = trim(name.substr(digits.size()));
  }
  const auto known = std::find_if(kAfterburnerColumns.begin(), kAfterburnerColumns.end(),
                                  [&](const auto& c) { return c.first == lower(name); });
  const bool wants_gpu = known != kAfterburnerColumns.end() && (name == "usage" || name == "temperature");
  if (known == kAfterburnerColumns.end() || (wants_gpu && !of_gpu)) return std::nullopt;
  return AfterburnerColumn{std::move(gpu), known->second};
}

// Lines by their number in front: 00 says what it is, 01 names the GPUs, 02 the columns, 80 has the readings.
class AfterburnerLog {
 public:
  void add(const std::vector<std::string_view>& cells) {
    if (cells[0] == "01") names_.assign(cells.begin() + 2, cells.end());
    if (cells[0] == "02") header(cells);
    if (cells[0] == "80") readings(cells);
  }
  [[nodiscard]] LogTable table() {
    table_.left_out.assign(left_out_.begin(), left_out_.end());
    return std::move(table_);
  }

 private:
  void header(const std::vector<std::string_view>& cells) {
    columns_.clear();
    for (std::size_t i = 2; i < cells.size(); ++i) {
      columns_.push_back(afterburner_column(cells[i]));
      if (!columns_.back() && !cells[i].empty()) left_out_.insert(header_as_utf8(cells[i]));
    }
  }
  void readings(const std::vector<std::string_view>& cells) {
    const std::string_view time = cells[1];  // the day stands first
    if (time.size() < 19 || time[2] != '-' || time[5] != '-') return;
    std::map<std::string_view, LogTable::Row> rows;  // by GPU
    for (std::size_t i = 0; i < columns_.size() && i + 2 < cells.size(); ++i)
      if (columns_[i]) rows[columns_[i]->gpu].emplace(columns_[i]->column, cells[i + 2]);
    for (auto& [gpu, row] : rows) {
      row["timestamp"] =
          fmt::format("{}-{}-{} {}", time.substr(6, 4), time.substr(3, 2), time.substr(0, 2), time.substr(11));
      row["index"] = gpu;
      const auto place = parse_number<std::size_t>(gpu).value_or(0);
      if (place < names_.size()) row["name"] = names_[place];
      table_.add(row);
    }
  }

  LogTable table_;
  std::vector<std::string> names_;  // of GPUs
  std::vector<std::optional<AfterburnerColumn>> columns_;
  std::set<std::string> left_out_;
};

}  // namespace

// 80, 04-09-2025 22:10:07, 61.000              ,97.000              , …
Result<LogTable> table_of_afterburner(std::string_view text) {
  AfterburnerLog log;
  std::vector<std::string_view> cells;
  LineCursor lines(text);
  while (lines.next()) {
    split_cells(lines.line(), ',', cells);
    if (cells.size() >= 3) log.add(cells);
  }
  LogTable table = log.table();
  if (table.empty())
    return fail(Errc::kInvalidInput, "a log of MSI Afterburner without a reading of a GPU",
                "let it log GPU usage, memory usage and power");
  return table;
}

namespace {

struct AmdColumn {
  std::string_view name, column;
};
constexpr std::array kAmdColumns{
    AmdColumn{"TIMESTAMP", "timestamp"},
    AmdColumn{"GPU", "index"},
    AmdColumn{"POWER", "power.draw"},
    AmdColumn{"GPU_T", "temperature.gpu"},
    AmdColumn{"GPU_TEMP", "temperature.gpu"},
    AmdColumn{"MEM_T", "temperature.memory"},
    AmdColumn{"MEM_TEMP", "temperature.memory"},
    AmdColumn{"GFX_CLK", "clocks.sm"},
    AmdColumn{"GFX_CLOCK", "clocks.sm"},
    AmdColumn{"GFX%", "utilization.gpu"},
    AmdColumn{"GFX_UTIL", "utilization.gpu"},
    AmdColumn{"MEM%", "utilization.memory"},
    AmdColumn{"MEM_UTIL", "utilization.memory"},
    AmdColumn{"MEM_CLOCK", "clocks.mem"},
    AmdColumn{"VRAM_USED", "memory.used"},
    AmdColumn{"VRAM_TOTAL", "memory.total"},
};

// "412 W" and "120.1/191.7 GB" are one cell: a unit stands behind its number.
std::vector<std::string> amd_cells(std::string_view line) {
  std::vector<std::string> cells;
  for (const std::string_view word : blank_words(line)) {
    const bool value = is_digit(word[0]) || word == "N/A" || word[0] == '-';
    if (value || cells.empty())
      cells.emplace_back(word);
    else
      cells.back() += fmt::format(" {}", word);
  }
  return cells;
}

void put_amd_cell(std::string_view name, const std::string& cell, LogTable::Row& row) {
  if (name == "VRAM_USAGE") {
    const auto slash = cell.find('/'), blank = cell.rfind(' ');
    if (slash == std::string::npos || blank == std::string::npos) return;
    row["memory.used"] = cell.substr(0, slash) + cell.substr(blank);
    row["memory.total"] = cell.substr(slash + 1);
    return;
  }
  const auto* const known =
      std::find_if(kAmdColumns.begin(), kAmdColumns.end(), [&](const AmdColumn& c) { return c.name == name; });
  if (known == kAmdColumns.end()) return;
  const bool degrees = known->column.starts_with("temperature");  // "65 °C"
  row[std::string(known->column)] = degrees && is_digit(cell[0]) ? number_at(cell) : cell;
}

}  // namespace

bool is_amd_header(std::string_view line) {
  const auto words = blank_words(line);
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  return line.find(',') == std::string_view::npos && has("GPU") && (has("GFX%") || has("GFX_UTIL"));
}

//  TIMESTAMP  GPU  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%      VRAM_USAGE
// 1741600001    0  412 W   65 °C   52 °C  1834 MHz   98 %   45 %  120.1/191.7 GB
Result<LogTable> table_of_amd_monitor(std::string_view text) {
  LogTable table;
  std::vector<std::string> names;
  std::string time;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (is_amd_header(line)) {
      names.clear();
      for (const std::string_view word : blank_words(line)) names.emplace_back(word);
      continue;
    }
    if (auto stamp = time_of_line(line)) time = std::move(*stamp);
    const auto cells = amd_cells(line);
    if (names.empty() || cells.size() != names.size() || !parse_number<std::int64_t>(cells[0])) continue;
    LogTable::Row row;
    if (!time.empty()) row["timestamp"] = time;
    for (std::size_t i = 0; i < names.size(); ++i) put_amd_cell(names[i], cells[i], row);
    table.add(row);
  }
  if (table.empty())
    return fail(Errc::kInvalidInput, "a header of amd-smi monitor and no row of a GPU",
                fmt::format("{} > gpu.csv", log_command("amd")));
  table.extra.emplace(kVendor, "amd");
  return table;
}

// | ID | GPU | MEM |
// ------------------
// |  0 | 89% | 61% |
// The last is how full the memory is, which is no use of it without its size.
Result<LogTable> table_of_gputil(std::string_view text) {
  LogTable table;
  std::string time;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (!line.starts_with('|')) {
      if (auto stamp = time_of_line(line)) time = std::move(*stamp);
      continue;
    }
    const auto cells = split(line, '|');
    if (cells.size() != 5 || !parse_number<int>(trim(cells[1])) || !trim(cells[2]).ends_with('%')) continue;
    LogTable::Row row{{"index", std::string(trim(cells[1]))}, {"utilization.gpu", std::string(number_at(cells[2]))}};
    if (!time.empty()) row["timestamp"] = time;
    table.add(row);
  }
  if (table.empty())
    return fail(Errc::kInvalidInput, "GPUtil's table without a row of a GPU", "GPUtil.showUtilization()");
  table.left_out = {"MEM"};
  return table;
}

}  // namespace headroom
