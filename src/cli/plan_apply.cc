// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_apply.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/output.h"
#include "tasks/task_file.h"

namespace headroom::cli {

namespace {

// The task file of a recorded `headroom batch FILE.toml`.
Result<std::string> task_file_of(const Plan& plan) {
  for (const std::string& word : plan.command) {
    if (word == "--") break;
    if (!word.ends_with(".toml")) continue;
    if (word.starts_with("/") || plan.directory.empty() || plan.directory == current_directory()) return word;
    return plan.directory + "/" + word;
  }
  return fail(Errc::kNotFound, "the recorded batch names no task file",
              "write the setting where the tasks are said: headroom help batch");
}

bool sets(std::string_view line, std::string_view key) {
  line = trim(line);
  if (!line.starts_with(key)) return false;
  return trim(line.substr(key.size())).starts_with("=");
}

struct Edit {
  std::size_t at = 0;                // line, from 0
  std::optional<std::string> taken;  // what stood there
  std::vector<std::string> put;
};

// Where `key` stands or should stand in [defaults].
Edit edit_of(const std::vector<std::string>& lines, const std::string& key, const std::string& value) {
  const std::string line = fmt::format("{} = \"{}\"", key, value);
  const auto is_table = [](const std::string& text) { return trim(text).starts_with("["); };
  const auto header = std::find_if(lines.begin(), lines.end(),
                                   [](const std::string& text) { return trim(text).starts_with("[defaults]"); });
  if (header == lines.end()) {
    const auto first = std::find_if(lines.begin(), lines.end(), is_table);
    return {static_cast<std::size_t>(first - lines.begin()), std::nullopt, {"[defaults]", line, ""}};
  }
  const auto end = std::find_if(header + 1, lines.end(), is_table);
  const auto old = std::find_if(header + 1, end, [&](const std::string& text) { return sets(text, key); });
  if (old != end) return {static_cast<std::size_t>(old - lines.begin()), *old, {line}};
  return {static_cast<std::size_t>(header + 1 - lines.begin()), std::nullopt, {line}};
}

std::string difference(const std::string& path, const Edit& edit) {
  std::string text = fmt::format("--- {0}\n+++ {0}\n@@ line {1} @@\n", path, edit.at + 1);
  if (edit.taken) text += fmt::format("-{}\n", *edit.taken);
  for (const std::string& line : edit.put) text += fmt::format("+{}\n", line);
  return text;
}

std::string edited(std::vector<std::string> lines, const Edit& edit) {
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(edit.at);
  const auto rest = edit.taken ? lines.erase(at) : at;
  lines.insert(rest, edit.put.begin(), edit.put.end());
  return join(lines, "\n");
}

Result<bool> may_change(const std::string& path, bool yes) {
  if (yes) return true;
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1)
    return fail(Errc::kInvalidInput, fmt::format("{} would be changed, and nobody can be asked", path),
                "--yes changes it; without --apply nothing is changed");
  HR_TRYV(write_all(STDERR_FILENO, fmt::format("Change {}? [y/N] ", visible(path))));
  std::string answer;
  for (char c = 0; ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) answer += c;
  return lower(trim(answer)) == "y" || lower(trim(answer)) == "yes";
}

Result<void> set_in_task_file(const std::string& path, const std::string& key, const std::string& value, bool yes) {
  HR_TRY(const std::string text, read_file(path));
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  const Edit edit = edit_of(lines, key, value);
  if (edit.taken && trim(*edit.taken) == trim(edit.put.front())) {
    print("{} says so already: {}\n", path, edit.put.front());
    return {};
  }
  const std::string changed = edited(std::move(lines), edit);
  const auto read = [](const std::string& name) { return read_file(name); };
  if (const auto tasks = tasks::tasks_from_toml(changed, path, read); !tasks)  // never leave a file that is none
    return tl::unexpected(within("with the change", tasks.error()));
  print("{}", difference(path, edit));
  HR_TRY(const bool may, may_change(path, yes));
  if (!may) {
    print("nothing was changed\n");
    return {};
  }
  HR_TRYV(write_file(path, changed));
  print("changed {}; to undo: take the line away again\n", path);
  return {};
}

}  // namespace

Result<void> apply_plan(const Plan& plan, bool yes) {
  bool any = false;
  for (const Option& option : plan.options) {
    if (!option.task_file) continue;
    any = true;
    HR_TRY(const std::string path, task_file_of(plan));
    HR_TRYV(set_in_task_file(path, option.task_file->first, option.task_file->second, yes));
  }
  if (!any) print("Nothing here is Headroom's to change: the options are edits of your own code or command.\n");
  return {};
}

}  // namespace headroom::cli
