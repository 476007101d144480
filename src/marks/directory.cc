// SPDX-License-Identifier: Apache-2.0
#include "marks/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string_view>

#include "base/filesystem.h"
#include "base/ids.h"

namespace headroom::marks {

namespace {

// Locked before it has its name: nobody ever sees one with that name whose owner has not had the time to lock it.
constexpr std::string_view kName = "headroom-marks-", kUnlockedName = "headroom-marks.new-";
constexpr time_t kUnlockedAge = 3600;            // s: an owner that stopped between two calls is given that long
constexpr std::uint64_t kLeastFree = 64U << 20;  // bytes: others live off that memory, too
constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

using Listing = std::unique_ptr<DIR, int (*)(DIR*)>;
Listing list(int folder) {
  const int again = ::openat(folder, ".", kFlags);
  DIR* listing = again >= 0 ? ::fdopendir(again) : nullptr;
  if (listing == nullptr && again >= 0) ::close(again);
  return {listing, ::closedir};
}

// Nothing of ours has folders in it, but a job may make some; how deep is up to it.
void remove_content(int folder, int deepest = 64) {
  const Listing listing = list(folder);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || ::unlinkat(folder, entry->d_name, 0) == 0 || deepest == 0) continue;
    if (const Fd within(::openat(folder, entry->d_name, kFlags)); within) remove_content(within.get(), deepest - 1);
    ::unlinkat(folder, entry->d_name, AT_REMOVEDIR);
  }
}

Result<Fd> lock_folder(const std::string& path) {
  Fd fd(::open(path.c_str(), kFlags));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return tl::unexpected(errno_error(fmt::format("lock {}", path)));
  return fd;
}

// Nothing where nobody owns it any more.
bool is_stale(int place, const char* name) {
  const std::string_view text = name;
  const bool locked = text.starts_with(kName);
  struct stat info {};
  if ((!locked && !text.starts_with(kUnlockedName)) || ::fstatat(place, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return false;
  return locked || info.st_mtime < ::time(nullptr) - kUnlockedAge;
}

}  // namespace

Result<RingDirectory> RingDirectory::make(const std::vector<std::string>& places) {
  Error why{.code = Errc::kNotFound, .what = "there is no place for the marks of the job", .hint = ""};
  for (const std::string& place : places) {
    if (const auto free = free_bytes(place); free && *free < kLeastFree) {
      why = {.code = Errc::kNoSpace, .what = fmt::format("{} is full", place), .hint = ""};
      continue;
    }
    std::string made = fmt::format("{}/{}XXXXXX", place, kUnlockedName);
    if (::mkdtemp(made.data()) == nullptr) {
      why = errno_error(fmt::format("make a directory in {}", place));
      continue;
    }
    auto lock = lock_folder(made);
    std::string path = fmt::format("{}/{}{}", place, kName, random_id());
    if (lock && ::rename(made.c_str(), path.c_str()) == 0)
      return RingDirectory(place, std::move(path), std::move(*lock));
    why = lock ? errno_error(fmt::format("rename {}", made)) : lock.error();
    ::rmdir(made.c_str());
  }
  return tl::unexpected(why);
}

RingDirectory& RingDirectory::operator=(RingDirectory&& other) noexcept {
  if (this == &other) return *this;
  remove();
  place_ = std::move(other.place_);
  path_ = std::move(other.path_);
  lock_ = std::move(other.lock_);
  return *this;
}

void RingDirectory::remove() {
  if (!lock_) return;
  remove_content(lock_.get());
  ::rmdir(path_.c_str());
  lock_.reset();
}

int remove_stale_rings(const std::string& place) {
  const Fd folder(::open(place.c_str(), kFlags));
  const Listing listing = folder ? list(folder.get()) : Listing(nullptr, ::closedir);
  if (!listing) return 0;
  int removed = 0;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (!is_stale(folder.get(), entry->d_name)) continue;
    const Fd stale(::openat(folder.get(), entry->d_name, kFlags));
    if (!stale || ::flock(stale.get(), LOCK_EX | LOCK_NB) != 0) continue;
    remove_content(stale.get());
    removed += ::unlinkat(folder.get(), entry->d_name, AT_REMOVEDIR) == 0 ? 1 : 0;
  }
  return removed;
}

}  // namespace headroom::marks
