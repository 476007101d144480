// SPDX-License-Identifier: Apache-2.0
#include "batch/resume.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/ids.h"
#include "base/strings.h"
#include "batch/sweep.h"

namespace headroom::batch {

namespace {

std::string tasks_words(std::size_t count) { return fmt::format("{} {}", count, count == 1 ? "task" : "tasks"); }

// Of the scripts that a task's command names, by size and time; "" where it names none.
std::string fingerprint_of(const TaskSpec& task, std::map<std::string, std::string>& known) {
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
  if (!swept.empty())
    say(fmt::format("stopped {} {} that an earlier run of this batch had left behind", swept.size(),
                    swept.size() == 1 ? "process" : "processes"),
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
  for (const TaskSpec& task : tasks) all.push_back(fingerprint_of(task, known));
  return all;
}

void warn_of_changes(const std::vector<KnownTask>& known, const std::vector<std::string>& fingerprints,
                     const std::optional<Run>& last, const std::optional<GitState>& git, const Say& say) {
  std::size_t done = 0, changed = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i].state != TaskState::kSucceeded) continue;
    done += 1;
    if (!known[i].fingerprint.empty() && known[i].fingerprint != fingerprints[i]) changed += 1;
  }
  if (changed > 0)
    say(fmt::format("{} that succeeded earlier did so with another version of the script", tasks_words(changed)),
        "they are not run again; --fresh starts over");
  else if (done > 0 && last && git && last->git_commit != git->commit)
    say(fmt::format("git: the earlier results are of commit {}, this is {}", last->git_commit.substr(0, 10),
                    git->commit.substr(0, 10)),
        "they are kept; --fresh starts over");
}

}  // namespace headroom::batch
