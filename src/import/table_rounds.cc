// SPDX-License-Identifier: Apache-2.0
// Logs that are answers for people, written down again and again.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/civil_time.h"
#include "base/strings.h"
#include "import/listed_processes.h"
#include "import/log_date.h"
#include "import/log_reader.h"
#include "import/table.h"
#include "model/gpu_vendor.h"

namespace headroom {

namespace {

constexpr std::size_t kTellsWhose = 4096;  // tells whose table it is

// "20000MiB / 46068MiB" and its like: both sides.
std::pair<std::string_view, std::string_view> both_sides(std::string_view text) {
  const std::size_t slash = text.find(" / ");
  if (slash == std::string_view::npos) return {};
  return {trim(text.substr(0, slash)), trim(text.substr(slash + 3))};
}

std::string_view last_word(std::string_view text) {
  text = trim(text);
  return text.substr(text.find_last_of(' ') + 1);  // npos + 1 is 0
}

// nvitop draws its frames with other bars, and with a fourth cell where the screen is wide.
std::string with_bars(std::string_view line) {
  constexpr std::string_view kBar = "│";
  std::string plain;
  for (std::size_t begin = 0; begin < line.size();) {
    const auto bar = line.find(kBar, begin);
    plain += line.substr(begin, bar - begin);
    if (bar == std::string_view::npos) break;
    plain += '|';
    begin = bar + kBar.size();
  }
  return plain;
}

std::optional<std::string> whole_time(std::string_view line) {
  if (line.size() < 8 || line.size() > 40) return std::nullopt;
  TimeReader reader({});
  if (is_digit(line[0]) && line.find_first_of(":-/") == std::string_view::npos && line.size() < 10) return std::nullopt;
  if (reader.read(line)) return std::string(line);
  DateOrderFinder finder;  // which is the day the lines together tell, later
  const bool unclear = finder.add(line) && parse_worded_time(line, DateOrder::kMonthFirst);
  return unclear ? std::optional(std::string(line)) : std::nullopt;
}

}  // namespace

std::optional<std::string> time_of_line(std::string_view line) {
  line = trim(line);
  if (auto time = whole_time(line)) return time;
  // "Every 2.0s: nvidia-smi --query-gpu=…   box: Mon Nov  3 09:00:00 2025", as watch(1) heads what it shows
  if (const auto host = line.rfind(": "); line.starts_with("Every ") && host != std::string_view::npos)
    return whole_time(trim(line.substr(host + 2)));
  // "=== 1767225600 ===", "--- scraped at 2025-11-05 21:13:00"
  constexpr std::size_t kLongestWords = 24;
  const auto is_mark = [](char c) {
    return !is_digit(c) && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && static_cast<unsigned char>(c) < 0x80;
  };
  while (!line.empty() && is_mark(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_mark(line.back())) line.remove_suffix(1);
  if (auto time = whole_time(line)) return time;
  if (parse_time_of_day(line)) return std::string(line);  // behind words, as "ETA: 00:12:34", it may be a length
  const auto digit = static_cast<std::size_t>(std::find_if(line.begin(), line.end(), is_digit) - line.begin());
  if (digit == 0 || digit > kLongestWords || !is_mark(line[digit - 1])) return std::nullopt;
  return whole_time(line.substr(digit));
}

namespace {

using ListedOnGpus = std::map<std::string, std::vector<std::string>, std::less<>>;

// "0   N/A  N/A     41201      C   python train.py      20000MiB", of older drivers without the two in between; of
// nvitop "0  101213 C   alice 18.02GiB  97  99.8   4.1  1:12:08  python train.py".
void add_process(const std::vector<std::string_view>& words, NamedProcesses& processes, ListedOnGpus& listed) {
  constexpr std::array<std::string_view, 4> kTypes{"C", "G", "C+G", "M+C"};
  constexpr std::size_t kFewestWords = 4, kMost = 4;  // words; place of the type
  if (words.size() < kFewestWords || !parse_number<int>(words[0])) return;
  for (std::size_t i = 2; i <= kMost && i + 1 < words.size(); ++i) {
    if (std::find(kTypes.begin(), kTypes.end(), words[i]) == kTypes.end()) continue;
    processes.add(words[0], words[i - 1], words[i], words[i + 1]);
    const auto on = listed.find(words[0]);
    if (on != listed.end() && words[i] != "G") on->second.push_back(fmt::format("{} {}", words[i - 1], words[i + 1]));
    return;
  }
}

// The second line of a GPU: fan, temperature, power; memory; use.
void put_readings_of_box(const std::vector<std::string_view>& cells, LogTable::Row& gpu) {
  const auto [used, total] = both_sides(cells[2]);
  gpu["memory.used"] = used;
  gpu["memory.total"] = total;
  const std::string_view last = trim(cells[3]);
  gpu["utilization.gpu"] = last.substr(0, last.find(' '));
  const auto [power, limit] = both_sides(cells[1]);
  gpu["power.draw"] = last_word(power);
  gpu["power.limit"] = limit;
  for (const std::string_view word : split(cells[1], ' '))
    if (word.size() > 1 && word.back() == 'C' && is_digit(word[0]))
      gpu["temperature.gpu"] = word.substr(0, word.size() - 1);
    else if (word.size() > 1 && word[0] == 'P' && is_digit(word[1]))
      gpu["pstate"] = word;
}

}  // namespace

bool is_reading_of_box(std::string_view line) {
  const auto cells = split(line, '|');
  if (!line.starts_with('|') || cells.size() != 5) return false;
  const std::string_view use = trim(cells[3]);
  const auto [used, total] = both_sides(cells[2]);
  return !both_sides(cells[1]).second.empty() && used.ends_with("MiB") && total.ends_with("MiB") && !use.empty() &&
         (use.find('%') != std::string_view::npos || use.starts_with("N/A"));
}

namespace {

// How much stands in front of each line, as `ts` and collectors of logs put it there: of one width where the text is.
std::size_t width_of_prefix(std::string_view text) {
  constexpr std::size_t kWidest = 64;
  const auto title = text.find("| NVIDIA-SMI ");
  if (title == std::string_view::npos || title == 0) return 0;
  const auto begin = text.rfind('\n', title - 1) + 1;  // npos + 1 is 0
  return title - begin <= kWidest ? title - begin : 0;
}

// Answers of nvidia-smi or nvitop, line by line.
class SmiAnswers {
 public:
  explicit SmiAnswers(bool of_nvitop) : of_nvitop_(of_nvitop) {}
  void begin_at(std::string time) {
    finish();
    time_ = std::move(time), place_ = 0;
  }
  // `line` begins with a bar.
  void add(std::string_view line) {
    const auto cells = split(line, '|');
    lists_ |= line.find(" Processes: ") != std::string_view::npos;
    if (cells.size() == 3 && lists_) add_process(words_of(cells[1]), processes_, listed_);
    if (cells.size() < 5 || (cells.size() > 5 && !of_nvitop_)) return;  // a frame, the processes
    if (both_sides(cells[2]).second.empty())
      name_gpu(trim(cells[1]));
    else if (!gpu_.empty() || finds_gpu(line, trim(cells[1])))
      add_readings(cells);
  }
  [[nodiscard]] LogTable table() {
    finish();
    told_.tell(table_.extra);
    if (std::string named = processes_.words(); !named.empty()) table_.extra.emplace(kNamedProcesses, std::move(named));
    return std::move(table_);
  }

 private:
  void finish() {
    for (auto& [index, names] : listed_)
      if (lists_) told_.answer(index, std::move(names), time_);
    listed_.clear(), lists_ = false;
  }
  static std::string_view index_in(std::string_view first) { return first.substr(0, first.find(' ')); }
  void name_gpu(std::string_view first) {
    gpu_.clear();
    const std::string_view index = index_in(first);
    if (!parse_number<int>(index) || index == first) return;
    const std::string_view name = trim(first.substr(index.size()));
    gpu_["index"] = index;
    gpu_["name"] = trim(name.substr(0, name.find_last_of(' ')));  // without the persistence mode
  }
  // Whether a line above which none names its GPU is of one.
  bool finds_gpu(std::string_view line, std::string_view first) {
    if (of_nvitop_ && parse_number<int>(index_in(first)))  // one line for each GPU
      gpu_["index"] = index_in(first);
    else if (!is_reading_of_box(line))
      return false;
    else if (!time_.empty())
      gpu_["index"] = fmt::format("{}", place_++);
    table_.by_order |= place_ > 1;
    return true;
  }
  void add_readings(const std::vector<std::string_view>& cells) {
    if (lists_) finish();
    if (const auto known = gpu_.find("index"); known != gpu_.end()) listed_[known->second];
    if (!time_.empty()) gpu_["timestamp"] = time_;
    put_readings_of_box(cells, gpu_);
    table_.add(std::exchange(gpu_, {}));
  }

  bool of_nvitop_;
  LogTable table_;
  std::string time_;
  LogTable::Row gpu_;
  NamedProcesses processes_;
  ListedProcesses told_;
  ListedOnGpus listed_;    // in this answer, by the GPUs that it has
  bool lists_ = false;     // it has come to its processes
  std::size_t place_ = 0;  // of a line whose GPU none above it names, below its time
};

}  // namespace

// Two lines of three cells for each GPU:
// |   0  NVIDIA L40S                 On  | 00000000:4A:00.0 Off |                    0 |
// | N/A   47C    P0        180W /  350W  |  20000MiB / 46068MiB |     27%      Default |
Result<LogTable> table_of_smi_text(std::string_view text) {
  const bool nvitop = text.substr(0, kTellsWhose).find("NVITOP ") != std::string_view::npos;
  const std::size_t prefix = width_of_prefix(text.substr(0, kTellsWhose));
  SmiAnswers answers(nvitop);
  std::string plain;
  LineCursor lines(text);
  while (lines.next()) {
    std::string_view line = trim(lines.line().substr(std::min(prefix, lines.line().size())));
    if (nvitop) line = plain = with_bars(line);
    if (line.starts_with('|'))
      answers.add(line);
    else if (auto stamp = time_of_line(line))
      answers.begin_at(std::move(*stamp));
  }
  LogTable table = answers.table();
  if (table.empty())
    return fail(
        Errc::kInvalidInput, "no row of a GPU",
        "log with: nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,power.draw --format=csv -l 1");
  return table;
}

namespace {

// "GPU[0]		: GPU use (%): 97", as rocm-smi --showuse and its like print each reading.
struct RocmReading {
  std::string gpu, name, value;
};
std::optional<RocmReading> rocm_reading(std::string_view line) {
  constexpr std::string_view kBegin = "GPU[";
  const auto close = line.find(']'), last = line.rfind(": ");
  if (!line.starts_with(kBegin) || close == std::string_view::npos || last == std::string_view::npos || last < close)
    return std::nullopt;
  const std::string_view gpu = line.substr(kBegin.size(), close - kBegin.size());
  std::string name(trim(line.substr(close + 1, last - close - 1)));
  if (name.starts_with(':')) name = trim(std::string_view(name).substr(1));
  std::replace(name.begin(), name.end(), ',', ' ');
  if (name.empty() || !parse_number<int>(gpu)) return std::nullopt;
  return RocmReading{std::string(gpu), std::move(name), std::string(trim(line.substr(last + 2)))};
}

// Readings of one GPU in one answer are a row.
class RocmRows {
 public:
  explicit RocmRows(LogTable& table) : table_(table) {}
  void add(RocmReading reading, const std::string& time) {
    LogTable::Row& row = rows_[reading.gpu];
    if (row.contains(reading.name)) finish();
    LogTable::Row& own = rows_[reading.gpu];
    if (!time.empty()) own["timestamp"] = time;
    own["index"] = reading.gpu;
    own[reading.name] = std::move(reading.value);
  }
  void finish() {
    for (const auto& [gpu, row] : rows_)
      if (row.size() > 1) table_.add(row);
    rows_.clear();
  }

 private:
  LogTable& table_;
  std::map<std::string, LogTable::Row> rows_;  // by GPU
};

// Of words with their units, of which the last is the GPU's use.
LogTable::Row row_of_rocm(const std::vector<std::string_view>& words) {
  LogTable::Row row{{"index", std::string(words[0])}, {"utilization.gpu", std::string(words.back())}};
  for (const std::string_view word : words) {
    const std::string number(word.substr(0, word.find_first_not_of("0123456789.")));
    const std::string unit = lower(word.substr(number.size()));
    if (number.empty()) continue;
    if (unit == "w") row[row.contains("power.draw") ? "power.limit" : "power.draw"] = number;
    if (unit == "c" || unit == "°c") row.emplace("temperature.gpu", number);
    if (unit == "mhz") row.emplace("clocks.sm", number);
  }
  return row;
}

}  // namespace

// rocm-smi's table, a row for each GPU: columns differ from version to version, and the last one is its use.
// 0    41.0c           130.0W  1700Mhz  1600Mhz  0%    auto  560.0W   34%   21%
Result<LogTable> table_of_rocm_text(std::string_view text) {
  constexpr std::size_t kFewestColumns = 6;
  LogTable table;
  RocmRows readings(table);
  std::string time;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = trim(lines.line());
    if (auto stamp = time_of_line(line)) readings.finish(), time = std::move(*stamp);
    if (auto reading = rocm_reading(line)) {
      readings.add(std::move(*reading), time);
      continue;
    }
    auto words = split(line, ' ');
    std::erase(words, "");
    if (words.size() < kFewestColumns || !parse_number<int>(words[0]) || !words.back().ends_with('%')) continue;
    LogTable::Row row = row_of_rocm(words);
    if (!time.empty()) row["timestamp"] = time;
    table.add(row);
  }
  readings.finish();
  if (table.empty())
    return fail(
        Errc::kInvalidInput, "an answer of rocm-smi without a row of a GPU and its use",
        "while true; do date; rocm-smi --showuse --showpower --showmeminfo vram --csv; sleep 1; done > gpu.csv");
  table.extra.emplace(kVendor, "amd");
  return table;
}

}  // namespace headroom
