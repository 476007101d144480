// SPDX-License-Identifier: Apache-2.0
#include "batch/choose_tasks.h"

#include <fnmatch.h>

#include <string_view>
#include <unordered_map>

#include "base/strings.h"

namespace headroom::batch {

Result<std::vector<TaskIndex>> tasks_named(const std::vector<TaskSpec>& tasks,
                                           const std::vector<std::string>& patterns) {
  std::vector<bool> chosen(tasks.size());
  std::vector<std::string_view> names;
  std::unordered_map<std::string_view, std::size_t> by_name;
  for (const TaskSpec& task : tasks) by_name.emplace(task.name, names.size()), names.emplace_back(task.name);
  for (const std::string& pattern : patterns) {
    if (const auto named = by_name.find(pattern); named != by_name.end()) {
      chosen[named->second] = true;
      continue;
    }
    bool any = false;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (::fnmatch(pattern.c_str(), tasks[i].name.c_str(), 0) != 0) continue;
      any = chosen[i] = true;
    }
    if (any) continue;
    const auto guess = closest(pattern, names);
    return fail(Errc::kNotFound, fmt::format("there is no task '{}'", pattern),
                guess.empty() ? "a name, or a pattern such as 'lr0.1*', in quotes; headroom batch show lists the names"
                              : fmt::format("did you mean '{}'?", guess));
  }
  std::vector<TaskIndex> found;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (chosen[i]) found.push_back(static_cast<TaskIndex>(i));
  return found;
}

Result<void> keep_only(std::vector<TaskSpec>& tasks, const std::vector<std::string>& patterns) {
  HR_TRY(std::vector<TaskIndex> wanted, tasks_named(tasks, patterns));
  std::unordered_multimap<std::string_view, TaskIndex> members;  // of groups, and tasks by their names
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    members.emplace(tasks[i].name, static_cast<TaskIndex>(i));
    members.emplace(tasks[i].group, static_cast<TaskIndex>(i));
  }
  std::vector<bool> kept(tasks.size());
  for (const TaskIndex task : wanted) kept[task] = true;
  for (std::size_t next = 0; next < wanted.size(); ++next) {
    for (const std::string& before : tasks[wanted[next]].after) {
      const auto [from, to] = members.equal_range(before);
      for (auto member = from; member != to; ++member)
        if (!kept[member->second]) kept[member->second] = true, wanted.push_back(member->second);
    }
  }
  std::vector<TaskSpec> left;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (kept[i]) left.push_back(std::move(tasks[i]));
  tasks = std::move(left);
  return {};
}

}  // namespace headroom::batch
