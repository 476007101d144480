// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>
#include <iterator>

#include "base/database_copy.h"
#include "base/filesystem.h"
#include "base/human.h"
#include "base/strings.h"
#include "batch/journal.h"
#include "batch/place.h"

// Whether the files of a journal are still what its writer takes them for: SQLite writes on into a file that somebody
// has removed, and says nothing.
namespace headroom::batch {

namespace {

constexpr off_t kMostCopied = 128 << 20;  // bytes: the journal of some 100,000 attempts

constexpr const char* kDatabase = "journal.sqlite";
constexpr const char* kLog = "journal.sqlite-wal";
constexpr const char* kIndex = "journal.sqlite-shm";

struct stat look(const Fd& folder, const char* name) {
  struct stat info {};
  if (::fstatat(folder.get(), name, &info, AT_SYMLINK_NOFOLLOW) != 0) info = {};  // no file has inode 0
  return info;
}

// Whether the log still begins as one: what is written into it after it was cut off leaves a hole there.
bool begins_as_log(const Fd& folder) {
  const Fd log(::openat(folder.get(), kLog, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::array<char, 3> magic{};  // https://www.sqlite.org/fileformat2.html#the_write_ahead_log, without the byte order
  return !log || ::pread(log.get(), magic.data(), magic.size(), 0) != std::ssize(magic) ||
         magic == std::array<char, 3>{0x37, 0x7f, 0x06};
}

// Room, descriptors: this tells nothing of the journal.
bool wants_means(Errc code) { return code == Errc::kNoSpace || code == Errc::kBusy || code == Errc::kNoPermission; }

}  // namespace

void Journal::remember_files() {
  const auto database = look(folder_, kDatabase), log = look(folder_, kLog);
  files_ = {.device = database.st_dev, .database = database.st_ino, .log = wal_ ? log.st_ino : 0, .log_size = 0};
}

void Journal::remember_log_size() {
  if (files_.log != 0) files_.log_size = std::max(files_.log_size, look(folder_, kLog).st_size);
}

std::string Journal::damage() {
  std::string told = damage_now();
  damage_told_ = damage_told_ || !told.empty();
  return told;
}

std::string Journal::damage_now() {
  const auto database = look(folder_, kDatabase), log = look(folder_, kLog);
  if (database.st_ino == 0)
    return fmt::format(
        "the journal {} was removed while it is written: its results are kept until the batch ends, and "
        "written again then",
        path_);
  if (database.st_ino != files_.database || database.st_dev != files_.device)
    return fmt::format(
        "the journal {} was replaced by another file while it is written: the results of this run do not "
        "go there",
        path_);
  const bool log_gone = files_.log != 0 && (log.st_ino != files_.log || log.st_size < files_.log_size ||
                                            (log.st_size > 0 && !begins_as_log(folder_)));
  files_.log_size = log.st_size;
  if (log_gone)
    return fmt::format(
        "{}-wal was removed or cut off while it is written: results are lost with it, and those tasks run "
        "again",
        path_);
  if (const int number = sync_error_; number != 0)
    return fmt::format("journal {}: what is written may not survive a power cut: {}", path_, std::strerror(number));
  return "";
}

std::string Journal::folder_now() const {
  char path[PATH_MAX];
  const ssize_t got = ::readlink(fmt::format("/proc/self/fd/{}", folder_.get()).c_str(), path, sizeof path);
  return {path, static_cast<std::size_t>(std::max<ssize_t>(0, got))};
}

// What this connection still has open, under the name that it had.
bool Journal::write_again() {
  // A log without its database would be taken for the new one's.
  for (const char* name : {kLog, kIndex}) ::unlinkat(folder_.get(), name, 0);
  const bool removed = is_removed(folder_.get());
  if (removed && ::mkdir(headroom::directory_of(path_).c_str(), S_IRWXU) != 0) return false;
  const std::string path = removed ? path_ : journal_path(folder_now());
  auto copy = database_.prepare("VACUUM INTO ?");
  if (!copy) return false;
  copy->bind(1, std::string_view(path));
  if (!copy->run()) return false;
  return ::chmod(path.c_str(), S_IRUSR | S_IWUSR) == 0;
}

Journal::Wholeness Journal::check_whole() {
  const bool removed = look(folder_, kDatabase).st_ino == 0;
  if (results_ == 0 && !removed && !damage_told_) return {};
  const bool large = files_.log_size > kMostCopied || look(folder_, kDatabase).st_size > kMostCopied;
  const std::string path = removed && is_removed(folder_.get()) ? path_ : journal_path(folder_now());
  const bool again = removed && write_again();
  if (large && (again || !removed))
    return {again || damage_told_
                ? fmt::format("whether the journal {} holds all of this run was not looked at: it is too large", path)
                : "",
            !again};
  bool could_look = false;
  const auto in_file = [&]() -> Result<std::int64_t> {
    HR_TRY(const auto copy, DatabaseCopy::make(path));  // as if this process were dead
    could_look = true;
    HR_TRY(Database database, Database::open(copy.path(), Access::kReadWrite));
    return database.number(fmt::format("SELECT count(*) FROM attempts WHERE run={} AND end IS NOT NULL", run_));
  }();
  const std::string meanwhile =
      again ? fmt::format("the journal {} was removed meanwhile, and is written again", path) : "";
  if (!in_file && (again || !removed) && (!could_look || wants_means(in_file.error().code))) {
    if (!again && !damage_told_) return {};
    return {fmt::format("{}whether it holds all of this run could not be seen ({})",
                        again ? meanwhile + "; " : fmt::format("the journal {}: ", path_), in_file.error().what),
            !again};
  }
  if (in_file && *in_file >= results_) {
    if (!again && !damage_told_) return {};
    const std::string all = results_ == 0 ? "this run, of which no attempt has ended"
                            : results_ == 1
                                ? "the one attempt of this run that ended"
                                : fmt::format("all {} attempts of this run that ended", human_count(results_));
    return {fmt::format("{} whole: it holds {}",
                        again ? meanwhile + ", and it is" : fmt::format("the journal {} is", path_), all),
            !again};
  }
  return {fmt::format("{} of {} results of this run are not in the journal {} any more ({}): those tasks run again",
                      results_ - in_file.value_or(0), results_, path_,
                      in_file ? "its files were changed meanwhile" : in_file.error().what),
          false};
}

}  // namespace headroom::batch
