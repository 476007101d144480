// SPDX-License-Identifier: Apache-2.0
#include "host/connections.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>

#include "base/fd.h"
#include "base/strings.h"

namespace headroom::host {

namespace {

template <class T>
std::optional<T> hex(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "0100007F:E56F": words of 32 bits as they lie in memory, and the port.
std::optional<Address> parse_address(std::string_view text) {
  constexpr std::size_t kWord = 8;  // digits
  const auto colon = text.find(':');
  if (colon != kWord && colon != 4 * kWord) return std::nullopt;
  Address address;
  for (std::size_t at = 0; at < colon; at += kWord) {
    const auto word = hex<std::uint32_t>(text.substr(at, kWord));
    if (!word) return std::nullopt;
    std::array<std::uint8_t, sizeof *word> bytes{};
    std::memcpy(bytes.data(), &*word, bytes.size());
    address.bytes.insert(address.bytes.end(), bytes.begin(), bytes.end());
  }
  const auto port = hex<std::uint16_t>(text.substr(colon + 1));
  if (!port) return std::nullopt;
  address.port = *port;
  return address;
}

bool maps_version_4(const std::vector<std::uint8_t>& bytes) {
  constexpr std::array<std::uint8_t, 12> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return bytes.size() > kPrefix.size() && std::equal(kPrefix.begin(), kPrefix.end(), bytes.begin());
}

// One question to sock_diag and its one answer; empty where there is none.
std::vector<char> ask(const void* request, std::size_t size) {
  const Fd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket) return {};
  struct {
    nlmsghdr head;
    std::array<char, 128> body;
  } message{};
  if (size > message.body.size()) return {};
  message.head = {.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(size)),
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST,
                  .nlmsg_seq = 1,
                  .nlmsg_pid = 0};
  std::memcpy(message.body.data(), request, size);
  if (::send(socket.get(), &message, message.head.nlmsg_len, 0) < 0) return {};
  std::vector<char> answer(8192);
  const auto got = ::recv(socket.get(), answer.data(), answer.size(), MSG_DONTWAIT);  // the kernel has answered by now
  nlmsghdr head{};
  if (got < static_cast<ssize_t>(sizeof head)) return {};
  std::memcpy(&head, answer.data(), sizeof head);
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || head.nlmsg_len > static_cast<std::size_t>(got)) return {};
  return {answer.begin() + NLMSG_HDRLEN, answer.begin() + head.nlmsg_len};
}

// The attribute of this type behind the first `fixed` bytes of an answer; empty where there is none.
std::string_view attribute_of(const std::vector<char>& answer, std::size_t fixed, unsigned type) {
  for (std::size_t at = NLMSG_ALIGN(fixed); at + sizeof(rtattr) <= answer.size();) {
    rtattr attribute{};
    std::memcpy(&attribute, answer.data() + at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > answer.size() - at) break;
    if (attribute.rta_type == type)
      return {answer.data() + at + sizeof attribute, attribute.rta_len - sizeof attribute};
    at += RTA_ALIGN(attribute.rta_len);
  }
  return {};
}

}  // namespace

std::string to_text(const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.bytes.size() == 4 || maps_version_4(address.bytes)) {
    ::inet_ntop(AF_INET, address.bytes.data() + address.bytes.size() - 4, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), address.port);
  }
  if (address.bytes.size() != 16) return "";
  ::inet_ntop(AF_INET6, address.bytes.data(), text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), address.port);
}

std::optional<TcpLine> parse_tcp_line(std::string_view line) {
  constexpr std::size_t kHere = 1, kThere = 2, kState = 3, kInode = 9;
  constexpr unsigned kListens = 10;  // TCP_LISTEN
  std::vector<std::string_view> words = split(line, ' ');
  std::erase(words, std::string_view());
  if (words.size() <= kInode) return std::nullopt;
  const auto here = parse_address(words[kHere]), there = parse_address(words[kThere]);
  const auto state = hex<unsigned>(words[kState]);
  const auto inode = parse_number<std::uint64_t>(words[kInode]);
  if (!here || !there || !state || !inode) return std::nullopt;
  return TcpLine{{*here, *there, *inode}, *state == kListens};
}

namespace {

template <class Use>
void for_each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (const auto parsed = parse_tcp_line(line)) use(*parsed);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

std::optional<Connection> read_connection(ProcDir& proc, std::int64_t pid, std::uint64_t inode) {
  std::optional<Connection> found;
  std::set<std::uint16_t> listened;
  for (const char* name : {"tcp", "tcp6"}) {
    const auto text = proc.read(fmt::format("{}/net/{}", pid, name).c_str());
    if (!text) continue;
    bool here = false;
    for_each_line(*text, [&](const TcpLine& line) {
      if (line.listens) listened.insert(line.connection.here.port);
      if (line.connection.inode == inode) found = line.connection, here = true;
    });
    if (here)
      for_each_line(*text, [&](const TcpLine& line) {
        const Connection& other = line.connection;
        if (other.inode != 0 && other.here == found->there && other.there == found->here)
          found->other_end = other.inode;
      });
  }
  if (found) found->accepted = listened.contains(found->here.port);
  return found;
}

}  // namespace

const Connection* Connections::find(ProcDir& proc, std::int64_t pid, std::uint64_t inode, Nanos at) {
  constexpr Nanos kShare = 100;
  constexpr std::size_t kMost = 256;
  const auto known = known_.find(inode);
  if (known != known_.end()) return &known->second;
  if (at < next_) return nullptr;
  const Nanos begin = boottime_now();
  const auto found = read_connection(proc, pid, inode);
  next_ = at + std::max(kSecond, kShare * (boottime_now() - begin));
  if (!found) return nullptr;
  if (known_.size() >= kMost) known_.clear();
  return &known_.emplace(inode, *found).first->second;
}

std::optional<Carried> carried_by(const Connection& connection) {
  inet_diag_req_v2 request{};
  request.sdiag_family = connection.here.bytes.size() == 4 ? AF_INET : AF_INET6;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_ext = 1U << (INET_DIAG_INFO - 1);
  request.idiag_states = ~0U;
  request.id.idiag_sport = htons(connection.here.port);
  request.id.idiag_dport = htons(connection.there.port);
  std::memcpy(request.id.idiag_src, connection.here.bytes.data(), connection.here.bytes.size());
  std::memcpy(request.id.idiag_dst, connection.there.bytes.data(), connection.there.bytes.size());
  request.id.idiag_cookie[0] = request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const std::vector<char> answer = ask(&request, sizeof request);
  inet_diag_msg message{};
  if (answer.size() < sizeof message) return std::nullopt;
  std::memcpy(&message, answer.data(), sizeof message);
  if (message.idiag_inode != connection.inode) return std::nullopt;  // of another network namespace
  const std::string_view told = attribute_of(answer, sizeof message, INET_DIAG_INFO);
  tcp_info info{};
  if (told.size() < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return std::nullopt;
  std::memcpy(&info, told.data(), std::min(told.size(), sizeof info));
  return Carried{static_cast<std::int64_t>(info.tcpi_bytes_acked), static_cast<std::int64_t>(info.tcpi_bytes_received)};
}

Carried CarriedSince::grown(std::uint64_t inode, const Carried& now, bool from_opening, Nanos at) {
  constexpr std::size_t kMost = 1024;
  const auto known = last_.find(inode);
  const bool is_new = known == last_.end();
  const Carried before = !is_new ? known->second.carried : from_opening ? Carried{} : now;
  if (is_new && last_.size() >= kMost)
    last_.erase(std::min_element(last_.begin(), last_.end(),
                                 [](const auto& x, const auto& y) { return x.second.at < y.second.at; }));
  last_[inode] = {now, at};
  return {std::max<std::int64_t>(0, now.sent - before.sent), std::max<std::int64_t>(0, now.received - before.received)};
}

std::optional<std::uint64_t> unix_peer(std::uint64_t inode) {
  unix_diag_req request{};
  request.sdiag_family = AF_UNIX;
  request.udiag_states = ~0U;
  request.udiag_ino = static_cast<std::uint32_t>(inode);
  request.udiag_show = UDIAG_SHOW_PEER;
  request.udiag_cookie[0] = request.udiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const std::vector<char> answer = ask(&request, sizeof request);
  const std::string_view told = attribute_of(answer, sizeof(unix_diag_msg), UNIX_DIAG_PEER);
  std::uint32_t peer = 0;
  if (told.size() < sizeof peer) return std::nullopt;
  std::memcpy(&peer, told.data(), sizeof peer);
  return peer;
}

}  // namespace headroom::host
