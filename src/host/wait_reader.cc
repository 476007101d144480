// SPDX-License-Identifier: Apache-2.0
#include "host/wait_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "host/proc_parse.h"

namespace headroom::host {

namespace {

constexpr std::size_t kMostFiles = 64;   // of one call: more of them tell nothing
constexpr std::size_t kMostTargets = 4;  // likewise
constexpr std::size_t kMostPids = 4;
constexpr int kMostNamed = 4096;  // of a recording: later ones are told by folder, or by what they are called

enum class Call { kOther, kFile, kFileLock, kPathFirst, kPathSecond, kPoll, kSelect, kEpoll, kWait, kWaitId };

// Calls whose first argument is a descriptor of what they wait for.
bool takes_file(int number) {
  switch (number) {
    case SYS_read:
    case SYS_pread64:
    case SYS_readv:
    case SYS_preadv:
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync_file_range:
    case SYS_syncfs:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_getdents64:
    case SYS_ioctl:
      return true;
    default:
      return false;
  }
}

Call call_of(int number) {
  if (takes_file(number)) return Call::kFile;
  switch (number) {
    case SYS_flock:
    case SYS_fcntl:
      return Call::kFileLock;
    case SYS_openat:
    case SYS_newfstatat:
    case SYS_statx:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_faccessat:
      return Call::kPathSecond;
    case SYS_ppoll:
      return Call::kPoll;
    case SYS_pselect6:
      return Call::kSelect;
    case SYS_epoll_pwait:
      return Call::kEpoll;
    case SYS_wait4:
      return Call::kWait;
    case SYS_waitid:
      return Call::kWaitId;
#ifdef __x86_64__  // calls that newer architectures do not have
    case SYS_open:
    case SYS_stat:
    case SYS_lstat:
    case SYS_access:
    case SYS_unlink:
    case SYS_mkdir:
    case SYS_rename:
      return Call::kPathFirst;
    case SYS_poll:
      return Call::kPoll;
    case SYS_select:
      return Call::kSelect;
    case SYS_epoll_wait:
      return Call::kEpoll;
#endif
    default:
      return Call::kOther;
  }
}

// The bytes at that address in the memory of a process, as far as they can be read.
std::vector<char> memory_of(std::int64_t pid, std::uint64_t address, std::size_t size) {
  std::vector<char> bytes(size);
  const iovec here{bytes.data(), size};
  const iovec there{reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr): of another process
  const auto got = address == 0 ? 0 : ::process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return bytes;
}

// A path may end just before a page that is not there.
std::string path_in_memory(std::int64_t pid, std::uint64_t address) {
  constexpr std::size_t kPage = 4096, kLongest = 512;
  std::vector<char> bytes = memory_of(pid, address, std::min(kLongest, kPage - address % kPage));
  const auto end = std::find(bytes.begin(), bytes.end(), '\0');
  if (end == bytes.end()) bytes.clear();
  return {bytes.begin(), end == bytes.end() ? bytes.end() : end};
}

std::vector<int> polled(std::int64_t pid, std::uint64_t address, std::uint64_t count) {
  std::vector<int> files;
  if (count > kMostFiles) return files;
  const std::vector<char> bytes = memory_of(pid, address, count * sizeof(pollfd));
  for (std::size_t at = 0; at + sizeof(pollfd) <= bytes.size(); at += sizeof(pollfd)) {
    pollfd one{};
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), sizeof one, reinterpret_cast<char*>(&one));
    if (one.fd >= 0 && one.events != 0) files.push_back(one.fd);
  }
  return files;
}

// The descriptors of a set of bits, the lowest of the first byte being descriptor 0.
void add_selected(std::int64_t pid, std::uint64_t address, std::uint64_t count, std::vector<int>& files) {
  const std::vector<char> bytes = memory_of(pid, address, (std::min<std::uint64_t>(count, FD_SETSIZE) + 7) / 8);
  for (std::size_t bit = 0; bit < bytes.size() * 8 && bit < count; ++bit)
    if ((static_cast<unsigned>(bytes[bit / 8]) >> (bit % 8) & 1U) != 0) files.push_back(static_cast<int>(bit));
}

// "tfd:        5 events:       19 data: …", a line for each file that is waited for.
std::vector<int> of_epoll(std::string_view fdinfo) {
  constexpr std::string_view kLine = "tfd:";
  std::vector<int> files;
  for (const std::string_view line : split(fdinfo, '\n')) {
    if (!line.starts_with(kLine)) continue;
    const std::string_view rest = trim(line.substr(kLine.size()));
    if (const auto file = parse_number<int>(rest.substr(0, rest.find(' ')))) files.push_back(*file);
  }
  return files;
}

// Whether this end is written to, as "flags:\t0100001" of its fdinfo tells; nothing where that cannot be read.
std::optional<bool> is_written(ProcDir& proc, std::int64_t pid, std::int64_t file) {
  constexpr std::string_view kLine = "flags:";
  const auto text = proc.read(fmt::format("{}/fdinfo/{}", pid, file).c_str());
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.starts_with(kLine)) continue;
    const std::string_view digits = trim(line.substr(kLine.size()));
    if (digits.empty()) break;
    return ((digits.back() - '0') & O_ACCMODE) != O_RDONLY;
  }
  return std::nullopt;
}

std::string name_of(ProcDir& proc, std::int64_t pid) {
  const auto text = proc.read(fmt::format("{}/comm", pid).c_str());
  return text ? valid_utf8(trim(*text)) : "";
}

// The process that has the lock for which this one waits: of the lines of one number in /proc/locks,
// "1: -> FLOCK  ADVISORY  WRITE 43 08:01:17 0 EOF" is who waits, and the one without the arrow who has it. Nothing
// where the kernel shows neither, as of a process in another container.
std::optional<std::int64_t> holder_of_lock(ProcDir& proc, std::int64_t waiter) {
  constexpr std::size_t kLongest = 1 << 20;
  const auto text = proc.read("locks");
  if (!text || text->size() > kLongest) return std::nullopt;
  std::map<std::string_view, std::int64_t> held;  // by number
  for (const std::string_view line : split(*text, '\n')) {
    std::vector<std::string_view> words = split(line, ' ');
    std::erase(words, "");
    const bool waits = words.size() > 1 && words[1] == "->";
    const std::size_t at = waits ? 5 : 4;
    const auto pid = words.size() > at ? parse_number<std::int64_t>(words[at]) : std::nullopt;
    if (!pid) continue;
    if (!waits)
      held[words[0]] = *pid;
    else if (const auto holder = held.find(words[0]); *pid == waiter && holder != held.end() && holder->second > 0)
      return holder->second;
  }
  return std::nullopt;
}

bool has_one_thread(ProcDir& proc, std::int64_t pid) {
  const auto threads = proc.list_numbers(fmt::format("{}/task", pid).c_str());
  return threads && threads->size() == 1;
}

std::optional<std::uint64_t> inode_of(std::string_view link, std::string_view kind) {
  if (!link.starts_with(kind) || !link.ends_with("]")) return std::nullopt;
  return parse_number<std::uint64_t>(link.substr(kind.size(), link.size() - kind.size() - 1));
}

constexpr std::string_view kSocket = "socket:[", kPipe = "pipe:[";

std::string link_of_socket(std::uint64_t inode) { return fmt::format("{}{}]", kSocket, inode); }

}  // namespace

WaitReader::Files WaitReader::files_of(ProcDir& proc, const Sleeper& sleeper) const {
  const std::int64_t pid = sleeper.pid;
  const bool has_memory = live_ && !sleeper.blocked;
  Files files;
  const auto text = proc.read(fmt::format("{}/syscall", pid).c_str());
  const auto call = text ? parse_syscall(*text) : std::nullopt;
  if (!call) return files;
  const auto& [number, arguments] = *call;
  const auto first = static_cast<int>(arguments[0]);
  switch (call_of(number)) {
    case Call::kFileLock:
      files.locked = true;
      [[fallthrough]];
    case Call::kFile:
      files.descriptors = {first};
      break;
    case Call::kPathFirst:
    case Call::kPathSecond:
      if (has_memory) files.path = path_in_memory(pid, arguments[call_of(number) == Call::kPathFirst ? 0 : 1]);
      break;
    case Call::kPoll:
      if (has_memory) files.descriptors = polled(pid, arguments[0], arguments[1]);
      break;
    case Call::kSelect:
      if (has_memory)
        for (const std::uint64_t set : {arguments[1], arguments[2]})
          add_selected(pid, set, arguments[0], files.descriptors);
      break;
    case Call::kEpoll:
      if (const auto info = proc.read(fmt::format("{}/fdinfo/{}", pid, first).c_str()))
        files.descriptors = of_epoll(*info);
      break;
    case Call::kWait:
      files.child = first > 0 ? first : -1;
      break;
    case Call::kWaitId:
      files.child = first == P_PID ? static_cast<std::int64_t>(arguments[1]) : -1;
      break;
    case Call::kOther:
      break;
  }
  return files;
}

// The processes of the job, but for this one, that hold such a file; of a pipe, those that hold it to read or write.
std::vector<std::int64_t> WaitReader::search(ProcDir& proc, const OtherEnd& end, std::span<const std::int64_t> job) {
  constexpr std::size_t kMostLinks = 4096;
  std::vector<std::int64_t> holders;
  std::size_t links = 0;
  for (const std::int64_t pid : job) {
    if (pid == end.of) continue;
    const auto files = proc.list_numbers(fmt::format("{}/fd", pid).c_str());
    if (!files) continue;
    for (const std::int64_t file : *files) {
      if (++links > kMostLinks) return {};
      const auto other = proc.read_link(fmt::format("{}/fd/{}", pid, file).c_str());
      if (!other || *other != end.link || (end.written && is_written(proc, pid, file) != end.written)) continue;
      holders.push_back(pid);
      break;
    }
  }
  return holders;
}

// Named where all of them are called alike.
WaitTarget WaitReader::with_holders(const Look& look, WaitKind kind, const OtherEnd& end) {
  constexpr Nanos kGoodFor = 30 * kSecond, kShare = 200;
  constexpr std::size_t kMostRemembered = 256, kMostProcesses = 128;
  WaitTarget target{kind, ""};
  if (look.at - holders_from_ > kGoodFor || holders_.size() > kMostRemembered)
    holders_.clear(), holders_from_ = look.at;
  auto found = holders_.find(end);
  if (found == holders_.end()) {
    if (look.at < next_search_ || look.job.size() > kMostProcesses) return target;
    const Nanos begin = boottime_now();
    found = holders_.emplace(end, search(look.proc, end, look.job)).first;
    next_search_ = look.at + std::max(kSecond, kShare * (boottime_now() - begin));
  }
  for (const std::int64_t pid : found->second) {
    const std::string name = name_of(look.proc, pid);
    if (name.empty()) continue;  // it is gone
    if (target.pids.empty()) target.name = name;
    if (target.name != name) return {kind, ""};
    target.pids.push_back(pid);
  }
  if (target.pids.size() > kMostPids) target.pids.clear();
  return target;
}

std::optional<WaitReader::Found> WaitReader::named_by_holders(const Look& look, WaitKind kind, const OtherEnd& end) {
  Found found{.target = with_holders(look, kind, end), .carried = {}};
  return found.target.name.empty() ? std::nullopt : std::optional(std::move(found));
}

std::optional<WaitReader::Found> WaitReader::target_of_socket(const Look& look, std::uint64_t inode) {
  const auto end_of = [&](std::uint64_t other) { return OtherEnd{link_of_socket(other), look.sleeper.pid, {}}; };
  const Connection* connection = connections_.find(look.proc, look.sleeper.pid, inode, look.at);
  if (connection == nullptr) {
    const auto peer = live_ ? unix_peer(inode) : std::nullopt;
    return peer ? named_by_holders(look, WaitKind::kUnixSocket, end_of(*peer)) : std::nullopt;
  }
  Found found;
  found.target = {connection->accepted ? WaitKind::kAccepted : WaitKind::kConnection,
                  connection->accepted ? std::to_string(connection->here.port) : to_text(connection->there)};
  if (const auto other = connection->other_end)
    found.target.pids = with_holders(look, found.target.kind, end_of(*other)).pids;
  if (const auto now = live_ ? carried_by(*connection) : std::nullopt)
    found.carried = carried_.grown(inode, *now, look.sleeper.born, look.at);
  return found;
}

std::optional<WaitReader::Found> WaitReader::target_of(const Look& look, int descriptor) {
  const std::int64_t pid = look.sleeper.pid;
  const auto read = look.proc.read_link(fmt::format("{}/fd/{}", pid, descriptor).c_str());
  if (!read) return std::nullopt;
  const std::string link(*read);
  if (const auto inode = inode_of(link, kSocket)) return target_of_socket(look, *inode);
  if (inode_of(link, kPipe)) {
    const auto written = is_written(look.proc, pid, descriptor);
    if (!written) return std::nullopt;
    return named_by_holders(look, *written ? WaitKind::kFullPipe : WaitKind::kPipe, {link, pid, !*written});
  }
  const auto named = [](WaitKind kind, std::string name) { return Found{{kind, std::move(name)}, {}}; };
  if (channel_of_file(link) == WaitChannel::kTerminal) return named(WaitKind::kTerminal, link);
  if (link.starts_with("/dev/nvidia")) return named(WaitKind::kDevice, link);
  if (link.starts_with("/") && !link.starts_with("/dev/")) return named(WaitKind::kFile, valid_utf8(link));
  return std::nullopt;
}

bool WaitReader::leads_to_itself(ProcDir& proc, std::int64_t pid, int descriptor) const {
  constexpr std::size_t kMostLinks = 1024;
  const auto read = proc.read_link(fmt::format("{}/fd/{}", pid, descriptor).c_str());
  if (!read) return false;
  std::string other(*read);
  const bool pipe = inode_of(other, kPipe).has_value();
  if (const auto inode = inode_of(other, kSocket)) {
    const auto peer = live_ ? unix_peer(*inode) : std::nullopt;
    if (!peer) return false;
    other = link_of_socket(*peer);
  } else if (!pipe) {
    return false;
  }
  const auto files = proc.list_numbers(fmt::format("{}/fd", pid).c_str());
  if (!files || files->size() > kMostLinks) return false;
  const std::vector<std::int64_t> own(files->begin(), files->end());
  return std::any_of(own.begin(), own.end(), [&](std::int64_t file) {
    const auto link = proc.read_link(fmt::format("{}/fd/{}", pid, file).c_str());
    return link && *link == other && (!pipe || is_written(proc, pid, file) == true);
  });
}

void WaitReader::spare_names(std::vector<WaitTarget>& targets) {
  for (WaitTarget& target : targets) {
    const bool file = target.kind == WaitKind::kFile || target.kind == WaitKind::kFileLock;
    if ((!file && target.kind != WaitKind::kChild) || named_++ < kMostNamed) continue;
    target.pids.clear();
    if (file) target.name.resize(target.name.rfind('/') + 1);  // the folder
  }
  std::erase_if(targets, [](const WaitTarget& target) { return target.name.empty(); });
}

WaitReader::Wait WaitReader::read(ProcDir& proc, const Sleeper& sleeper, std::span<const std::int64_t> job, Nanos at) {
  Wait wait;
  Files files = files_of(proc, sleeper);
  if (files.descriptors.size() > kMostFiles) return wait;
  if (files.descriptors.size() > 1 && has_one_thread(proc, sleeper.pid))
    std::erase_if(files.descriptors, [&](int file) { return leads_to_itself(proc, sleeper.pid, file); });
  for (const int descriptor : files.descriptors) {
    auto found = target_of({proc, sleeper, job, at}, descriptor);
    if (!found) return {};  // that may be the one: a wake-up from another thread, say
    if (files.descriptors.size() == 1) wait.carried = found->carried;
    if (files.locked && found->target.kind == WaitKind::kFile) {
      found->target.kind = WaitKind::kFileLock;
      if (const auto holder = holder_of_lock(proc, sleeper.pid)) found->target.pids = {*holder};
    }
    if (std::find(wait.targets.begin(), wait.targets.end(), found->target) == wait.targets.end())
      wait.targets.push_back(std::move(found->target));
  }
  if (!files.path.empty()) wait.targets.push_back({WaitKind::kFile, valid_utf8(files.path)});
  if (files.child.value_or(0) > 0)
    if (const std::string name = name_of(proc, *files.child); !name.empty())
      wait.targets.push_back({WaitKind::kChild, name, {*files.child}});
  if (wait.targets.size() > kMostTargets) return {};
  spare_names(wait.targets);
  return wait;
}

}  // namespace headroom::host
