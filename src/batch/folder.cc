// SPDX-License-Identifier: Apache-2.0
#include "batch/folder.h"

#include <time.h>

#include <algorithm>
#include <filesystem>

#include "base/filesystem.h"
#include "base/fnv.h"
#include "base/time.h"
#include "batch/control.h"
#include "batch/journal.h"

namespace headroom::batch {

namespace {

namespace fs = std::filesystem;

constexpr Nanos kGuardianPatience = 60 * kSecond;

// The batch in `parent` that was written last; "" where there is none.
std::string latest_in(const std::string& parent) {
  std::error_code error;
  std::string latest;
  fs::file_time_type newest{};
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    const std::string folder = entry->path().string();
    const auto journal = journal_path(folder);
    std::error_code none;
    if (entry->path().extension() != ".batch" || !fs::exists(journal, none)) continue;
    auto time = fs::last_write_time(journal, none);
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
  std::uint64_t hash = kFnvBasis;  // the same tasks find their journal again
  for (const TaskSpec& task : set.tasks) hash = fnv1a(task.identity, hash);
  return fmt::format("{}/headroom-{:08x}.batch", current_directory(), hash >> 32);
}

Result<Fd> take_folder(const std::string& folder, bool fresh, const Say& say) {
  std::error_code error;
  if (fresh && fs::exists(journal_path(folder), error)) {
    HR_TRY(const Fd lock, lock_folder(folder));  // not from under a running batch
    std::string aside;
    for (int i = 1; aside.empty() || fs::exists(aside, error); ++i) aside = fmt::format("{}.old{}", folder, i);
    fs::rename(folder, aside, error);
    if (error) return fail(Errc::kIo, fmt::format("--fresh: cannot move {} aside: {}", folder, error.message()));
    say(fmt::format("the batch that was here is kept in {}", aside), "");
  }
  fs::create_directories(folder + "/logs", error);
  if (error)
    return fail(Errc::kNoPermission, fmt::format("make the folder {}: {}", folder, error.message()),
                "--folder chooses another place");
  auto lock = lock_folder(folder);
  if (lock || lock.error().code != Errc::kBusy) return lock;
  if (ask(folder, "ping"))
    return fail(Errc::kBusy, fmt::format("another batch runs in {}", folder),
                "headroom batch status shows it; --folder runs a second one elsewhere");
  say("the batch that died here is still being stopped; waiting for it", "");
  for (const Nanos until = boottime_now() + kGuardianPatience; !lock && boottime_now() < until;) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};
    ::nanosleep(&pause, nullptr);
    lock = lock_folder(folder);
  }
  return lock;
}

Result<std::string> find_folder(const std::string& given) {
  std::error_code error;
  if (given.empty()) {
    const std::string latest = latest_in(".");
    if (!latest.empty()) return latest;
    return fail(Errc::kNotFound, "there is no batch in this folder",
                "name the batch's folder, its task file, or the folder that it is in");
  }
  if (fs::exists(journal_path(given), error)) return given;
  const std::string beside = fs::path(given).replace_extension(".batch").string();
  if (fs::exists(journal_path(beside), error)) return beside;
  if (const std::string latest = latest_in(given); !latest.empty()) return latest;
  return fail(Errc::kNotFound, fmt::format("there is no batch in {} or {}", given, beside),
              "name the batch's folder, its task file, or the folder that it is in");
}

}  // namespace headroom::batch
