// SPDX-License-Identifier: Apache-2.0
#include "host/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"

namespace headroom::host {
namespace {

constexpr auto kListens =
    "   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 577 1 0000 100 0 0 10 "
    "0";
constexpr auto kOpen =
    "   2: 0100007F:D266 0500000A:01BB 01 00000000:00000000 00:00000000 00000000     0        0 6237659 1 0000 20 4 32 "
    "10";
constexpr auto kSixth =
    "   1: 00000000000000000000000001000000:1F90 000080FE00000000000000000100A8C0:CFB2 01 00000000:00000000 "
    "00:00000000 "
    "00000000  1000        0 77 1 0000 20 4 32 10 -1";

TEST(TcpLines, HaveBothEndsAndTheInode) {
  const auto open = parse_tcp_line(kOpen);
  ASSERT_TRUE(open);
  EXPECT_FALSE(open->listens);
  EXPECT_EQ(to_text(open->connection.here), "127.0.0.1:53862");
  EXPECT_EQ(to_text(open->connection.there), "10.0.0.5:443");
  EXPECT_EQ(open->connection.inode, 6237659U);
  const auto listens = parse_tcp_line(kListens);
  ASSERT_TRUE(listens);
  EXPECT_TRUE(listens->listens);
  const auto sixth = parse_tcp_line(kSixth);
  ASSERT_TRUE(sixth);
  EXPECT_EQ(to_text(sixth->connection.here), "[::1]:8080");
}

TEST(TcpLines, OfAnotherFormAreNone) {
  for (const auto* text :
       {"", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
        "0: 0100007F:D266 0500000A:01BB 01 0:0 0:0 0 0 0", "0: 0100007F 0500000A:01BB 01 0:0 0:0 0 0 0 5",
        "0: 0100007F:D266 0500000A:01BB XX 0:0 0:0 0 0 0 5", "0: 01:D266 0500000A:01BB 01 0:0 0:0 0 0 0 5"})
    EXPECT_FALSE(parse_tcp_line(text)) << text;
}

TEST(Addresses, OfTheOldVersionInTheNewOneAreWrittenAsTheOldOne) {
  EXPECT_EQ(to_text({{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 7}, 80}), "10.0.0.7:80");
}

std::uint64_t inode_of(const Fd& file) {
  struct stat status {};
  ::fstat(file.get(), &status);
  return status.st_ino;
}

TEST(LiveConnections, AreFoundWithBothEndsAndWhatTheyCarried) {
  const Fd server(::socket(AF_INET, SOCK_STREAM, 0)), client(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(server.get(), place, size), 0);
  ASSERT_EQ(::listen(server.get(), 1), 0);
  ASSERT_EQ(::getsockname(server.get(), place, &size), 0);
  ASSERT_EQ(::connect(client.get(), place, size), 0);
  const Fd accepted(::accept(server.get(), nullptr, nullptr));
  const std::array<char, 1000> bytes{};
  std::array<char, 1000> got{};
  ASSERT_EQ(::send(client.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  ASSERT_EQ(::recv(accepted.get(), got.data(), got.size(), MSG_WAITALL), static_cast<ssize_t>(got.size()));

  ProcDir proc("/proc");
  Connections connections;
  const Connection* far = connections.find(proc, ::getpid(), inode_of(accepted), kSecond);
  ASSERT_NE(far, nullptr);
  EXPECT_TRUE(far->accepted);
  EXPECT_EQ(far->other_end, inode_of(client));
  const Connection* near = connections.find(proc, ::getpid(), inode_of(client), 1000 * kSecond);
  ASSERT_NE(near, nullptr);
  EXPECT_FALSE(near->accepted);
  EXPECT_EQ(near->there.port, ntohs(address.sin_port));
  if (const auto carried = carried_by(*far)) {  // a kernel may be built without it
    EXPECT_EQ(carried->received, static_cast<std::int64_t>(bytes.size()));
    EXPECT_EQ(carried->sent, 0);
  }
  Connection stranger = *far;
  ++stranger.inode;
  EXPECT_FALSE(carried_by(stranger)) << "of another namespace the same ends may be another connection's";
  // What is not known is looked up a second later, and not before.
  EXPECT_EQ(Connections(connections).find(proc, ::getpid(), inode_of(server), 1000 * kSecond + kSecond / 2), nullptr);
  EXPECT_NE(Connections(connections).find(proc, ::getpid(), inode_of(server), 2000 * kSecond), nullptr);
}

TEST(CarriedBytes, AreOfEachConnectionSinceTheLastLookAtIt) {
  CarriedSince since;
  EXPECT_EQ(since.grown(7, {.sent = 10, .received = 500}, true, 1).received, 500);
  EXPECT_EQ(since.grown(8, {.sent = 10, .received = 900}, false, 2).received, 0) << "it may have been open for long";
  EXPECT_EQ(since.grown(7, {.sent = 11, .received = 600}, true, 3).received, 100) << "another one in between";
  EXPECT_EQ(since.grown(8, {.sent = 30, .received = 900}, false, 4).sent, 20);
  EXPECT_EQ(since.grown(7, {.sent = 0, .received = 0}, true, 5).received, 0) << "never less than nothing";
}

TEST(LiveConnections, AUnixSocketHasAnotherEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const Fd one(ends[0]), other(ends[1]);
  if (const auto peer = unix_peer(inode_of(one))) {
    EXPECT_EQ(*peer, inode_of(other));
  }
  EXPECT_FALSE(unix_peer(1));
}

}  // namespace
}  // namespace headroom::host
