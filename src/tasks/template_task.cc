// SPDX-License-Identifier: Apache-2.0
#include "tasks/template_task.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/names.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "tasks/template.h"

namespace headroom::tasks {

namespace {

tl::unexpected<Error> at(const Field& field, const std::string& place, Error error) {
  error = within(field.key, std::move(error));
  const std::string& where = field.place.empty() ? place : field.place;
  return tl::unexpected(where.empty() ? std::move(error) : within(where, std::move(error)));
}

Result<std::string> filled(const Field& field, const Filling& filling, Form form, const std::string& place) {
  auto text = fill(field.pieces, filling, form);
  if (!text) return at(field, place, text.error());
  return text;
}

Result<std::vector<std::string>> all_filled(const std::vector<Field>& fields, const Filling& filling,
                                            const std::string& place) {
  std::vector<std::string> texts;
  for (const Field& field : fields) {
    HR_TRY(std::string text, filled(field, filling, Form::kText, place));
    if (text.empty())
      return at(field, place, Error{Errc::kInvalidInput, "an empty text", "leave it out, or write a path"});
    texts.push_back(std::move(text));
  }
  return texts;
}

// For an error: whatever stands in it, it is one short line.
std::string one_line(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string line(text.substr(0, kShown));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, ' ');
  return line;
}

bool has_parameters(const Field& field) {
  return std::any_of(field.pieces.begin(), field.pieces.end(), [](const Piece& piece) { return piece.placeholder; });
}

std::string name_of_values(const Parameters& parameters) {
  constexpr std::size_t kLongest = 120;  // bytes
  constexpr std::string_view kKept = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+=:@-";
  std::string name;
  for (const auto& [key, value] : parameters) name += (name.empty() ? "" : "_") + value;
  name = file_name_of(name, name.size());
  // What a shell would read otherwise goes, too: these names are typed again.
  std::replace_if(
      name.begin(), name.end(),
      [&](char c) { return static_cast<unsigned char>(c) < 0x80 && kKept.find(c) == std::string_view::npos; }, '-');
  if (name.size() > kLongest || name.find_first_not_of("._-") == std::string::npos) return "";
  return name;
}

constexpr std::size_t kLongestName = 200;  // bytes

// What a person wrote is not changed behind their back; what values put into it is.
Result<void> check_name(const Field& written, const std::string& name) {
  const bool odd = std::any_of(written.pieces.begin(), written.pieces.end(),
                               [](const Piece& piece) { return !piece.placeholder && !fits_file_name(piece.text); });
  if (!name.empty() && !odd && name != "." && name != "..") return {};
  return fail(Errc::kInvalidInput, fmt::format("'{}' is no name for a task", one_line(name)),
              "a name has no '/' and no control characters, and is not empty");
}

Result<std::string> task_name(const TaskTemplate& from, const Row& row, std::size_t number, const Filling& filling) {
  const std::string values = name_of_values(row.parameters);
  if (from.name.pieces.empty()) return values.empty() ? fmt::format("task-{}", number) : values;
  HR_TRY(std::string name, filled(from.name, filling, Form::kText, row.place));
  if (!row.parameters.empty() && !has_parameters(from.name))
    name += values.empty() ? fmt::format("-{}", number) : "-" + values;
  if (auto good = check_name(from.name, name); !good) return at(from.name, row.place, good.error());
  return file_name_of(name, kLongestName);
}

Filling with_computed(Filling filling, const Row& row) {
  if (!row.computed) return filling;
  filling.value = [plain = std::move(filling.value), &row](std::string_view name) {
    auto value = plain(name);
    return value ? value : row.computed(name);
  };
  return filling;
}

std::string group_of(const TaskTemplate& from) {
  if (!from.name.pieces.empty() && !has_parameters(from.name)) return from.name.pieces.front().text;
  std::vector<std::string> words;
  for (const Field& field : from.argv)
    words.push_back(field.pieces.empty() || field.pieces[0].placeholder ? "" : field.pieces[0].text);
  if (from.shell) words = split_words(words.back()).value_or(std::vector<std::string>{words.back()});
  return program_of(words);
}

std::string in_directory(const std::string& base, const std::string& path) {
  if (base.empty() || path.starts_with('/')) return path;
  return path == "." ? base : base + "/" + path;
}

Result<void> set_environment(const TaskTemplate& from, const Filling& filling, const std::string& place,
                             TaskSpec& task) {
  for (const Field& file : from.env_files) {
    HR_TRY(const std::string path, filled(file, filling, Form::kText, place));
    auto variables = from.read_environment(in_directory(from.base_directory, path));
    if (!variables) return at(file, place, variables.error());
    for (auto& [name, value] : *variables) task.environment.emplace_back(name, double_braces(value));
  }
  task.from_env_file = task.environment.size();
  for (const auto& [name, field] : from.environment) {
    HR_TRY(std::string value, filled(field, filling, Form::kWord, place));
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos ||
        value.find('\0') != std::string::npos)
      return at(
          field, place,
          Error{Errc::kInvalidInput, "no variable of an environment", "a name has no '=', and nothing a zero byte"});
    task.environment.emplace_back(name, std::move(value));
  }
  return {};
}

// Whether `field` of a command takes the value of the parameter `name`: by its name, or by something that is computed.
bool takes(const Field& field, const Row& row, std::string_view name) {
  return std::any_of(field.pieces.begin(), field.pieces.end(), [&](const Piece& piece) {
    if (!piece.placeholder || piece.text == "task" || is_place_name(piece.text)) return false;
    const bool another = std::any_of(row.parameters.begin(), row.parameters.end(),
                                     [&](const auto& parameter) { return parameter.first == piece.text; });
    return piece.text == name || !another;
  });
}

// What is nobody's to read in the command is nobody's to read in a name, which becomes that of a file: instead of such
// a value the task's number is put there.
Row without_secrets(const TaskTemplate& from, const Row& row, std::size_t number) {
  const std::string unnamed;
  const Filling filling = with_computed(filling_of(row.parameters, &unnamed), row);
  std::vector<std::string> argv;
  for (const Field& field : from.argv)
    argv.push_back(fill(field.pieces, filling, from.shell && &field == &from.argv.back() ? Form::kShell : Form::kWord)
                       .value_or(""));
  const std::vector<std::string> shown = hide_secrets(argv);
  const std::string instead = fmt::format("hidden-{}", number);
  Row named = row;
  bool any = false;
  for (auto& [name, value] : named.parameters) {
    bool secret = is_secret(name, value);
    for (std::size_t i = 0; i < argv.size() && !secret && !value.empty(); ++i)
      secret = shown[i] != argv[i] && shown[i].find(value) == std::string::npos && takes(from.argv[i], row, name);
    if (secret) value = instead, any = true;
  }
  if (any && row.computed)
    named.computed = [&row, instead](std::string_view name) {
      return row.computed(name) ? std::optional(instead) : std::nullopt;
    };
  return named;
}

Result<void> set_argv(const TaskTemplate& from, const Filling& filling, const std::string& place, TaskSpec& task) {
  for (const Field& field : from.argv) {
    const bool line = from.shell && &field == &from.argv.back();
    HR_TRY(std::string word, filled(field, filling, line ? Form::kShell : Form::kWord, place));
    if (word.find('\0') != std::string::npos)
      return at(field, place, Error{Errc::kInvalidInput, "a zero byte, which no program can be given", ""});
    task.argv.push_back(std::move(word));
  }
  if (task.argv.empty() || task.argv[0].empty())
    return at(from.argv.empty() ? Field{"command", "", {}} : from.argv[0], place,
              Error{Errc::kInvalidInput, "no program to run", "the first word is the program"});
  const bool asks_gpu = std::any_of(task.argv.begin(), task.argv.end(), uses_gpu);
  if (asks_gpu && task.resources.gpus == 0)
    return at(from.argv.back(), place,
              Error{Errc::kInvalidInput, "a GPU is named, and the task asks for none",
                    "remove gpus = 0, or the placeholder"});
  return {};
}

}  // namespace

Result<Field> make_field(std::string key, std::string place, std::string_view text, Braces braces) {
  Field field{std::move(key), std::move(place), {}};
  auto pieces = parse_template(text, braces);
  if (!pieces) return at(field, "", pieces.error());
  field.pieces = std::move(*pieces);
  return field;
}

Result<void> set_command(TaskTemplate& task, const std::vector<std::string>& words, const Field& like, Braces braces) {
  task.shell = false;
  task.argv.clear();
  for (const std::string& word : words) {
    HR_TRY(Field field, make_field(like.key, like.place, word, braces));
    task.argv.push_back(std::move(field));
  }
  if (words.empty() || words[0].empty())
    return at(like, "", Error{Errc::kInvalidInput, "no program to run", "the first word is the program"});
  task.rest.command_template = shell_join(words);
  return {};
}

Result<void> set_command(TaskTemplate& task, std::string_view command, bool shell, const Field& like) {
  if (trim(command).empty()) return at(like, "", Error{Errc::kInvalidInput, "no program to run", "write a command"});
  if (!shell) {
    auto words = split_words(command);
    if (!words) return at(like, "", words.error());
    return set_command(task, *words, like);
  }
  task.shell = true;
  task.argv = {Field{like.key, like.place, {{"/bin/sh", false}}}, Field{like.key, like.place, {{"-c", false}}}};
  HR_TRY(Field line, make_field(like.key, like.place, command, Braces::kShell));
  task.argv.push_back(std::move(line));
  task.rest.command_template = std::string(command);
  return {};
}

Result<TaskSpec> make_task(const TaskTemplate& from, const Row& row, std::size_t number) {
  TaskSpec task = from.rest;
  const Row named = without_secrets(from, row, number);
  HR_TRY(task.name, task_name(from, named, number, with_computed(filling_of(named.parameters), named)));
  const Filling filling = with_computed(filling_of(row.parameters, &task.name), row);
  task.shell = from.shell;
  HR_TRYV(set_argv(from, filling, row.place, task));
  HR_TRYV(set_environment(from, filling, row.place, task));
  HR_TRY(task.group,
         filled(from.group, with_computed(filling_of(named.parameters, &task.name), named), Form::kText, row.place));
  if (task.group.empty()) task.group = group_of(from);
  if (!from.working_directory.pieces.empty()) {
    HR_TRY(const std::string directory, filled(from.working_directory, filling, Form::kText, row.place));
    task.working_directory = in_directory(from.base_directory, directory);
  }
  HR_TRY(task.inputs, all_filled(from.inputs, filling, row.place));
  HR_TRY(task.outputs, all_filled(from.outputs, filling, row.place));
  HR_TRY(task.after, all_filled(from.after, filling, row.place));
  if (!from.resolved.pieces.empty()) {
    HR_TRY(task.resolved, filled(from.resolved, filling, Form::kText, row.place));
  }
  task.parameters = row.parameters;
  return task;
}

namespace {

// The size of what is written out for each task.
std::size_t bytes_of(const TaskSpec& task) {
  std::size_t bytes = 0;
  for (const std::string& word : task.argv) bytes += word.size();
  for (const auto& [name, value] : task.environment) bytes += name.size() + value.size();
  for (const auto& [name, value] : task.parameters) bytes += name.size() + value.size();
  return bytes;
}

}  // namespace

Result<void> TaskCollector::add(const TaskTemplate& from, const Row& row) {
  if (tasks_.size() >= kMostTasks)
    return fail(Errc::kInvalidInput, fmt::format("{}: more than {} tasks", row.place, kMostTasks), "split the batch");
  HR_TRY(TaskSpec task, make_task(from, row, tasks_.size() + 1));
  bytes_ += bytes_of(task);
  if (bytes_ > most_bytes_)
    return fail(Errc::kInvalidInput,
                fmt::format("{}: the commands of the first {} tasks alone have {} MiB", row.place, tasks_.size() + 1,
                            most_bytes_ >> 20),
                "split the batch, or let a script hold what all of them share");
  tasks_.push_back(std::move(task));
  chosen_.push_back(!from.name.pieces.empty());
  return {};
}

Result<std::vector<TaskSpec>> TaskCollector::finish() {
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!chosen_[i]) continue;
    const auto [first, fresh] = seen.emplace(tasks_[i].name, i);
    if (!fresh)
      return fail(Errc::kInvalidInput,
                  fmt::format("{}:{}: two tasks are named '{}' (the first: line {})", tasks_[i].file, tasks_[i].line,
                              tasks_[i].name, tasks_[first->second].line),
                  "put the parameters that tell them apart into the name, or leave the name out");
  }
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (chosen_[i]) continue;
    const std::string base = tasks_[i].name;
    for (std::size_t n = i + 1; !seen.emplace(tasks_[i].name, i).second; ++n)
      tasks_[i].name = fmt::format("{}-{}", base, n);
  }
  return std::move(tasks_);
}

std::string program_of(const std::vector<std::string>& words) {
  static constexpr std::array<std::string_view, 12> kRunners{"python", "bash", "sh",   "perl", "ruby",   "node",
                                                             "julia",  "env",  "nice", "uv",   "poetry", "Rscript"};
  std::string program;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool assignment = word.find('=') != std::string::npos;
    if (word.empty() || (assignment && program.empty()) || (word[0] == '-' && word != "-m")) continue;
    const auto slash = word.find_last_of('/');
    const std::string last = slash == std::string::npos || slash + 1 == word.size() ? word : word.substr(slash + 1);
    if (program.empty()) {
      program = last;
      const bool runner =
          std::any_of(kRunners.begin(), kRunners.end(), [&](auto name) { return last.starts_with(name); });
      if (!runner) return program;
    } else {
      program += " " + last;
      if (word != "-m" && word != "run") return program;
    }
  }
  return program.empty() ? "command" : program;
}

}  // namespace headroom::tasks
