// SPDX-License-Identifier: Apache-2.0
#include "host/proc_parse.h"

#include <gmock/gmock.h>

#include <string>

namespace headroom::host {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kStat =
    "20063 (python3) R 20062 20057 5771 0 -1 4194368 379 4 2 6 71 9 5 2 20 0 3 0 271925 17563648 2607 "
    "18446744073709551615 4321280 7148169 140725429344032 0 0 0 0 16781312 2 0 0 0 17 1 0 0 55 0 0 9723336 11027064 "
    "679747584 140725429352838 140725429352895 140725429352895 140725429354471 256\n";

TEST(PidStat, HasEveryFieldAtItsPlace) {
  const auto stat = parse_pid_stat(kStat);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 20063);
  EXPECT_EQ(stat->comm, "python3");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->ppid, 20062);
  EXPECT_EQ(stat->session, 5771);
  EXPECT_EQ(stat->minor_faults, 379);
  EXPECT_EQ(stat->major_faults, 2);
  EXPECT_EQ(stat->user_ticks, 71);
  EXPECT_EQ(stat->system_ticks, 9);
  EXPECT_EQ(stat->children_ticks, 7);
  EXPECT_EQ(stat->threads, 3);
  EXPECT_EQ(stat->start_ticks, 271925);
  EXPECT_EQ(stat->rss_pages, 2607);
  EXPECT_EQ(stat->start_code, 4321280U);
  EXPECT_EQ(stat->io_delay_ticks, 55);
  EXPECT_EQ(stat->wait_status, 256);
  EXPECT_FALSE(stat->kernel_thread());
}

TEST(PidStat, NamesMayHoldParenthesesBlanksAndNewlines) {
  std::string text(kStat);
  text.replace(text.find("python3"), 7, "a) R 1 (b\n) c");
  const auto stat = parse_pid_stat(text);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->comm, "a) R 1 (b\n) c");
  EXPECT_EQ(stat->ppid, 20062);
}

TEST(PidStat, OldKernelsLackTheLastFields) {
  const auto upto_rss = kStat.substr(0, kStat.find(" 18446744073709551615"));
  const auto stat = parse_pid_stat(upto_rss);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->rss_pages, 2607);
  EXPECT_EQ(stat->start_code, std::nullopt);
  EXPECT_EQ(stat->io_delay_ticks, std::nullopt);
  EXPECT_EQ(stat->wait_status, std::nullopt);
}

TEST(PidStat, ATextThatIsCutOffIsNoStat) {
  const auto needed = kStat.find(" 2607");
  for (std::size_t size = 0; size <= needed; ++size) EXPECT_FALSE(parse_pid_stat(kStat.substr(0, size))) << size;
}

TEST(PidStatus, FindsItsFields) {
  const auto status = parse_pid_status(
      "Name:\tTgid: 5\nTgid:\t77\nUid:\t1000\t1001\t1002\t1003\nNSpid:\t77\t12\nCpus_allowed_list:\t0-3,8\n"
      "voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n");
  EXPECT_EQ(status.tgid, 77);
  EXPECT_EQ(status.uid, 1000);
  EXPECT_THAT(parse_numbers(status.ns_pids), ElementsAre(77, 12));
  EXPECT_EQ(status.cpus_allowed_list, "0-3,8");
  EXPECT_EQ(status.voluntary_switches, 12);
  EXPECT_EQ(status.involuntary_switches, 3);
  EXPECT_EQ(parse_pid_status("Name:\tx\n").uid, std::nullopt);
}

TEST(SchedStat, AllZeroMeansTheKernelDoesNotKeepIt) {
  EXPECT_EQ(parse_schedstat("0 0 0\n"), std::nullopt);
  const auto stat = parse_schedstat("718353971 2220436919 191\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->cpu_ns, 718353971);
  EXPECT_EQ(stat->run_delay_ns, 2220436919);
  EXPECT_EQ(stat->timeslices, 191);
}

TEST(PidIo, TellsCacheFromDisk) {
  const auto io = parse_pid_io("rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 2\nread_bytes: 30\nwrite_bytes: 40\n");
  EXPECT_EQ(io.read_chars, 10);
  EXPECT_EQ(io.write_chars, 20);
  EXPECT_EQ(io.read_bytes, 30);
  EXPECT_EQ(io.write_bytes, 40);
  EXPECT_EQ(parse_pid_io("rchar: 10\n").read_bytes, std::nullopt);
}

TEST(WaitChannels, AreTheSameFamilyOnEveryKernel) {
  const std::pair<const char*, WaitChannel> cases[] = {
      {"poll_schedule_timeout", WaitChannel::kPoll},
      {"poll_schedule_timeout.constprop.0", WaitChannel::kPoll},
      {"do_epoll_wait", WaitChannel::kPoll},
      {"ep_poll", WaitChannel::kPoll},
      {"do_select", WaitChannel::kPoll},
      {"futex_wait_queue_me", WaitChannel::kFutex},
      {"futex_wait_queue", WaitChannel::kFutex},
      {"__futex_wait", WaitChannel::kFutex},
      {"futex_do_wait", WaitChannel::kFutex},
      {"hrtimer_nanosleep", WaitChannel::kSleep},
      {"do_nanosleep", WaitChannel::kSleep},
      {"__x64_sys_pause", WaitChannel::kSleep},
      {"pipe_read", WaitChannel::kPipe},
      {"pipe_wait_readable", WaitChannel::kPipe},
      {"anon_pipe_read", WaitChannel::kPipe},
      {"sk_wait_data", WaitChannel::kSocket},
      {"__skb_wait_for_more_packets", WaitChannel::kSocket},
      {"unix_stream_read_generic", WaitChannel::kPipe},
      {"inet_csk_accept", WaitChannel::kSocket},
      {"io_schedule", WaitChannel::kDisk},
      {"folio_wait_bit_common", WaitChannel::kDisk},
      {"wait_on_page_bit", WaitChannel::kDisk},
      {"jbd2_log_wait_commit", WaitChannel::kDisk},
      {"rq_qos_wait", WaitChannel::kDisk},
      {"nfs_wait_bit_killable", WaitChannel::kNetworkFs},
      {"rpc_wait_bit_killable", WaitChannel::kNetworkFs},
      {"request_wait_answer", WaitChannel::kNetworkFs},
      {"ceph_mdsc_wait_request", WaitChannel::kNetworkFs},
      {"do_wait", WaitChannel::kChild},
      {"n_tty_read", WaitChannel::kTerminal},
      {"kernel_function_of_the_future", WaitChannel::kOther},
  };
  for (const auto& [name, family] : cases) EXPECT_EQ(parse_wchan(name, 'S'), family) << name;
}

TEST(WaitChannels, ZeroIsRunningOnlyForWhatRuns) {
  EXPECT_EQ(parse_wchan("0", 'R'), WaitChannel::kRunning);
  EXPECT_EQ(parse_wchan("0", 'S'), WaitChannel::kUnknown);
  EXPECT_EQ(parse_wchan("", 'D'), WaitChannel::kUnknown);
}

TEST(WaitChannels, TheFileSaysWhetherAConnectionOrATerminalIsRead) {
  EXPECT_TRUE(reads_socket_or_terminal("wait_woken\n"));
  EXPECT_FALSE(reads_socket_or_terminal("wait_woken_up"));
  const auto call = parse_syscall("45 0x6 0x7f1f77512060 0xa 0x0 0x0 0x1 0x7ffd 0x7f1f\n");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->number, 45);
  EXPECT_EQ(call->arguments, (std::array<std::uint64_t, 6>{6, 0x7f1f77512060, 10, 0, 0, 1}));
  for (const auto* text : {"running", "-1 0x7ffd 0x7f1f", "45", "45 6", "45 0x", "45 0x6 0x7 0x8 0x9 0xa",
                           "45 0x6 0x7 0x8 0x9 0xa 0xfffffffffffffffff", ""})
    EXPECT_FALSE(parse_syscall(text)) << text;
  EXPECT_EQ(channel_of_file("socket:[162417]"), WaitChannel::kSocket);
  EXPECT_EQ(channel_of_file("/dev/pts/3"), WaitChannel::kTerminal);
  EXPECT_EQ(channel_of_file("/dev/net/tun"), WaitChannel::kOther);
}

TEST(Environment, EmptyIsNotUnsetAndNamesMatchWhole) {
  using std::string_view_literals::operator""sv;
  constexpr auto kText =
      "A=1\0NOT_CUDA_VISIBLE_DEVICES=7\0CUDA_VISIBLE_DEVICES=\0CUDA_VISIBLE_DEVICES_X=3\0NOVALUE\0"sv;
  EXPECT_EQ(find_environment(kText, "CUDA_VISIBLE_DEVICES"), "");
  EXPECT_EQ(find_environment(kText, "A"), "1");
  EXPECT_EQ(find_environment(kText, "NOVALUE"), std::nullopt);
  EXPECT_EQ(find_environment(kText, "B"), std::nullopt);
}

TEST(CommandLine, CanBePastedIntoAShell) {
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(command_line("python3\0train.py\0--note\0two words\0"sv), "python3 train.py --note 'two words'");
  EXPECT_EQ(command_line("sh\0-c\0\0"sv), "sh -c ''");
  EXPECT_EQ(command_line(""), "");
}

TEST(CommandLine, IsCutBetweenCharactersAndIsAlwaysUtf8) {
  std::string long_argument;
  for (int i = 0; i < 100; ++i) long_argument += "\xC3\xA9";
  const std::string line = command_line(long_argument, 50);
  EXPECT_LE(line.size(), 50U);
  EXPECT_TRUE(line.ends_with("..."));
  EXPECT_EQ(valid_utf8(line), line);
  EXPECT_EQ(valid_utf8("a\xFF\xC3"
                       "b\xED\xA0\x80z"),
            "a??b???z");
  EXPECT_EQ(valid_utf8("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"), "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80");
}

TEST(Cgroups, PathsMayHoldColons) {
  const auto lines = parse_cgroups("8:cpu,cpuacct:/a:b\n0::/user.slice\nnonsense\n");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].controllers, "cpu,cpuacct");
  EXPECT_EQ(lines[0].path, "/a:b");
  EXPECT_EQ(lines[1].controllers, "");
}

TEST(Cgroups, MountsHaveOptionalFieldsAndEscapes) {
  const auto mounts = parse_cgroup_mounts(
      "33 22 0:29 /docker/x /sys/fs/cgroup/cpu\\040acct rw,relatime shared:8 master:2 - cgroup cgroup rw,cpu,cpuacct\n"
      "26 25 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n28 25 0:25 / /mnt rw - ext4 /dev/sda1 rw\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0].root, "/docker/x");
  EXPECT_EQ(mounts[0].point, "/sys/fs/cgroup/cpu acct");
  EXPECT_EQ(mounts[0].options, "rw,cpu,cpuacct");
  EXPECT_FALSE(mounts[0].v2);
  EXPECT_TRUE(mounts[1].v2);
}

TEST(MachineFiles, GiveTheirNumbers) {
  const auto ticks = parse_cpu_ticks("cpu  10 1 20 1000 5 2 3 4 100 100\ncpu0 9 9 9 9\n");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->busy, 10 + 1 + 20 + 2 + 3 + 4);  // guest time is inside user time
  EXPECT_EQ(ticks->iowait, 5);
  EXPECT_EQ(parse_cpu_ticks("cpu  10 1 20 1000\n")->iowait, std::nullopt);
  const auto load = parse_loadavg("0.20 0.18 0.12 1/80 11206\n");
  ASSERT_TRUE(load);
  EXPECT_DOUBLE_EQ(load->load1, 0.20);
  EXPECT_EQ(load->last_pid, 11206);
  EXPECT_EQ(find_kib("MemTotal:  100 kB\nMemAvailable:   7 kB\n", "MemAvailable"), 7 * 1024);
  EXPECT_EQ(find_kib("MemTotal:  100 kB\n", "MemAvailable"), std::nullopt);
  EXPECT_EQ(find_count("pswpin 17\npswpout 5\n", "pswpout"), 5);
  EXPECT_EQ(parse_pressure_some("some avg10=0.00 avg60=0.31 avg300=0.59 total=15124157\nfull total=3\n"), 15124157);
  EXPECT_EQ(parse_pressure_some("full avg10=0.00 total=3\n"), std::nullopt);
}

TEST(Limits, NoneIsNotANumber) {
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_DOUBLE_EQ(*parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(quota_cores("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(quota_cores("100\n", "0\n"), std::nullopt);
  EXPECT_DOUBLE_EQ(*quota_cores("400000\n", "100000\n"), 4.0);
  EXPECT_EQ(parse_memory_limit("max\n"), std::nullopt);
  EXPECT_EQ(parse_memory_limit("9223372036854771712\n"), std::nullopt);
  EXPECT_EQ(parse_memory_limit("17179869184\n"), 17179869184);
  EXPECT_EQ(count_cpus("0-3,8\n"), 5);
  EXPECT_EQ(count_cpus("\n"), std::nullopt);
  EXPECT_EQ(count_cpus("3-1"), std::nullopt);
}

}  // namespace
}  // namespace headroom::host
