// SPDX-License-Identifier: Apache-2.0
#include "serve/listening.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

namespace headroom::serve {

namespace {

constexpr int kBacklog = 128;

union Address {
  sockaddr any;
  sockaddr_in four;
  sockaddr_in6 six;
  sockaddr_un local;
};

Result<Fd> bound(const Address& address, socklen_t size, const std::string& where) {
  Fd fd(::socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return tl::unexpected(errno_error("make a socket"));
  const int yes = 1;
  if (address.any.sa_family == AF_UNIX)
    ::fchmod(fd.get(), S_IRUSR | S_IWUSR);  // what is bound gets the mode of its socket
  else
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd.get(), &address.any, size) == 0 && ::listen(fd.get(), kBacklog) == 0) return fd;
  if (errno == EADDRINUSE)
    return fail(Errc::kBusy, fmt::format("{} is in use", where),
                "is headroom serve running already? --port 0 takes one that is free");
  if (errno == EADDRNOTAVAIL) return fail(Errc::kUnsupported, fmt::format("this machine has no address {}", where));
  return tl::unexpected(errno_error(fmt::format("listen on {}", where)));
}

// Whether somebody answers at a socket's address.
bool is_alive(const Address& address) {
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return ::connect(fd.get(), &address.any, sizeof address.local) == 0 || errno == EAGAIN;
}

}  // namespace

Result<Listening> listen_on_loopback(const std::string& host, std::uint16_t port) {
  Address address{};
  socklen_t size = sizeof address.four;
  if (host == "::1") {
    address.six = {};
    address.six.sin6_family = AF_INET6;
    address.six.sin6_addr = in6addr_loopback;
    address.six.sin6_port = htons(port);
    size = sizeof address.six;
  } else if (host == "127.0.0.1") {
    address.four = {};
    address.four.sin_family = AF_INET;
    address.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.four.sin_port = htons(port);
  } else {
    return fail(Errc::kInvalidInput, fmt::format("--address: {} is no loopback address", host),
                "127.0.0.1 or ::1; to look from elsewhere: ssh -L, or a reverse proxy that speaks TLS");
  }
  Listening listening;
  HR_TRY(listening.fd, bound(address, size, fmt::format("{} port {}", host, port)));
  Address got{};
  socklen_t got_size = sizeof got;
  if (::getsockname(listening.fd.get(), &got.any, &got_size) != 0)
    return tl::unexpected(errno_error("ask for the port"));
  listening.port = ntohs(got.any.sa_family == AF_INET6 ? got.six.sin6_port : got.four.sin_port);
  return listening;
}

Result<UnixListening> UnixListening::open(const std::string& path) {
  Address address{};
  address.local = {};
  address.local.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.local.sun_path)
    return fail(Errc::kInvalidInput,
                fmt::format("--unix: a socket's path has 1 to {} bytes", sizeof address.local.sun_path - 1),
                "choose a shorter one");
  std::memcpy(address.local.sun_path, path.data(), path.size());
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode))
      return fail(Errc::kInvalidInput, fmt::format("--unix: {} is there, and no socket", path));
    if (is_alive(address)) return fail(Errc::kBusy, fmt::format("--unix: another server listens on {}", path));
    ::unlink(path.c_str());
  }
  UnixListening listening;
  HR_TRY(listening.fd_, bound(address, sizeof address.local, path));
  if (::lstat(path.c_str(), &there) == 0)
    listening.path_ = path, listening.device_ = there.st_dev, listening.inode_ = there.st_ino;
  return listening;
}

UnixListening::UnixListening(UnixListening&& other) noexcept
    : path_(std::exchange(other.path_, "")), device_(other.device_), inode_(other.inode_), fd_(std::move(other.fd_)) {}

UnixListening::~UnixListening() {
  struct stat there {};
  if (!path_.empty() && ::lstat(path_.c_str(), &there) == 0 && there.st_dev == device_ && there.st_ino == inode_)
    ::unlink(path_.c_str());
}

}  // namespace headroom::serve
