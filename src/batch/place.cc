// SPDX-License-Identifier: Apache-2.0
#include "batch/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>

#include "base/filesystem.h"
#include "base/visible.h"

namespace headroom::batch {

namespace {

constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;
constexpr std::array kInFolder{"journal.sqlite",
                               "journal.sqlite-wal",
                               "journal.sqlite-shm",
                               "journal.sqlite-journal",
                               "reserve",
                               "lock",
                               "control.sock",
                               "logs",
                               "shared",
                               "workers"};

tl::unexpected<Error> not_trusted(const std::string& path, std::string_view what, const std::string& folder) {
  return fail(
      Errc::kNoPermission, fmt::format("{} {}", path, what),
      fmt::format("whoever may write there decides what this batch does. If it is all right: chown and chmod -R "
                  "go-w {0}, or --trust-folder; --folder chooses another place",
                  typed_word(folder)));
}

Result<void> check_owner(const struct stat& info, const std::string& path, const std::string& folder) {
  if (info.st_uid != ::geteuid())
    return not_trusted(path, fmt::format("belongs to another user (uid {})", info.st_uid), folder);
  if ((info.st_mode & kOthersMayWrite) != 0 && !S_ISLNK(info.st_mode) && !S_ISSOCK(info.st_mode))
    return not_trusted(path, fmt::format("may be written by others (mode {:04o})", info.st_mode & 07777U), folder);
  return {};
}

Result<void> check_place(int directory, const std::string& folder) {
  struct stat info {};
  if (::fstat(directory, &info) != 0) return tl::unexpected(errno_error(fmt::format("look at {}", folder)));
  HR_TRYV(check_owner(info, folder, folder));
  for (const char* name : kInFolder) {
    if (::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string path = fmt::format("{}/{}", folder, name);
    HR_TRYV(check_owner(info, path, folder));
    if (S_ISLNK(info.st_mode)) return not_trusted(path, "is a link", folder);
    if (S_ISREG(info.st_mode) && info.st_nlink > 1) return not_trusted(path, "has another name elsewhere", folder);
  }
  return {};
}

// What older versions made readable for everybody: commands and environments are nobody else's business.
void keep_private(int directory) {
  [[maybe_unused]] int changed = ::fchmod(directory, S_IRWXU);  // what cannot be changed stays
  for (const char* name : kInFolder) {
    struct stat info {};
    if (::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(info.st_mode)) continue;
    changed = ::fchmodat(directory, name, S_ISDIR(info.st_mode) ? S_IRWXU : S_IRUSR | S_IWUSR, 0);
  }
}

Fd open_logs(int directory) {
  ::mkdirat(directory, "logs", S_IRWXU);
  return Fd(::openat(directory, "logs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

std::string Place::folder_now() const {
  char path[PATH_MAX];
  const ssize_t got = ::readlink(fmt::format("/proc/self/fd/{}", directory.get()).c_str(), path, sizeof path);
  const std::string now(path, static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  struct stat info {};
  return !now.empty() && ::stat(now.c_str(), &info) == 0 ? now : folder;
}

bool is_removed(int directory) {
  struct stat info {};
  return ::fstat(directory, &info) == 0 ? info.st_nlink == 0 : errno == ESTALE;
}

Result<void> check_own(const std::string& folder) {
  const Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return tl::unexpected(errno_error(fmt::format("open the folder {}", folder)));
  return check_place(directory.get(), folder);
}

Result<Place> open_place(const std::string& folder, Trust trust) {
  const auto cannot = [&](std::string_view what) {
    return tl::unexpected(errno_error(fmt::format("{} {}", what, folder), "--folder chooses another place"));
  };
  std::error_code error;
  std::filesystem::create_directories(headroom::directory_of(folder), error);
  const bool made = ::mkdir(folder.c_str(), S_IRWXU) == 0;
  if (!made && errno != EEXIST) return cannot("make the folder");
  Place place{.folder = folder,
              .directory = Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
              .logs = {},
              .lock = {}};
  if (!place.directory) return cannot("open the folder");
  if (!made && trust == Trust::kOwn) {
    HR_TRYV(check_place(place.directory.get(), folder));
    keep_private(place.directory.get());
  }
  place.logs = open_logs(place.directory.get());
  if (!place.logs) return cannot("make the folder of the logs in");
  return place;
}

Result<Fd> open_log(Place& place, const std::string& name) {
  const auto open = [&] {
    return Fd(::openat(place.logs.get(), name.c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR));
  };
  Fd log = open();
  if (!log && errno == ENOENT) {  // logs/ was removed
    if (Fd logs = open_logs(place.directory.get()); logs) place.logs = std::move(logs);
    log = open();
  }
  struct stat info {};
  if (!log || ::fstat(log.get(), &info) != 0)
    return tl::unexpected(errno_error(fmt::format("open the log {}/logs/{}", place.folder, name)));
  if (!S_ISREG(info.st_mode))
    return fail(Errc::kIo, fmt::format("open the log {}/logs/{}: not a regular file", place.folder, name));
  ::fcntl(log.get(), F_SETFL, O_APPEND);  // O_NONBLOCK was for the case that it is a FIFO
  return log;
}

}  // namespace headroom::batch
