// SPDX-License-Identifier: Apache-2.0
#include "batch/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"
#include "batch/sweep.h"

namespace headroom::batch {

namespace {

constexpr const char* kLockName = "lock";

bool same_file(const struct stat& a, const struct stat& b) { return a.st_ino == b.st_ino && a.st_dev == b.st_dev; }

// Whether somebody else holds this lock; `fd` does not keep it.
bool held(const Fd& fd) {
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(fd.get(), LOCK_UN);
  return false;
}

// "pid start guardian grace", all numbers; nothing of a file that somebody else wrote.
Holder read_holder(const Fd& lock) {
  char text[256];
  const ssize_t got = ::pread(lock.get(), text, sizeof text, 0);
  const auto words = split(std::string_view(text, static_cast<std::size_t>(std::max<ssize_t>(0, got))), ' ');
  Holder holder{.state = Holder::State::kRuns};
  if (words.size() != 4) return holder;
  const auto pid = parse_number<pid_t>(words[0]), guardian = parse_number<pid_t>(words[2]);
  const auto start = parse_number<Nanos>(words[1]), grace = parse_number<Nanos>(words[3]);
  if (!pid || !guardian || !start || !grace) return holder;
  holder.pid = *pid, holder.guardian = *guardian, holder.grace = *grace;
  const auto now = process_now(*pid);
  if (!now || now->start != *start || !now->lives)
    holder.state = Holder::State::kGuardian;
  else if (now->stopped)
    holder.state = Holder::State::kStopped;
  return holder;
}

}  // namespace

Holder holder_of(const std::string& folder) {
  const Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return {.state = errno == EACCES ? Holder::State::kAnothers : Holder::State::kNobody};
  const Fd lock(::openat(directory.get(), kLockName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!lock && errno == EACCES) return {.state = Holder::State::kAnothers};
  if (lock && held(lock)) return read_holder(lock);
  return {.state = held(directory) ? Holder::State::kRuns : Holder::State::kNobody};
}

Result<void> lock_place(Place& place) {
  const auto busy = [&] { return fail(Errc::kBusy, fmt::format("another batch runs in {}", place.folder)); };
  Fd lock(::openat(place.directory.get(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                   S_IRUSR | S_IWUSR));
  if (!lock) return tl::unexpected(errno_error(fmt::format("open {}/{}", place.folder, kLockName)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return busy();
  struct stat ours {
  }, there{};
  if (::fstat(lock.get(), &ours) != 0 ||
      ::fstatat(place.directory.get(), kLockName, &there, AT_SYMLINK_NOFOLLOW) != 0 || !same_file(ours, there))
    return busy();  // replaced meanwhile
  if (::flock(place.directory.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return busy();
  place.lock = std::move(lock);
  return {};
}

void note_holder(const Place& place, pid_t guardian, Nanos grace) {
  const auto now = process_now(::getpid());
  const std::string text = fmt::format("{} {} {} {}", ::getpid(), now ? now->start : 0, guardian, grace);
  [[maybe_unused]] const bool noted =
      ::ftruncate(place.lock.get(), 0) == 0 && ::pwrite(place.lock.get(), text.data(), text.size(), 0) > 0;
}

}  // namespace headroom::batch
