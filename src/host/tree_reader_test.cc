// SPDX-License-Identifier: Apache-2.0
#include "host/tree_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <functional>
#include <optional>
#include <set>
#include <thread>

#include "base/fd.h"
#include "base/time.h"

namespace headroom::host {
namespace {

// A child of this test that runs `body`, in a process group of its own; dropping it kills and reaps the group and
// whatever was orphaned to us.
class ForkedJob {
 public:
  explicit ForkedJob(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    body();
    ::_exit(0);
  }
  ~ForkedJob() {
    for (const pid_t pid : others_) ::kill(pid, SIGKILL);
    ::kill(pid_, SIGKILL);
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  }
  ForkedJob(const ForkedJob&) = delete;
  ForkedJob& operator=(const ForkedJob&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void also_kill(std::int64_t pid) { others_.push_back(static_cast<pid_t>(pid)); }

 private:
  pid_t pid_;
  std::vector<pid_t> others_;
};

void sleep_for_long() {
  for (int i = 0; i < 60; ++i) ::sleep(1);
}

// One subreaper and one set of forks per test program: gtest runs the tests one after the other.
class LiveTree : public ::testing::Test {
 protected:
  LiveTree() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~LiveTree() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

  static TreeOptions options(const ForkedJob& job) {
    TreeOptions options;
    options.pids = {job.pid()};
    options.recorder_pid = ::getpid();
    options.recorder_is_subreaper = true;
    return options;
  }
  // Reads until `done`, at most ten seconds.
  template <class Done>
  bool read_until(TreeReader& tree, Done done) {
    for (int i = 0; i < 500; ++i) {
      tree.read(boottime_now(), sink_);
      if (done()) return true;
      ::usleep(20'000);
    }
    return false;
  }
  void kill_members(ForkedJob& job) const {
    for (const Source& source : sink_.recording().sources) job.also_kill(process_of(source).pid);
  }
  [[nodiscard]] const Source* source_of(std::int64_t pid) const {
    for (const Source& source : sink_.recording().sources)
      if (process_of(source).pid == pid) return &source;
    return nullptr;
  }
  [[nodiscard]] std::vector<std::int64_t> values(std::int64_t pid, Metric metric) const {
    const auto& recording = sink_.recording();
    for (std::size_t i = 0; i < recording.sources.size(); ++i)
      if (process_of(recording.sources[i]).pid == pid)
        if (const Column* column = recording.tracks[i].find(metric)) {
          std::vector<std::int64_t> present;
          for (std::size_t row = 0; row < column->values.size(); ++row)
            if (column->has(row)) present.push_back(column->values[row]);
          return present;
        }
    return {};
  }
  MemorySink sink_;
};

// A thread that bound itself is not where the process may run; one core is enough to see that, two to tell them apart.
TEST_F(LiveTree, TheCoresOfAProcessAreThoseOfAllItsThreads) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  std::vector<std::size_t> cores;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE && cores.size() < 2; ++cpu)
    if (CPU_ISSET(cpu, &all)) cores.push_back(cpu);
  const auto bind = [](std::size_t cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
  };
  ForkedJob job([&] {
    bind(cores.back());
    std::thread other([&] {
      bind(cores.front());
      sleep_for_long();
    });
    other.join();
  });
  TreeReader tree(options(job));
  const auto cpus = [&] {
    const Source* source = source_of(job.pid());
    return source ? attr(*source, "cpus_allowed") : "";
  };
  EXPECT_TRUE(read_until(tree, [&] { return tree.describe(job.pid()).has_value(); }));  // the driver lists it
  std::set<std::string> wanted{std::to_string(cores.front())};
  if (cores.size() == 2) {
    const std::string first = std::to_string(cores.front()), last = std::to_string(cores.back());
    wanted = {first + "," + last, first + "-" + last};
  }
  EXPECT_TRUE(read_until(tree, [&] { return wanted.contains(cpus()); })) << cpus();
}

TEST_F(LiveTree, FindsChildrenAndGrandchildren) {
  ForkedJob job([] {
    if (::fork() == 0) {
      if (::fork() == 0) sleep_for_long();
      sleep_for_long();
    }
    sleep_for_long();
  });
  TreeReader tree(options(job));
  EXPECT_TRUE(read_until(tree, [&] { return tree.size() == 3; }));
  kill_members(job);
  for (const Source& source : sink_.recording().sources) EXPECT_TRUE(process_of(source).in_job);
  EXPECT_EQ(sink_.recording().sources[0].parent, kNoSource);
  EXPECT_EQ(sink_.recording().sources[1].parent, 0);
}

TEST_F(LiveTree, AWaitForTheNetworkIsToldFromOneForATerminal) {
  const int server = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(server, place, size), 0);
  ASSERT_EQ(::listen(server, 1), 0);
  ASSERT_EQ(::getsockname(server, place, &size), 0);
  ForkedJob job([&] {
    const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
    char byte = 0;
    if (::connect(connection, place, size) == 0) (void)!::recv(connection, &byte, 1, 0);
  });
  TreeReader tree(options(job));
  const auto asleep = [&] {
    const auto seen = values(job.pid(), Metric::kWaitChannel);
    return !seen.empty() && seen.back() == static_cast<std::int64_t>(WaitChannel::kSocket);
  };
  EXPECT_TRUE(read_until(tree, asleep));
  ::close(server);
}

TEST_F(LiveTree, ADoubleForkWithANewSessionStaysInTheJob) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  ForkedJob job([&] {
    if (::fork() == 0) {
      ::setsid();
      if (::fork() == 0) {
        const pid_t self = ::getpid();
        (void)!::write(ready[1], &self, sizeof self);
        sleep_for_long();
      }
      ::_exit(0);  // the middle process is gone before anybody looks
    }
    sleep_for_long();
  });
  pid_t daemon = 0;
  ASSERT_EQ(::read(ready[0], &daemon, sizeof daemon), static_cast<ssize_t>(sizeof daemon));
  job.also_kill(daemon);
  TreeReader tree(options(job));
  EXPECT_TRUE(read_until(tree, [&] { return tree.contains(daemon); }));
  ::close(ready[0]), ::close(ready[1]);
}

// A process that ends thread by thread is a zombie before its children have another parent.
TEST_F(LiveTree, TheChildOfAZombieStaysInTheJob) {
  static int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  ForkedJob job([] {
    if (::fork() == 0) {
      std::thread([] {
        while (read_file("/proc/self/stat")->find(") Z ") == std::string::npos) ::usleep(1000);
        if (::fork() == 0) {
          const std::array<pid_t, 2> both{::getpid(), ::getppid()};
          (void)!::write(ready[1], both.data(), sizeof both);
        }
        sleep_for_long();
      }).detach();
      ::syscall(SYS_exit, 0);  // of this thread alone
    }
    sleep_for_long();
  });
  std::array<pid_t, 2> both{};
  ASSERT_EQ(::read(ready[0], both.data(), sizeof both), static_cast<ssize_t>(sizeof both));
  const pid_t child = both[0];
  for (const pid_t pid : both) job.also_kill(pid);
  TreeReader tree(options(job));
  EXPECT_TRUE(read_until(tree, [&] { return tree.contains(child); }));
  ::close(ready[0]), ::close(ready[1]);
}

TEST_F(LiveTree, AnOrphanIsFoundAfterTheJobItselfHasEnded) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  ForkedJob job([&] {
    if (::fork() == 0) {
      const pid_t self = ::getpid();
      (void)!::write(ready[1], &self, sizeof self);
      sleep_for_long();
    }
    ::_exit(3);
  });
  pid_t orphan = 0;
  ASSERT_EQ(::read(ready[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  job.also_kill(orphan);
  TreeReader tree(options(job));
  EXPECT_TRUE(read_until(tree, [&] { return tree.contains(orphan); }));
  ::close(ready[0]), ::close(ready[1]);
}

TEST_F(LiveTree, ExcludedHelpersOfTheRecorderAreNotTheJob) {
  ForkedJob job(sleep_for_long);
  TreeReader tree(options(job));
  tree.read(boottime_now(), sink_);
  ForkedJob helper(sleep_for_long);
  tree.exclude(helper.pid());
  helper.also_kill(job.pid());
  tree.read(boottime_now(), sink_);
  EXPECT_TRUE(tree.contains(job.pid()));
  EXPECT_FALSE(tree.contains(helper.pid()));
}

// A helper that is seen before its number is known: the look waits for who starts it.
TEST_F(LiveTree, AHelperIsExcludedThoughALookComesWhileItStarts) {
  ForkedJob job(sleep_for_long);
  TreeReader tree(options(job));
  tree.read(boottime_now(), sink_);
  std::optional<ForkedJob> helper;
  std::atomic<bool> forked = false;
  std::thread starter([&] {
    tree.exclude([&]() -> std::int64_t {
      helper.emplace(sleep_for_long);
      forked = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return helper->pid();
    });
  });
  while (!forked) std::this_thread::yield();
  tree.read(boottime_now(), sink_);
  starter.join();
  helper->also_kill(job.pid());
  EXPECT_TRUE(tree.contains(job.pid()));
  EXPECT_FALSE(tree.contains(helper->pid()));
}

TEST_F(LiveTree, TwoHundredSleepersAreFoundAndTheirEndsNoticed) {
  ForkedJob job([] {
    for (int i = 0; i < 200; ++i)
      if (::fork() == 0) sleep_for_long();
    sleep_for_long();
  });
  TreeReader tree(options(job));
  ASSERT_TRUE(read_until(tree, [&] { return tree.size() == 201; }));
  kill_members(job);
  std::set<std::string> keys;
  for (const Source& source : sink_.recording().sources) keys.insert(source.key);
  EXPECT_EQ(keys.size(), 201U);
  for (const Source& source : sink_.recording().sources)
    if (const auto pid = process_of(source).pid; pid != job.pid()) ::kill(static_cast<pid_t>(pid), SIGTERM);
  EXPECT_TRUE(read_until(tree, [&] { return tree.size() == 1; }));
  std::int64_t ends = 0;
  for (const Event& event : sink_.recording().events)
    if (event.kind == "process_end") ++ends;
  EXPECT_EQ(ends, 200);
}

TEST_F(LiveTree, AnUnreapedZombieIsAnEndWithItsExitCode) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  ForkedJob job([&] {
    char byte = 0;
    (void)!::read(go[0], &byte, 1);
    ::_exit(7);
  });
  TreeReader tree(options(job));
  tree.read(boottime_now(), sink_);
  ASSERT_TRUE(tree.contains(job.pid()));
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(job.pid()), &info, WEXITED | WNOWAIT), 0);
  tree.read(boottime_now(), sink_);
  EXPECT_FALSE(tree.contains(job.pid()));
  EXPECT_EQ(process_of(*source_of(job.pid())).exit_code, 7);
  EXPECT_EQ(values(job.pid(), Metric::kProcessState).back(), 'Z');
  ::close(go[0]), ::close(go[1]);
}

TEST_F(LiveTree, TheExitCodeOfAChildComesFromTheRecorder) {
  ForkedJob job(sleep_for_long);
  TreeReader tree(options(job));
  tree.read(boottime_now(), sink_);
  ASSERT_TRUE(tree.contains(job.pid()));
  ::kill(job.pid(), SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(job.pid(), &status, 0), job.pid());
  tree.exited(job.pid(), 128 + WTERMSIG(status));
  tree.read(boottime_now(), sink_);
  EXPECT_FALSE(tree.contains(job.pid()));
  const Process process = process_of(*source_of(job.pid()));
  EXPECT_EQ(process.exit_code, 128 + SIGTERM);
  EXPECT_TRUE(process.end.has_value());
}

TEST_F(LiveTree, AnExitCodeMayArriveAfterTheEndWasNoticed) {
  ForkedJob job(sleep_for_long);
  TreeReader tree(options(job));
  tree.read(boottime_now(), sink_);
  ::kill(job.pid(), SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(job.pid(), &status, 0), job.pid());
  tree.read(boottime_now(), sink_);
  ASSERT_FALSE(tree.contains(job.pid()));
  tree.exited(job.pid(), 128 + WTERMSIG(status));
  tree.read(boottime_now(), sink_);
  EXPECT_EQ(process_of(*source_of(job.pid())).exit_code, 128 + SIGKILL);
}

TEST_F(LiveTree, AChildThatHasEndedIsLookedAtOnceMoreBeforeItIsReaped) {
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(go.data()), 0);
  ForkedJob job([go] {
    char byte = 0;
    (void)!::read(go[0], &byte, 1);
    while (std::clock() < CLOCKS_PER_SEC / 20) {
    }
  });
  TreeReader tree(options(job));
  tree.read(boottime_now(), sink_);
  ASSERT_TRUE(tree.contains(job.pid()));
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(job.pid()), &info, WEXITED | WNOWAIT), 0);
  tree.ended(job.pid());
  const Nanos after = boottime_now();
  ASSERT_EQ(::waitpid(job.pid(), nullptr, 0), job.pid());
  tree.ended(job.pid());  // too late
  tree.read(boottime_now(), sink_);
  EXPECT_FALSE(tree.contains(job.pid()));
  EXPECT_GE(values(job.pid(), Metric::kMainCpu).back(), 50 * kMillisecond);
  EXPECT_LE(process_of(*source_of(job.pid())).end.value(), after);
  ::close(go[0]), ::close(go[1]);
}

TEST_F(LiveTree, BusyAndSleepingProcessesTellDifferentStories) {
  ForkedJob job([] {
    if (::fork() == 0)
      for (std::atomic<unsigned> spin = 0;;) ++spin;
    sleep_for_long();
  });
  TreeReader tree(options(job));
  ASSERT_TRUE(read_until(tree, [&] { return tree.size() == 2; }));
  kill_members(job);
  std::int64_t spinner = 0;
  for (const Source& source : sink_.recording().sources)
    if (process_of(source).pid != job.pid()) spinner = process_of(source).pid;
  ASSERT_TRUE(read_until(tree, [&] {
    const auto cpu = values(spinner, Metric::kCpuUser);
    return !cpu.empty() && cpu.back() - cpu.front() >= 50 * kMillisecond;
  }));
  EXPECT_EQ(values(spinner, Metric::kProcessState).back(), 'R');
  EXPECT_EQ(values(job.pid(), Metric::kProcessState).back(), 'S');
  EXPECT_TRUE(read_until(tree, [&] {  // it is read once a second
    const auto channels = values(job.pid(), Metric::kWaitChannel);
    return !channels.empty() && channels.back() == static_cast<std::int64_t>(WaitChannel::kSleep);
  }));
  EXPECT_GT(values(job.pid(), Metric::kRss).back(), 0);
#if !defined(__SANITIZE_THREAD__)  // which has a thread of its own
  EXPECT_EQ(values(job.pid(), Metric::kThreads).back(), 1);
#endif
  // A sleeper is recorded at every tick all the same: nothing changed is a measurement.
  EXPECT_GE(values(job.pid(), Metric::kCpuUser).size(), values(spinner, Metric::kCpuUser).size());
}

TEST_F(LiveTree, TheEnvironmentIsTheOneTheProgramWasStartedWith) {
  ForkedJob job([] {
    ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
    ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    ::unsetenv("NVIDIA_VISIBLE_DEVICES");
    ::execl("/bin/sleep", "sleep", "60", nullptr);
  });
  TreeReader tree(options(job));
  ASSERT_TRUE(read_until(tree, [&] {
    const Source* source = source_of(job.pid());
    return source && process_of(*source).cuda_device_order.has_value();
  }));
  const Process process = process_of(*source_of(job.pid()));
  EXPECT_EQ(process.cuda_visible_devices, "");  // empty is not unset
  EXPECT_EQ(process.cuda_device_order, "PCI_BUS_ID");
  EXPECT_EQ(process.nvidia_visible_devices, std::nullopt);
  EXPECT_EQ(process.cmdline, "sleep 60");
  EXPECT_EQ(process.comm, "sleep");
  EXPECT_EQ(process.uid, static_cast<std::int64_t>(::getuid()));
  EXPECT_LE(std::abs(boottime_now() - process.start), 20 * kSecond);
}

TEST_F(LiveTree, BeforeAProcessExecutesItHasNoCommandLineOfOurs) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ForkedJob job([&] {
    char go = 0;
    (void)!::read(ends[0], &go, 1);
    ::execl("/bin/sleep", "sleep", "60", nullptr);
  });
  TreeReader tree(options(job));
  const auto command = [&] {
    const Source* source = source_of(job.pid());
    return source ? std::optional(process_of(*source).cmdline) : std::nullopt;
  };
  ASSERT_TRUE(read_until(tree, [&] { return command().has_value(); }));
  EXPECT_EQ(command(), "") << "the words that this test was started with are not the job's";
  EXPECT_EQ(::write(ends[1], "g", 1), 1);
  EXPECT_TRUE(read_until(tree, [&] { return command() == "sleep 60"; }));
  ::close(ends[0]), ::close(ends[1]);
}

TEST_F(LiveTree, AttachingFindsATreeThatRunsAlready) {
  ForkedJob job([] {
    if (::fork() == 0) sleep_for_long();
    sleep_for_long();
  });
  TreeOptions attach;
  attach.pids = {job.pid()};  // no recorder pid: as if somebody else had started it
  TreeReader first(options(job));
  ASSERT_TRUE(read_until(first, [&] { return first.size() == 2; }));
  kill_members(job);
  MemorySink attached;
  TreeReader tree(attach);
  tree.read(boottime_now(), attached);
  EXPECT_EQ(tree.size(), 2U);
  EXPECT_TRUE(attached.recording().events.empty());  // nothing started just now
}

TEST_F(LiveTree, DescribesMembersAndStrangers) {
  ForkedJob job(sleep_for_long);
  TreeReader tree(options(job));
  tree.read(boottime_now(), sink_);
  ASSERT_TRUE(tree.describe(job.pid()).has_value());
  EXPECT_TRUE(tree.describe(job.pid())->in_job);
  ASSERT_TRUE(tree.describe(::getpid()).has_value());
  EXPECT_FALSE(tree.describe(::getpid())->in_job);
  EXPECT_FALSE(tree.describe(std::int64_t{1} << 30).has_value());
}

TEST_F(LiveTree, AProcessTooYoungForTheLastTickIsDescribedAsTheJobs) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  ForkedJob job([&] {
    char go = 0;
    (void)!::read(ready[0], &go, 1);
    if (::fork() == 0) sleep_for_long();
    sleep_for_long();
  });
  TreeReader tree(options(job));
  tree.read(boottime_now(), sink_);
  ASSERT_EQ(::write(ready[1], "g", 1), 1);
  TreeReader finder(options(job));  // finds out the pid of the child for us
  ASSERT_TRUE(read_until(finder, [&] { return finder.size() == 2; }));
  kill_members(job);
  for (const Source& source : sink_.recording().sources) {
    const auto pid = process_of(source).pid;
    ASSERT_TRUE(tree.describe(pid).has_value());
    EXPECT_TRUE(tree.describe(pid)->in_job);
  }
  EXPECT_EQ(tree.size(), 1U);
  ::close(ready[0]), ::close(ready[1]);
}

TEST_F(LiveTree, TheMarkerFindsWhatEscapedWithoutASubreaper) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  ForkedJob job([&] {
    ::setenv("HEADROOM_TEST_MARK", "a1b2", 1);
    const std::string tell = fmt::format("(setsid sh -c 'echo $$ >&{}; exec sleep 60' &) ; exec sleep 60", ready[1]);
    ::execl("/bin/sh", "sh", "-c", tell.c_str(), nullptr);
  });
  char text[32] = {};
  ASSERT_GT(::read(ready[0], text, sizeof text - 1), 0);
  const std::int64_t escaped = std::atoll(text);
  job.also_kill(escaped);
  TreeOptions with_marker = options(job);
  with_marker.recorder_is_subreaper = false;
  with_marker.environment_marker = "HEADROOM_TEST_MARK=a1b2";
  TreeReader tree(with_marker);
  EXPECT_TRUE(read_until(tree, [&] { return tree.contains(escaped); }));
  ::kill(static_cast<pid_t>(escaped), SIGKILL);
  ::close(ready[0]), ::close(ready[1]);
}

TEST_F(LiveTree, AnotherUsersProcessIsReadAsFarAsAllowedAndTheRestIsSaid) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) GTEST_SKIP() << "not possible here: becoming another user needs root";
  ForkedJob job(sleep_for_long);  // root's
  ForkedJob reader([&] {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(10);
    TreeOptions attach;
    attach.pids = {job.pid()};
    TreeReader tree(attach);
    MemorySink sink;
    // The environment of a process that was just forked is read a little later, and it may not sleep yet.
    const auto sleeps = [&] {
      const Column* wait =
          sink.recording().sources.empty() ? nullptr : sink.recording().tracks[0].find(Metric::kWaitChannel);
      return wait && wait->values.back() != static_cast<std::int64_t>(WaitChannel::kRunning);
    };
    tree.read(boottime_now(), sink);
    for (Nanos later = kSecond; later == kSecond || (!sleeps() && later < 100'000 * kSecond); later += kSecond) {
      tree.read(boottime_now() + later, sink);
      ::sched_yield();
    }
    const Recording recording = sink.take();
    if (recording.sources.size() != 1) ::_exit(11);
    const Track& track = recording.tracks[0];
    if (track.find(Metric::kReadBytes)->at(0) != Reading<std::int64_t>(tl::unexpected(Absent::kNoPermission)))
      ::_exit(12);
    if (!track.find(Metric::kCpuUser)->has(0)) ::_exit(13);
    if (track.find(Metric::kWaitChannel)->values.back() == static_cast<std::int64_t>(WaitChannel::kRunning))
      ::_exit(14);
    std::set<std::string> losses;
    for (const Loss& loss : recording.losses) losses.insert(loss.what);
    if (losses != std::set<std::string>{"proc_environ_no_permission", "proc_io_no_permission"}) ::_exit(15);
    ::_exit(0);
  });
  int status = 0;
  ASSERT_EQ(::waitpid(reader.pid(), &status, 0), reader.pid());
  EXPECT_EQ(status, 0) << "exit code " << WEXITSTATUS(status);
  reader.also_kill(job.pid());
}

TEST_F(LiveTree, InALargeTreeTheWatchedProcessesKeepTheirRowInEveryTick) {
  constexpr int kSize = 60;
  ForkedJob job([] {
    const auto wake_often = [] {
      for (;;) ::usleep(5'000);
    };
    for (int i = 1; i < kSize; ++i)
      if (::fork() == 0) wake_often();
    wake_often();
  });
  TreeReader tree(options(job));
  ASSERT_TRUE(read_until(tree, [&] { return tree.size() == kSize; }));
  kill_members(job);
  const std::int64_t listed = process_of(sink_.recording().sources[1]).pid;
  ASSERT_TRUE(tree.describe(listed)->in_job);  // as when the driver lists it
  const std::int64_t other = process_of(sink_.recording().sources[2]).pid;
  const auto rows = [&](std::int64_t pid) { return values(pid, Metric::kThreads).size(); };
  const std::size_t job_before = rows(job.pid()), listed_before = rows(listed), other_before = rows(other);
  constexpr std::size_t kTicks = 20;
  for (std::size_t i = 0; i < kTicks; ++i) {
    ::usleep(20'000);
    tree.read(boottime_now(), sink_);
  }
  EXPECT_EQ(rows(job.pid()) - job_before, kTicks);
  EXPECT_EQ(rows(listed) - listed_before, kTicks);
  EXPECT_LT(rows(other) - other_before, kTicks);
}

}  // namespace
}  // namespace headroom::host
