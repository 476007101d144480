// SPDX-License-Identifier: Apache-2.0
#include "import/column_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/strings.h"
#include "import/column_words.h"
#include "import/gpu_columns.h"
#include "import/list_cells.h"
#include "import/log_date.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

bool is_time(std::string_view cell) {
  if (cell.size() < 8 || (cell.find(':') == std::string_view::npos && !is_pointed_time(cell))) return false;
  DateOrderFinder finder;
  return TimeReader({}).read(cell) || finder.add(cell);
}

namespace {

constexpr int kMostNumbered = 64;  // GPUs that a table may have a column each of

using Rows = std::vector<std::vector<std::string_view>>;

Rows rows_of(std::string_view text, const std::vector<std::string_view>& names, char separator) {
  constexpr std::size_t kMost = 300;
  Rows rows;
  LineCursor lines(text);
  std::vector<std::string_view> row;
  while (rows.size() < kMost && lines.next()) {
    if (!lines.complete()) break;
    if (is_rule(lines.line())) continue;
    split_cells(lines.line(), separator, row);
    if (row.size() == names.size() && row != names) rows.push_back(row);
  }
  return rows;
}

// 1,000,000,000 s to 4,000,000,000 s, or as many in a finer unit.
bool is_unix_time(double number) {
  for (const double unit : {1.0, 1e3, 1e6, 1e9})
    if (number >= 1e9 * unit && number < 4e9 * unit) return true;
  return false;
}

// "30/08/2024", "2024-08-30", "30.8.24".
bool is_date(std::string_view cell) {
  const auto sign = cell.find_first_of("/-.");
  if (sign == std::string_view::npos || sign == 0 || cell.size() > 10 || !is_digit(cell.back())) return false;
  return std::count(cell.begin(), cell.end(), cell[sign]) == 2 &&
         std::all_of(cell.begin(), cell.end(), [&](char c) { return is_digit(c) || c == cell[sign]; });
}

bool are_times(const Rows& rows, std::size_t column) {
  double last = 0;
  for (const auto& row : rows) {
    if (is_time(row[column])) continue;
    const auto number = parse_number<double>(row[column]);
    constexpr double kSlack = 1e-6;  // of it: GPUs of one round are not always written in order
    if (!number || !is_unix_time(*number) || *number < last * (1 - kSlack)) return false;
    last = std::max(last, *number);
  }
  return true;
}

// "3", "cuda:3", "GPU 3", "card3": the number at the end, and the word before it.
struct Named {
  std::string_view word;
  int number = 0;
};
std::optional<Named> named(std::string_view cell) {
  const auto digits = cell.find_last_not_of("0123456789");
  const std::string_view before = cell.substr(0, digits == std::string_view::npos ? 0 : digits + 1);
  const auto number = parse_number<int>(cell.substr(before.size()));
  return number && *number < 256 ? std::optional(Named{before, *number}) : std::nullopt;
}

// "Data" is a date in Portuguese and Italian, if its rows are some.
bool is_called_data(std::string_view name) { return lower(trim(name)) == "data"; }
bool are_dates(const std::vector<std::string_view>& names, const Rows& rows, std::size_t column) {
  return is_called_data(names[column]) &&
         std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return is_date(row[column]); });
}

// A few numbers behind the same word, which come again and again; a count of the rows is none.
bool are_gpus(const Rows& rows, std::size_t column) {
  std::set<int> seen;
  for (const auto& row : rows) {
    const auto gpu = named(row[column]);
    if (!gpu || gpu->word != named(rows[0][column])->word) return false;
    seen.insert(gpu->number);
  }
  return 2 * seen.size() <= rows.size();
}

// "node1:0", "node2/gpu3": the number of a GPU behind its host.
bool are_gpus_of_hosts(const Rows& rows, std::size_t column) {
  return std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
    const auto gpu = named(row[column]);
    return gpu && gpu->word.find_first_of(":/@") != std::string_view::npos;
  });
}

bool may_name_gpus(std::string_view name) {
  constexpr std::array<std::string_view, 15> kNames{"id",     "idx",  "index",   "gpu",          "card",
                                                    "device", "dev",  "ordinal", "slot",         "minor",
                                                    "gpu #",  "gpu#", "#",       "minor_number", "accelerator"};
  return std::find(kNames.begin(), kNames.end(), lower(trim(in_english(name)))) != kNames.end();
}

// Where rows share their times, what tells those of one time apart, again and again with the same few texts.
bool tells_apart(const Rows& rows, std::size_t time, std::size_t column) {
  std::set<std::string_view> seen, of_time;
  std::size_t most = 0, times = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i][time] != rows[i - 1][time]) of_time.clear(), ++times;
    const std::string_view cell = rows[i][column];
    if (cell.empty() || !of_time.insert(cell).second) return false;
    seen.insert(cell);
    most = std::max(most, of_time.size());
  }
  return most > 1 && seen.size() == most && 3 * times <= 2 * rows.size() && times > 2;
}

bool is_reading_of(std::string_view name, Metric metric) {
  const auto rule = csv_column(name);
  return rule && rule->role == ColumnRole::kMetric && rule->metric == metric;
}

bool is_time_role(ColumnRole role) {
  return role == ColumnRole::kTimestamp || role == ColumnRole::kDate || role == ColumnRole::kTime;
}

bool is_gpu_role(ColumnRole role) {
  return role == ColumnRole::kIndex || role == ColumnRole::kUuid || role == ColumnRole::kPciBusId ||
         role == ColumnRole::kSerial;
}

// Whether rows share their time and GPU, again and again: then they are of several hosts, or of something smaller.
struct Places {
  std::size_t time = 0;
  std::optional<std::size_t> gpu;
};
bool share_times(const Rows& rows, const Places& at) {
  constexpr std::size_t kSome = 4;  // of so many rows one
  std::set<std::pair<std::string_view, std::string_view>> seen;
  std::size_t again = 0;
  for (const auto& row : rows) again += seen.emplace(row[at.time], at.gpu ? row[*at.gpu] : "").second ? 0U : 1U;
  return kSome * again >= rows.size() && again > 1;
}

// Whether this column tells such rows apart, with a few texts that come again and again.
bool tells_hosts(const Rows& rows, const Places& at, std::size_t column) {
  std::set<std::array<std::string_view, 3>> seen;
  std::set<std::string_view> hosts;
  for (const auto& row : rows) {
    const std::string_view host = row[column];
    const std::array<std::string_view, 3> place{row[at.time], at.gpu ? row[*at.gpu] : std::string_view(), host};
    if (host.empty() || !seen.insert(place).second) return false;
    hosts.insert(host);
  }
  return hosts.size() > 1 && 2 * hosts.size() <= rows.size();
}

bool are_numbers(const Rows& rows, std::size_t column) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return parse_number<double>(row[column]).has_value(); });
}

// Where each row says when it is of; nothing where no column says so, or its GPU has a name that no other has.
std::optional<Places> places_of(const std::vector<std::string_view>& names) {
  Places at;
  bool clock = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto rule = csv_column(names[i]);
    if (!rule || rule->gpu) continue;
    if (rule->role == ColumnRole::kUuid || rule->role == ColumnRole::kSerial) return std::nullopt;
    if (rule->role == ColumnRole::kIndex && !at.gpu) at.gpu = i;
    if ((rule->role == ColumnRole::kTimestamp || rule->role == ColumnRole::kTime) && !clock) at.time = i, clock = true;
  }
  return clock ? std::optional(at) : std::nullopt;
}

bool may_name_hosts(std::string_view name) {
  constexpr std::array<std::string_view, 11> kWords{"host",    "node",    "machine", "server", "instance", "computer",
                                                    "cluster", "chassis", "blade",   "rack",   "worker"};
  if (csv_column(name) || is_of_no_gpu(name)) return false;
  const std::string small = lower(name);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return small.find(word) != std::string::npos; });
}

bool names_hosts(std::string_view name) {
  const auto rule = csv_column(name);
  return rule && rule->role == ColumnRole::kHost;
}

// Rows of several hosts, where no column is known to name them: the one that tells them apart, whatever it is called.
void tell_hosts(std::vector<std::string_view>& names, const Rows& rows) {
  const auto at = places_of(names);
  if (!at || !share_times(rows, *at)) return;
  const auto first = [&](bool (*may_be)(std::string_view name)) {
    std::size_t i = 0;
    while (i < names.size() && !(may_be(names[i]) && tells_hosts(rows, *at, i))) ++i;
    return i;
  };
  std::size_t host = first(names_hosts);
  if (host == names.size()) host = first(may_name_hosts);
  if (host == names.size()) return;
  if (are_numbers(rows, host))
    names[host] = kHostNumber;
  else if (!names_hosts(names[host]))
    names[host] = "hostname";
}

// A column such as "gpu" that has the names of models, or UUIDs. True where no column tells the GPUs apart then.
bool name_models(std::vector<std::string_view>& names, const Rows& rows) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto rule = csv_column(names[i]);
    if (!rule || rule->role != ColumnRole::kIndex) continue;
    const auto all = [&](const auto& are) {
      return std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return are(row[i]); });
    };
    if (all([](std::string_view cell) { return cell.starts_with("GPU-") || cell.starts_with("MIG-"); }))
      names[i] = "uuid";
    else if (all([](std::string_view cell) {
               return cell.find(' ') != cell.npos && !begins_list(cell) && !named(cell) && !absence_of(cell);
             }))
      names[i] = "name";
  }
  return std::none_of(names.begin(), names.end(), [](std::string_view name) {
    const auto rule = csv_column(name);
    return rule && (rule->gpu || is_gpu_role(rule->role));
  });
}

// The column that tells the GPUs apart, whatever it is called.
void tell_apart(std::vector<std::string_view>& names, const Rows& rows) {
  const auto is_clock = [](std::string_view name) {
    const auto rule = csv_column(name);
    return rule && is_time_role(rule->role);
  };
  const auto clock = std::find_if(names.begin(), names.end(), is_clock);
  if (clock == names.end()) return;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_of_no_gpu(names[i]) || csv_column(names[i]) ||
        !tells_apart(rows, static_cast<std::size_t>(clock - names.begin()), i))
      continue;
    names[i] = are_gpus(rows, i) ? "index" : "serial";
    return;
  }
}

// Beside a reading of a GPU and none of a CPU, "Load", "Load %" and "usage_percent" are the GPU's.
std::string_view use_of_gpu(std::string_view name) {
  constexpr std::array<std::string_view, 4> kUse{"load", "usage", "use", "busy"};
  const std::string bare = bare_header(name);
  if (std::find(kUse.begin(), kUse.end(), bare) == kUse.end()) return name;
  if (bare == lower(trim(name))) return "gpu_load";
  const auto rule = csv_column(fmt::format("gpu_{}", trim(name)));
  return rule && rule->metric == Metric::kGpuUtil ? "gpu_load_%" : name;
}

// "1234 MiB", "7.2/24 GB".
bool is_in_bytes(std::string_view cell) {
  const auto letters = cell.find_last_of("0123456789. ");
  if (letters == std::string_view::npos || !is_digit(cell[0])) return false;
  const std::string unit = lower(cell.substr(letters + 1));
  return unit == "mib" || unit == "gib" || unit == "mb" || unit == "gb";
}

bool is_memory_used(const std::optional<ColumnRule>& rule) {
  return rule && rule->role == ColumnRole::kMetric && rule->metric == Metric::kMemoryUsed && !rule->gpu;
}

// Whole numbers, some too large for percent and GB, and all small enough for MiB.
bool are_mebibytes(const Rows& rows, std::size_t column) {
  constexpr double kMostPercent = 100, kMost = 1 << 19;
  double largest = 0;
  for (const auto& row : rows) {
    const auto number = parse_number<double>(row[column]);
    if (!number || *number < 0 || *number != std::floor(*number)) return false;
    largest = std::max(largest, *number);
  }
  return largest > kMostPercent && largest < kMost;
}

// "Mem" and "VRAM" without a unit may be in percent; where each cell has a unit of bytes, that is memory in use, and
// where a GPU's are numbers as of MiB.
std::string_view memory_by_cells(std::string_view name, const Rows& rows, std::size_t column,
                                 std::deque<std::string>& made) {
  const std::string in_mebibytes = fmt::format("{} [MiB]", trim(name));
  auto rule = csv_column(name) ? std::nullopt : csv_column(in_mebibytes);
  const bool of_one_gpu = rule && rule->gpu;  // "gpu_0_mem"
  if (of_one_gpu) rule->gpu.reset();
  if (!is_memory_used(rule)) return name;
  if (of_one_gpu) return are_mebibytes(rows, column) ? made.emplace_back(in_mebibytes) : name;
  const bool in_bytes =
      std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return is_in_bytes(row[column]); });
  const std::string small = lower(name);
  const bool of_gpu = small.find("gpu") != std::string::npos || small.find("vram") != std::string::npos;
  return in_bytes || (of_gpu && are_mebibytes(rows, column)) ? "gpu_memory_used_mib" : name;
}

// Memory in use that no unit is named of, beside a GPU that works: 60 MiB are the least that a program there takes, so
// that 37.4 is a share of it, or are GB.
void name_small_memory(std::vector<std::string_view>& names, const Rows& rows) {
  constexpr double kMostPercent = 100, kWorks = 10;
  const auto is_use = [](std::string_view name) { return is_reading_of(name, Metric::kGpuUtil); };
  const auto use = static_cast<std::size_t>(std::find_if(names.begin(), names.end(), is_use) - names.begin());
  if (use == names.size()) return;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto rule = csv_column(names[i]);
    if (!is_memory_used(rule) || !rule->any_size) continue;
    bool small = true, parts = false, works = false;
    for (const auto& row : rows) {
      const auto number = parse_number<double>(row[i]), busy = parse_number<double>(row[use]);
      small = small && number && *number > 0 && *number <= kMostPercent;
      parts = parts || (number && *number != std::floor(*number));
      works = works || (busy && *busy >= kWorks);
    }
    if (small && parts && works) names[i] = kMemoryOfNoUnit;
  }
}

}  // namespace

bool is_rule(std::string_view line) {
  return line.find("--") != std::string_view::npos && line.find('|') != std::string_view::npos &&
         line.find_first_not_of("|-: ") == std::string_view::npos;
}

bool is_row(const std::vector<std::string_view>& cells) {
  return std::any_of(cells.begin(), cells.end(),
                     [](std::string_view cell) { return !cell.empty() && is_digit(cell[0]) && is_time(cell); });
}

namespace {

// "gpu0", "GPU 1", "cuda:2": the number of a GPU, with nothing before it but the name of a host: "node-1 GPU 0". Or
// both by labels: {Hostname="a1", gpu="0"}.
std::optional<LabelledGpu> only_a_gpu(std::string_view name) {
  if (auto labelled = gpu_by_labels(name)) return labelled;
  name = trim(name);
  const std::string small = lower(name);
  const auto digits = small.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  std::string_view word = std::string_view(small).substr(0, digits);
  constexpr std::string_view kBetween = " _:#-/.";
  while (!word.empty() && kBetween.find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  const auto number = parse_number<int>(std::string_view(small).substr(digits));
  for (const std::string_view gpu : {"gpu", "cuda", "card"}) {
    if (!word.ends_with(gpu) || !number || *number >= kMostNumbered) continue;
    std::string_view host = name.substr(0, word.size() - gpu.size());
    const bool apart = host.empty() || kBetween.find(host.back()) != std::string_view::npos;
    const bool called = host.empty() || (std::any_of(host.begin(), host.end(), is_digit) && !is_of_no_gpu(host));
    if (!apart || !called || !may_be_utilization(fmt::format("{} [%]", name))) continue;
    while (!host.empty() && kBetween.find(host.back()) != std::string_view::npos) host.remove_suffix(1);
    return LabelledGpu{std::string(host), *number};
  }
  return std::nullopt;
}

// What a column of one GPU may be by the units in its cells, and what it is called then.
struct UnitOfCells {
  bool (*is)(std::string_view cell);
  std::string_view called;
};
constexpr std::array kUnitsOfCells{
    UnitOfCells{[](std::string_view cell) { return cell.ends_with('%') && is_digit(cell[0]); }, "util_percent"},
    UnitOfCells{[](std::string_view cell) { return cell.ends_with('W') && !cell.ends_with("kW") && is_digit(cell[0]); },
                "power_w"},
    UnitOfCells{is_in_bytes, "memory_used_mib"}};

// What the units in all cells of a column say that it is: "power_w"; "" where they do not.
std::string_view called_by_units(const Rows& rows, std::size_t column) {
  for (const UnitOfCells& unit : kUnitsOfCells) {
    const auto is = [&](const auto& row) { return !row[column].empty() && unit.is(row[column]); };
    const auto may_be = [&](const auto& row) { return row[column].empty() || is(row); };
    if (std::any_of(rows.begin(), rows.end(), is) && std::all_of(rows.begin(), rows.end(), may_be)) return unit.called;
  }
  return "";
}

// A column of each GPU that is called by nothing but its number, and its host, is what the units in all its cells say.
void name_by_cells(std::vector<std::string_view>& names, std::string_view rows, char separator,
                   std::deque<std::string>& made) {
  std::vector<std::optional<LabelledGpu>> gpus;
  std::set<std::string> hosts;
  for (const std::string_view name : names)
    if (gpus.push_back(only_a_gpu(name)); gpus.back()) hosts.insert(gpus.back()->host);
  if (hosts.empty()) return;
  const Rows seen = rows_of(rows, names, separator);
  if (seen.size() < 2) return;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view what = gpus[i] ? called_by_units(seen, i) : "";
    if (what.empty()) continue;
    const bool of_several = hosts.size() > 1 && !gpus[i]->host.empty();
    const std::string host = of_several ? gpus[i]->host + "_" : "";
    std::string called = fmt::format("{}gpu{}_{}", host, gpus[i]->gpu, what);
    if (host.empty() || of_host(called)) names[i] = made.emplace_back(std::move(called));
  }
}

// How busy a GPU is, in percent: many numbers to and fro, above those of GPUs, which are few, or come one after the
// other.
bool are_shares(const Rows& rows, std::size_t column) {
  constexpr std::size_t kFewestRows = 12, kFewestNumbers = 6;
  constexpr double kAll = 100, kMostGpus = 16;
  std::set<double> seen;
  std::size_t counted = 0;
  double last = -1;
  for (const auto& row : rows) {
    const auto number = parse_number<double>(row[column]);
    if (!number || *number < 0 || *number > kAll) return false;
    seen.insert(*number);
    if (*number == last + 1 || *number == 0) ++counted;
    last = *number;
  }
  const bool many = rows.size() >= kFewestRows && seen.size() >= kFewestNumbers;
  return many && *seen.rbegin() > kMostGpus && 2 * counted < rows.size();
}

// jtop of a Jetson calls its GPU's use "GPU", beside "Temp GPU".
void name_share(std::vector<std::string_view>& names, const Rows& rows) {
  const auto is_use = [](std::string_view name) {
    const auto rule = csv_column(name);
    return rule && rule->role == ColumnRole::kMetric &&
           (rule->metric == Metric::kGpuUtil || rule->metric == Metric::kGraphicsActive);
  };
  if (std::any_of(names.begin(), names.end(), is_use)) return;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (lower(trim(names[i])) == "gpu" && are_shares(rows, i)) names[i] = "gpu_load_%";
}

// No GPU draws so many watts, and hardly ever says so: without a unit they are milliwatts, as jtop and PCP have them.
void name_milliwatts(std::vector<std::string_view>& names, const Rows& rows, std::deque<std::string>& made) {
  constexpr double kMostWatts = 5'000;
  constexpr std::size_t kSome = 10;  // of so many rows one
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto worded = column_by_words(names[i]);
    if (!worded || worded->name != "power.draw" || !worded->unit.empty()) continue;
    const auto above = static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
      return parse_number<double>(row[i]).value_or(0) > kMostWatts;
    }));
    const std::string gpu = worded->gpu ? fmt::format("{}", *worded->gpu) : "";
    if (kSome * above >= rows.size() && above > 2) names[i] = made.emplace_back(fmt::format("gpu{}_power_mw", gpu));
  }
}

// MangoHud's log of frames counts nanoseconds, and memory in GiB.
void name_units_of_mangohud(std::vector<std::string_view>& names) {
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (!has("fps") || !has("frametime") || !has("elapsed")) return;
  std::replace(names.begin(), names.end(), std::string_view("elapsed"), std::string_view("elapsed_ns"));
  std::replace(names.begin(), names.end(), std::string_view("gpu_vram_used"), std::string_view("gpu_vram_used_gib"));
}

// A column "epoch" whose numbers are those of epochs, and no times.
void name_epochs(std::vector<std::string_view>& names, std::string_view rows, char separator) {
  const auto is_epoch = [](std::string_view name) { return lower(trim(name)) == "epoch"; };
  if (std::none_of(names.begin(), names.end(), is_epoch)) return;
  const Rows seen = rows_of(rows, names, separator);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (is_epoch(names[i]) && !are_times(seen, i)) names[i] = kEpochNumber;
}

// What the names of the columns say.
struct ToldByNames {
  bool metric = false, time = false, gpu = false, cpu = false;
};
ToldByNames told_by_names(const std::vector<std::string_view>& names) {
  ToldByNames told;
  for (const std::string_view name : names) {
    told.cpu = told.cpu || lower(name).find("cpu") != std::string::npos;
    const auto rule = csv_column(name);
    if (!rule) continue;
    told.metric = told.metric || rule->role == ColumnRole::kMetric;
    told.time = told.time || is_time_role(rule->role);
    told.gpu = told.gpu || rule->gpu || is_gpu_role(rule->role);
  }
  return told;
}

// Gives a name to the first column that is not known and that `is` holds of. False where there is none.
template <class Is>
bool name_first(std::vector<std::string_view>& names, std::string_view called, const Is& is) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool unnamed = names[i].empty() && i > 0;  // the first is the rows' name in a table of pandas
    if (unnamed || names[i] == "-" || csv_column(names[i]) || !is(i)) continue;  // "-": --columns leaves it out
    names[i] = called;
    return true;
  }
  return false;
}

}  // namespace

std::vector<std::string_view> told_by_rows(std::vector<std::string_view> names, std::string_view rows, char separator,
                                           std::deque<std::string>& made) {
  name_units_of_mangohud(names);
  name_by_cells(names, rows, separator, made);
  name_epochs(names, rows, separator);
  const ToldByNames told = told_by_names(names);
  if (!told.metric || is_row(names)) return names;
  for (std::string_view& name : names)
    if (!told.cpu && !csv_column(name)) name = use_of_gpu(name);
  const Rows seen = rows_of(rows, names, separator);
  if (seen.size() < 2) return names;
  name_share(names, seen);
  name_milliwatts(names, seen, made);
  name_small_memory(names, seen);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (are_dates(names, seen, i)) names[i] = "date";
  const auto uses_memory = [](std::string_view name) { return is_reading_of(name, Metric::kMemoryUsed); };
  if (!told.cpu && std::none_of(names.begin(), names.end(), uses_memory))
    for (std::size_t i = 0; i < names.size(); ++i) names[i] = memory_by_cells(names[i], seen, i, made);
  const bool named_gpus = told.gpu && !name_models(names, seen);
  if (!told.time) name_first(names, "timestamp", [&](std::size_t i) { return are_times(seen, i); });
  const auto are_indices = [&](std::size_t i) {
    return may_name_gpus(names[i]) && (are_gpus(seen, i) || are_gpus_of_hosts(seen, i));
  };
  if (!named_gpus && !name_first(names, "index", are_indices)) tell_apart(names, seen);
  tell_hosts(names, seen);
  return names;
}

std::string numbered_columns_hint(const std::vector<std::string_view>& names) {
  std::vector<std::string> told;
  std::set<std::string> hosts;
  for (const std::string_view name : names)
    if (const auto gpu = only_a_gpu(name)) hosts.insert(gpu->host);
  for (const std::string_view name : names) {
    const auto gpu = only_a_gpu(name);
    if (!gpu) continue;
    if (name.find_first_of("=,") != std::string_view::npos) return "";  // --columns parts names there
    told.push_back(fmt::format("{}={}gpu{}_util", trim(name), hosts.size() > 1 ? gpu->host + "_" : "", gpu->gpu));
  }
  return join(told, ",");
}

std::string_view may_tell_apart(const std::vector<std::string_view>& names, std::string_view rows, char separator) {
  const Rows seen = rows_of(rows, names, separator);
  const auto at = places_of(names);
  if (!at || at->gpu || seen.size() < 2 || !share_times(seen, *at)) return "";
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty() && !csv_column(names[i]) && !names_processes(names[i]) && are_gpus(seen, i) &&
        tells_hosts(seen, *at, i))
      return names[i];
  return "";
}

std::size_t rows_below_a_time(std::string_view rows, std::size_t cells, char separator) {
  constexpr std::size_t kFewest = 10, kMostGpus = 16;  // times; rows
  std::vector<std::size_t> below{0};
  std::vector<std::string_view> row;
  LineCursor lines(rows);
  while (below.size() < 1000 && lines.next() && lines.complete()) {
    if (time_of_line(lines.line())) {
      below.push_back(0);
      continue;
    }
    split_cells(lines.line(), separator, row);
    const bool reading = row.size() == cells && std::any_of(row.begin(), row.end(), [](std::string_view cell) {
                           return !cell.empty() && is_digit(cell[0]);
                         });
    if (reading) ++below.back();
  }
  below.pop_back();                                                      // which may go on
  if (!below.empty() && below.front() == 0) below.erase(below.begin());  // the first line is a time
  if (below.size() < kFewest || below.front() < 2 || below.front() > kMostGpus) return 1;
  const bool alike = std::all_of(below.begin(), below.end(), [&](std::size_t n) { return n == below.front(); });
  return alike ? below.front() : 1;
}

}  // namespace headroom
