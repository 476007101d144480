// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_file.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/strings.h"
#include "base/toml_table.h"
#include "tasks/task_file_parameters.h"
#include "tasks/task_list.h"

namespace headroom::tasks {

namespace {

constexpr std::vector<std::string_view>::size_type kCommonKeys = 20;
const std::vector<std::string_view>& task_keys() {
  static const std::vector<std::string_view> kKeys{
      // also in [defaults]
      "group", "working_directory", "env", "env_file", "inputs", "outputs", "resolved", "gpus", "gpu_memory", "cpus",
      "memory", "alone", "retries", "retry_backoff", "retry_backoff_factor", "retry_backoff_max", "timeout",
      "hang_timeout", "priority", "after",
      // only of a task
      "name", "command", "shell", "grid", "zip", "list"};
  return kKeys;
}

Result<std::optional<Nanos>> duration_of(const TomlTable& table, std::string_view key) {
  constexpr double kLongestSeconds = 1e8;  // three years
  if (!table.has(key)) return std::nullopt;
  if (!table.is_text(key)) {
    HR_TRY(const auto seconds_value, table.number(key, 0, kLongestSeconds));
    return static_cast<Nanos>(*seconds_value * 1e9);
  }
  HR_TRY(const auto text, table.text(key));
  const auto duration = parse_duration(*text);
  if (!duration || seconds(*duration) > kLongestSeconds)
    return tl::unexpected(table.wrong(key, fmt::format("is '{}'", *text), "write \"90s\", \"10m\" or \"2h\""));
  return *duration;
}

Result<std::optional<Nanos>> positive_duration(const TomlTable& table, std::string_view key) {
  HR_TRY(const auto duration, duration_of(table, key));
  if (duration && *duration == 0)
    return tl::unexpected(table.wrong(key, "is 0", "leave it out where there is no limit"));
  return duration;
}

Result<std::optional<std::int64_t>> bytes_of(const TomlTable& table, std::string_view key) {
  if (!table.has(key)) return std::nullopt;
  if (!table.is_text(key))
    return tl::unexpected(table.wrong(key, "is no size", "write \"3GiB\" or \"512MiB\", in quotes"));
  HR_TRY(const auto text, table.text(key));
  const auto bytes = parse_bytes(*text);
  if (!bytes || *bytes == 0)
    return tl::unexpected(table.wrong(key, fmt::format("is '{}'", *text), "write \"3GiB\" or \"512MiB\""));
  return *bytes;
}

Result<void> read_resources(const TomlTable& table, ResourceRequest& resources) {
  HR_TRY(const auto gpus, table.integer("gpus", 0, 64));
  if (gpus) resources.gpus = static_cast<int>(*gpus);
  HR_TRY(const auto gpu_memory, bytes_of(table, "gpu_memory"));
  if (gpu_memory) resources.gpu_memory_bytes = gpu_memory;
  HR_TRY(const auto cpus, table.number("cpus", 0.001, 4096));
  if (cpus) resources.cpus = cpus;
  HR_TRY(const auto memory, bytes_of(table, "memory"));
  if (memory) resources.host_memory_bytes = memory;
  HR_TRY(const auto alone, table.boolean("alone"));
  if (alone) resources.alone = *alone;
  return {};
}

Result<void> read_policy(const TomlTable& table, TaskSpec& task) {
  HR_TRY(const auto retries, table.integer("retries", 0, 1000));
  if (retries) task.retry.retries = static_cast<int>(*retries);
  HR_TRY(const auto backoff, duration_of(table, "retry_backoff"));
  if (backoff) task.retry.backoff = *backoff;
  HR_TRY(const auto factor, table.number("retry_backoff_factor", 1, 100));
  if (factor) task.retry.backoff_factor = *factor;
  HR_TRY(const auto most, duration_of(table, "retry_backoff_max"));
  if (most) task.retry.backoff_max = *most;
  HR_TRY(const auto timeout, positive_duration(table, "timeout"));
  if (timeout) task.timeout = timeout;
  HR_TRY(const auto hang, positive_duration(table, "hang_timeout"));
  if (hang) task.hang_timeout = hang;
  HR_TRY(const auto priority, table.integer("priority", -1'000'000, 1'000'000));
  if (priority) task.priority = static_cast<int>(*priority);
  return {};
}

Result<Field> field_of(const TomlTable& table, std::string_view key, std::string_view text,
                       Braces braces = Braces::kStrict) {
  return make_field(std::string(key), table.place(key), text, braces);
}

Result<void> read_field(const TomlTable& table, std::string_view key, Field& field) {
  HR_TRY(const auto text, table.text(key));
  if (!text) return {};
  if (text->empty()) return tl::unexpected(table.wrong(key, "is empty", "leave it out, or write a text"));
  HR_TRY(field, field_of(table, key, *text));
  return {};
}

Result<void> read_fields(const TomlTable& table, std::string_view key, std::vector<Field>& fields) {
  HR_TRY(const auto texts, table.texts(key));
  for (const std::string& text : texts) {
    HR_TRY(Field field, field_of(table, key, text));
    fields.push_back(std::move(field));
  }
  return {};
}

Result<void> read_environment(const TomlTable& table, TaskTemplate& task) {
  HR_TRYV(read_fields(table, "env_file", task.env_files));
  HR_TRY(const auto variables, table.table("env"));
  if (!variables) return {};
  for (const std::string& name : variables->keys()) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
      return tl::unexpected(variables->wrong(name, "is no name of a variable", "letters, digits and '_'"));
    HR_TRY(const std::string value, variables->scalar(name));
    HR_TRY(Field field, make_field("env." + name, variables->place(name), value));
    task.environment.emplace_back(name, std::move(field));
  }
  return {};
}

// Keys that may stand in [defaults] and in [task].
Result<void> read_common(const TomlTable& table, TaskTemplate& task) {
  HR_TRYV(read_resources(table, task.rest.resources));
  HR_TRYV(read_policy(table, task.rest));
  HR_TRYV(read_field(table, "group", task.group));
  HR_TRYV(read_field(table, "working_directory", task.working_directory));
  HR_TRYV(read_environment(table, task));
  HR_TRYV(read_fields(table, "inputs", task.inputs));
  HR_TRYV(read_fields(table, "outputs", task.outputs));
  HR_TRYV(read_field(table, "resolved", task.resolved));
  return read_fields(table, "after", task.after);
}

Result<void> read_command(const TomlTable& table, TaskTemplate& task) {
  HR_TRY(const auto shell, table.boolean("shell"));
  if (!table.has("command"))
    return tl::unexpected(Error{Errc::kInvalidInput,
                                fmt::format("{}: 'command' in {} is missing", table.place(""), table.label()),
                                "add command = [\"python3\", \"train.py\"]"});
  const Field like{"command", table.place("command"), {}};
  if (shell.value_or(false)) {
    if (!table.is_text("command"))
      return tl::unexpected(table.wrong("command", "is not one text, but shell = true", "write the line in quotes"));
    HR_TRY(const auto line, table.text("command"));
    return set_command(task, *line, true, like);
  }
  if (table.is_text("command"))
    return tl::unexpected(table.wrong("command", "is a text, not a list of words",
                                      "write [\"python3\", \"train.py\"], or add shell = true"));
  HR_TRY(const auto words, table.texts("command"));
  return set_command(task, words, like);
}

bool uses(const TaskTemplate& task, std::string_view name) {
  const auto has = [name](const Field& field) { return has_placeholder(field.pieces, name); };
  const auto any = [&](const std::vector<Field>& fields) { return std::any_of(fields.begin(), fields.end(), has); };
  return has(task.name) || has(task.group) || has(task.working_directory) || any(task.argv) || any(task.env_files) ||
         any(task.inputs) || any(task.outputs) || has(task.resolved) || any(task.after) ||
         std::any_of(task.environment.begin(), task.environment.end(),
                     [&](const auto& one) { return has(one.second); });
}

Result<void> add_tasks(const TomlTable& table, TaskTemplate task, TaskCollector& collector) {
  HR_TRYV(table.only(task_keys()));
  HR_TRYV(read_common(table, task));
  HR_TRYV(read_field(table, "name", task.name));
  HR_TRYV(read_command(table, task));
  task.rest.line = table.line();
  HR_TRY(const std::vector<ParameterAxis> axes, parameter_axes(table));
  for (const ParameterAxis& axis : axes)
    if (std::none_of(axis.names.begin(), axis.names.end(), [&](const auto& name) { return uses(task, name); }))
      return fail(
          Errc::kInvalidInput,
          fmt::format("{}: parameter '{}' of {} is used nowhere", table.place(""), axis.names[0], table.label()),
          fmt::format("write {{{}}} in the command, or remove it", axis.names[0]));
  const std::size_t count = combinations(axes);
  for (std::size_t i = 0; i < count; ++i) HR_TRYV(collector.add(task, {combination(axes, i), table.place(""), {}}));
  return {};
}

Result<void> read_patterns(const TomlTable& log, TaskSet& set) {
  HR_TRYV(log.only({"metric", "param", "step", "phase"}));
  const auto add = [&](const TomlTable& table, output::LogPattern::Kind kind, const std::string& name) -> Result<void> {
    const std::string key = kind == output::LogPattern::Kind::kStep ? "step" : name;
    HR_TRY(const auto regex, table.text(key));
    auto pattern = output::log_pattern(kind, name, regex.value_or(""));
    if (!pattern) {
      return tl::unexpected(
          within(fmt::format("{}: '{}' in {}", table.place(key), key, table.label()), pattern.error()));
    }
    set.patterns.push_back(std::move(*pattern));
    return {};
  };
  HR_TRY(const auto metrics, log.table("metric"));
  if (metrics)
    for (const std::string& name : metrics->keys()) HR_TRYV(add(*metrics, output::LogPattern::Kind::kMetric, name));
  HR_TRY(const auto parameters, log.table("param"));
  if (parameters)
    for (const std::string& name : parameters->keys())
      HR_TRYV(add(*parameters, output::LogPattern::Kind::kParameter, name));
  HR_TRY(const auto phases, log.table("phase"));
  if (phases)
    for (const std::string& name : phases->keys()) HR_TRYV(add(*phases, output::LogPattern::Kind::kPhase, name));
  if (log.has("step")) HR_TRYV(add(log, output::LogPattern::Kind::kStep, ""));
  return {};
}

Result<void> read_groups(const TomlTable& groups, TaskSet& set) {
  std::vector<std::string_view> known;
  for (const TaskSpec& task : set.tasks)
    if (known.empty() || known.back() != task.group) known.push_back(task.group);
  for (const std::string& name : groups.keys()) {
    HR_TRY(const auto group, groups.table(name));
    HR_TRYV(group->only({"max_running"}));
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto guess = closest(name, known);
      return fail(
          Errc::kInvalidInput, fmt::format("{}: no task is in group '{}'", groups.place(name), name),
          guess.empty() ? "write group = \"" + name + "\" in a [task]" : fmt::format("did you mean '{}'?", guess));
    }
    HR_TRY(const auto most, group->integer("max_running", 1, 1'000'000));
    set.groups.push_back({name, most ? std::optional<int>(static_cast<int>(*most)) : std::nullopt});
  }
  return {};
}

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<TaskSet> tasks_from_toml(std::string_view text, const std::string& path, const FileReader& read) {
  HR_TRY(const TomlTable root, TomlTable::parse(text, path));
  HR_TRYV(root.only({"batch", "defaults", "task", "group", "log"}));
  TaskSet set;
  HR_TRY(const auto batch, root.table("batch"));
  if (batch) {
    HR_TRYV(batch->only({"name"}));
    HR_TRY(const auto name, batch->text("name"));
    set.name = name.value_or("");
  }
  TaskTemplate base;
  base.base_directory = folder_of(path);
  base.read_environment = cached_environments(read);
  base.rest.file = path;
  HR_TRY(const auto defaults, root.table("defaults"));
  if (defaults) {
    HR_TRYV(defaults->only({task_keys().begin(), task_keys().begin() + kCommonKeys}));
    HR_TRYV(read_common(*defaults, base));
  }
  HR_TRY(const std::vector<TomlTable> tables, root.tables("task"));
  if (tables.empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: no [task]", path),
                "write [task] with command = \"python3 train.py --lr {lr}\"; docs/batch-files.md has an example");
  TaskCollector collector;
  for (const TomlTable& table : tables) HR_TRYV(add_tasks(table, base, collector));
  HR_TRY(set.tasks, collector.finish());
  HR_TRY(const auto groups, root.table("group"));
  if (groups) HR_TRYV(read_groups(*groups, set));
  HR_TRY(const auto log, root.table("log"));
  if (log) HR_TRYV(read_patterns(*log, set));
  return set;
}

Result<TaskSet> read_task_file(const std::string& path, ListOptions options) {
  for (const std::string_view program : {".py", ".ipynb", ".R", ".jl", ".pl", ".exe"})
    if (path.ends_with(program))
      return fail(Errc::kInvalidInput, fmt::format("{} is a program, not a list of tasks", path),
                  "to run it with several arguments: headroom batch -- python train.py --seed {} ::: 1 2 3");
  HR_TRY(const std::string text, options.read(path));
  options.file = path;
  if (path.ends_with(".toml")) return tasks_from_toml(text, path, options.read);
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return tasks_from_jsonl(text, options);
  if (path.ends_with(".tsv")) options.separator = '\t';
  if (path.ends_with(".csv") || path.ends_with(".tsv")) return tasks_from_csv(text, options);
  return tasks_from_lines(text, options);
}

}  // namespace headroom::tasks
