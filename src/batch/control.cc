// SPDX-License-Identifier: Apache-2.0
#include "batch/control.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace headroom::batch {

namespace {

constexpr std::size_t kLongestRequest = 64 * 1024;
constexpr int kPatienceSeconds = 10;
constexpr const char* kName = "control.sock";

// A socket's path may have 107 bytes; through a descriptor of the folder it always fits.
sockaddr_un address_in(const Fd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), kName);
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}
const sockaddr* as_sockaddr(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

Fd folder_fd(const std::string& folder) { return Fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); }

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(Loop& loop, const std::string& folder, Answer answer) {
  const Fd directory = folder_fd(folder);
  Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!directory || !listening) return tl::unexpected(errno_error("make the control socket"));
  const std::string path = fmt::format("{}/{}", folder, kName);
  ::unlink(path.c_str());  // of a batch that died: the folder is locked by us
  const sockaddr_un address = address_in(directory);
  if (::bind(listening.get(), as_sockaddr(address), sizeof address) != 0 || ::listen(listening.get(), 8) != 0)
    return tl::unexpected(errno_error(fmt::format("make the control socket {}", path)));
  ::chmod(path.c_str(), 0600);
  std::unique_ptr<ControlServer> server(new ControlServer(loop, path, std::move(listening), std::move(answer)));
  ControlServer* self = server.get();
  HR_TRYV(loop.watch(server->listening_.get(), [self] { self->accept(); }));
  return server;
}

ControlServer::ControlServer(Loop& loop, std::string path, Fd listening, Answer answer)
    : loop_(loop), path_(std::move(path)), listening_(std::move(listening)), answer_(std::move(answer)) {}

ControlServer::~ControlServer() {
  loop_.forget(listening_.get());
  for (const auto& [fd, client] : clients_) loop_.forget(fd);
  ::unlink(path_.c_str());
}

void ControlServer::accept() {
  for (;;) {
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    const int number = fd.get();
    if (!loop_.watch(number, [this, number] { read(number); })) continue;
    clients_[number] = Client{.fd = std::move(fd), .request = {}};
  }
}

void ControlServer::read(int fd) {
  Client& client = clients_.at(fd);
  char buffer[4096];
  const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) client.request.append(buffer, static_cast<std::size_t>(got));
  const auto line = client.request.find('\n');
  if (got > 0 && line == std::string::npos && client.request.size() < kLongestRequest) return;
  if (line != std::string::npos) {
    const std::string answer = answer_(std::string_view(client.request).substr(0, line));
    // Whoever asks reads; an answer that does not fit into the socket's buffer is not worth a stuck batch.
    (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  loop_.forget(fd);
  clients_.erase(fd);
}

Result<std::string> ask(const std::string& folder, const std::string& request) {
  const Fd directory = folder_fd(folder);
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return tl::unexpected(errno_error("make a socket"));
  const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const sockaddr_un address = address_in(directory);
  if (!directory || ::connect(fd.get(), as_sockaddr(address), sizeof address) != 0)
    return fail(Errc::kNotFound, fmt::format("no batch is running in {}", folder));
  const std::string line = request + "\n";
  if (::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) return tl::unexpected(errno_error("ask the batch"));
  std::string answer;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, 0);
    if (got == 0) return answer;
    if (got < 0) return tl::unexpected(errno_error(fmt::format("ask the batch in {}", folder)));
    answer.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<Fd> lock_folder(const std::string& folder) {
  const std::string path = folder + "/lock";
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return tl::unexpected(errno_error(fmt::format("open {}", path)));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Errc::kBusy, fmt::format("another batch runs in {}", folder));
  return fd;
}

}  // namespace headroom::batch
