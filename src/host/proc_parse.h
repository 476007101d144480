// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/metric.h"

namespace headroom::host {

// Pure parsers of the texts under /proc and /sys/fs/cgroup. They take whatever bytes they are given; what a text does
// not hold (older kernels have fewer fields) is absent in the result, never zero. Nothing here allocates unless the
// result is a string or a vector.

// /proc/<pid>/stat and /proc/<pid>/task/<tid>/stat. The name may hold blanks and parentheses: fields begin after the
// last ')'. Times are in clock ticks.
struct PidStat {
  std::int64_t pid = 0;
  std::string_view comm;  // points into the text
  char state = '?';
  std::int64_t ppid = 0;
  std::int64_t session = 0;
  std::uint64_t flags = 0;
  std::int64_t minor_faults = 0;
  std::int64_t major_faults = 0;
  std::int64_t user_ticks = 0;
  std::int64_t system_ticks = 0;
  std::int64_t children_ticks = 0;  // of children that ended and were waited for, and theirs
  std::int64_t threads = 0;
  std::int64_t start_ticks = 0;
  std::int64_t rss_pages = 0;
  std::optional<std::uint64_t> start_code;     // 0 or 1: the reader may not know it
  std::optional<std::int64_t> io_delay_ticks;  // since 2.6.18
  std::optional<std::int64_t> wait_status;     // since 3.5; 0 also when the reader may not know it

  [[nodiscard]] bool kernel_thread() const { return (flags & 0x00200000) != 0; }  // PF_KTHREAD
};
[[nodiscard]] std::optional<PidStat> parse_pid_stat(std::string_view text);

// /proc/<pid>/status, the fields we use.
struct PidStatus {
  std::optional<std::int64_t> tgid, uid;
  std::optional<std::int64_t> voluntary_switches, involuntary_switches;
  std::string_view ns_pids;            // "4242\t17": this process in each pid namespace, outermost first; since 4.1
  std::string_view cpus_allowed_list;  // "0-3,8"
};
[[nodiscard]] PidStatus parse_pid_status(std::string_view text);
[[nodiscard]] std::vector<std::int64_t> parse_numbers(
    std::string_view text);  // separated by blanks; stops at other text

// /proc/<pid>/schedstat: of the main thread. "0 0 0" is what kernels without the accounting print: no value.
struct SchedStat {
  std::int64_t cpu_ns = 0;
  std::int64_t run_delay_ns = 0;
  std::int64_t timeslices = 0;
};
[[nodiscard]] std::optional<SchedStat> parse_schedstat(std::string_view text);

// /proc/<pid>/io
struct PidIo {
  std::optional<std::int64_t> read_chars, write_chars, read_bytes, write_bytes;
};
[[nodiscard]] PidIo parse_pid_io(std::string_view text);

// /proc/<pid>/wchan: the kernel function the main thread sleeps in, by family. `state` is the state letter: "0" means
// running for 'R', and hidden from us for a sleeping thread.
[[nodiscard]] WaitChannel parse_wchan(std::string_view text, char state);
// Network connections and terminals are read in one and the same function of the kernel.
[[nodiscard]] bool reads_socket_or_terminal(std::string_view wchan_text);
// /proc/<pid>/syscall of a thread that sleeps in one. Nothing for one that runs, or that is in none.
struct SystemCall {
  int number = 0;
  std::array<std::uint64_t, 6> arguments{};
};
[[nodiscard]] std::optional<SystemCall> parse_syscall(std::string_view text);
// What /proc/<pid>/fd/<n> points to: "socket:[4026]" and "/dev/pts/3".
[[nodiscard]] WaitChannel channel_of_file(std::string_view target);

// /proc/<pid>/environ and cmdline: texts that end in NUL.
[[nodiscard]] std::optional<std::string_view> find_environment(std::string_view environ_text, std::string_view name);
// Shell-quoted, at most `limit` bytes ("..." at the end where it was cut), valid UTF-8 ('?' for what is not).
[[nodiscard]] std::string command_line(std::string_view cmdline_text, std::size_t limit = 4096);
[[nodiscard]] std::string valid_utf8(std::string_view text);

// /proc/<pid>/cgroup: one line per hierarchy. v2 is hierarchy 0 with no controllers.
struct CgroupLine {
  std::string_view controllers;  // "cpu,cpuacct"; "" for v2
  std::string_view path;         // "/user.slice/…"
};
[[nodiscard]] std::vector<CgroupLine> parse_cgroups(std::string_view text);

// /proc/self/mountinfo, the cgroup mounts only.
struct CgroupMount {
  std::string root;  // the part of the hierarchy that is mounted
  std::string point;
  bool v2 = false;
  std::string_view options;  // v1: "rw,cpu,cpuacct"
};
[[nodiscard]] std::vector<CgroupMount> parse_cgroup_mounts(std::string_view text);

// /proc/stat, the line of all cores, in clock ticks.
struct CpuTicks {
  std::int64_t busy = 0;  // user + nice + system + irq + softirq + steal
  std::optional<std::int64_t> iowait;
};
[[nodiscard]] std::optional<CpuTicks> parse_cpu_ticks(std::string_view text);

// /proc/loadavg
struct LoadAverage {
  double load1 = 0;
  std::optional<std::int64_t> last_pid;  // the newest process or thread of the pid namespace
};
[[nodiscard]] std::optional<LoadAverage> parse_loadavg(std::string_view text);

// "Name: 123 kB" (meminfo) in bytes; "name 123" (vmstat, cpu.stat, memory.stat) as it is.
[[nodiscard]] std::optional<std::int64_t> find_kib(std::string_view text, std::string_view name);
[[nodiscard]] std::optional<std::int64_t> find_count(std::string_view text, std::string_view name);

// /proc/pressure/* and *.pressure: the total of the "some" line, in microseconds.
[[nodiscard]] std::optional<std::int64_t> parse_pressure_some(std::string_view text);

// "0-3,8" as a number of cores.
[[nodiscard]] std::optional<int> count_cpus(std::string_view list);
// cgroup v2 cpu.max "200000 100000" in cores; nothing for "max".
[[nodiscard]] std::optional<double> parse_cpu_max(std::string_view text);
// cgroup v1 cpu.cfs_quota_us and cpu.cfs_period_us in cores; nothing for -1.
[[nodiscard]] std::optional<double> quota_cores(std::string_view quota_us, std::string_view period_us);
// memory.max, memory.limit_in_bytes; nothing for "max" and for v1's "no limit" (within a page of the largest number).
[[nodiscard]] std::optional<std::int64_t> parse_memory_limit(std::string_view text);
// A file that holds one number.
[[nodiscard]] std::optional<std::int64_t> parse_single(std::string_view text);

}  // namespace headroom::host
