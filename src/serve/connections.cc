// SPDX-License-Identifier: Apache-2.0
#include "serve/connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace headroom::serve {

namespace {

using Ready = Loop::Ready;

constexpr Nanos kRest = 100 * kMillisecond;
constexpr std::size_t kPiece = 4096, kMostDrained = 256 << 10;

bool later(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR); }

ssize_t send_piece(int fd, std::string_view bytes, bool more) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
}

// Whoever comes when there is no room: an answer, if it can be given at once.
void refuse(const Fd& fd) {
  std::array<char, kPiece> asked{};  // what is left unread would take the answer back
  (void)::recv(fd.get(), asked.data(), asked.size(), MSG_DONTWAIT);
  const Response response = plain_refusal(503);
  (void)send_piece(fd.get(), head_of(response, false) + std::string(response.body.bytes), false);
  ::shutdown(fd.get(), SHUT_WR);
}

}  // namespace

Result<std::unique_ptr<Connections>> Connections::open(Loop& loop, Fd listening, Handler handler, Limits limits) {
  std::unique_ptr<Connections> made(new Connections(loop, std::move(listening), std::move(handler), limits));
  HR_TRYV(made->listen());
  return made;
}

Connections::Connections(Loop& loop, Fd listening, Handler handler, Limits limits)
    : loop_(loop), listening_(std::move(listening)), handler_(std::move(handler)), limits_(limits) {}

Connections::~Connections() {
  when_empty_ = nullptr;
  loop_.cancel(resting_);
  loop_.forget(listening_.get());
  while (!connections_.empty()) drop(connections_.begin()->first);
}

Result<void> Connections::listen() {
  return loop_.watch(listening_.get(), [this] { accept(); });
}

// Who waits at the door would otherwise wake the loop again and again.
void Connections::rest() {
  loop_.forget(listening_.get());
  resting_ = loop_.after(kRest, [this] {
    resting_ = 0;
    if (!listen()) rest();
  });
}

void Connections::accept() {
  while (resting_ == 0) {
    Fd fd(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd && errno != EAGAIN) return rest();  // no descriptor, no memory
    if (!fd) return;
    if (connections_.size() >= limits_.connections && !make_way())
      refuse(fd);
    else
      admit(std::move(fd));
  }
}

void Connections::admit(Fd fd) {
  const int number = fd.get(), yes = 1;
  ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);  // fails on Unix sockets, which never wait
  const Id id = ++last_id_;
  if (!loop_.watch(number, [this, id] { ready(id); })) return;
  Connection& connection = connections_[id];
  connection.fd = std::move(fd);
  set_deadline(id, connection, patience(connection));
}

// Who connects and shows no token keeps nobody else out: the oldest of them goes. What it has said by now is heard
// first, since a token may be in it.
bool Connections::make_way() {
  std::vector<Id> strangers;  // the oldest first
  for (const auto& [id, connection] : connections_)
    if (!connection.trusted && !connection.in_handler) strangers.push_back(id);
  for (const Id id : strangers) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return true;
    if (found->second.state == State::kReading) read(id, found->second);
    const auto still = connections_.find(id);
    if (still == connections_.end()) return true;
    if (still->second.trusted) continue;
    drop(id);
    return true;
  }
  return false;
}

Nanos Connections::patience(const Connection& connection) const {
  return connection.trusted ? limits_.head : std::min(limits_.head, limits_.stranger);
}

void Connections::drop(Id id) {
  const auto found = connections_.find(id);
  loop_.forget(found->second.fd.get());
  loop_.cancel(found->second.deadline);
  connections_.erase(found);
  if (streams() == 0) loop_.cancel(beat_), beat_ = 0;
  if (connections_.empty() && when_empty_) when_empty_();
}

void Connections::set_deadline(Id id, Connection& connection, Nanos in) {
  loop_.cancel(connection.deadline);
  connection.deadline = in > 0 ? loop_.after(in, [this, id] { too_late(id); }) : 0;
}

void Connections::too_late(Id id) {
  Connection& connection = connections_.at(id);
  connection.deadline = 0;
  if (connection.state != State::kReading || connection.in.empty()) return drop(id);
  connection.keep_alive = false;
  connection.in.clear();
  connection.state = State::kWaiting;
  answer(id, plain_refusal(408));
}

void Connections::ready(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  switch (connection.state) {
    case State::kReading:
      return read(id, connection);
    case State::kWaiting: {
      pollfd gone{.fd = connection.fd.get(), .events = 0, .revents = 0};
      if (::poll(&gone, 1, 0) > 0) drop(id);
      return;
    }
    case State::kWriting:
      return write(id, connection);
    case State::kStreaming:
      return write_stream(id, connection);
    case State::kDraining:
      return drain(id, connection);
  }
}

void Connections::read(Id id, Connection& connection) {
  std::array<char, kPiece> bytes{};
  const ssize_t got = ::recv(connection.fd.get(), bytes.data(), bytes.size(), 0);
  if (later(got)) return;
  if (got <= 0) return drop(id);
  connection.in.append(bytes.data(), static_cast<std::size_t>(got));
  next_request(id);
}

// Answers what is there whole, as long as answers come at once.
void Connections::next_request(Id id) {
  for (;;) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second.state != State::kReading) return;
    Connection& connection = found->second;
    const Parsed parsed = parse_request(connection.in);
    if (!parsed.request && parsed.refused == 0) return;
    connection.in.erase(0, parsed.used);
    connection.state = State::kWaiting;
    connection.keep_alive = parsed.request && parsed.request->keep_alive;
    connection.head_only = parsed.request && parsed.request->method == Request::Method::kHead;
    set_deadline(id, connection, 0);
    loop_.expect(connection.fd.get(), Ready::kNothing);
    connection.in_handler = true;
    if (parsed.request)
      handler_(id, *parsed.request);
    else
      answer(id, plain_refusal(parsed.refused));
    if (const auto still = connections_.find(id); still != connections_.end()) still->second.in_handler = false;
  }
}

void Connections::answer(Id id, Response response) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  HR_CHECK(connection.state == State::kWaiting, "an answer that nobody asked for");
  // What was refused unseen is not gone on with: where its end is, is a guess.
  connection.keep_alive = connection.keep_alive && response.status < 500 && response.status != 405;
  connection.out = head_of(response, connection.keep_alive);
  connection.body = connection.head_only || response.status == 304 ? Body() : std::move(response.body);
  connection.sent = 0;
  connection.state = State::kWriting;
  set_deadline(id, connection, limits_.write);
  write(id, connection);
}

void Connections::write(Id id, Connection& connection) {
  const std::size_t head = connection.out.size(), all = head + connection.body.bytes.size();
  bool moved = false;
  while (connection.sent < all) {
    const bool in_head = connection.sent < head;
    const std::string_view rest = in_head ? std::string_view(connection.out).substr(connection.sent)
                                          : connection.body.bytes.substr(connection.sent - head);
    const ssize_t put = send_piece(connection.fd.get(), rest, in_head && all > head);
    if (later(put)) {
      if (moved) set_deadline(id, connection, limits_.write);
      return loop_.expect(connection.fd.get(), Ready::kWrite);
    }
    if (put < 0) return drop(id);
    connection.sent += static_cast<std::size_t>(put);
    moved = true;
  }
  finish(id, connection);
}

void Connections::finish(Id id, Connection& connection) {
  connection.out.clear();
  connection.body = {};
  connection.sent = 0;
  loop_.expect(connection.fd.get(), Ready::kRead);
  if (!connection.keep_alive) {
    // To close now would take back what the other end has not read yet, if it has sent more than was read.
    ::shutdown(connection.fd.get(), SHUT_WR);
    connection.state = State::kDraining;
    set_deadline(id, connection, limits_.drain);
    return;
  }
  connection.state = State::kReading;
  set_deadline(id, connection, patience(connection));
  if (!connection.in_handler && !connection.in.empty()) next_request(id);
}

void Connections::drain(Id id, Connection& connection) {
  std::array<char, kPiece> bytes{};
  const ssize_t got = ::recv(connection.fd.get(), bytes.data(), bytes.size(), 0);
  if (later(got)) return;
  connection.sent += got > 0 ? static_cast<std::size_t>(got) : 0;
  if (got <= 0 || connection.sent > kMostDrained) drop(id);
}

void Connections::stream(Id id, std::string_view first) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  HR_CHECK(connection.state == State::kWaiting, "a stream that nobody asked for");
  if (connection.head_only) return answer(id, {.type = kEventStream, .body = {}});
  connection.state = State::kStreaming;
  connection.out = head_of_stream() + std::string(first);
  connection.sent = 0;
  set_beat();
  write_stream(id, connection);
}

void Connections::set_beat() {
  if (beat_ != 0) return;
  beat_ = loop_.after(limits_.beat, [this] {
    beat_ = 0;
    send(": \n\n");
    if (streams() > 0) set_beat();
  });
}

// A stream is asked nothing more: whatever comes, or that its other end has gone, ends it.
void Connections::write_stream(Id id, Connection& connection) {
  std::array<char, 1> byte{};
  if (const ssize_t got = ::recv(connection.fd.get(), byte.data(), byte.size(), MSG_DONTWAIT); !later(got))
    return drop(id);
  while (connection.sent < connection.out.size()) {
    const ssize_t put =
        send_piece(connection.fd.get(), std::string_view(connection.out).substr(connection.sent), false);
    if (later(put)) {
      connection.out.erase(0, connection.sent);
      connection.sent = 0;
      if (connection.deadline == 0) set_deadline(id, connection, limits_.write);
      return loop_.expect(connection.fd.get(), Ready::kEither);
    }
    if (put < 0) return drop(id);
    connection.sent += static_cast<std::size_t>(put);
    set_deadline(id, connection, 0);
  }
  connection.out.clear();
  connection.sent = 0;
  loop_.expect(connection.fd.get(), Ready::kRead);
}

void Connections::send(std::string_view events) {
  std::vector<Id> ids;
  for (const auto& [id, connection] : connections_)
    if (connection.state == State::kStreaming) ids.push_back(id);
  for (const Id id : ids) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) continue;
    Connection& connection = found->second;
    if (connection.out.size() - connection.sent + events.size() > limits_.stream_bytes) {
      drop(id);
      continue;
    }
    connection.out += events;
    write_stream(id, connection);
  }
}

void Connections::trust(Id id) {
  if (const auto found = connections_.find(id); found != connections_.end()) found->second.trusted = true;
}

std::size_t Connections::streams() const {
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), [](const auto& connection) {
    return connection.second.state == State::kStreaming;
  }));
}

}  // namespace headroom::serve
