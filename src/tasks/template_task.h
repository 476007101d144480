// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/batch.h"
#include "tasks/template.h"

// A task before its parameters: what task files and lists of parameters have in common.
namespace headroom::tasks {

// A text of a template and where it was written, for errors.
struct Field {
  std::string key;    // "command"
  std::string place;  // "windows.toml:3"; "": that of the parameters
  Pieces pieces;
};
[[nodiscard]] Result<Field> make_field(std::string key, std::string place, std::string_view text,
                                       Braces braces = Braces::kStrict);

using Environment = std::vector<std::pair<std::string, std::string>>;
using EnvironmentReader = std::function<Result<Environment>(const std::string& path)>;

struct TaskTemplate {
  std::vector<Field> argv;                         // of a shell line: "/bin/sh", "-c", the line
  bool shell = false;                              // the last of argv is a shell line
  Field name, group, working_directory, resolved;  // without pieces: not said
  std::vector<std::pair<std::string, Field>> environment;
  std::vector<Field> env_files, inputs, outputs, after;
  EnvironmentReader read_environment;  // needed where there are env_files
  std::string base_directory;          // of a relative working directory; "": where the batch was started
  TaskSpec rest;                       // resources, retries, time-outs, priority, file and line, command_template
};

// Sets argv, shell and rest.command_template from a command line of one text: words with quotes, or a shell line.
[[nodiscard]] Result<void> set_command(TaskTemplate& task, std::string_view command, bool shell, const Field& like);
// From words.
[[nodiscard]] Result<void> set_command(TaskTemplate& task, const std::vector<std::string>& words, const Field& like,
                                       Braces braces = Braces::kStrict);

// One set of parameters.
struct Row {
  Parameters parameters;
  std::string place;                                                     // where they stand, for errors
  std::function<std::optional<std::string>(std::string_view)> computed;  // further placeholders; may be empty
};
// `number` counts from 1 and names the task where nothing better does. Fills in everything but the identity.
[[nodiscard]] Result<TaskSpec> make_task(const TaskTemplate& from, const Row& row, std::size_t number);

// More is a mistake in the file, or another kind of program.
inline constexpr std::size_t kMostTasks = 1'000'000;
inline constexpr std::size_t kMostParameters = 10'000;  // of a task
inline constexpr std::size_t kMostBytes = std::size_t{512}
                                          << 20;  // of all tasks' commands, environments and parameters

// Ends the making of a batch: names are made unique. kInvalidInput where two tasks were given one name, or where more
// than `most_bytes` of commands, environments and parameters were to be kept.
class TaskCollector {
 public:
  explicit TaskCollector(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  Result<void> add(const TaskTemplate& from, const Row& row);
  [[nodiscard]] std::size_t size() const { return tasks_.size(); }
  [[nodiscard]] Result<std::vector<TaskSpec>> finish();

 private:
  std::vector<TaskSpec> tasks_;
  std::vector<bool> chosen_;  // the name: by a person
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;  // of commands, environments and parameters
};

// "python3 train.py" of a command with its arguments: what tasks that behave alike have in common.
[[nodiscard]] std::string program_of(const std::vector<std::string>& words);

// KEY=VALUE lines as `docker --env-file` and dotenv write them: quotes, comments, `export`. Nothing is expanded.
[[nodiscard]] Result<Environment> parse_environment(std::string_view text, const std::string& file);

}  // namespace headroom::tasks
