// SPDX-License-Identifier: Apache-2.0
#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/answers.h"

namespace headroom {

Result<Fd> open_regular(const std::string& path) {
  HR_TRYV(answers(path));
  return open_regular_at_once(path);
}

Result<Fd> open_regular_at_once(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return tl::unexpected(errno_error(fmt::format("open {}", path)));
  if (!S_ISREG(info.st_mode)) return fail(Errc::kInvalidInput, fmt::format("open {}: not a regular file", path));
  return fd;
}

Result<std::string> read_regular(const std::string& path, std::size_t limit) {
  HR_TRY(const Fd fd, open_regular(path));
  std::string bytes;
  char block[65536];
  for (;;) {
    const ssize_t got = ::read(fd.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(errno_error(fmt::format("read {}", path)));
    if (got == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
    if (bytes.size() > limit)
      return fail(Errc::kInvalidInput, fmt::format("read {}: larger than {} bytes", path, limit));
  }
}

Result<std::string> read_named(const std::string& path, std::size_t limit) {
  const bool of_the_shell = path.starts_with("/dev/") || path.starts_with("/proc/");
  return of_the_shell ? read_file(path, limit) : read_regular(path, limit);
}

std::string read_regular_tail(const std::string& path, std::size_t most) {
  const auto file = open_regular(path);
  if (!file) return "";
  const off_t size = ::lseek(file->get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(most));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

}  // namespace headroom
