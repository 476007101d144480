// SPDX-License-Identifier: Apache-2.0
#include "base/locked_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "base/ids.h"

namespace headroom {

namespace {

// Locked before it has its name: nobody ever sees one with that name whose owner has not had the time to lock it.
constexpr std::string_view kLocked = "-", kUnlocked = ".new-";
constexpr time_t kUnlockedAge = 3600;  // s: an owner that stopped between two calls is given that long
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

// Whether it is such a folder of this user. Its lock says whether somebody owns it; where it has none, its age does.
bool may_be_stale(int place, const char* entry, std::string_view name) {
  std::string_view rest = entry;
  if (!rest.starts_with(name)) return false;
  rest.remove_prefix(name.size());
  const bool locked = rest.starts_with(kLocked);
  struct stat info {};
  if ((!locked && !rest.starts_with(kUnlocked)) || ::fstatat(place, entry, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return false;
  return locked || info.st_mtime < ::time(nullptr) - kUnlockedAge;
}

}  // namespace

Result<LockedFolder> LockedFolder::make(const std::string& place, std::string_view name, Lock lock) {
  std::string made = fmt::format("{}/{}{}XXXXXX", place, name, kUnlocked);
  if (::mkdtemp(made.data()) == nullptr)
    return tl::unexpected(errno_error(fmt::format("make a directory in {}", place)));
  Fd fd(::open(made.c_str(), kFlags));
  const std::string path = fmt::format("{}/{}{}{}", place, name, kLocked, random_id());
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && ::rename(made.c_str(), path.c_str()) == 0)
    return LockedFolder(path, std::move(fd));
  const Error why = errno_error(fmt::format("lock {}", made));
  if (fd && lock == Lock::kWhereItCan) return LockedFolder(std::move(made), std::move(fd));
  ::rmdir(made.c_str());
  return tl::unexpected(why);
}

LockedFolder& LockedFolder::operator=(LockedFolder&& other) noexcept {
  if (this == &other) return *this;
  remove();
  path_ = std::move(other.path_);
  fd_ = std::move(other.fd_);
  return *this;
}

void LockedFolder::remove() {
  if (!fd_) return;
  remove_content(fd_.get());
  ::rmdir(path_.c_str());
  fd_.reset();
}

int remove_stale_folders(const std::string& place, std::string_view name) {
  const Fd folder(::open(place.c_str(), kFlags & ~O_NOFOLLOW));
  const Listing listing = folder ? list(folder.get()) : Listing(nullptr, ::closedir);
  if (!listing) return 0;
  int removed = 0;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (!may_be_stale(folder.get(), entry->d_name, name)) continue;
    const Fd stale(::openat(folder.get(), entry->d_name, kFlags));
    if (!stale || ::flock(stale.get(), LOCK_EX | LOCK_NB) != 0) continue;
    remove_content(stale.get());
    removed += ::unlinkat(folder.get(), entry->d_name, AT_REMOVEDIR) == 0 ? 1 : 0;
  }
  return removed;
}

}  // namespace headroom
