// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/output_file.h"

namespace headroom {

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

namespace {
Result<Fd> open_with(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!fd) return tl::unexpected(errno_error(fmt::format("open {}", path)));
  return fd;
}
}  // namespace

Result<Fd> open_read(const std::string& path) { return open_with(path, O_RDONLY); }
Result<Fd> open_write(const std::string& path) { return open_with(path, O_WRONLY | O_CREAT | O_TRUNC); }

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  HR_TRY(const Fd fd, open_read(path));
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

std::string read_tail(const std::string& path, std::size_t most) {
  const auto file = open_read(path);
  if (!file) return "";
  const off_t size = ::lseek(file->get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(most));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

Result<void> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return tl::unexpected(errno_error("write"));
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> write_file(const std::string& path, std::string_view bytes) {
  HR_TRY(OutputFile file, OutputFile::open(path));
  auto written = write_all(file.fd(), bytes);
  if (written) written = file.keep();
  if (!written) return tl::unexpected(within(fmt::format("write {}", path), written.error()));
  return {};
}

}  // namespace headroom
