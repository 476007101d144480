// SPDX-License-Identifier: Apache-2.0
#include "import/gpu_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "base/visible.h"
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
    return fmt::format("{} is read, and {} left out (--columns {} reads {} instead)", first,
                       fmt::format("{} {}", fmt::join(others, ", "), others.size() == 1 ? "is" : "are"),
                       typed_word(skipped), others.size() == 1 ? "it" : "the next");
  }
  std::string_view first;
  std::set<std::string_view> others;
  std::string skipped;
};

// Columns whose names say which GPU they are of, and those that all GPUs share. A second column of the same thing of a
// GPU comes last, where it is left out by its name.
class NumberedColumns {
 public:
  explicit NumberedColumns(std::vector<std::string_view> names)
      : names_(std::move(names)), hosts_(take_hosts(names_)), runs_(names_), all_names_(names_.begin(), names_.end()) {
    for (std::size_t i = 0; i < names_.size(); ++i) add(i);
  }

  // What all GPUs share, their index, and each thing that one of them has a column for.
  [[nodiscard]] ColumnsPerGpu split() && {
    if (gpus_.empty()) return {std::move(names_), {}, {}, {}};
    ColumnsPerGpu split{std::move(shared_), {}, {of_which_.begin(), of_which_.end()}, runs_.words()};
    auto& all = split.names;
    all.emplace_back("index");
    const bool named = !gpus_.rbegin()->first.first.empty();
    if (named) all.emplace_back("hostname");
    for (const auto& [thing, header] : found_) all.push_back(header);
    all.insert(all.end(), again_.begin(), again_.end());
    all.insert(all.end(), of_which_.begin(), of_which_.end());
    for (const auto& [place, columns] : gpus_) {
      GpuOfRow gpu{fmt::format("{}", place.second), std::string(place.first), shared_cells_};
      gpu.cells.push_back(GpuOfRow::kIndexCell);
      if (named) gpu.cells.push_back(GpuOfRow::kHostCell);
      for (const auto& [thing, header] : found_) {
        const auto column = columns.find(thing);
        gpu.cells.push_back(column == columns.end() ? GpuOfRow::kNone : column->second);
      }
      gpu.cells.resize(all.size(), GpuOfRow::kNone);
      split.gpus.push_back(std::move(gpu));
    }
    return split;
  }

 private:
  using Place = std::pair<std::string_view, int>;  // host and index

  void add(std::size_t i) {
    const std::string_view name = names_[i];
    if (runs_.is_other(name)) {
      of_which_.push_back(name);
      return;
    }
    auto rule = csv_column(name);
    const bool metric = rule && rule->role == ColumnRole::kMetric;
    if (metric && !rule->gpu && is_first_of_several(name, all_names_)) rule->gpu = 0;
    if (rule && rule->gpu) {
      add_numbered(i, *rule);
    } else if (!rule || rule->role != ColumnRole::kIndex) {
      if (metric) of_which_.push_back(name);
      shared_.push_back(metric ? std::string_view() : name);
      shared_cells_.push_back(i);
    }
  }

  void add_numbered(std::size_t i, const ColumnRule& rule) {
    const std::string_view name = names_[i];
    const std::string thing =
        fmt::format("{} {} {} {} {}", static_cast<int>(rule.role), static_cast<int>(rule.metric),
                    static_cast<int>(rule.fact), rule.reason_bit, rule.role == ColumnRole::kNotKept ? name : "");
    if (gpus_[{hosts_[i], index_of(name, *rule.gpu, labelled_)}].emplace(thing, i).second)
      found_.emplace(thing, name);
    else
      again_.push_back(name);
  }

  std::vector<std::string_view> names_, hosts_;
  Runs runs_;
  std::set<std::string_view> all_names_;
  std::map<Place, std::map<std::string, std::size_t, std::less<>>> gpus_;  // the column for each thing
  std::map<std::string, std::string_view, std::less<>> found_;             // thing: a header of it
  std::map<std::string, int, std::less<>> labelled_;                       // GPUs that labels name
  std::vector<std::string_view> shared_, again_, of_which_;
  std::vector<std::size_t> shared_cells_;
};

bool names_gpu(std::string_view name) {
  const auto rule = csv_column(name);
  return rule && (rule->role == ColumnRole::kIndex || rule->role == ColumnRole::kUuid);
}

bool is_metric_of_any(std::string_view name) {
  const auto rule = csv_column(name);
  return rule && rule->role == ColumnRole::kMetric && !rule->gpu;
}

// Where the columns of one GPU begin that stand again for each other, how many they are, and for how many GPUs.
struct Repeats {
  std::size_t begin = 0, width = 0, gpus = 0;
};

// Nothing but blank names stands behind the last.
std::optional<Repeats> repeats(const std::vector<std::string_view>& names) {
  std::map<std::string_view, std::size_t> count;
  for (const std::string_view name : names) ++count[name];
  const auto end = names.end();
  const auto begin = std::find_if(names.begin(), end, [&](auto name) { return !name.empty() && count[name] > 1; });
  if (begin == end) return std::nullopt;
  const auto second = std::find(begin + 1, end, *begin);
  const auto width = second - begin;
  if (width == 1 || std::any_of(names.begin(), begin, names_gpu)) return std::nullopt;
  auto block = begin;
  while (end - block >= width && std::equal(begin, second, block)) block += width;
  const bool whole = std::all_of(block, end, [](std::string_view name) { return name.empty(); });
  if (!whole || std::none_of(begin, second, is_metric_of_any)) return std::nullopt;
  return Repeats{static_cast<std::size_t>(begin - names.begin()), static_cast<std::size_t>(width),
                 static_cast<std::size_t>((block - begin) / width)};
}

// All columns of a GPU, and the same again for the next, as amd-smi monitor writes them. Nothing where it is not so.
std::optional<ColumnsPerGpu> split_by_repeats(const std::vector<std::string_view>& names) {
  const auto found = repeats(names);
  if (!found) return std::nullopt;
  const auto begin = names.begin() + static_cast<std::ptrdiff_t>(found->begin);
  const auto second = begin + static_cast<std::ptrdiff_t>(found->width);
  ColumnsPerGpu split{{names.begin(), second}, {}, {}, {}};
  const bool numbered = std::any_of(begin, second, names_gpu);
  for (std::size_t gpu = 0; gpu < found->gpus; ++gpu) {
    GpuOfRow row{fmt::format("{}", gpu), "", {}};
    for (std::size_t i = 0; i < split.names.size(); ++i)
      row.cells.push_back(i < found->begin ? i : i + gpu * found->width);
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
  return NumberedColumns(std::move(names)).split();
}

}  // namespace headroom
