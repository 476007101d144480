// SPDX-License-Identifier: Apache-2.0
#include "cli/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/time.h"

namespace headroom::cli {

Result<Fd> locked_file(const std::string& path) {
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!lock) return tl::unexpected(errno_error("open " + path));
  const Nanos until = monotonic_now() + 5 * kSecond;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return tl::unexpected(errno_error("lock " + path));
    if (monotonic_now() > until) return fail(Errc::kBusy, path + " is locked by another process", "try again");
    ::usleep(10'000);
  }
  return lock;
}

Result<void> replace_private_file(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  ::unlink(temporary.c_str());
  const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return tl::unexpected(errno_error("create " + temporary));
  auto written = write_all(file.get(), text);
  if (!written) written = tl::unexpected(within(path, written.error()));
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = tl::unexpected(errno_error("create " + path));
  if (!written) ::unlink(temporary.c_str());
  return written;
}

}  // namespace headroom::cli
