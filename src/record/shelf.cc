// SPDX-License-Identifier: Apache-2.0
#include "record/shelf.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/filesystem.h"
#include "base/sqlite.h"
#include "base/strings.h"
#include "record/reader.h"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".hrec";

// A recorder that we cannot see (another container) writes at least this often; younger files are left alone.
constexpr Nanos kQuiet = 600 * kSecond;

// "20261120T141503Z": UTC, so that names sort by time whatever the clock on the wall does.
std::string time_stamp(Nanos realtime) {
  const auto second = static_cast<std::time_t>(realtime / kSecond);
  std::tm utc{};
  char text[32];
  ::gmtime_r(&second, &utc);
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc)};
}

// Of a batch what it runs: its file of tasks, or the command after "--" or in --command.
std::vector<std::string> what_it_runs(const std::vector<std::string>& command) {
  if (command.size() < 2 || command[0] != "headroom" || command[1] != "batch") return command;
  constexpr std::string_view kCommand = "--command=";
  std::vector<std::string> otherwise{"batch"};
  for (auto word = command.begin() + 2; word != command.end(); ++word) {
    if (*word == "--") return {word + 1, command.end()};
    if (word->starts_with(kCommand)) {
      otherwise.clear();
      for (const std::string_view part : split(std::string_view(*word).substr(kCommand.size()), ' '))
        otherwise.emplace_back(part);
    }
    if (!word->starts_with('-')) return {word, command.end()};
  }
  return otherwise;
}

// The command as people call it: of "python3 -u train.py --x" that is train.py.
std::string short_name(const std::vector<std::string>& whole) {
  const std::vector<std::string> command = what_it_runs(whole);
  std::string name = command.empty() ? "record" : fs::path(command[0]).filename().string();
  if (name.starts_with("python") || name == "sh" || name == "bash" || name == "torchrun" || name == "env") {
    for (std::size_t i = 1; i < command.size(); ++i) {
      const std::string argument = fs::path(command[i]).filename().string();
      if (argument.ends_with(".py") || argument.ends_with(".sh")) {
        name = argument;
        break;
      }
    }
  }
  constexpr std::size_t kLongest = 40;
  name = name.substr(0, kLongest);
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  return name.empty() ? "record" : name;
}

std::optional<struct stat> stat_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

std::int64_t bytes_of(const std::string& path) {
  const auto file = stat_of(path), log = stat_of(path + "-wal");
  return (file ? std::int64_t{file->st_size} : 0) + (log ? std::int64_t{log->st_size} : 0);
}

Nanos modified_of(const std::string& path) {
  Nanos newest = 0;
  for (const char* suffix : {"", "-wal"})
    if (const auto info = stat_of(path + suffix))
      newest = std::max(newest, Nanos{info->st_mtim.tv_sec} * kSecond + info->st_mtim.tv_nsec);
  return newest;
}

std::vector<std::string> recordings_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(kSuffix) && entry->is_regular_file(error)) names.push_back(name);
  }
  return names;
}

// Names made by new_path begin with their second; within it, and for files copied in by hand, the last write decides.
std::string sort_key(const std::string& directory, const std::string& name) {
  const Nanos modified = modified_of(directory + "/" + name);
  const bool stamped = name.size() > 17 && name[8] == 'T' && name[15] == 'Z' &&
                       std::all_of(name.begin(), name.begin() + 8, [](char c) { return c >= '0' && c <= '9'; });
  return fmt::format("{}{:020}{}", stamped ? name.substr(0, 16) : time_stamp(modified), modified, name);
}

bool in_use(const ShelfEntry& entry, Nanos now) {
  if (!entry.summary) return now - entry.modified < kQuiet;
  if (entry.summary->state == FileState::kRecording) return true;
  return entry.summary->state == FileState::kInterrupted && now - entry.modified < kQuiet;
}

Result<void> unlink_recording(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return tl::unexpected(errno_error(fmt::format("remove {}", path)));
  for (const char* suffix : {"-wal", "-shm", "-journal"}) ::unlink((path + suffix).c_str());
  return {};
}

}  // namespace

Result<Shelf> Shelf::of_user(const std::optional<std::string>& xdg_state_home, const std::optional<std::string>& home) {
  // The XDG rules: a path that is not absolute is to be ignored.
  if (xdg_state_home && xdg_state_home->starts_with('/')) return Shelf(*xdg_state_home + "/headroom");
  if (home && home->starts_with('/')) return Shelf(*home + "/.local/state/headroom");
  return fail(Errc::kNotFound, "there is no place for recordings: neither XDG_STATE_HOME nor HOME is an absolute path",
              "set HOME, or say where with --output");
}

std::string Shelf::network_filesystem() const {
  fs::path folder = directory_;  // it may not exist yet: ask about the part that does
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return headroom::network_filesystem(folder.string());
}

Result<std::string> Shelf::new_path(const std::vector<std::string>& command, Nanos realtime) const {
  if (auto made = make_private_folder(directory_); !made)
    return fail(Errc::kNoPermission, fmt::format("the folder for recordings: {}", made.error().what),
                "set XDG_STATE_HOME, or say where with --output");
  const std::string stem = fmt::format("{}/{}-{}", directory_, time_stamp(realtime), short_name(command));
  constexpr int kTries = 1000;
  for (int i = 1; i <= kTries; ++i) {
    const std::string path = i == 1 ? fmt::format("{}{}", stem, kSuffix) : fmt::format("{}-{}{}", stem, i, kSuffix);
    if (!stat_of(path)) return path;
  }
  return fail(Errc::kBusy, fmt::format("{}{}: a thousand recordings have this name", stem, kSuffix),
              "say where with --output");
}

std::vector<std::string> Shelf::names() const {
  std::vector<std::pair<std::string, std::string>> keyed;
  for (auto& name : recordings_in(directory_)) keyed.emplace_back(sort_key(directory_, name), std::move(name));
  std::sort(keyed.rbegin(), keyed.rend());
  std::vector<std::string> names;
  for (auto& [key, name] : keyed) names.push_back(std::move(name));
  return names;
}

std::vector<ShelfEntry> Shelf::list() const {
  std::vector<std::pair<std::string, ShelfEntry>> keyed;
  for (const auto& name : recordings_in(directory_)) {
    ShelfEntry entry{.path = directory_ + "/" + name, .name = name};
    entry.bytes = bytes_of(entry.path);
    entry.modified = modified_of(entry.path);
    auto summary = summarize(entry.path);
    if (summary)
      entry.summary = std::move(*summary);
    else
      entry.problem = summary.error().what;
    keyed.emplace_back(sort_key(directory_, name), std::move(entry));
  }
  std::sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<ShelfEntry> entries;
  for (auto& [key, entry] : keyed) entries.push_back(std::move(entry));
  return entries;
}

namespace {

bool is_spared(const ShelfEntry& entry, const PruneLimits& limits, Nanos now) {
  if (in_use(entry, now)) return true;
  return limits.among && std::find(limits.among->begin(), limits.among->end(), entry.name) == limits.among->end();
}

// What stays: what a recorder that was killed left of it becomes a plain file.
void keep(ShelfEntry entry, Nanos now, DryRun dry_run, PruneReport& report) {
  if (dry_run == DryRun::kNo && !in_use(entry, now) && stat_of(entry.path + "-wal"))
    if (const auto tidied = tidy(entry.path); !tidied) report.problems.push_back(tidied.error().what);
  report.kept.push_back(std::move(entry));
}

}  // namespace

PruneReport Shelf::prune(const PruneLimits& limits, Nanos now, DryRun dry_run) const {
  PruneReport report;
  std::int64_t bytes = 0;
  bool full = false;
  for (auto& entry : list()) {  // newest first
    const bool too_old = limits.max_age && now - entry.modified > *limits.max_age;
    const bool too_many = limits.keep && report.kept.size() >= *limits.keep;
    full = full || (limits.max_bytes && bytes + entry.bytes > *limits.max_bytes);
    if (!(too_old || too_many || full) || is_spared(entry, limits, now)) {
      bytes += entry.bytes;
      keep(std::move(entry), now, dry_run, report);
      continue;
    }
    const auto removed = dry_run == DryRun::kNo ? unlink_recording(entry.path) : Result<void>();
    if (removed)
      report.removed.push_back(std::move(entry));
    else
      report.problems.push_back(removed.error().what);
  }
  return report;
}

Result<void> Shelf::remove(const std::string& name) const {
  const auto entries = list();
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == name; });
  if (found == entries.end())
    return fail(Errc::kNotFound, fmt::format("there is no recording {} in {}", name, directory_),
                "headroom recordings lists their names");
  if (found->summary && found->summary->state == FileState::kRecording)
    return fail(Errc::kBusy, fmt::format("{} is being recorded", name), "stop its recorder first");
  return unlink_recording(found->path);
}

Result<void> tidy(const std::string& path) {
  HR_TRY(Database database, Database::open(path.starts_with("file:") ? "./" + path : path, Access::kReadWrite));
  sqlite3_busy_timeout(database.raw(), 200);
  HR_TRYV(database.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  if (auto done = database.execute("PRAGMA journal_mode=DELETE"); !done)
    return tl::unexpected(within(fmt::format("tidy {}", path), done.error()));
  return {};
}

}  // namespace headroom
