// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

// The processes of a GPU in one round, together: each has a share of the time.
struct PmonRound {
  std::int32_t number = 0;
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
  if (const auto memory = round.sums.find("fb"); memory != round.sums.end())
    round.row["memory.used [MiB]"] = fmt::format("{:g}", memory->second);
  table.add(round.row);
  round = {.number = round.number + 1};
}

// A process's shares of one GPU's SMs, in percent.
struct OnGpu {
  bool computes = false;
  std::string since, until;                            // its first and its last time, as the log writes them
  std::vector<std::pair<std::int32_t, float>> shares;  // by round of this GPU
};

// What a log of processes says of one of them.
struct PmonProcess {
  std::string command;
  std::map<std::string, OnGpu, std::less<>> gpus;
};

using PmonProcesses = std::map<std::string, PmonProcess, std::less<>>;

float percent_of(std::string_view cell) {
  const double value = parse_number<double>(cell).value_or(0);
  return std::isfinite(value) ? static_cast<float>(std::clamp(value, 0.0, 100.0)) : 0;
}

constexpr std::size_t kFewest = 10;  // readings that tell a mean

// Mean of the shares of rounds from `begin` to before `end`; nothing of a few.
std::optional<double> mean_share(const OnGpu& on, std::int32_t begin, std::int32_t end) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& [round, share] : on.shares)
    if (round >= begin && round < end) sum += static_cast<double>(share), ++count;
  return count >= kFewest ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

// "4101 python 25 %, 4177 python 25 %": the busiest first, where there are several; "" of one. Of several GPUs with
// each one's own behind it.
std::string processes_words(const PmonProcesses& processes, bool several_gpus) {
  constexpr std::size_t kNamed = 6;
  std::vector<std::pair<double, std::string>> means;
  for (const auto& [pid, process] : processes) {
    double sum = 0;
    std::size_t count = 0;
    std::vector<std::string_view> names;
    for (const auto& [gpu, on] : process.gpus) {
      names.push_back(gpu);
      count += on.shares.size();
      for (const auto& [round, share] : on.shares) sum += static_cast<double>(share);
    }
    const double mean = sum / static_cast<double>(std::max<std::size_t>(1, count));
    const std::string gpus = several_gpus ? fmt::format(" (GPU {})", fmt::join(names, ", ")) : "";
    means.emplace_back(-mean, fmt::format("{} {} {:.0f} %{}", pid, process.command, mean, gpus));
  }
  std::sort(means.begin(), means.end());
  std::string words;
  for (std::size_t i = 0; i < std::min(kNamed, means.size()); ++i) words += (i > 0 ? ", " : "") + means[i].second;
  if (means.size() > kNamed) words += fmt::format(", and {} others", means.size() - kNamed);
  return means.size() > 1 ? words : "";
}

// A process on a GPU, for what is told of it.
struct Use {
  std::string_view pid, command;
  const OnGpu* on = nullptr;
};

// The processes of each GPU that were seen most often: of thousands of short ones nothing is told.
std::map<std::string_view, std::vector<Use>> longest_uses(const PmonProcesses& processes) {
  constexpr std::size_t kMost = 32;
  std::map<std::string_view, std::vector<Use>> by_gpu;
  for (const auto& [pid, process] : processes)
    for (const auto& [gpu, on] : process.gpus)
      if (on.shares.size() >= kFewest) by_gpu[gpu].push_back({.pid = pid, .command = process.command, .on = &on});
  for (auto& [gpu, uses] : by_gpu) {
    std::stable_sort(uses.begin(), uses.end(),
                     [](const Use& x, const Use& y) { return x.on->shares.size() > y.on->shares.size(); });
    uses.resize(std::min(uses.size(), kMost));
  }
  return by_gpu;
}

// Of a GPU on which programs computed: those that its last reading lists, and where that lists none the one that was
// seen last.
void tell_the_last(const std::string& gpu, const PmonRound& round, const PmonProcesses& processes, Attrs& extra) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> listed;
  const OnGpu* last = nullptr;
  std::string who;
  for (const auto& [pid, process] : processes) {
    const auto found = process.gpus.find(gpu);
    if (found == process.gpus.end() || !found->second.computes) continue;
    const OnGpu& on = found->second;
    const std::string name = fmt::format("{} {}", pid, process.command);
    if (on.shares.back().first + 1 >= round.number) listed.push_back(name);
    if (!last || on.shares.back().first > last->shares.back().first) last = &on, who = name;
  }
  if (const std::size_t all = listed.size(); all > 0) {
    listed.resize(std::min(kNamed, all));
    extra["listed." + gpu] = join(listed, ", ") + (all > kNamed ? fmt::format(" and {} others", all - kNamed) : "");
  } else if (last) {
    extra["gone." + gpu] = last->until.empty() ? who : fmt::format("{}, listed last at {}", who, last->until);
  }
}

// A process that came to a GPU on which another had clearly more of the SMs before than while both were there.
std::string newcomer_words(const PmonProcesses& processes) {
  constexpr double kMuch = 20, kLess = 0.8;  // percent of the SMs; of what it had before
  for (const auto& [gpu, uses] : longest_uses(processes))
    for (const Use& newcomer : uses) {
      if (!newcomer.on->computes) continue;
      const std::int32_t begin = newcomer.on->shares.front().first, end = newcomer.on->shares.back().first + 1;
      for (const Use& other : uses) {
        const auto before = mean_share(*other.on, 0, begin), meanwhile = mean_share(*other.on, begin, end);
        if (!before || !meanwhile || *before < kMuch || *meanwhile > kLess * *before) continue;
        const std::string when =
            newcomer.on->since.empty() ? "" : fmt::format(" from {} to {}", newcomer.on->since, newcomer.on->until);
        return fmt::format(
            "{} {} was on GPU {}{}, too: {} {} had {:.0f} % of its SMs in that time, and {:.0f} % before", newcomer.pid,
            newcomer.command, gpu, when, other.pid, other.command, *meanwhile, *before);
      }
    }
  return "";
}

// Their mean shares in the readings in which all of them were there; nothing of a few.
struct Together {
  std::size_t readings = 0;
  std::vector<double> means;
};

std::optional<Together> together(const std::vector<const Use*>& group) {
  std::map<std::int32_t, std::vector<double>> rounds;  // of those so far
  for (const auto& [round, share] : group.front()->on->shares) rounds[round] = {static_cast<double>(share)};
  for (std::size_t i = 1; i < group.size(); ++i)
    for (const auto& [round, share] : group[i]->on->shares)
      if (const auto same = rounds.find(round); same != rounds.end() && same->second.size() == i)
        same->second.push_back(static_cast<double>(share));
  Together all{.readings = 0, .means = std::vector<double>(group.size())};
  for (const auto& [round, shares] : rounds) {
    if (shares.size() < group.size()) continue;
    ++all.readings;
    for (std::size_t i = 0; i < shares.size(); ++i) all.means[i] += shares[i];
  }
  if (all.readings < kFewest) return std::nullopt;
  for (double& mean : all.means) mean /= static_cast<double>(all.readings);
  return all;
}

// "4101 python", "4101 python and 4177 vllm", "4101 python, 4177 vllm and 4200 python"
std::string listed_words(const std::vector<std::string>& words) {
  std::string text = words.front();
  for (std::size_t i = 1; i < words.size(); ++i) text += (i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

// Of two processes that were on a GPU in the same readings, where both have much of the SMs, and what else is there
// with more than a desktop has; "" where they had not nearly all of the SMs together.
std::string sharing_words(std::string_view gpu, const std::vector<Use>& uses, std::size_t one, std::size_t other) {
  constexpr double kAll = 85, kMuch = 20, kSome = 5;  // percent of the SMs
  std::vector<const Use*> group{&uses[one], &uses[other]};
  auto all = together(group);
  if (!all || all->means[0] < kMuch || all->means[1] < kMuch) return "";
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (i == one || i == other) continue;
    group.push_back(&uses[i]);
    if (auto more = together(group); more && 2 * more->readings > all->readings && more->means.back() >= kSome)
      all = std::move(more);
    else
      group.pop_back();
  }
  double sum = 0;
  std::vector<std::string> names, shares;
  for (std::size_t i = 0; i < group.size(); ++i) {
    sum += all->means[i];
    names.push_back(fmt::format("{} {}", group[i]->pid, group[i]->command));
    shares.push_back(fmt::format("{:.0f} %", all->means[i]));
  }
  if (sum < kAll) return "";
  return fmt::format(
      "{} were on GPU {} in the same {} readings and had {:.0f} % of its SMs together ({}): they share it; how much "
      "faster each would be alone the log does not show",
      listed_words(names), gpu, all->readings, sum, listed_words(shares));
}

std::string sharing_words(const PmonProcesses& processes) {
  for (const auto& [gpu, uses] : longest_uses(processes))
    for (std::size_t i = 0; i < uses.size(); ++i)
      for (std::size_t j = i + 1; j < uses.size(); ++j)
        if (std::string words = sharing_words(gpu, uses, i, j); !words.empty()) return words;
  return "";
}

// The cells of a row by the names of the header.
class PmonCells {
 public:
  PmonCells(const std::vector<std::string>& names, std::vector<std::string_view> words)
      : names_(names), words_(std::move(words)) {}
  std::string_view operator()(std::string_view name) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    return at == names_.end() ? std::string_view() : words_[static_cast<std::size_t>(at - names_.begin())];
  }

 private:
  const std::vector<std::string>& names_;
  std::vector<std::string_view> words_;
};

void add_sums(const PmonCells& cell, PmonRound& round) {
  if (const auto memory = parse_number<double>(cell("fb")); memory && *memory >= 0) round.sums["fb"] += *memory;
  for (const auto& [name, column] : kPmonColumns) {
    const auto value = parse_number<double>(cell(name));
    // "-" where nothing was sampled: of the SMs and the memory that is a process at rest, or none.
    const bool at_rest = cell(name) == "-" && (name == "sm" || name == "mem");
    if (value || at_rest) round.sums[name] += std::max(0.0, value.value_or(0));
  }
}

void tell_processes(const PmonProcesses& processes, const NamedProcesses& named, bool several_gpus, Attrs& extra) {
  if (std::string words = processes_words(processes, several_gpus); !words.empty())
    extra["processes"] = std::move(words);
  else if (std::string one = named.words(); !one.empty())
    extra.emplace(kNamedProcesses, std::move(one));
  if (std::string words = newcomer_words(processes); !words.empty())
    extra["newcomer"] = std::move(words);
  else if (std::string both = sharing_words(processes); !both.empty())
    extra["sharing"] = std::move(both);
}

// Of the header, of which the line of units is none.
std::vector<std::string> names_in(std::string_view line) {
  const auto words = words_of(line);
  if (std::find(words.begin(), words.end(), "pid") == words.end()) return {};
  std::vector<std::string> names;
  for (const std::string_view word : words) names.push_back(lower(word));
  return names;
}

// "" where it has none of its own.
std::string time_of_row(const PmonCells& cell) {
  std::string time(cell("time"));
  if (const auto date = cell("date"); date.size() == 8)
    time = fmt::format("{}-{}-{} {}", date.substr(0, 4), date.substr(4, 2), date.substr(6), time);
  return time;
}

// What the rows of a log say of GPUs, and of the processes on them.
class PmonRows {
 public:
  // `below`: the time that stands alone above the row.
  void add(const PmonCells& cell, const std::string& below) {
    const std::string gpu(cell("gpu")), pid(cell("pid"));
    if (!parse_number<int>(gpu)) return;
    const std::string time = time_of_row(cell);
    PmonRound& round = rounds_[gpu];
    const auto before = round.row.find("timestamp");
    const bool same = time.empty() ? !round.pids.contains(pid) : before != round.row.end() && before->second == time;
    if (!same) finish_round(round, table_);
    round.row["index"] = gpu;
    if (time.empty() && !below.empty()) round.row.emplace("timestamp", below);  // of the round's first row
    if (!time.empty()) round.row["timestamp"] = time;
    round.pids.insert(pid);
    if (parse_number<std::int64_t>(pid)) add_process(cell, round.number);
    add_sums(cell, round);
  }
  [[nodiscard]] LogTable table() {
    for (auto& [gpu, round] : rounds_) {
      finish_round(round, table_);
      tell_the_last(gpu, round, processes_, table_.extra);
    }
    tell_processes(processes_, named_, rounds_.size() > 1, table_.extra);
    return std::move(table_);
  }

 private:
  void add_process(const PmonCells& cell, std::int32_t round) {
    const std::string gpu(cell("gpu")), pid(cell("pid"));
    PmonProcess& process = processes_[pid];
    process.command = cell("command");
    named_.add(gpu, pid, cell("type"), process.command);
    OnGpu& on = process.gpus[gpu];
    on.computes |= cell("type").starts_with('C');
    if (on.shares.empty()) on.since = cell("time");
    on.until = cell("time");
    on.shares.emplace_back(round, percent_of(cell("sm")));
  }

  LogTable table_;
  std::map<std::string, PmonRound, std::less<>> rounds_;  // by GPU
  PmonProcesses processes_;
  NamedProcesses named_;
};

}  // namespace

// "# gpu pid type sm mem enc dec command", with "-o DT" behind date and time. A GPU without a process has one row of
// "-".
Result<LogTable> table_of_pmon(std::string_view text) {
  PmonRows rows;
  std::vector<std::string> names;
  LineCursor lines(text);
  std::string blanks;  // the line without the commas of --format csv
  std::string below;   // the time that stands alone above the rows
  while (lines.next()) {
    blanks = lines.line();
    std::replace(blanks.begin(), blanks.end(), ',', ' ');
    const std::string_view line = trim(blanks);
    if (line.starts_with('#')) {
      if (auto header = names_in(line.substr(1)); !header.empty()) names = std::move(header);
      continue;
    }
    if (auto stamp = time_of_line(line)) {
      below = std::move(*stamp);
      continue;
    }
    auto words = words_of(line);
    if (names.empty() || words.size() < names.size()) continue;  // a command may have blanks
    rows.add({names, std::move(words)}, below);
  }
  LogTable table = rows.table();
  if (table.empty()) return fail(Errc::kInvalidInput, "no row of a GPU", "nvidia-smi pmon -o DT");
  if (std::find(names.begin(), names.end(), "sm") == names.end())
    return fail(Errc::kInvalidInput, "processes and their memory, as of pmon -s m, and nothing that the GPU did",
                "nvidia-smi pmon -s um -o DT > pmon.log");
  return table;
}

}  // namespace headroom
