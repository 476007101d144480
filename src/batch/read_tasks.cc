// SPDX-License-Identifier: Apache-2.0
#include "batch/read_tasks.h"

#include <unistd.h>

#include <algorithm>

#include "base/duration.h"
#include "base/filesystem.h"
#include "base/regular_file.h"
#include "base/strings.h"
#include "batch/identity.h"
#include "output/log_pattern.h"
#include "tasks/task_file.h"
#include "tasks/template.h"
#include "tasks/template_pinning.h"

namespace headroom::batch {

namespace {

Result<std::string> read_standard_input() {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got < 0) return tl::unexpected(errno_error("read standard input"));
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<tasks::ListOptions> list_options(const Request& request) {
  tasks::ListOptions options;
  options.command = request.command;
  options.shell = request.shell;
  constexpr std::size_t kLargest = std::size_t{256} << 20;  // of a task file, or what it names
  options.read = [](const std::string& path) { return read_named(path, kLargest); };
  if (!request.timeout.empty()) {
    HR_TRY(options.defaults.timeout, parse_duration(request.timeout));
  }
  if (request.retries >= 0) options.defaults.retry.retries = request.retries;
  return options;
}

Result<tasks::TaskSet> tasks_of(const Request& request) {
  HR_TRY(tasks::ListOptions options, list_options(request));
  if (!request.after_dashes.empty()) {
    if (!request.words.empty())
      return fail(Errc::kInvalidInput, "batch: either a task file or a command after --, not both");
    options.file = "command line";
    return tasks::tasks_from_arguments(request.after_dashes, options);
  }
  if (request.words.empty())
    return fail(Errc::kInvalidInput, "batch: no tasks given",
                "headroom batch TASKS.toml, headroom batch - < commands.txt, or headroom batch -- CMD {} ::: A B C");
  if (request.words.size() > 1)
    return fail(Errc::kInvalidInput, fmt::format("batch: '{}' is one too many", request.words[1]),
                "one task file; a command with ::: goes after --");
  if (request.words[0] == "-") {
    options.file = "standard input";
    HR_TRY(const std::string text, read_standard_input());
    return tasks::tasks_from_lines(text, options);
  }
  auto set = tasks::read_task_file(request.words[0], options);
  if (!set && set.error().code == Errc::kNotFound && set.error().hint.empty())
    set.error().hint = "name a task file as it is seen from here, or give the command itself: headroom batch -- CMD";
  return set;
}

}  // namespace

Result<tasks::TaskSet> read_tasks(const Request& request) {
  HR_TRY(tasks::TaskSet set, tasks_of(request));
  if (set.tasks.empty()) return fail(Errc::kInvalidInput, "batch: there are no tasks");
  const bool none = request.gpus == "none";
  const auto policy = request.second_pin == "rewrite" ? tasks::PinPolicy::kRewrite
                      : request.second_pin == "allow" ? tasks::PinPolicy::kAllow
                                                      : tasks::PinPolicy::kRefuse;
  for (TaskSpec& task : set.tasks) {
    if (!none) HR_TRYV(tasks::settle_second_pins(task, policy));
  }
  if (none) HR_TRYV(leave_gpus_alone(set.tasks, "--gpus none"));
  for (const auto& text : request.metrics) {
    HR_TRY(auto pattern, output::parse_log_option(output::LogPattern::Kind::kMetric, text));
    set.patterns.push_back(std::move(pattern));
  }
  for (const auto& text : request.parameters) {
    HR_TRY(auto pattern, output::parse_log_option(output::LogPattern::Kind::kParameter, text));
    set.patterns.push_back(std::move(pattern));
  }
  for (const auto& text : request.phases) {
    HR_TRY(auto pattern, output::parse_log_option(output::LogPattern::Kind::kPhase, text));
    set.patterns.push_back(std::move(pattern));
  }
  InputHasher hasher;
  HR_TRYV(set_identities(set.tasks, current_directory(), hasher));
  return set;
}

Result<void> leave_gpus_alone(std::vector<TaskSpec>& tasks, const std::string& why) {
  for (TaskSpec& task : tasks) {
    task.resources.gpus = 0;
    std::vector<std::string> texts = task.argv;
    for (const auto& [name, value] : task.environment) texts.push_back(value);
    if (std::none_of(texts.begin(), texts.end(), tasks::uses_gpu)) continue;
    const std::string place = task.line > 0 ? fmt::format("{}:{}: ", task.file, task.line) : "";
    return fail(Errc::kInvalidInput, fmt::format("{}task {} names its GPU, and gets none: {}", place, task.name, why),
                "remove {gpu}, {gpu_index} and {gpu_uuid}; {slot} is known without GPUs, too");
  }
  return {};
}

}  // namespace headroom::batch
