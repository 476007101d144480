// SPDX-License-Identifier: Apache-2.0
#include "batch/resume.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/fnv.h"
#include "base/ids.h"
#include "base/strings.h"
#include "batch/sweep.h"

namespace headroom::batch {

namespace {

constexpr std::size_t kNamed = 8;  // processes

std::string tasks_words(std::size_t count) { return fmt::format("{} {}", count, count == 1 ? "task" : "tasks"); }

// A fingerprint is "SCRIPTS|ENVIRONMENT"; of an older version, or of nothing, it has no '|'.
constexpr char kBar = '|';

std::string environment_print(const TaskSpec& task) {
  std::map<std::string, std::string> last;  // the last one of a name wins
  for (const auto& [name, value] : task.environment) last[name] = value;
  std::uint64_t hash = kFnvBasis;
  for (const auto& [name, value] : last)
    for (const std::string_view text : {std::string_view(name), std::string_view(value)})
      hash = fnv1a(text, fnv1a(std::uint64_t{text.size()}, hash));
  return last.empty() ? "" : fmt::format("{:016x}", hash);
}

struct Changes {
  bool script = false, environment = false;
};
Changes changes_between(std::string_view before, std::string_view now) {
  if (before.empty()) return {};
  const auto bar = before.rfind(kBar), bar_now = now.rfind(kBar);
  Changes changes{.script = before.substr(0, bar) != now.substr(0, bar_now)};
  if (bar != std::string_view::npos) changes.environment = before.substr(bar) != now.substr(bar_now);
  return changes;
}

// Of the scripts that a task's command names, by size and time; "" where it names none.
std::string script_print(const TaskSpec& task, std::map<std::string, std::string>& known) {
  static constexpr std::string_view kScripts[] = {".py", ".sh", ".R", ".jl", ".pl", ".ipynb"};
  std::string all;
  for (const std::string& argument : task.argv) {
    for (const auto part : split(argument, ' ')) {
      const std::string word(part);
      const bool script = std::any_of(std::begin(kScripts), std::end(kScripts),
                                      [&](std::string_view end) { return word.ends_with(end); });
      if (!script) continue;
      const std::string path = word.front() == '/' || task.working_directory.empty()
                                   ? word
                                   : fmt::format("{}/{}", task.working_directory, word);
      const auto [entry, fresh] = known.try_emplace(path);
      struct stat info {};
      if (fresh && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode))
        entry->second = fmt::format("{} {} {}.{:09};", word, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
      all += entry->second;
    }
  }
  return all;
}

}  // namespace

void stop_what_was_left(Journal& journal, Nanos grace, const Say& say) {
  const auto roots = journal.without_end(boot_id());
  const auto swept = stop_processes(journal.batch_id(), {}, grace, roots ? *roots : std::vector<Root>{});
  if (swept.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(swept.size(), kNamed); ++i)
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", swept[i].pid, swept[i].name);
  if (swept.size() > kNamed) names += ", …";
  say(fmt::format("stopped {} {} that an earlier run of this batch had left behind: {}", swept.size(),
                  swept.size() == 1 ? "process" : "processes", names),
      "");
}

std::size_t keep_or_rerun(const std::vector<TaskSpec>& tasks, std::vector<KnownTask>& known, const Say& say) {
  std::error_code ignored;
  const std::string start = std::filesystem::current_path(ignored).string();
  std::size_t kept = 0, lost = 0, changed = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    changed += known[i].changed ? 1U : 0U;
    if (known[i].state != TaskState::kSucceeded) continue;
    const auto& outputs = tasks[i].outputs;
    const bool there = std::all_of(outputs.begin(), outputs.end(), [&](const std::string& output) {
      return std::filesystem::exists(path_of(tasks[i], output, start), ignored);
    });
    if (there) {
      ++kept;
    } else {
      known[i].state = TaskState::kReady;
      ++lost;
    }
  }
  if (lost > 0)
    say(fmt::format("{} succeeded earlier, but their outputs are gone: they run again", tasks_words(lost)), "");
  if (changed > 0)
    say(fmt::format("{} succeeded earlier with another command, other parameters or other inputs: they run again",
                    tasks_words(changed)),
        "");
  return kept;
}

std::vector<std::string> fingerprints_of(const std::vector<TaskSpec>& tasks) {
  std::map<std::string, std::string> known;  // asked once per script, whatever the number of tasks
  std::vector<std::string> all;
  all.reserve(tasks.size());
  for (const TaskSpec& task : tasks) all.push_back(script_print(task, known) + kBar + environment_print(task));
  return all;
}

void warn_of_changes(const std::vector<KnownTask>& known, const std::vector<std::string>& fingerprints,
                     const std::optional<Run>& last, const std::optional<GitState>& git, const Say& say) {
  std::size_t done = 0, scripts = 0, environments = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i].state != TaskState::kSucceeded) continue;
    done += 1;
    const Changes changes = changes_between(known[i].fingerprint, fingerprints[i]);
    scripts += changes.script ? 1U : 0U;
    environments += changes.environment ? 1U : 0U;
  }
  const auto warn = [&](std::size_t count, std::string_view what) {
    if (count > 0)
      say(fmt::format("{} that succeeded earlier did so with {}", tasks_words(count), what),
          "they are not run again; --rerun PATTERN runs some, --fresh starts over");
  };
  warn(scripts, "another version of the script");
  warn(environments, "another environment (env, env_file)");
  if (scripts + environments > 0) return;
  if (done > 0 && last && git && last->git_commit != git->commit)
    say(fmt::format("git: the earlier results are of commit {}, this is {}", last->git_commit.substr(0, 10),
                    git->commit.substr(0, 10)),
        "they are kept; --fresh starts over");
}

}  // namespace headroom::batch
