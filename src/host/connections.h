// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.h"
#include "host/proc_dir.h"

namespace headroom::host {

struct Address {
  std::vector<std::uint8_t> bytes;  // 4 or 16, in network order
  std::uint16_t port = 0;
  bool operator==(const Address&) const = default;
};
// "10.0.0.5:443", "[fe80::1]:443"
[[nodiscard]] std::string to_text(const Address& address);

struct Connection {
  Address here, there;
  std::uint64_t inode = 0;
  bool accepted = false;                     // somebody listens at its own port: it was made from the other end
  std::optional<std::uint64_t> other_end{};  // the inode of the socket there, where that is in the same list
};

// A line of /proc/<pid>/net/tcp or tcp6: of a connection, or (there.port 0) of who listens. Nothing for other lines.
struct TcpLine {
  Connection connection;
  bool listens = false;
};
[[nodiscard]] std::optional<TcpLine> parse_tcp_line(std::string_view line);

// The TCP connections of the network namespaces of the processes that are asked about, by the inodes of their sockets.
// The kernel makes the whole list for each question, which takes longer the more there are: what is not known is looked
// up at most once a second, and not more than a hundredth of the time is spent on it. Only those asked about are kept.
class Connections {
 public:
  // Nothing where it is none, or is not known yet.
  [[nodiscard]] const Connection* find(ProcDir& proc, std::int64_t pid, std::uint64_t inode, Nanos at);

 private:
  std::unordered_map<std::uint64_t, Connection> known_;  // by inode; emptied now and then
  Nanos next_ = 0;
};

// What the kernel of this machine knows of a connection in the network namespace of this process (sock_diag(7)).
struct Carried {
  std::int64_t sent = 0, received = 0;  // bytes since it was opened; sent ones were acknowledged
};
[[nodiscard]] std::optional<Carried> carried_by(const Connection& connection);

// What connections carry from one look at each to the next.
class CarriedSince {
 public:
  // Since the last look at it; of one that was not looked at before since it was opened, if `from_opening`, else 0.
  [[nodiscard]] Carried grown(std::uint64_t inode, const Carried& now, bool from_opening, Nanos at);

 private:
  struct Look {
    Carried carried;
    Nanos at = 0;
  };
  std::unordered_map<std::uint64_t, Look> last_;  // of those looked at last
};

// The inode of the other end of a Unix socket, likewise.
[[nodiscard]] std::optional<std::uint64_t> unix_peer(std::uint64_t inode);

}  // namespace headroom::host
