// SPDX-License-Identifier: Apache-2.0
#include "host/proc_parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/names.h"
#include "base/strings.h"
#include "model/cpu_list.h"

namespace headroom::host {

namespace {

// The next word of `rest`, and `rest` behind it; "" at the end.
std::string_view next_word(std::string_view& rest) {
  const auto begin = rest.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return rest = {};
  const auto end = std::min(rest.find_first_of(" \t\n", begin), rest.size());
  const auto word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

template <class T>
bool next_number(std::string_view& rest, T& value) {
  const auto number = parse_number<T>(next_word(rest));
  if (number) value = *number;
  return number.has_value();
}

bool skip_words(std::string_view& rest, int count) {
  for (; count > 0; --count)
    if (next_word(rest).empty()) return false;
  return true;
}

// Calls use(name, value) for each line "name<separator>value".
template <class Use>
void for_each_line(std::string_view text, std::string_view separators, Use use) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto cut = line.find_first_of(separators);
    if (cut != std::string_view::npos) use(line.substr(0, cut), trim(line.substr(cut + 1)));
  }
}

std::optional<std::int64_t> first_number(std::string_view text) { return parse_number<std::int64_t>(next_word(text)); }

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return text.starts_with(prefix); });
}

struct WaitFamily {
  WaitChannel channel;
  std::initializer_list<std::string_view> prefixes;
};

// Kernels rename these functions over time; the families are stable. Longer or more special prefixes come first.
const WaitFamily kWaitFamilies[] = {
    {WaitChannel::kNetworkFs,
     {"nfs", "rpc_", "rpc", "ceph", "cifs", "smb2", "fuse", "request_wait_answer", "ll_", "ldlm_", "ptlrpc", "osc_",
      "cl_sync_io", "gpfs", "kxWaitCondvar", "p9_", "v9fs", "netfs", "afs_"}},
    {WaitChannel::kFutex, {"futex", "do_futex"}},
    {WaitChannel::kPoll,
     {"poll_schedule_timeout", "do_poll", "do_sys_poll", "do_select", "ep_poll", "do_epoll", "sys_epoll",
      "core_sys_select", "io_cqring_wait", "poll"}},
    {WaitChannel::kSleep,
     {"hrtimer_nanosleep", "do_nanosleep", "nanosleep", "common_nsleep", "clock_nanosleep", "sigtimedwait",
      "do_sigtimedwait", "sigsuspend", "pause"}},
    {WaitChannel::kPipe, {"pipe_", "anon_pipe", "fifo_", "wait_for_partner", "unix_stream"}},
    {WaitChannel::kSocket,
     {"sk_wait", "sk_stream", "wait_for_more_packets", "skb_wait", "skb_recv", "unix_dgram", "tcp_", "inet_", "udp_",
      "sock_", "wait_for_connect", "vsock", "netlink"}},
    {WaitChannel::kDisk,
     {"io_schedule",
      "folio_wait",
      "wait_on_page",
      "folio_lock",
      "lock_page",
      "wait_on_buffer",
      "wait_on_bit_io",
      "bit_wait_io",
      "blk_",
      "blkdev_",
      "get_request",
      "rq_qos_wait",
      "submit_bio",
      "bio_",
      "jbd2",
      "ext4",
      "xfs",
      "btrfs",
      "f2fs",
      "balance_dirty",
      "wait_on_bit",
      "filemap_",
      "sync_inodes",
      "do_fsync",
      "iomap",
      "dio_",
      "zil_",
      "txg_",
      "cv_wait_io",
      "sleep_on_page",
      "sleep_on_buffer",
      "swap_",
      "migration_entry"}},
    {WaitChannel::kChild, {"do_wait", "kernel_wait", "wait4", "do_waitid"}},
    {WaitChannel::kTerminal, {"n_tty", "tty_", "read_chan"}},
};

}  // namespace

std::optional<PidStat> parse_pid_stat(std::string_view text) {
  PidStat stat;
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const auto pid = parse_number<std::int64_t>(trim(text.substr(0, open)));
  if (!pid) return std::nullopt;
  stat.pid = *pid;
  stat.comm = text.substr(open + 1, close - open - 1);
  auto rest = text.substr(close + 1);
  const auto state = next_word(rest);
  if (state.size() != 1) return std::nullopt;
  stat.state = state[0];
  std::int64_t ignored = 0, children_user = 0, children_system = 0;
  // Fields 4 (ppid) to 24 (rss), proc(5).
  const bool whole = next_number(rest, stat.ppid) && next_number(rest, ignored) && next_number(rest, stat.session) &&
                     skip_words(rest, 2) && next_number(rest, stat.flags) && next_number(rest, stat.minor_faults) &&
                     skip_words(rest, 1) && next_number(rest, stat.major_faults) && skip_words(rest, 1) &&
                     next_number(rest, stat.user_ticks) && next_number(rest, stat.system_ticks) &&
                     next_number(rest, children_user) && next_number(rest, children_system) && skip_words(rest, 2) &&
                     next_number(rest, stat.threads) && skip_words(rest, 1) && next_number(rest, stat.start_ticks) &&
                     skip_words(rest, 1) && next_number(rest, stat.rss_pages);
  if (!whole) return std::nullopt;
  stat.children_ticks = children_user + children_system;
  std::uint64_t start_code = 0;
  if (skip_words(rest, 1) && next_number(rest, start_code)) stat.start_code = start_code;  // field 26
  std::int64_t last = 0;
  if (skip_words(rest, 15) && next_number(rest, last)) stat.io_delay_ticks = last;  // field 42
  if (skip_words(rest, 9) && next_number(rest, last)) stat.wait_status = last;      // field 52
  return stat;
}

PidStatus parse_pid_status(std::string_view text) {
  PidStatus status;
  for_each_line(text, ":", [&](std::string_view name, std::string_view value) {
    if (name == "Tgid")
      status.tgid = first_number(value);
    else if (name == "Uid")
      status.uid = first_number(value);
    else if (name == "NSpid")
      status.ns_pids = value;
    else if (name == "Cpus_allowed_list")
      status.cpus_allowed_list = value;
    else if (name == "voluntary_ctxt_switches")
      status.voluntary_switches = first_number(value);
    else if (name == "nonvoluntary_ctxt_switches")
      status.involuntary_switches = first_number(value);
  });
  return status;
}

std::vector<std::int64_t> parse_numbers(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t value = 0; next_number(text, value);) numbers.push_back(value);
  return numbers;
}

std::optional<SchedStat> parse_schedstat(std::string_view text) {
  SchedStat stat;
  if (!next_number(text, stat.cpu_ns) || !next_number(text, stat.run_delay_ns) || !next_number(text, stat.timeslices))
    return std::nullopt;
  if (stat.cpu_ns == 0 && stat.run_delay_ns == 0 && stat.timeslices == 0) return std::nullopt;
  return stat;
}

PidIo parse_pid_io(std::string_view text) {
  PidIo io;
  for_each_line(text, ":", [&](std::string_view name, std::string_view value) {
    if (name == "rchar")
      io.read_chars = first_number(value);
    else if (name == "wchar")
      io.write_chars = first_number(value);
    else if (name == "read_bytes")
      io.read_bytes = first_number(value);
    else if (name == "write_bytes")
      io.write_bytes = first_number(value);
  });
  return io;
}

WaitChannel parse_wchan(std::string_view text, char state) {
  text = trim(text);
  if (text.empty() || text == "0") return state == 'R' ? WaitChannel::kRunning : WaitChannel::kUnknown;
  if (text.starts_with("__")) text.remove_prefix(2);
  if (text.starts_with("x64_sys_")) text.remove_prefix(8);
  for (const WaitFamily& family : kWaitFamilies)
    if (starts_with_any(text, family.prefixes)) return family.channel;
  return WaitChannel::kOther;
}

bool reads_socket_or_terminal(std::string_view wchan_text) { return trim(wchan_text) == "wait_woken"; }

std::optional<SystemCall> parse_syscall(std::string_view text) {
  SystemCall call;
  if (!next_number(text, call.number) || call.number < 0) return std::nullopt;  // "running", or -1: in none
  for (std::uint64_t& argument : call.arguments) {
    const auto word = next_word(text);
    if (!word.starts_with("0x")) return std::nullopt;
    const auto [end, error] = std::from_chars(word.data() + 2, word.data() + word.size(), argument, 16);
    if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  }
  return call;
}

WaitChannel channel_of_file(std::string_view target) {
  if (target.starts_with("socket:")) return WaitChannel::kSocket;
  return starts_with_any(target, {"/dev/pts/", "/dev/tty", "/dev/console"}) ? WaitChannel::kTerminal
                                                                            : WaitChannel::kOther;
}

std::optional<std::string_view> find_environment(std::string_view environ_text, std::string_view name) {
  while (!environ_text.empty()) {
    const auto end = std::min(environ_text.find('\0'), environ_text.size());
    const auto entry = environ_text.substr(0, end);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
    environ_text.remove_prefix(std::min(end + 1, environ_text.size()));
  }
  return std::nullopt;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    out += length == 0 ? "?" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

std::string command_line(std::string_view cmdline_text, std::size_t limit) {
  if (cmdline_text.ends_with('\0')) cmdline_text.remove_suffix(1);
  if (cmdline_text.empty()) return "";
  std::string line;
  for (const auto argument : split(cmdline_text, '\0')) {
    if (!line.empty()) line += ' ';
    line += shell_quote(argument);
    if (line.size() > limit) break;
  }
  line = valid_utf8(line);
  if (line.size() <= limit) return line;
  std::size_t cut = limit < 3 ? 0 : limit - 3;
  while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xC0) == 0x80) --cut;
  return line.substr(0, cut) + "...";
}

std::vector<CgroupLine> parse_cgroups(std::string_view text) {
  std::vector<CgroupLine> lines;
  for (const auto line : split(text, '\n')) {
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    lines.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return lines;
}

namespace {

// mountinfo writes blanks, tabs, newlines and backslashes as \040 and the like.
std::string unescape_octal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digits = text.substr(std::min(i + 1, text.size()), 3);
    const bool octal = text[i] == '\\' && digits.size() == 3 &&
                       std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '7'; });
    if (!octal) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(((digits[0] - '0') * 64 + (digits[1] - '0') * 8 + (digits[2] - '0')) & 0xFF);
    i += 3;
  }
  return out;
}

}  // namespace

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view text) {
  std::vector<CgroupMount> mounts;
  for (const auto line : split(text, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    auto left = line.substr(0, dash), right = line.substr(dash + 3);
    const auto type = next_word(right);
    if (type != "cgroup" && type != "cgroup2") continue;
    CgroupMount mount;
    mount.v2 = type == "cgroup2";
    if (!skip_words(left, 3)) continue;
    mount.root = unescape_octal(next_word(left));
    mount.point = unescape_octal(next_word(left));
    if (!skip_words(right, 1)) continue;
    mount.options = next_word(right);
    if (!mount.point.empty()) mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::optional<CpuTicks> parse_cpu_ticks(std::string_view text) {
  if (!text.starts_with("cpu ")) return std::nullopt;
  text = text.substr(4, std::min(text.find('\n'), text.size()) - 4);
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, value = 0;
  if (!next_number(text, user) || !next_number(text, nice) || !next_number(text, system) || !next_number(text, idle))
    return std::nullopt;
  // Unsigned sums: a text of nonsense may hold numbers whose sum no signed type holds.
  std::uint64_t busy =
      static_cast<std::uint64_t>(user) + static_cast<std::uint64_t>(nice) + static_cast<std::uint64_t>(system);
  CpuTicks ticks;
  if (next_number(text, value)) ticks.iowait = value;
  for (int i = 0; i < 3 && next_number(text, value); ++i) busy += static_cast<std::uint64_t>(value);
  ticks.busy = static_cast<std::int64_t>(busy);
  return ticks;
}

std::optional<LoadAverage> parse_loadavg(std::string_view text) {
  LoadAverage load;
  if (!next_number(text, load.load1)) return std::nullopt;
  if (skip_words(text, 3)) load.last_pid = first_number(text);
  return load;
}

std::optional<std::int64_t> find_kib(std::string_view text, std::string_view name) {
  std::optional<std::int64_t> found;
  for_each_line(text, ":", [&](std::string_view key, std::string_view value) {
    if (!found && key == name) found = first_number(value);
  });
  if (found && (*found < 0 || *found > std::numeric_limits<std::int64_t>::max() / 1024)) return std::nullopt;
  return found ? std::optional(*found * 1024) : std::nullopt;
}

std::optional<std::int64_t> find_count(std::string_view text, std::string_view name) {
  std::optional<std::int64_t> found;
  for_each_line(text, " ", [&](std::string_view key, std::string_view value) {
    if (!found && key == name) found = first_number(value);
  });
  return found;
}

std::optional<std::int64_t> parse_pressure_some(std::string_view text) {
  if (!text.starts_with("some ")) return std::nullopt;
  const auto line = text.substr(0, std::min(text.find('\n'), text.size()));
  const auto total = line.find(" total=");
  return total == std::string_view::npos ? std::nullopt : parse_number<std::int64_t>(trim(line.substr(total + 7)));
}

std::optional<int> count_cpus(std::string_view list) {
  const auto cpus = cpus_of(list);
  return cpus ? std::optional(count(*cpus)) : std::nullopt;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto quota = next_word(text);
  return quota_cores(quota, text);
}

std::optional<double> quota_cores(std::string_view quota_us, std::string_view period_us) {
  const auto quota = first_number(quota_us), period = first_number(period_us);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<std::int64_t> parse_memory_limit(std::string_view text) {
  constexpr std::int64_t kLargestPage = std::int64_t{64} << 10;  // v1 rounds "no limit" down to a whole page
  const auto limit = parse_single(text);
  if (!limit || *limit < 0 || *limit > std::numeric_limits<std::int64_t>::max() - kLargestPage) return std::nullopt;
  return limit;
}

std::optional<std::int64_t> parse_single(std::string_view text) { return parse_number<std::int64_t>(trim(text)); }

}  // namespace headroom::host
