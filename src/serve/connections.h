// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "live/loop.h"
#include "serve/http.h"

namespace headroom::serve {

struct Limits {
  std::size_t connections = 64;
  Nanos head = 10 * kSecond;            // for a whole request, and between two, of who has shown a token
  Nanos stranger = 2 * kSecond;         // the same of who has shown none
  Nanos write = 30 * kSecond;           // for a reader who takes nothing
  Nanos drain = 1 * kSecond;            // for what is still on its way after the last answer
  Nanos beat = 15 * kSecond;            // between two lines of a stream, so that the other end knows it lives
  std::size_t stream_bytes = 64 << 10;  // of a stream that nobody takes; then it is closed
};

// HTTP/1.1 connections on an event loop. One request of a connection is answered at a time, in order. Nothing is woken
// while no connection is open.
class Connections {
 public:
  using Id = std::uint64_t;
  // Called with every request; answer() or stream() must follow, now or later. HEAD is answered like GET.
  using Handler = std::function<void(Id, const Request&)>;

  // kIo: the loop cannot watch `listening`.
  [[nodiscard]] static Result<std::unique_ptr<Connections>> open(Loop& loop, Fd listening, Handler handler,
                                                                 Limits limits = {});
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  void answer(Id id, Response response);       // nothing, if the connection has gone
  void stream(Id id, std::string_view first);  // server-sent events, `first` at once
  void trust(Id id);                           // it has shown a token: it gives way to nobody
  void send(std::string_view events);          // to all streams
  [[nodiscard]] std::size_t streams() const;
  [[nodiscard]] bool alive(Id id) const { return connections_.contains(id); }
  void when_empty(std::function<void()> call) { when_empty_ = std::move(call); }  // the last connection has gone

 private:
  enum class State { kReading, kWaiting, kWriting, kStreaming, kDraining };
  struct Connection {
    Fd fd;
    State state = State::kReading;
    std::string in;   // bytes of requests
    std::string out;  // head, and for streams everything
    Body body;
    std::size_t sent = 0;  // of out and body
    bool keep_alive = false, head_only = false, trusted = false, in_handler = false;
    Loop::TimerId deadline = 0;
  };

  Connections(Loop& loop, Fd listening, Handler handler, Limits limits);
  [[nodiscard]] Result<void> listen();
  void rest();
  void accept();
  void admit(Fd fd);
  [[nodiscard]] bool make_way();
  [[nodiscard]] Nanos patience(const Connection& connection) const;
  void ready(Id id);
  void read(Id id, Connection& connection);
  void next_request(Id id);
  void write(Id id, Connection& connection);
  void finish(Id id, Connection& connection);
  void drain(Id id, Connection& connection);
  void write_stream(Id id, Connection& connection);
  void too_late(Id id);
  void set_deadline(Id id, Connection& connection, Nanos in);
  void set_beat();
  void drop(Id id);

  Loop& loop_;
  Fd listening_;
  Handler handler_;
  Limits limits_;
  std::function<void()> when_empty_;
  std::map<Id, Connection> connections_;
  Id last_id_ = 0;
  Loop::TimerId resting_ = 0, beat_ = 0;
};

}  // namespace headroom::serve
