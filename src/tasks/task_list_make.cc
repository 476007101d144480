// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_list_make.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/strings.h"

namespace headroom::tasks {

namespace {

Result<std::vector<Field>> fields_of(const std::vector<std::string>& texts, std::string_view option) {
  std::vector<Field> fields;
  for (const std::string& text : texts) {
    HR_TRY(Field field, make_field(std::string(option), "", text));
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace

tl::unexpected<Error> too_many_parameters() {
  return fail(Errc::kInvalidInput, fmt::format("more than {} parameters", kMostParameters),
              "a task of so many is data: name a file instead");
}

EnvironmentReader cached_environments(FileReader read) {
  return [read = std::move(read), known = std::make_shared<std::map<std::string, Environment>>()](
             const std::string& path) -> Result<Environment> {
    if (const auto found = known->find(path); found != known->end()) return found->second;
    HR_TRY(const std::string text, read(path));
    HR_TRY(Environment variables, parse_environment(text, path));
    return known->emplace(path, std::move(variables)).first->second;
  };
}

Result<TaskTemplate> template_of(const ListOptions& options) {
  TaskTemplate task;
  const TaskSpec& defaults = options.defaults;
  HR_TRY(task.name, make_field("--name", "", defaults.name));
  HR_TRY(task.group, make_field("--group", "", defaults.group));
  HR_TRY(task.working_directory, make_field("--cwd", "", defaults.working_directory));
  HR_TRY(task.inputs, fields_of(defaults.inputs, "--inputs"));
  HR_TRY(task.outputs, fields_of(defaults.outputs, "--outputs"));
  HR_TRY(task.after, fields_of(defaults.after, "--after"));
  HR_TRY(task.env_files, fields_of(options.env_files, "--env-file"));
  for (const auto& [name, value] : defaults.environment) {
    HR_TRY(Field field, make_field("--env " + name, "", value));
    task.environment.emplace_back(name, std::move(field));
  }
  task.read_environment = cached_environments(options.read);
  task.rest.resources = defaults.resources;
  task.rest.retry = defaults.retry;
  task.rest.timeout = defaults.timeout;
  task.rest.hang_timeout = defaults.hang_timeout;
  task.rest.priority = defaults.priority;
  task.rest.file = options.file;
  return task;
}

Result<TaskTemplate> template_with_command(const ListOptions& options) {
  if (options.command.empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: parameters without a command", options.file),
                "add --command 'python3 train.py --lr {lr}', with the names of the parameters");
  HR_TRY(TaskTemplate task, template_of(options));
  HR_TRYV(set_command(task, options.command, options.shell, Field{"--command", "", {}}));
  return task;
}

std::string line_of(const ListOptions& options, std::size_t line) { return fmt::format("{}:{}", options.file, line); }

Result<TaskSet> set_of(TaskCollector& collector, const ListOptions& options) {
  if (collector.size() == 0)
    return fail(Errc::kInvalidInput, fmt::format("{}: no tasks", options.file), "a line is a task");
  TaskSet set;
  HR_TRY(set.tasks, collector.finish());
  return set;
}

Result<void> check_parameter_name(std::string_view name) {
  const auto pieces = parse_template("{" + std::string(name) + "}");
  const bool usable = pieces && pieces->size() == 1 && (*pieces)[0].placeholder && !name.empty() &&
                      (name[0] == '_' || name[0] < '0' || name[0] > '9') && name[0] != '.' && name[0] != '/' &&
                      name != "#" && name != "%";
  if (usable && !is_place_name(name) && name != "task") return {};
  return fail(Errc::kInvalidInput, fmt::format("'{}' is no name for a parameter", name),
              is_place_name(name) || name == "task" ? "this placeholder is Headroom's own; choose another name"
                                                    : "letters, digits, '_', '-' and '.', with a letter in front");
}

}  // namespace headroom::tasks
