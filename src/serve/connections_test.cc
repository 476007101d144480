// SPDX-License-Identifier: Apache-2.0
#include "serve/connections.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "serve/listening.h"
#include "serve/worker.h"

namespace headroom::serve {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr Nanos kPatience = 20 * kSecond;
constexpr std::string_view kAsk = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

// The other end of a connection; never waits.
struct Client {
  Fd fd;
  std::string got;
  bool ended = false;

  void say(std::string_view text) const {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  void hear() {
    char bytes[65536];
    for (;;) {
      const ssize_t count = ::recv(fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (count > 0) got.append(bytes, static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && errno != EAGAIN)) ended = true;
      if (count <= 0) return;
    }
  }
};

struct ConnectionsTest : testing::Test {
  std::string path = testing::TempDir() + "connections_test." + std::to_string(::getpid());
  std::unique_ptr<Loop> loop = std::move(*Loop::create());
  std::optional<UnixListening> listening;  // removes its path at the end
  std::unique_ptr<Connections> connections;
  std::vector<std::pair<Connections::Id, Request>> asked;
  bool at_once = true;    // answers come from the handler
  bool trusting = false;  // every request shows a token

  void open(Limits limits = {}) {
    auto opened = UnixListening::open(path);
    ASSERT_TRUE(opened) << opened.error().what;
    listening.emplace(std::move(*opened));
    connections = std::move(*Connections::open(
        *loop, listening->take(),
        [this](Connections::Id id, const Request& request) {
          asked.emplace_back(id, request);
          if (trusting) connections->trust(id);
          if (at_once) connections->answer(id, answer_to(request));
        },
        limits));
  }
  static Response answer_to(const Request& request) { return {.type = kText, .body = "you asked " + request.path}; }

  [[nodiscard]] Client connect() const {
    Client client{Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::connect(client.fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  void turn() {
    loop->after(kMillisecond, [&] { loop->stop(); });
    loop->run();
  }
  template <class Condition>
  void until(Condition condition) {
    for (const Nanos end = boottime_now() + kPatience; !condition();) {
      ASSERT_LT(boottime_now(), end);
      turn();
    }
  }
  void until_heard(Client& client, std::string_view words) {
    until([&] {
      client.hear();
      return client.got.find(words) != std::string::npos;
    });
  }
  void until_ended(Client& client) {
    until([&] {
      client.hear();
      return client.ended;
    });
  }
};

TEST_F(ConnectionsTest, RequestsOfAConnectionAreAnsweredInOrder) {
  open();
  Client client = connect();
  client.say("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
  until_heard(client, "you asked /3");
  EXPECT_THAT(client.got, AllOf(HasSubstr("you asked /1HTTP/1.1 200 OK\r\n"), Not(HasSubstr("you asked /2"))));
  EXPECT_FALSE(client.ended);
}

TEST_F(ConnectionsTest, ManyRequestsAtOnceDoNotPileUp) {
  open();
  Client client = connect();
  std::string many;
  for (int i = 0; i < 500; ++i) many += "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  client.say(many + "GET /last HTTP/1.1\r\nHost: a\r\n\r\n");
  until_heard(client, "you asked /last");
  EXPECT_EQ(asked.size(), 501);
}

TEST_F(ConnectionsTest, AnAnswerMayComeLaterOrToNobody) {
  at_once = false;
  open();
  Client client = connect();
  client.say(kAsk);
  client.say(kAsk);
  until([&] { return asked.size() == 1; });
  turn();
  EXPECT_EQ(asked.size(), 1) << "one at a time";
  connections->answer(asked[0].first, answer_to(asked[0].second));
  until([&] { return asked.size() == 2; });
  client.fd.reset();
  until([&] { return !connections->alive(asked[1].first); });
  connections->answer(asked[1].first, answer_to(asked[1].second));
}

TEST_F(ConnectionsTest, ALargeAnswerArrivesWhole) {
  at_once = false;
  open();
  Client client = connect();
  client.say("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  until([&] { return asked.size() == 1; });
  const std::string large(10'000'000, 'x');
  connections->answer(asked[0].first, {.type = kText, .body = large});
  until_ended(client);
  EXPECT_THAT(client.got, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 10000000\r\n")));
  EXPECT_EQ(client.got.substr(client.got.find("\r\n\r\n") + 4), large);
}

TEST_F(ConnectionsTest, WhatIsRefusedIsSaidThoughMoreWasSent) {
  open();
  Client client = connect();
  client.say("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(100'000, 'x'));
  until_ended(client);
  EXPECT_THAT(client.got, AllOf(StartsWith("HTTP/1.1 431 "), HasSubstr("Connection: close"), EndsWith("too long\n")));
  EXPECT_TRUE(asked.empty());
}

TEST_F(ConnectionsTest, WhoIsSlowIsToldAndDropped) {
  open({.head = 100 * kMillisecond});
  Client slow = connect(), silent = connect();
  slow.say("GET / HT");
  until_ended(slow);
  until_ended(silent);
  EXPECT_THAT(slow.got, StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(silent.got, "");
}

TEST_F(ConnectionsTest, WhoTakesNothingIsDropped) {
  at_once = false;
  open({.write = 100 * kMillisecond});
  Client client = connect();
  client.say(kAsk);
  until([&] { return asked.size() == 1; });
  connections->answer(asked[0].first, {.type = kText, .body = std::string(50'000'000, 'x')});
  until([&] { return !connections->alive(asked[0].first); });
}

TEST_F(ConnectionsTest, WhoShowsNoTokenInTimeIsDroppedBeforeWhoHasShownOne) {
  open({.head = kPatience, .stranger = 100 * kMillisecond});
  trusting = true;
  Client known = connect();
  known.say(kAsk);
  until_heard(known, "you asked");
  Client silent = connect();
  until_ended(silent);
  known.hear();
  EXPECT_FALSE(known.ended);
}

TEST_F(ConnectionsTest, WhereAllHaveShownATokenOthersAreAskedToComeAgain) {
  open({.connections = 2, .stranger = kPatience});
  trusting = true;
  Client one = connect(), two = connect();
  one.say(kAsk);
  two.say(kAsk);
  until_heard(one, "you asked");
  until_heard(two, "you asked");
  Client three = connect();
  until_ended(three);
  EXPECT_THAT(three.got, AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1")));
  two.fd.reset();
  turn();
  Client four = connect();
  four.say(kAsk);
  until_heard(four, "you asked");
}

TEST_F(ConnectionsTest, WhoShowsNoTokenKeepsNobodyOut) {
  open({.connections = 2, .stranger = kPatience});
  trusting = true;
  Client trusted = connect();
  trusted.say(kAsk);
  until_heard(trusted, "you asked");
  std::vector<Client> crowd;
  for (int i = 0; i < 300; ++i) {  // at once: nobody of them has been there for long
    crowd.push_back(connect());
    if (i % 20 == 0) turn();
  }
  Client late = connect();
  late.say(kAsk);
  until_heard(late, "you asked");
  EXPECT_THAT(late.got, StartsWith("HTTP/1.1 200 "));
  trusted.hear();
  EXPECT_FALSE(trusted.ended);
  for (Client& one : crowd) {
    one.hear();
    EXPECT_EQ(one.got, "") << "nobody is refused for them";
  }
}

TEST_F(ConnectionsTest, WhatAStrangerHasSaidIsHeardBeforeItGoes) {
  open({.connections = 2, .stranger = kPatience});
  trusting = true;
  Client speaks = connect();
  turn();
  Client first = connect(), second = connect(), third = connect();  // seen before what it says …
  speaks.say(kAsk);
  until_heard(speaks, "you asked");  // … which is heard all the same
  EXPECT_FALSE(speaks.ended);
}

TEST_F(ConnectionsTest, StreamsGetEventsUntilTheyLeave) {
  at_once = false;
  open();
  Client client = connect();
  client.say(kAsk);
  until([&] { return asked.size() == 1; });
  connections->stream(asked[0].first, event_text("hello", "{}"));
  EXPECT_EQ(connections->streams(), 1);
  connections->send(event_text("overview", "{}"));
  until_heard(client, "event: overview\ndata: {}\n\n");
  EXPECT_THAT(client.got, HasSubstr("\r\n\r\nevent: hello\ndata: {}\n\n"));
  bool empty = false;
  connections->when_empty([&] { empty = true; });
  client.fd.reset();
  until([&] { return connections->streams() == 0; });
  EXPECT_TRUE(empty);
}

TEST_F(ConnectionsTest, AStreamBeats) {
  at_once = false;
  open({.beat = 10 * kMillisecond});
  Client client = connect();
  client.say(kAsk);
  until([&] { return asked.size() == 1; });
  connections->stream(asked[0].first, "");
  until_heard(client, ": \n\n: \n\n");
}

TEST_F(ConnectionsTest, AStreamThatNobodyReadsIsBoundedAndEnds) {
  at_once = false;
  open({.stream_bytes = 64 << 10});
  Client reads = connect(), does_not = connect();
  reads.say(kAsk);
  does_not.say(kAsk);
  until([&] { return asked.size() == 2; });
  for (const auto& [id, request] : asked) connections->stream(id, "");
  const std::string event = event_text("overview", std::string(1000, 'x'));
  for (int i = 0; i < 100'000 && connections->streams() == 2; ++i) {
    connections->send(event);
    reads.hear();
  }
  EXPECT_EQ(connections->streams(), 1);
  until_heard(reads, "event: overview");
  EXPECT_FALSE(reads.ended);
}

TEST_F(ConnectionsTest, AStreamIsAskedNothingMore) {
  at_once = false;
  open();
  Client client = connect();
  client.say(kAsk);
  until([&] { return asked.size() == 1; });
  connections->stream(asked[0].first, "");
  client.say(kAsk);
  until_ended(client);
}

// Whatever state connections are in, the loop sleeps until something happens: nothing is due within a second here.
TEST_F(ConnectionsTest, NothingIsWokenForNothing) {
  at_once = false;
  open();
  std::vector<Client> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(connect());
  clients[1].say("GET / HT");
  for (int i = 2; i < 5; ++i) clients[static_cast<std::size_t>(i)].say(kAsk);
  until([&] { return asked.size() == 3; });
  connections->stream(asked[0].first, "");
  connections->answer(asked[1].first, {.type = kText, .body = std::string(50'000'000, 'x')});  // nobody takes it
  clients[4].say(kAsk);  // while it waits for the answer before
  turn();
  const Nanos before = thread_cpu_now();
  int turns = 0;
  rusage first{}, last{};
  ::getrusage(RUSAGE_THREAD, &first);
  loop->after(kSecond / 5, [&] { loop->stop(); });
  loop->run();
  ::getrusage(RUSAGE_THREAD, &last);
  turns = static_cast<int>(last.ru_nvcsw - first.ru_nvcsw);
  EXPECT_LE(turns, 3);
  EXPECT_LT(thread_cpu_now() - before, 50 * kMillisecond) << "it would spin";
}

TEST_F(ConnectionsTest, ASocketIsItsUsersAloneAndGoesWithIt) {
  {
    const auto first = UnixListening::open(path);
    ASSERT_TRUE(first);
    struct stat there {};
    ASSERT_EQ(::lstat(path.c_str(), &there), 0);
    EXPECT_EQ(there.st_mode & 0777, 0600);
    const auto second = UnixListening::open(path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::kBusy);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  {  // what a server that died left there
    const Fd dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_TRUE(UnixListening::open(path));
  const Fd file(::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_EQ(UnixListening::open(path).error().code, Errc::kInvalidInput);
  EXPECT_EQ(UnixListening::open(std::string(200, 'x')).error().code, Errc::kInvalidInput);
}

TEST(ListeningTest, OnlyLoopbackIsListenedOn) {
  const auto any = listen_on_loopback("127.0.0.1", 0);
  ASSERT_TRUE(any);
  EXPECT_GT(any->port, 0);
  EXPECT_EQ(listen_on_loopback("127.0.0.1", any->port).error().code, Errc::kBusy);
  for (const char* address : {"0.0.0.0", "::", "192.168.1.1", "localhost", ""})
    EXPECT_EQ(listen_on_loopback(address, 0).error().code, Errc::kInvalidInput) << address;
}

TEST(WorkerTest, JobsAreDoneInOrderOnAnotherThread) {
  const auto loop = std::move(*Loop::create());
  Worker worker(*loop);
  std::vector<int> seen;
  std::thread::id where;
  worker.run([&] { where = std::this_thread::get_id(); }, [&] { seen.push_back(1); });
  worker.run([] {},
             [&] {
               seen.push_back(2);
               loop->stop();
             });
  loop->run();
  EXPECT_THAT(seen, testing::ElementsAre(1, 2));
  EXPECT_NE(where, std::this_thread::get_id());
}

}  // namespace
}  // namespace headroom::serve
