// SPDX-License-Identifier: Apache-2.0
#include "scheduler/order.h"

#include <algorithm>
#include <unordered_map>

#include "base/names.h"
#include "base/strings.h"

namespace headroom::scheduler {

namespace {

struct Names {
  std::unordered_map<std::string_view, TaskIndex> tasks;
  std::unordered_map<std::string_view, GroupIndex> groups;
};

std::string where(const TaskSpec& spec) {
  if (spec.line > 0) return fmt::format("{}:{}: task {}", spec.file, spec.line, spec.name);
  return fmt::format("task {}", spec.name);
}

std::string did_you_mean(std::string_view word, const Names& names) {
  std::vector<std::string_view> known;
  for (const auto& [name, index] : names.tasks) known.push_back(name);
  for (const auto& [name, index] : names.groups) known.push_back(name);
  std::sort(known.begin(), known.end());
  const std::string_view close = closest(word, known);
  return close.empty() ? "name a task or a group of this file" : fmt::format("did you mean {}?", close);
}

Result<void> resolve_after(const TaskSpec& spec, const Names& names, PlannedTask& task) {
  for (const std::string& name : spec.after) {
    auto other = names.tasks.find(name);
    if (other == names.tasks.end()) other = names.tasks.find(file_name_of(name, name.size()));  // as tasks are named
    const auto group = names.groups.find(name);
    if (other != names.tasks.end()) {
      task.after.push_back(other->second);
    } else if (group != names.groups.end()) {
      task.after_groups.push_back(group->second);
    } else {
      return fail(Errc::kInvalidInput, fmt::format("{}: after: no task or group is named {}", where(spec), name),
                  did_you_mean(name, names));
    }
  }
  return {};
}

// Tasks are nodes 0 … n-1, groups follow. An edge leads to what must come before.
class Graph {
 public:
  Graph(const TaskPlan& plan, std::size_t tasks) : plan_(plan), members_(plan.groups.size()), tasks_(tasks) {
    for (const PlannedTask& task : plan.tasks) members_[static_cast<std::size_t>(task.group)].push_back(task.task);
  }
  [[nodiscard]] std::size_t size() const { return tasks_ + members_.size(); }
  [[nodiscard]] std::size_t degree(std::size_t node) const {
    if (node >= tasks_) return members_[node - tasks_].size();
    return plan_.tasks[node].after.size() + plan_.tasks[node].after_groups.size();
  }
  [[nodiscard]] std::size_t edge(std::size_t node, std::size_t i) const {
    if (node >= tasks_) return members_[node - tasks_][i];
    const PlannedTask& task = plan_.tasks[node];
    if (i < task.after.size()) return task.after[i];
    return tasks_ + static_cast<std::size_t>(task.after_groups[i - task.after.size()]);
  }

 private:
  const TaskPlan& plan_;
  std::vector<std::vector<TaskIndex>> members_;
  std::size_t tasks_;
};

// A path of nodes that leads back to its first, or nothing. Depth first, without recursion: chains may be long.
std::vector<std::size_t> find_cycle(const Graph& graph) {
  enum : char { kNew, kOpen, kDone };
  std::vector<char> mark(graph.size(), kNew);
  std::vector<std::size_t> path, next;
  for (std::size_t root = 0; root < graph.size(); ++root) {
    if (mark[root] != kNew) continue;
    path.assign(1, root), next.assign(1, 0), mark[root] = kOpen;
    while (!path.empty()) {
      const std::size_t node = path.back();
      if (next.back() == graph.degree(node)) {
        mark[node] = kDone;
        path.pop_back(), next.pop_back();
        continue;
      }
      const std::size_t to = graph.edge(node, next.back()++);
      if (mark[to] == kOpen) {
        path.erase(path.begin(), std::find(path.begin(), path.end(), to));
        path.push_back(to);
        return path;
      }
      if (mark[to] == kNew) path.push_back(to), next.push_back(0), mark[to] = kOpen;
    }
  }
  return {};
}

Result<void> refuse_cycles(std::span<const TaskSpec> specs, const TaskPlan& plan) {
  std::vector<std::size_t> cycle = find_cycle(Graph(plan, specs.size()));
  if (cycle.empty()) return {};
  if (cycle.front() >= specs.size()) {  // begin with a task: it has a line to name
    cycle.pop_back();
    std::rotate(cycle.begin(), cycle.begin() + 1, cycle.end());
    cycle.push_back(cycle.front());
  }
  std::vector<std::string> names;
  for (const std::size_t node : cycle)
    names.push_back(node < specs.size() ? specs[node].name : "group " + plan.groups[node - specs.size()]);
  if (names.size() > 12) names.erase(names.begin() + 6, names.end() - 5), names.insert(names.begin() + 6, "…");
  return fail(Errc::kInvalidInput,
              fmt::format("{}: tasks wait for each other: {}", where(specs[cycle.front()]), join(names, " after ")),
              "take one `after` of this circle out");
}

PlannedTask planned(const TaskSpec& spec, TaskIndex index, GroupIndex group) {
  PlannedTask task;
  task.task = index;
  task.group = group;
  task.resources = spec.resources;
  task.retry = spec.retry;
  task.timeout = spec.timeout;
  task.hang_timeout = spec.hang_timeout;
  task.priority = spec.priority;
  return task;
}

}  // namespace

Result<TaskPlan> plan_tasks(std::span<const TaskSpec> specs,
                            const std::function<std::optional<Nanos>(const TaskSpec&)>& expected) {
  TaskPlan plan;
  Names names;
  plan.tasks.reserve(specs.size());
  for (const TaskSpec& spec : specs) {
    const auto index = static_cast<TaskIndex>(plan.tasks.size());
    if (!names.tasks.emplace(spec.name, index).second)
      return fail(Errc::kInvalidInput, fmt::format("{}: another task has the same name", where(spec)),
                  "give each task its own name");
    const auto [group, fresh] = names.groups.emplace(spec.group, static_cast<GroupIndex>(plan.groups.size()));
    if (fresh) plan.groups.push_back(spec.group);
    plan.tasks.push_back(planned(spec, index, group->second));
    if (expected) plan.tasks.back().expected = expected(spec);
  }
  for (const TaskSpec& spec : specs)
    HR_TRYV(resolve_after(spec, names, plan.tasks[static_cast<std::size_t>(&spec - specs.data())]));
  HR_TRYV(refuse_cycles(specs, plan));
  return plan;
}

}  // namespace headroom::scheduler
