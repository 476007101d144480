// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/batch.h"
#include "output/log_pattern.h"
#include "tasks/template.h"
#include "tasks/template_task.h"

// The tasks of a batch, from whatever form a person wrote them in. The readers are functions of a text; errors name
// file, line and key.
namespace headroom::tasks {

struct TaskSet {
  std::string name;  // of the batch; "" where nobody said
  std::vector<TaskSpec> tasks;
  std::vector<GroupSpec> groups;  // those with a limit
  std::vector<output::LogPattern> patterns;
};

using FileReader = std::function<Result<std::string>(const std::string& path)>;

struct ListOptions {
  // What options of the command line say of every task. `name`, `group`, `working_directory`, `inputs`, `outputs`,
  // `after` and the values of `environment` may have placeholders; argv and parameters are not used.
  TaskSpec defaults;
  std::vector<std::string> env_files;
  std::string file;      // for errors: "params.csv"; "standard input"
  std::string command;   // --command: words with placeholders; "": none
  bool shell = false;    // the command is a shell line, not words
  char separator = ',';  // of CSV
  FileReader read;       // env_files, and sources after ::::
};

// A line is an object, its keys are the parameters.
[[nodiscard]] Result<TaskSet> tasks_from_jsonl(std::string_view text, const ListOptions& options);
// The first line names the parameters (RFC 4180: quotes, also around line ends).
[[nodiscard]] Result<TaskSet> tasks_from_csv(std::string_view text, const ListOptions& options);
// A line is a command, run as `sh -c` would; blank lines and comments are skipped. Only {gpu}, {gpu_index}, {gpu_uuid},
// {slot} and {task} are placeholders, all other braces stay. With a command: the line is its {}.
[[nodiscard]] Result<TaskSet> tasks_from_lines(std::string_view text, const ListOptions& options);
// The words of a command line: COMMAND… ::: A B ::: C D. A command of one word with blanks is a shell line. {} {1} {2}
// {.} {/} {//} {/.} {1.} {#} and {%} as GNU parallel has them; sources after ::: multiply, after :::+ go along with the
// source before; :::: and ::::+ read them from files, one per line.
[[nodiscard]] bool is_argument_list(const std::vector<std::string>& words);  // has a ::: or a relative
[[nodiscard]] Result<TaskSet> tasks_from_arguments(const std::vector<std::string>& words, const ListOptions& options);

// --- what the readers share, task files among them ---

// The template that the options make, without a command.
[[nodiscard]] Result<TaskTemplate> template_of(const ListOptions& options);
// With that of --command; kInvalidInput where there is none.
[[nodiscard]] Result<TaskTemplate> template_with_command(const ListOptions& options);
// "params.csv:3"
[[nodiscard]] std::string line_of(const ListOptions& options, std::size_t line);
// The collected tasks; kInvalidInput where there are none.
[[nodiscard]] Result<TaskSet> set_of(TaskCollector& collector, const ListOptions& options);
// A task per value, which is {} of the command.
[[nodiscard]] Result<TaskSet> tasks_from_values(const std::vector<std::string>& command,
                                                std::vector<std::string> values, const ListOptions& options);
// Reads each file once.
[[nodiscard]] EnvironmentReader cached_environments(FileReader read);
[[nodiscard]] Result<void> check_parameter_name(std::string_view name);

[[nodiscard]] tl::unexpected<Error> too_many_parameters();

}  // namespace headroom::tasks
