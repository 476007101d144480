// SPDX-License-Identifier: Apache-2.0
#include "batch/task_json.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace headroom::batch {

namespace {

using nlohmann::json;

json json_of(const TaskSpec& task) {
  const ResourceRequest& needs = task.resources;
  json one = {{"name", task.name},
              {"identity", task.identity},
              {"group", task.group},
              {"command_template", task.command_template},
              {"argv", task.argv},
              {"shell", task.shell},
              {"environment", task.environment},
              {"from_env_file", task.from_env_file},
              {"working_directory", task.working_directory},
              {"parameters", task.parameters},
              {"inputs", task.inputs},
              {"outputs", task.outputs},
              {"resolved", task.resolved},
              {"gpus", needs.gpus},
              {"alone", needs.alone},
              {"retries", task.retry.retries},
              {"backoff_ns", task.retry.backoff},
              {"backoff_factor", task.retry.backoff_factor},
              {"backoff_max_ns", task.retry.backoff_max},
              {"priority", task.priority},
              {"after", task.after},
              {"file", task.file},
              {"line", task.line}};
  const auto put = [&one](const char* name, const auto& value) {
    if (value) one[name] = *value;
  };
  put("gpu_memory_bytes", needs.gpu_memory_bytes), put("cpus", needs.cpus);
  put("host_memory_bytes", needs.host_memory_bytes);
  put("timeout_ns", task.timeout), put("hang_timeout_ns", task.hang_timeout);
  return one;
}

template <class T>
void take_if_there(const json& from, const char* name, std::optional<T>& value) {
  if (from.contains(name)) value = from.at(name).get<T>();
}

TaskSpec task_of(const json& one) {
  TaskSpec task;
  one.at("name").get_to(task.name), one.at("identity").get_to(task.identity), one.at("group").get_to(task.group);
  one.at("command_template").get_to(task.command_template);
  one.at("argv").get_to(task.argv), one.at("shell").get_to(task.shell);
  one.at("environment").get_to(task.environment), one.at("from_env_file").get_to(task.from_env_file);
  one.at("working_directory").get_to(task.working_directory);
  one.at("parameters").get_to(task.parameters);
  one.at("inputs").get_to(task.inputs), one.at("outputs").get_to(task.outputs);
  one.at("resolved").get_to(task.resolved);
  one.at("gpus").get_to(task.resources.gpus), one.at("alone").get_to(task.resources.alone);
  one.at("retries").get_to(task.retry.retries), one.at("backoff_ns").get_to(task.retry.backoff);
  one.at("backoff_factor").get_to(task.retry.backoff_factor);
  one.at("backoff_max_ns").get_to(task.retry.backoff_max);
  one.at("priority").get_to(task.priority), one.at("after").get_to(task.after);
  one.at("file").get_to(task.file), one.at("line").get_to(task.line);
  take_if_there(one, "gpu_memory_bytes", task.resources.gpu_memory_bytes),
      take_if_there(one, "cpus", task.resources.cpus);
  take_if_there(one, "host_memory_bytes", task.resources.host_memory_bytes);
  take_if_there(one, "timeout_ns", task.timeout), take_if_there(one, "hang_timeout_ns", task.hang_timeout);
  return task;
}

}  // namespace

Result<std::string> tasks_text(const std::vector<TaskSpec>& tasks) {
  json all = json::array();
  for (const TaskSpec& task : tasks) all.push_back(json_of(task));
  try {
    return all.dump(-1, ' ', true);
  } catch (const json::exception&) {
    return fail(Errc::kInvalidInput, "a task has bytes in it that are no UTF-8",
                "such tasks cannot be added to a running batch; they can be a batch of their own");
  }
}

Result<std::vector<TaskSpec>> tasks_of(std::string_view text) {
  const auto not_understood =
      fail(Errc::kInvalidInput, "not understood: the batch may be of another version of headroom");
  const json all = parse_json<json>(text);
  if (!all.is_array()) return not_understood;
  try {
    std::vector<TaskSpec> tasks;
    for (const json& one : all) tasks.push_back(task_of(one));
    return tasks;
  } catch (const json::exception&) {
    return not_understood;
  }
}

}  // namespace headroom::batch
