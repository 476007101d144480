// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace headroom::serve {

// A TCP port of this machine's own; loopback addresses only.
struct Listening {
  Fd fd;
  std::uint16_t port = 0;
};
[[nodiscard]] Result<Listening> listen_on_loopback(const std::string& address, std::uint16_t port);

// A Unix socket that its user alone may connect to; removed when it is dropped, if it is still the one there. One that
// a server which died left behind is replaced.
class UnixListening {
 public:
  [[nodiscard]] static Result<UnixListening> open(const std::string& path);
  ~UnixListening();
  UnixListening(UnixListening&& other) noexcept;
  UnixListening& operator=(UnixListening&&) = delete;
  UnixListening(const UnixListening&) = delete;

  [[nodiscard]] Fd take() { return std::move(fd_); }

 private:
  UnixListening() = default;
  std::string path_;  // "": nothing to remove
  dev_t device_ = 0;
  ino_t inode_ = 0;
  Fd fd_;
};

}  // namespace headroom::serve
