// SPDX-License-Identifier: Apache-2.0
#include "import/gpu_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "import/column_words.h"
#include "import/log_column.h"
#include "import/log_date.h"

namespace headroom {

namespace {

// The number of the GPU of a column: its own, or of a GPU that labels name the next that no other has.
int index_of(std::string_view name, int number, std::map<std::string, int, std::less<>>& labelled) {
  const auto series = series_by_labels(name);
  if (!series) return number;
  const auto taken = [&](int index) {
    return std::any_of(labelled.begin(), labelled.end(), [&](const auto& known) { return known.second == index; });
  };
  const auto known = labelled.find(series->of);
  if (known != labelled.end()) return known->second;
  while (taken(number)) ++number;
  return labelled.emplace(series->of, number).first->second;
}

// "gpu_util" beside "gpu_util.1", as pandas writes two columns of one name.
bool is_first_of_several(std::string_view name, const std::set<std::string_view>& names) {
  const auto is_there = [&](const char* ending) { return names.count(fmt::format("{}{}", name, ending)) > 0; };
  if (!is_there(".1") || is_there(".0")) return false;
  const auto second = csv_column(fmt::format("{}.1", name));
  return second && second->gpu == 1;
}

// By column the hosts that stand in front of such columns, which are taken off; "" where none does.
std::vector<std::string_view> take_hosts(std::vector<std::string_view>& names) {
  std::vector<std::string_view> hosts(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const auto one = of_host(names[i])) hosts[i] = one->host, names[i] = one->name;
  return hosts;
}

// The run that a column of Weights & Biases is of: "lively-sun-4 - system/gpu.0.gpu"; "" of other columns.
std::string_view run_of(std::string_view name) {
  const auto end = name.rfind(" - system");
  return end == std::string_view::npos || !csv_column(name) ? std::string_view() : trim(name.substr(0, end));
}

// A chart of several runs has columns of each: the first is read.
struct Runs {
  explicit Runs(const std::vector<std::string_view>& names) {
    for (const std::string_view name : names) {
      const auto run = run_of(name);
      if (run.empty()) continue;
      if (first.empty()) first = run;
      if (run != first) others.insert(run);
      if (run == first) skipped += fmt::format("{}{}=-", skipped.empty() ? "" : ",", name);
    }
  }
  [[nodiscard]] bool is_other(std::string_view name) const { return !others.empty() && others.contains(run_of(name)); }
  [[nodiscard]] std::string words() const {
    if (others.empty()) return "";
    return fmt::format("{} is read, and {} left out (--columns '{}' reads {} instead)", first,
                       fmt::format("{} {}", fmt::join(others, ", "), others.size() == 1 ? "is" : "are"), skipped,
                       others.size() == 1 ? "it" : "the next");
  }
  std::string_view first;
  std::set<std::string_view> others;
  std::string skipped;
};

// What all GPUs share, their index, and each thing that one of them has a column for. A second column of the same
// thing of a GPU comes last, where it is left out by its name.
ColumnsPerGpu split_by_number(std::vector<std::string_view> names) {
  using Place = std::pair<std::string_view, int>;                         // host and index
  std::map<Place, std::map<std::string, std::size_t, std::less<>>> gpus;  // the column for each thing
  const std::vector<std::string_view> hosts = take_hosts(names);
  std::map<std::string, std::string_view, std::less<>> found;  // thing: a header of it
  std::map<std::string, int, std::less<>> labelled;            // GPUs that labels name
  std::vector<std::string_view> shared, again, of_which;
  const std::set<std::string_view> all_names(names.begin(), names.end());
  std::vector<std::size_t> shared_cells;
  const Runs runs(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (runs.is_other(names[i])) {
      of_which.push_back(names[i]);
      continue;
    }
    auto rule = csv_column(names[i]);
    const bool metric = rule && rule->role == ColumnRole::kMetric;
    if (metric && !rule->gpu && is_first_of_several(names[i], all_names)) rule->gpu = 0;
    if (rule && rule->gpu) {
      const std::string thing = fmt::format("{} {} {} {} {}", static_cast<int>(rule->role),
                                            static_cast<int>(rule->metric), static_cast<int>(rule->fact),
                                            rule->reason_bit, rule->role == ColumnRole::kNotKept ? names[i] : "");
      const int gpu = index_of(names[i], *rule->gpu, labelled);
      if (gpus[{hosts[i], gpu}].emplace(thing, i).second)
        found.emplace(thing, names[i]);
      else
        again.push_back(names[i]);
    } else if (!rule || rule->role != ColumnRole::kIndex) {
      if (metric) of_which.push_back(names[i]);
      shared.push_back(metric ? std::string_view() : names[i]);
      shared_cells.push_back(i);
    }
  }
  if (gpus.empty()) return {std::move(names), {}, {}, {}};
  ColumnsPerGpu split{std::move(shared), {}, {of_which.begin(), of_which.end()}, runs.words()};
  auto& all = split.names;
  all.emplace_back("index");
  const bool named = !gpus.rbegin()->first.first.empty();
  if (named) all.emplace_back("hostname");
  for (const auto& [thing, header] : found) all.push_back(header);
  all.insert(all.end(), again.begin(), again.end());
  all.insert(all.end(), of_which.begin(), of_which.end());
  for (const auto& [place, columns] : gpus) {
    GpuOfRow gpu{fmt::format("{}", place.second), std::string(place.first), shared_cells};
    gpu.cells.push_back(GpuOfRow::kIndexCell);
    if (named) gpu.cells.push_back(GpuOfRow::kHostCell);
    for (const auto& [thing, header] : found) {
      const auto column = columns.find(thing);
      gpu.cells.push_back(column == columns.end() ? GpuOfRow::kNone : column->second);
    }
    gpu.cells.resize(all.size(), GpuOfRow::kNone);
    split.gpus.push_back(std::move(gpu));
  }
  return split;
}

// All columns of a GPU, and the same again for the next, as amd-smi monitor writes them. Nothing where it is not so.
std::optional<ColumnsPerGpu> split_by_repeats(const std::vector<std::string_view>& names) {
  const auto names_gpu = [](std::string_view name) {
    const auto rule = csv_column(name);
    return rule && (rule->role == ColumnRole::kIndex || rule->role == ColumnRole::kUuid);
  };
  const auto is_metric = [](std::string_view name) {
    const auto rule = csv_column(name);
    return rule && rule->role == ColumnRole::kMetric && !rule->gpu;
  };
  const auto end = names.end();
  auto begin = names.begin(), second = end;
  std::map<std::string_view, std::size_t> again;
  for (const std::string_view name : names) ++again[name];
  while (begin != end && (begin->empty() || again[*begin] < 2)) ++begin;
  if (begin != end) second = std::find(begin + 1, end, *begin);
  const auto width = second - begin;
  if (begin == end || width == 1 || std::any_of(names.begin(), begin, names_gpu)) return std::nullopt;
  auto block = begin;
  while (end - block >= width && std::equal(begin, second, block)) block += width;
  const bool whole = std::all_of(block, end, [](std::string_view name) { return name.empty(); });
  if (!whole || std::none_of(begin, second, is_metric)) return std::nullopt;
  ColumnsPerGpu split{{names.begin(), second}, {}, {}, {}};
  const bool numbered = std::any_of(begin, second, names_gpu);
  const auto shared = static_cast<std::size_t>(begin - names.begin());
  for (std::size_t gpu = 0; gpu < static_cast<std::size_t>((block - begin) / width); ++gpu) {
    GpuOfRow row{fmt::format("{}", gpu), "", {}};
    for (std::size_t i = 0; i < split.names.size(); ++i)
      row.cells.push_back(i < shared ? i : i + gpu * static_cast<std::size_t>(width));
    if (!numbered) row.cells.push_back(GpuOfRow::kIndexCell);
    split.gpus.push_back(std::move(row));
  }
  if (!numbered) split.names.emplace_back("index");
  return split;
}

}  // namespace

std::optional<OfHost> of_host(std::string_view name) {
  if (name.size() > kLongestHeader || csv_column(name)) return std::nullopt;
  const std::string small = lower(name);
  for (auto gpu = small.find("gpu", 2); gpu != std::string::npos; gpu = small.find("gpu", gpu + 1)) {
    if (std::string_view("_/:.- ").find(small[gpu - 1]) == std::string_view::npos) continue;
    const std::string_view host = name.substr(0, gpu - 1);
    const auto letters = std::count_if(small.begin(), small.begin() + static_cast<std::ptrdiff_t>(host.size()),
                                       [](char c) { return c >= 'a' && c <= 'z'; });
    const bool quantile = small[0] == 'p' && letters == 1;  // "p95"
    constexpr std::array<std::string_view, 9> kNoHosts{"step",  "epoch", "run",   "exp", "trial",
                                                       "phase", "stage", "batch", "iter"};
    const bool other =
        std::any_of(kNoHosts.begin(), kNoHosts.end(), [&](auto word) { return small.starts_with(word); });
    if (letters == 0 || quantile || other || std::none_of(host.begin(), host.end(), is_digit)) continue;
    if (const auto rule = csv_column(name.substr(gpu)); rule && rule->gpu) return OfHost{host, name.substr(gpu)};
  }
  return std::nullopt;
}

ColumnsPerGpu columns_per_gpu(std::vector<std::string_view> names) {
  if (auto split = split_by_repeats(names)) return std::move(*split);
  return split_by_number(std::move(names));
}

}  // namespace headroom
