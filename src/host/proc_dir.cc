// SPDX-License-Identifier: Apache-2.0
#include "host/proc_dir.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace headroom::host {

namespace {
constexpr std::size_t kFirstBuffer = 16 * 1024;
constexpr std::size_t kLargestFile = 4 * 1024 * 1024;  // environ is bounded by the stack limit; nothing else comes near
constexpr rlim_t kForOthers = 8;                       // descriptors that nobody keeps: tasks are started with them

bool is_one_of_the_last(const Fd& fd) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(fd.get()) + kForOthers >= limit.rlim_cur;
}

}  // namespace

Absent absent_of_errno(int error) {
  switch (error) {
    case ENOENT:
    case ESRCH:
      return Absent::kGone;
    case EACCES:
    case EPERM:
      return Absent::kNoPermission;
    case EOPNOTSUPP:
    case ENOSYS:
      return Absent::kNotSupported;
    default:
      return Absent::kError;
  }
}

ProcDir::ProcDir(const std::string& path)
    : folder_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), buffer_(kFirstBuffer) {}

Reading<std::string_view> ProcDir::read(const char* relative) {
  Fd fd;
  return read_kept(fd, relative);
}

Reading<std::string_view> ProcDir::read_kept(Fd& fd, const char* relative) {
  if (!folder_) return tl::unexpected(Absent::kNotSupported);
  if (!fd) {
    fd = Fd(::openat(folder_.get(), relative, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) return tl::unexpected(absent_of_errno(errno));
    if (is_one_of_the_last(fd)) {
      const Fd once = std::exchange(fd, Fd());
      return read_all(once.get());
    }
  }
  return read_all(fd.get());
}

Reading<std::string_view> ProcDir::read_all(int fd) {
  std::size_t size = 0;
  for (;;) {
    const ssize_t got = ::pread(fd, buffer_.data() + size, buffer_.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(absent_of_errno(errno));
    size += static_cast<std::size_t>(got);
    // The kernel fills these files in one go: a short read is the end (a second read would make it build them again),
    // except for texts of more than a page, which come in pages.
    if (got == 0 || (size < 2048 && size < buffer_.size())) return std::string_view(buffer_.data(), size);
    if (size == buffer_.size()) {
      if (size >= kLargestFile) return std::string_view(buffer_.data(), size);
      buffer_.resize(size * 2);
    }
  }
}

Reading<std::span<const std::int64_t>> ProcDir::list_numbers(const char* relative) {
  numbers_.clear();
  if (!folder_) return tl::unexpected(Absent::kNotSupported);
  const Fd fd(::openat(folder_.get(), relative, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return tl::unexpected(absent_of_errno(errno));
  struct Entry {  // linux_dirent64, getdents64(2)
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t length;
    std::uint8_t type;
  };
  constexpr std::size_t kNameAt = offsetof(Entry, type) + 1;
  for (;;) {
    const long got = ::syscall(SYS_getdents64, fd.get(), buffer_.data(), buffer_.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(absent_of_errno(errno));
    if (got == 0) return std::span<const std::int64_t>(numbers_);
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      Entry entry{};
      std::memcpy(&entry, buffer_.data() + at, kNameAt);
      const char* name = buffer_.data() + at + kNameAt;
      if (const auto number =
              parse_number<std::int64_t>(std::string_view(name, ::strnlen(name, entry.length - kNameAt))))
        numbers_.push_back(*number);
      at += entry.length;
    }
  }
}

std::optional<std::string_view> ProcDir::read_link(const char* relative) {
  const ssize_t got = folder_ ? ::readlinkat(folder_.get(), relative, buffer_.data(), buffer_.size()) : -1;
  if (got < 0) return std::nullopt;
  return std::string_view(buffer_.data(), static_cast<std::size_t>(got));
}

bool ProcDir::exists(const char* relative) const {
  struct stat unused {};
  return folder_ && ::fstatat(folder_.get(), relative, &unused, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace headroom::host
