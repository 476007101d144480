// SPDX-License-Identifier: Apache-2.0
#include "tune/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include "base/distributions.h"

namespace headroom::tune {

namespace {

constexpr double kChance = 0.01;
constexpr std::int64_t kFewestFailed = 3;  // in a region
constexpr std::size_t kMostRegions = 3;
constexpr std::size_t kListedOfAReason = 20;

struct Count {
  std::int64_t failed = 0, of = 0;
  void add(bool is_failed) { failed += is_failed ? 1 : 0, ++of; }
};

// Which trials are looked at, and which of them failed.
struct Scope {
  std::vector<char> in, failed;
  std::vector<OutOfMemory> why;
  Count count;
};

// Values of one parameter, from `low` to `high`, or one category.
struct Region {
  std::size_t column = 0;
  double low = 0, high = 0;
  bool to_greatest = false;  // reaches the greatest value that occurs; else the least
  double next = 0;           // the nearest value outside
  Count count;
  double score = 0;
};

// How likely a region of this size holds so many failed trials or more if they lie anywhere.
double by_chance(const Count& region, const Count& all) {
  return drawn_by_chance(region.failed, region.of, all.failed, all.of);
}

// Pearson's chi-squared of the region against the rest; 0 where it fails no more than the rest.
double contrast(const Count& region, const Count& all) {
  const auto of = [](std::int64_t v) { return static_cast<double>(v); };
  const double a = of(region.failed), b = of(region.of) - a, c = of(all.failed) - a, d = of(all.of - region.of) - c;
  const double cross = a * d - b * c;
  if (cross <= 0 || region.failed < kFewestFailed) return 0;
  const double margins = (a + b) * (c + d) * (a + c) * (b + d);
  return margins > 0 ? cross * cross / margins * of(all.of) : 0;
}

struct Search {
  std::optional<Region> best;
  double tried = 0;
  void add(Region region, const Count& all) {
    ++tried;
    region.score = contrast(region.count, all);
    if (region.score > 0 && (!best || region.score > best->score)) best = region;
  }
};

using Sorted = std::vector<std::vector<std::pair<double, std::size_t>>>;  // by column: value, trial

Sorted sorted_columns(const std::vector<ParameterColumn>& columns) {
  Sorted sorted;
  for (const ParameterColumn& column : columns) {
    auto& values = sorted.emplace_back();
    for (const auto& [trial, value] : column.values) values.emplace_back(value, trial);
    std::sort(values.begin(), values.end());
  }
  return sorted;
}

// Counts of the values of a column that occur in the scope, in order.
std::vector<std::pair<double, Count>> counts(const std::vector<std::pair<double, std::size_t>>& values,
                                             const Scope& scope) {
  std::vector<std::pair<double, Count>> result;
  for (const auto& [value, trial] : values) {
    if (!scope.in[trial]) continue;
    if (result.empty() || result.back().first != value) result.emplace_back(value, Count{});
    result.back().second.add(scope.failed[trial] != 0);
  }
  return result;
}

// Trials that failed one after the other, with others before and after them: `values` in the order of the study.
void add_runs(std::size_t column, const std::vector<std::pair<double, Count>>& values, const Count& all,
              Search& found) {
  for (std::size_t i = 0, next = 0; i < values.size(); i = next + 1) {
    Count run;
    for (next = i; next < values.size() && values[next].second.failed > 0; ++next) run.add(true);
    if (run.of > 0 && i > 0 && next < values.size())
      found.add({.column = column, .low = values[i].first, .high = values[next - 1].first, .count = run}, all);
  }
}

// The region of one column that stands out most; `of_parameters`: the order of the trials and the workers are left out.
Search search(const std::vector<ParameterColumn>& columns, const Sorted& sorted, const Scope& scope,
              bool of_parameters) {
  Search found;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (of_parameters && columns[c].name.empty()) continue;
    const auto values = counts(sorted[c], scope);
    if (values.size() < 2) continue;
    if (!columns[c].number) {
      for (const auto& [value, count] : values)
        found.add({.column = c, .low = value, .high = value, .count = count}, scope.count);
      continue;
    }
    Count all, below;
    for (const auto& [value, count] : values) all.failed += count.failed, all.of += count.of;
    const double least = values.front().first, greatest = values.back().first;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      below.failed += values[i].second.failed, below.of += values[i].second.of;
      found.add({.column = c, .low = least, .high = values[i].first, .next = values[i + 1].first, .count = below},
                scope.count);
      const Count above{.failed = all.failed - below.failed, .of = all.of - below.of};
      found.add({.column = c,
                 .low = values[i + 1].first,
                 .high = greatest,
                 .to_greatest = true,
                 .next = values[i].first,
                 .count = above},
                scope.count);
    }
    if (columns[c].name.empty()) add_runs(c, values, scope.count, found);
  }
  return found;
}

// The edge of a region in as few digits as keep the nearest value outside out of it; three at least.
std::string edge_words(double edge, double outside) {
  for (int digits = 3; digits < 17; ++digits) {
    const double rounded = std::strtod(fmt::format("{:.{}g}", edge, digits).c_str(), nullptr);
    const bool parts = outside < edge ? outside < rounded && rounded <= edge : edge <= rounded && rounded < outside;
    if (parts) return fmt::format("{}", rounded);
  }
  return fmt::format("{}", edge);
}

// The order of the trials is a column, too, which has no name.
ParameterColumn order_of_trials(const Study& study) {
  ParameterColumn order;
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    order.values.emplace_back(i, static_cast<double>(study.trials[i].number));
  return order;
}

// So is the worker, where the storage knows of several; its words are their names.
ParameterColumn workers_of_trials(const Study& study) {
  constexpr std::size_t kShown = 12;  // of a long name
  ParameterColumn workers{.number = false};
  for (const std::string& name : study.workers)
    workers.words.push_back(name.size() <= kShown ? name : name.substr(0, kShown) + "…");
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    if (study.trials[i].worker) workers.values.emplace_back(i, static_cast<double>(*study.trials[i].worker));
  return workers;
}

bool is_worker(const ParameterColumn& column) { return column.name.empty() && !column.number; }

std::string words(const Region& region, const ParameterColumn& column) {
  if (is_worker(column)) return fmt::format("of worker {}", column.words[static_cast<std::size_t>(region.low)]);
  if (column.name.empty() && region.to_greatest) return fmt::format("from trial {:.0f} on", region.low);
  if (column.name.empty() && region.low > column.values.front().second)
    return fmt::format("from trial {:.0f} to trial {:.0f}", region.low, region.high);
  if (column.name.empty()) return fmt::format("up to trial {:.0f}", region.high);
  if (!column.number) return fmt::format("{} = {}", column.name, column.words[static_cast<std::size_t>(region.low)]);
  if (region.low == region.high) return fmt::format("{} = {}", column.name, region.low);
  if (region.to_greatest) return fmt::format("{} >= {}", column.name, edge_words(region.low, region.next));
  return fmt::format("{} <= {}", column.name, edge_words(region.high, region.next));
}

// The scope's trials that lie in the region.
Scope inside(const Scope& scope, const Region& region, const ParameterColumn& column) {
  Scope result{
      .in = std::vector<char>(scope.in.size()), .failed = scope.failed, .why = scope.why, .count = region.count};
  for (const auto& [trial, value] : column.values)
    if (scope.in[trial] && value >= region.low && value <= region.high) result.in[trial] = 1;
  return result;
}

struct Found {
  std::string where;
  Scope scope;
  bool in_time = false, to_end = false;  // a stretch of the study; its last
  bool worker = false;
};

bool stands_out(const Count& region, const Count& all, double tried) {
  return by_chance(region, all) * tried <= kChance;
}

// A stretch of the study or a worker that stands out by itself; else a region of up to three parameters, one found
// within the other. What fails only where all three meet stands out in none of them alone: then all are tried for.
std::optional<Found> region_of(const std::vector<ParameterColumn>& columns, const Sorted& sorted, const Scope& scope) {
  constexpr int kMostParameters = 3;
  const Search any = search(columns, sorted, scope, false);
  if (any.best && columns[any.best->column].name.empty()) {
    const ParameterColumn& column = columns[any.best->column];
    const bool worker = is_worker(column);
    if (stands_out(any.best->count, scope.count, any.tried))
      return Found{.where = words(*any.best, column),
                   .scope = inside(scope, *any.best, column),
                   .in_time = !worker,
                   .to_end = !worker && any.best->to_greatest,
                   .worker = worker};
  }
  std::optional<Found> found;
  Found next{.scope = scope};
  std::vector<std::pair<std::size_t, std::string>> parts;  // column; words
  double tried = 1;
  for (int i = 0; i < kMostParameters; ++i) {
    const Search one = search(columns, sorted, next.scope, true);
    if (!one.best) break;
    tried *= i > 0 ? one.tried : any.tried;
    if (found && !stands_out(one.best->count, found->scope.count, one.tried)) break;
    const ParameterColumn& column = columns[one.best->column];
    if (one.best->low == one.best->high)  // which says more than a bound of the same parameter
      std::erase_if(parts, [&](const auto& part) { return part.first == one.best->column; });
    parts.emplace_back(one.best->column, words(*one.best, column));
    next.where = fmt::format("{}", fmt::join(parts | std::views::values, " and "));
    next.scope = inside(next.scope, *one.best, column);
    if (found || stands_out(next.scope.count, scope.count, tried)) found = next;
  }
  return found;
}

std::string point_words(const std::vector<ParameterColumn>& columns, std::size_t trial) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> parts;
  for (std::size_t c = 0; c < columns.size(); ++c)
    for (const auto& [of, value] : columns[c].values)
      if (of == trial && !columns[c].name.empty())
        parts.push_back(words({.column = c, .low = value, .high = value}, columns[c]));
  if (parts.size() > kShown) {
    const std::string others = count_of(parts.size() - kShown, "other parameter");
    parts.resize(kShown);
    parts.push_back("always the same " + others);
  }
  if (parts.size() == 1) return parts.front();
  return fmt::format("{} and {}", fmt::join(parts.begin(), parts.end() - 1, ", "), parts.back());
}

// Trials that have every parameter in common and failed each time.
std::optional<Found> point_of(const std::vector<ParameterColumn>& columns, const Scope& scope) {
  using Values = std::vector<std::pair<std::size_t, double>>;  // column and value
  std::vector<Values> points(scope.in.size());
  for (std::size_t c = 0; c < columns.size(); ++c)
    for (const auto& [trial, value] : columns[c].values)
      if (scope.in[trial] && !columns[c].name.empty()) points[trial].emplace_back(c, value);
  std::map<Values, Count> counted;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (scope.in[i] && !points[i].empty()) counted[points[i]].add(scope.failed[i] != 0);
  const auto repeated = [](const auto& point) { return point.second.of >= kFewestFailed; };
  const auto tried = static_cast<double>(std::count_if(counted.begin(), counted.end(), repeated));
  for (const auto& [point, count] : counted) {
    if (count.failed < count.of || count.failed < kFewestFailed || !stands_out(count, scope.count, tried)) continue;
    Found found{.scope = scope};
    found.scope.count = count;
    for (std::size_t i = 0; i < points.size(); ++i) found.scope.in[i] = points[i] == point ? 1 : 0;
    const auto first = std::find(points.begin(), points.end(), point);
    found.where = point_words(columns, static_cast<std::size_t>(first - points.begin()));
    return found;
  }
  return std::nullopt;
}

FailureGroup group_of(const Study& study, const Scope& scope, std::string where) {
  FailureGroup group{.where = std::move(where), .failed = scope.count.failed, .of = scope.count.of};
  // Of a study in which no trial ever reports nothing tells how far one came.
  group.before_first_step =
      std::any_of(study.trials.begin(), study.trials.end(), [](const Trial& trial) { return trial.reports > 0; });
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    if (!scope.in[i] || !scope.failed[i]) continue;
    const Trial& trial = study.trials[i];
    group.before_first_step = group.before_first_step && trial.reports == 0;
    group.said_out_of_memory += scope.why[i] == OutOfMemory::kSaid ? 1 : 0;
    group.memory_full += scope.why[i] == OutOfMemory::kFull ? 1 : 0;
    if (trial.start && trial.complete && *trial.complete > *trial.start)
      group.worker_seconds += seconds(*trial.complete - *trial.start);
    if (group.trials.size() == kListedOfAReason) group.trials.pop_back();
    group.trials.push_back(trial.number);
  }
  return group;
}

// Those that no region holds: where nothing was reported, and the rest.
void add_scattered(const Study& study, const Scope& scope, bool beside_regions, std::vector<FailureGroup>& groups) {
  Scope at_once = scope, later = scope;
  at_once.count = later.count = {.of = scope.count.of};
  std::map<std::int64_t, std::int64_t> last_steps;  // trials, by the last step they reported
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    if (!scope.in[i] || !scope.failed[i]) continue;
    const auto reports = reports_of(study, study.trials[i]);
    Scope& other = reports.empty() ? later : at_once;
    other.failed[i] = 0;
    ++(reports.empty() ? at_once : later).count.failed;
    if (!reports.empty()) ++last_steps[reports.back().step];
  }
  const std::string spread = scope.count.failed == scope.count.of ? "whatever the parameters"
                             : beside_regions ? "no region of the parameters beyond these stands out"
                                              : "no region of the parameters stands out";
  if (at_once.count.failed > 0) groups.push_back(group_of(study, at_once, spread));
  if (later.count.failed == 0) return;
  const bool one_step = last_steps.size() == 1 && later.count.failed >= kFewestFailed;
  groups.push_back(group_of(study, later, one_step ? fmt::format("after step {}", last_steps.begin()->first) : spread));
}

}  // namespace

namespace {

bool hardly_another(const FailureGroup& group) {
  constexpr double kHardlyAnother = 0.9;
  return static_cast<double>(group.failed) >= kHardlyAnother * static_cast<double>(group.of);
}

template <class Test>
const FailureGroup* hardly_another(const std::vector<FailureGroup>& groups, const Test& test) {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const FailureGroup& group) { return test(group) && hardly_another(group); });
  return found == groups.end() ? nullptr : &*found;
}

}  // namespace

const FailureGroup* failing_since(const std::vector<FailureGroup>& groups) {
  return hardly_another(groups, [](const FailureGroup& group) { return group.to_end; });
}

const FailureGroup* failing_worker(const std::vector<FailureGroup>& groups) {
  return hardly_another(groups, [](const FailureGroup& group) { return group.worker; });
}

std::vector<const FailureGroup*> failing_for_a_time(const std::vector<FailureGroup>& groups) {
  std::vector<const FailureGroup*> found;
  for (const FailureGroup& group : groups)
    if (group.in_time && !group.to_end && hardly_another(group)) found.push_back(&group);
  std::sort(found.begin(), found.end(),
            [](const FailureGroup* a, const FailureGroup* b) { return a->trials.front() < b->trials.front(); });
  return found;
}

std::vector<FailureGroup> failure_groups(const Study& study, const std::vector<ParameterColumn>& parameters,
                                         const std::map<std::int64_t, TrialMeasured>& measured) {
  std::vector<ParameterColumn> columns = parameters;
  columns.push_back(order_of_trials(study));
  columns.push_back(workers_of_trials(study));
  Scope scope;
  for (const Trial& trial : study.trials) {
    const bool failed = trial.state == TrialState::kFail;
    const auto known = measured.find(trial.number);
    scope.why.push_back(failed && known != measured.end() ? known->second.out_of_memory : OutOfMemory::kNo);
    scope.in.push_back(is_finished(trial.state) ? 1 : 0);
    scope.failed.push_back(failed ? 1 : 0);
    if (is_finished(trial.state)) scope.count.add(failed);
  }
  std::vector<FailureGroup> groups;
  if (scope.count.failed == 0) return groups;
  const Sorted sorted = sorted_columns(columns);
  while (groups.size() < kMostRegions && scope.count.failed >= kFewestFailed) {
    auto found = region_of(columns, sorted, scope);
    if (!found) found = point_of(columns, scope);
    if (!found) break;
    groups.push_back(group_of(study, found->scope, found->where));
    groups.back().region = !found->in_time && !found->worker;
    groups.back().worker = found->worker;
    groups.back().in_time = found->in_time;
    groups.back().to_end = found->to_end;
    for (std::size_t i = 0; i < scope.in.size(); ++i)
      if (found->scope.in[i]) scope.in[i] = 0;
    scope.count.failed -= found->scope.count.failed;
    scope.count.of -= found->scope.count.of;
  }
  if (scope.count.failed > 0) add_scattered(study, scope, !groups.empty(), groups);
  return groups;
}

}  // namespace headroom::tune
