// SPDX-License-Identifier: Apache-2.0
#include "batch/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace headroom::batch {

namespace {

constexpr std::size_t kLongestRequest = 4 << 20;  // tasks that are added
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;
constexpr std::size_t kMostClients = 16;
constexpr int kBacklog = 64;
constexpr Nanos kPatience = 5 * kSecond;  // with who asks, and with who is asked
constexpr Nanos kRest = 100 * kMillisecond;
constexpr Nanos kUndisturbed = 500 * kMillisecond;  // then who asks gives way to others, if too many do
constexpr const char* kSocketName = "control.sock";
constexpr const char* kUnheard = "control.sock.new";  // until somebody listens

// A socket's path may have 107 bytes; through a descriptor of the folder it always fits.
sockaddr_un address_in(const Fd& folder, const char* name = kSocketName) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder.get(), name);
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}
const sockaddr* as_sockaddr(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::open(Loop& loop, const Fd& directory, Answer answer) {
  Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening) return tl::unexpected(errno_error("make the control socket"));
  ::unlinkat(directory.get(), kUnheard, 0);      // of a batch that died: the folder is locked by us
  ::fchmod(listening.get(), S_IRUSR | S_IWUSR);  // what is bound gets the mode of its socket
  const sockaddr_un address = address_in(directory, kUnheard);
  if (::bind(listening.get(), as_sockaddr(address), sizeof address) != 0 || ::listen(listening.get(), kBacklog) != 0 ||
      ::renameat(directory.get(), kUnheard, directory.get(), kSocketName) != 0)  // who finds it is heard
    return tl::unexpected(errno_error(fmt::format("make the control socket {}", kSocketName)));
  std::unique_ptr<ControlServer> server(new ControlServer(loop, directory, std::move(listening), std::move(answer)));
  HR_TRYV(server->listen());
  return server;
}

ControlServer::ControlServer(Loop& loop, const Fd& directory, Fd listening, Answer answer)
    : loop_(loop), directory_(directory), listening_(std::move(listening)), answer_(std::move(answer)) {}

ControlServer::~ControlServer() {
  loop_.cancel(resting_);
  loop_.forget(listening_.get());
  while (!clients_.empty()) drop(clients_.begin()->first);
  ::unlinkat(directory_.get(), kSocketName, 0);
}

Result<void> ControlServer::listen() {
  return loop_.watch(listening_.get(), [this] { accept(); });
}

// Who waits at the door would otherwise wake the loop again and again.
void ControlServer::rest() {
  loop_.forget(listening_.get());
  resting_ = loop_.after(kRest, [this] {
    resting_ = 0;
    if (!listen()) rest();
  });
}

void ControlServer::accept() {
  while (resting_ == 0) {
    if (clients_.size() >= kMostClients && !make_way()) return rest();
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd && errno != EAGAIN) return rest();  // no descriptor, no memory
    if (!fd) return;
    const int number = fd.get();
    if (!loop_.watch(number, [this, number] { read(number); })) return rest();
    const auto deadline = loop_.after(kPatience, [this, number] { drop(number); });
    clients_[number] = Client{.fd = std::move(fd), .request = {}, .since = boottime_now(), .deadline = deadline};
  }
}

// Who connects and says nothing keeps nobody else from an answer.
bool ControlServer::make_way() {
  const auto oldest = std::min_element(clients_.begin(), clients_.end(),
                                       [](const auto& a, const auto& b) { return a.second.since < b.second.since; });
  if (boottime_now() - oldest->second.since < kUndisturbed) return false;
  drop(oldest->first);
  return true;
}

void ControlServer::drop(int fd) {
  loop_.forget(fd);
  loop_.cancel(clients_.at(fd).deadline);
  clients_.erase(fd);
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
  drop(fd);
}

Result<std::string> ask(const std::string& folder, const std::string& request) {
  const Fd directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return tl::unexpected(errno_error("make a socket"));
  const timeval patience{.tv_sec = kPatience / kSecond, .tv_usec = 0};
  for (const int which : {SO_RCVTIMEO, SO_SNDTIMEO})  // the second counts for connect(), too
    ::setsockopt(fd.get(), SOL_SOCKET, which, &patience, sizeof patience);
  const sockaddr_un address = address_in(directory);
  const auto no_answer = [&] {
    const bool late = errno == EAGAIN || errno == EINPROGRESS || errno == ETIMEDOUT;
    const Errc code = late ? Errc::kBusy : errno == EACCES ? Errc::kNoPermission : Errc::kNotFound;
    return fail(code, late ? fmt::format("the batch in {} does not answer", folder)
                           : fmt::format("no batch is running in {}", folder));
  };
  if (!directory || ::connect(fd.get(), as_sockaddr(address), sizeof address) != 0) return no_answer();
  const std::string line = request + "\n";
  if (::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) return no_answer();
  std::string answer;
  char buffer[4096];
  for (const Nanos until = boottime_now() + kPatience; boottime_now() < until && answer.size() < kLongestAnswer;) {
    const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, 0);
    if (got == 0) return answer;
    if (got < 0) return no_answer();
    answer.append(buffer, static_cast<std::size_t>(got));
  }
  return fail(Errc::kBusy, fmt::format("the batch in {} does not come to an end with its answer", folder));
}

}  // namespace headroom::batch
