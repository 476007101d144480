// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/answers.h"
#include "base/strings.h"

namespace headroom {

namespace {

constexpr int kTries = 100;
// For the reader of a FIFO, who may have been started together with us.
constexpr std::chrono::milliseconds kReaderPatience{1000}, kReaderLook{5};
constexpr std::size_t kFirstBytes = 4096;

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool takes_files(const std::string& folder) { return ::eaccess(folder.c_str(), W_OK | X_OK) == 0; }

// Where its links lead to.
std::string followed(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

bool is_link(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
}

// Of this process's outputs the one that `file` is, too: "/dev/stdout", or the file that the shell sent it to; and what
// is called by its number, "/dev/fd/3".
std::optional<int> own_output(const std::string& path, const struct stat& file) {
  std::vector<int> outputs{STDOUT_FILENO, STDERR_FILENO};
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"})
    if (path.starts_with(folder))
      if (const auto number = parse_number<int>(std::string_view(path).substr(folder.size())))
        outputs.push_back(*number);
  for (const int fd : outputs) {
    struct stat own {};
    if (::fstat(fd, &own) == 0 && own.st_dev == file.st_dev && own.st_ino == file.st_ino) return fd;
  }
  return std::nullopt;
}

// Where an open file lies, all links followed as the kernel allowed them; "" where that cannot be told.
std::string name_of(int fd) {
  char name[4096];
  const ssize_t got = ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), name, sizeof name);
  if (got <= 0 || got == sizeof name) return "";
  const std::string path(name, static_cast<std::size_t>(got));
  struct stat there {
  }, open{};
  const bool same = ::lstat(path.c_str(), &there) == 0 && ::fstat(fd, &open) == 0 && there.st_dev == open.st_dev &&
                    there.st_ino == open.st_ino;
  return same ? path : "";
}

Fd open_new(const std::string& path) {
  return Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

// A name beside `target` that nobody could have foreseen.
Result<std::pair<Fd, std::string>> open_temporary(const std::string& target) {
  for (int i = 0; i < kTries; ++i) {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) break;
    std::string name = fmt::format("{}.tmp{:016x}", target, random);
    Fd fd = open_new(name);
    if (fd) return std::pair(std::move(fd), std::move(name));
    if (errno != EEXIST) break;
  }
  return tl::unexpected(errno_error(fmt::format("create a file beside {}", target)));
}

// Mode and, where that is allowed, owner of what is replaced.
void look_like(const struct stat& old, int fd) {
  [[maybe_unused]] const int owner = ::fchown(fd, old.st_uid, old.st_gid);
  (void)::fchmod(fd, old.st_mode & 07777);
}

// Recordings, journals and the studies of others are SQLite's files: what is exported never takes the place of one.
bool is_database(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char start[kMagic.size()];
  return file && ::read(file.get(), start, sizeof start) == sizeof start &&
         std::string_view(start, sizeof start) == kMagic;
}

// What is there, opened without waiting for anybody; a FIFO's reader has a moment to come.
Fd open_there(const std::string& path, int flags) {
  const auto patient_until = std::chrono::steady_clock::now() + kReaderPatience;
  for (;;) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags, 0600));
    if (fd) {
      (void)::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    if (errno != ENXIO || std::chrono::steady_clock::now() > patient_until) return fd;
    std::this_thread::sleep_for(kReaderLook);
  }
}

// As they are compared: layouts of JSON and of HTML differ in blanks.
std::string without_blanks(std::string_view text) {
  std::string rest(text);
  std::erase_if(rest, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
  return rest;
}

bool begins_with_one_of(const std::string& path, const std::vector<std::string>& marks) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char bytes[kFirstBytes];
  const ssize_t got = file ? ::read(file.get(), bytes, sizeof bytes) : 0;
  const std::string begin = without_blanks({bytes, static_cast<std::size_t>(std::max<ssize_t>(0, got))});
  return std::any_of(marks.begin(), marks.end(),
                     [&](const std::string& mark) { return begin.starts_with(without_blanks(mark)); });
}

Error not_its_own(const std::string& path, const MayReplace& may) {
  return {Errc::kInvalidInput,
          may.marks.empty() ? fmt::format("{} exists, and nothing in such a file says who wrote it", path)
                            : fmt::format("{} exists and was not written by {}", path, may.writer),
          "name another file; --force replaces this one"};
}

Error over_a_database(const std::string& path) {
  return {Errc::kInvalidInput, fmt::format("{} is a recording or another database, and is not replaced", path),
          "name another file"};
}

}  // namespace

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, "")),
      made_(std::exchange(other.made_, false)) {}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  if (made_) ::unlink(target_.c_str());
}

Result<OutputFile> OutputFile::open(const std::string& path) {
  HR_TRYV(answers(path));
  const auto failed = [&] { return tl::unexpected(errno_error(fmt::format("write {}", path))); };
  Fd old = open_there(path, 0);
  const bool made = !old && errno == ENOENT && is_link(path);
  if (made) old = open_there(path, O_CREAT);
  if (!old && errno == ENXIO)
    return fail(Errc::kIo, fmt::format("write {}: nobody reads from it", path), "start its reader first");
  if (!old && (made || errno != ENOENT)) return failed();
  OutputFile file(Fd(), path);
  struct stat status {};
  if (old) {
    if (::fstat(old.get(), &status) != 0) return failed();
    if (const auto own = own_output(path, status))
      return OutputFile(Fd(::fcntl(*own, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)), "");
    if (!S_ISREG(status.st_mode)) return OutputFile(std::move(old), "");
    file.target_ = name_of(old.get());
    if (file.target_.empty()) return fail(Errc::kIo, fmt::format("write {}: where it lies cannot be told", path));
  }
  auto temporary = open_temporary(file.target_);
  if (!temporary) {
    if (made) ::unlink(file.target_.c_str());
    return tl::unexpected(within(fmt::format("write {}", path), temporary.error()));
  }
  std::tie(file.fd_, file.temporary_) = std::move(*temporary);
  file.made_ = made;
  if (old) look_like(status, file.fd());
  return file;
}

Result<void> OutputFile::keep() {
  if (target_.empty()) return {};
  if (::fsync(fd()) != 0 && errno != EINVAL) return tl::unexpected(errno_error("fsync"));
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return tl::unexpected(errno_error("rename"));
  temporary_.clear();
  return {};
}

Result<void> can_write(const std::string& path, const MayReplace& may) {
  HR_TRYV(answers(path));
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (there && S_ISDIR(status.st_mode)) errno = EISDIR;
  // A regular file is replaced by a new one beside it.
  const bool replaced = there && S_ISREG(status.st_mode) && !own_output(path, status);
  if (replaced && is_database(path)) return tl::unexpected(over_a_database(path));
  const bool can = there ? !S_ISDIR(status.st_mode) && ::eaccess(path.c_str(), W_OK) == 0 &&
                               (!replaced || takes_files(parent_of(followed(path))))
                         : errno == ENOENT && takes_files(parent_of(path));
  if (can && replaced && !may.all && !begins_with_one_of(path, may.marks))
    return tl::unexpected(not_its_own(path, may));
  if (can) return {};
  Error error = errno_error(fmt::format("cannot write {}", path));
  error.code = Errc::kInvalidInput;
  return tl::unexpected(error);
}

}  // namespace headroom
