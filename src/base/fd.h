// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace headroom {

// Owns a file descriptor; closes it when dropped.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

[[nodiscard]] Result<Fd> open_read(const std::string& path);
// Creates or truncates, mode 0600.
[[nodiscard]] Result<Fd> open_write(const std::string& path);
// The whole file, at most `limit` bytes (kInvalidInput beyond it); works for /proc, whose sizes read 0.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{1} << 30);
// The last `most` bytes of a regular file; "" where it cannot be read.
[[nodiscard]] std::string read_tail(const std::string& path, std::size_t most);
[[nodiscard]] Result<void> write_all(int fd, std::string_view bytes);
// As an OutputFile: a regular file is never half written.
[[nodiscard]] Result<void> write_file(const std::string& path, std::string_view bytes);

}  // namespace headroom
