// SPDX-License-Identifier: Apache-2.0
#include "batch/add_tasks.h"

#include <algorithm>
#include <set>
#include <string>

#include "base/strings.h"
#include "batch/task_json.h"

namespace headroom::batch {

namespace {

// "batch_size" of "--batch-size".
std::string plain_name(std::string_view option) {
  std::string name(option.substr(std::min(option.size(), option.find_first_not_of('-'))));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// The options that the command gives this value to: "--lr 0.1", "--lr=0.1", "lr=0.1".
std::set<std::string> options_with(const std::string& value, const TaskSpec& task) {
  std::vector<std::string_view> words(task.argv.begin(), task.argv.end());
  if (task.shell && !task.argv.empty()) words = split(task.argv.back(), ' ');
  std::set<std::string> names;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (i > 0 && words[i] == value && words[i - 1].starts_with('-')) names.insert(plain_name(words[i - 1]));
    if (equals != std::string_view::npos && words[i].substr(equals + 1) == value)
      names.insert(plain_name(words[i].substr(0, equals)));
  }
  return names;
}

}  // namespace

void name_parameters(const std::vector<TaskSpec>& batch, std::vector<TaskSpec>& added) {
  std::set<std::string> known;
  for (const TaskSpec& task : batch)
    for (const auto& [name, value] : task.parameters) known.insert(name);
  for (TaskSpec& task : added) {
    const auto has = [&](const std::string& wanted) {
      return std::any_of(task.parameters.begin(), task.parameters.end(),
                         [&](const auto& one) { return plain_name(one.first) == plain_name(wanted); });
    };
    for (auto& [name, value] : task.parameters) {
      if (!parse_number<unsigned>(name)) continue;
      const std::set<std::string> options = options_with(value, task);
      const auto found = std::find_if(known.begin(), known.end(), [&](const std::string& one) {
        return options.contains(plain_name(one)) && !has(one);
      });
      if (found != known.end()) name = *found;
    }
  }
}

Result<std::size_t> add_tasks(std::string_view text, Batch& batch, Journal& journal) {
  HR_TRY(const std::vector<TaskSpec> given, tasks_of(text));
  return add_tasks(given, batch, journal);
}

Result<std::size_t> add_tasks(const std::vector<TaskSpec>& given, Batch& batch, Journal& journal) {
  HR_TRY(Batch::Addition addition, batch.plan_addition(given));
  if (addition.tasks.empty()) return std::size_t{0};
  HR_TRY(const auto known, journal.register_tasks(addition.tasks, Journal::When::kDuringRun));
  const std::size_t count = addition.tasks.size();
  batch.add(std::move(addition), known);
  return count;
}

}  // namespace headroom::batch
