// SPDX-License-Identifier: Apache-2.0
#include "batch/folder.h"

#include <time.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "base/answers.h"
#include "base/filesystem.h"
#include "base/fnv.h"
#include "base/human.h"
#include "base/time.h"
#include "base/visible.h"
#include "batch/control.h"
#include "batch/folder_lock.h"
#include "batch/journal.h"
#include "batch/shared_work.h"
#include "batch/sweep.h"

namespace headroom::batch {

namespace {

namespace fs = std::filesystem;

constexpr Nanos kGuardianPatience = 30 * kSecond;  // beyond the grace time: what hangs in the kernel is given up before
constexpr Nanos kMoment = 500 * kMillisecond;      // somebody who asks for the status holds the lock for less

std::uint64_t tasks_key(const tasks::TaskSet& set) {
  std::uint64_t hash = kFnvBasis;
  for (const TaskSpec& task : set.tasks) hash = fnv1a(task.identity, hash);
  return hash;
}

// A command and the names of its parameters, whatever their values: a list that became longer goes on. Commands without
// parameters are known by themselves.
std::uint64_t command_key(const tasks::TaskSet& set) {
  const TaskSpec& first = set.tasks.front();
  if (first.parameters.empty() || first.command_template.empty()) return tasks_key(set);
  std::uint64_t hash = fnv1a(std::string_view(first.shell ? "shell\n" : "words\n"));
  hash = fnv1a(first.command_template, hash);
  for (const auto& [name, value] : first.parameters) hash = fnv1a(name, fnv1a(std::string_view("\n"), hash));
  return hash;
}

std::string folder_named(std::uint64_t key) {
  return fmt::format("{}/headroom-{:08x}.batch", current_directory(), key >> 32);
}

// The batch in `parent` that was written last; "" where there is none.
std::string latest_in(const std::string& parent) {
  std::error_code error;
  std::string latest;
  fs::file_time_type newest{};
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    const std::string folder = entry->path().string();
    const auto journal = journal_path(folder);
    std::error_code none;
    const bool shared = is_shared(folder);
    if (entry->path().extension() != ".batch" || (!shared && !fs::exists(journal, none))) continue;
    auto time = fs::last_write_time(shared ? folder + "/shared/done" : journal, none);
    if (const auto log = fs::last_write_time(journal + "-wal", none); !none) time = std::max(time, log);
    if (latest.empty() || time > newest) latest = folder, newest = time;
  }
  return latest;
}

}  // namespace

std::string folder_of(const Request& request, const tasks::TaskSet& set) {
  std::error_code ignored;
  if (!request.folder.empty()) return fs::absolute(request.folder, ignored).lexically_normal().string();
  if (!request.words.empty() && request.words[0] != "-")
    return fs::absolute(request.words[0], ignored).replace_extension(".batch").lexically_normal().string();
  const std::string by_command = folder_named(command_key(set)), by_tasks = folder_named(tasks_key(set));
  // That of an older version, which knew a batch by its very tasks.
  const bool older = !fs::exists(journal_path(by_command), ignored) && fs::exists(journal_path(by_tasks), ignored);
  return older ? by_tasks : by_command;
}

namespace {

// "X.old1", "X.old2", …: the first that is free.
Result<void> move_aside(const std::string& folder, const Say& say) {
  std::error_code error;
  std::string aside;
  int number = 1;
  for (; aside.empty() || fs::exists(aside, error); ++number) aside = fmt::format("{}.old{}", folder, number);
  fs::rename(folder, aside, error);
  if (error) return fail(Errc::kIo, fmt::format("--fresh: cannot move {} aside: {}", folder, error.message()));
  constexpr int kManyOld = 4;
  say(fmt::format("the batch that was here is kept in {}", aside),
      number > kManyOld ? fmt::format("there are {} such by now, and they are never removed: rm -r {}.old*", number - 1,
                                      typed_word(folder))
                        : "");
  return {};
}

Error runs_already(const Holder& holder, const std::string& folder) {
  const std::string who = holder.pid != 0 ? fmt::format(" (process {})", holder.pid) : "";
  if (holder.state == Holder::State::kStopped)
    return {.code = Errc::kBusy,
            .what = fmt::format("another batch runs in {}{}, and was stopped (Ctrl-Z?)", folder, who),
            .hint = fmt::format("kill -CONT {} lets it go on; --folder runs a second one elsewhere", holder.pid)};
  return {.code = Errc::kBusy,
          .what = fmt::format("another batch runs in {}{}", folder, who),
          .hint = "headroom batch status shows it; --folder runs a second one elsewhere"};
}

// While a batch that died is still being stopped. A guardian that somebody has stopped is told to go on.
Result<void> lock_patiently(Place& place, const Say& say) {
  auto locked = lock_place(place);
  bool told = false;
  for (Nanos begin = boottime_now(); !locked && locked.error().code == Errc::kBusy; locked = lock_place(place)) {
    const Holder holder = holder_of(place.folder);
    const Nanos waited = boottime_now() - begin;
    const bool dying = holder.state == Holder::State::kGuardian;
    if (holder.state == Holder::State::kStopped || (!dying && (waited > kMoment || ask(place.folder, "ping"))))
      return tl::unexpected(runs_already(holder, place.folder));
    if (waited > kGuardianPatience + holder.grace)
      return fail(
          Errc::kBusy,
          fmt::format("the batch that died in {} has not been stopped in {}", place.folder, human_duration(waited)),
          fmt::format("process {} (headroom-guard) still stops its tasks", holder.guardian));
    if (dying && !std::exchange(told, true)) say("the batch that died here is still being stopped; waiting for it", "");
    if (const auto guardian = process_now(holder.guardian); dying && guardian && guardian->stopped)
      ::kill(holder.guardian, SIGCONT);
    const timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};
    ::nanosleep(&pause, nullptr);
  }
  return locked;
}

}  // namespace

Result<Place> take_folder(const std::string& folder, const Request& request, const Say& say) {
  HR_TRYV(answers(folder));
  const Trust trust = request.trust_folder ? Trust::kAnybodys : Trust::kOwn;
  std::error_code error;
  if (request.fresh && fs::exists(journal_path(folder), error)) {
    HR_TRY(Place there, open_place(folder, trust));
    if (const auto locked = lock_place(there); !locked) {  // not from under a running batch
      if (locked.error().code != Errc::kBusy) return tl::unexpected(locked.error());
      return tl::unexpected(runs_already(holder_of(folder), folder));
    }
    HR_TRYV(move_aside(folder, say));
  }
  HR_TRY(Place place, open_place(folder, trust));
  HR_TRYV(lock_patiently(place, say));
  if (ask(folder, "ping"))  // its lock was removed, perhaps on a network file system
    return tl::unexpected(runs_already({.state = Holder::State::kRuns}, folder));
  return place;
}

std::vector<std::string> running_in(const std::string& parent) {
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() != ".batch") continue;
    const auto state = holder_of(entry->path().string()).state;
    if (state == Holder::State::kRuns || state == Holder::State::kStopped) folders.push_back(entry->path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

void warn_of_others(const std::string& folder, std::string_view shared, const Say& say) {
  const auto guardians = processes_named("headroom-guard");  // one beside each running batch, whoever's it is
  if (guardians == 0) return;
  std::string where;
  std::error_code error;
  for (const auto& other : running_in(headroom::directory_of(folder)))
    if (!fs::equivalent(other, folder, error)) where += fmt::format("{}{}", where.empty() ? " (one in " : ", ", other);
  if (!where.empty()) where += ")";
  say(fmt::format("{} on this machine already{}: they share its {}",
                  guardians == 1 ? "another batch runs" : fmt::format("{} other batches run", guardians), where,
                  shared),
      "");
}

Result<std::string> find_folder(const std::string& given) {
  HR_TRYV(answers(given.empty() ? "." : given));
  std::error_code error;
  if (given.empty()) {
    const std::string latest = latest_in(".");
    if (!latest.empty()) return latest;
    return fail(Errc::kNotFound, "there is no batch in this folder",
                "name the batch's folder, its task file, or the folder that it is in");
  }
  const std::string beside = fs::path(given).replace_extension(".batch").string();
  for (const std::string& folder : {given, beside}) {
    if (is_shared(folder) || fs::exists(journal_path(folder), error)) return folder;
    if (error == std::errc::permission_denied)
      return fail(Errc::kNoPermission, fmt::format("the batch in {} is another user's, who lets nobody look", folder));
  }
  if (const std::string latest = latest_in(given); !latest.empty()) return latest;
  return fail(Errc::kNotFound, fmt::format("there is no batch in {} or {}", given, beside),
              "name the batch's folder, its task file, or the folder that it is in");
}

}  // namespace headroom::batch
