// SPDX-License-Identifier: Apache-2.0
#include "batch/executor/guardian.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/fd.h"
#include "batch/sweep.h"

namespace headroom::batch {
namespace {

constexpr Nanos kGrace = 300 * kMillisecond;
constexpr Nanos kPatience = 20 * kSecond;

enum class Task { kSleeps, kIgnoresSigterm };
struct Pids {
  pid_t guardian = 0, task = 0, marked = 0;
};

pid_t start_task(Task how) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::setpgid(0, 0);
  if (how == Task::kIgnoresSigterm) ::signal(SIGTERM, SIG_IGN);
  ::execlp("sleep", "sleep", "1000", nullptr);
  ::_exit(127);
}

// A process that has a guardian and two tasks, as a batch has: one that the guardian knows by its group, one that it
// can know by its environment only.
struct BatchGuardian : ::testing::Test {
  const std::string batch = fmt::format("{:x}g{:x}", ::getpid(), boottime_now());
  std::string lock_path = "/tmp/headroom-guardian-XXXXXX";
  Fd lock;
  pid_t headroom = -1;
  Pids pids;

  BatchGuardian() : lock(::mkstemp(lock_path.data())) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what it leaves comes to us, and can be waited for
    EXPECT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  }
  ~BatchGuardian() override {
    for (const pid_t pid : {headroom, pids.guardian, pids.task, pids.marked})
      if (pid > 0 && ::kill(pid, SIGKILL) == 0) ::waitpid(pid, nullptr, 0);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    ::unlink(lock_path.c_str());
  }

  // A fork copies one thread: what another one holds at that moment, an allocator's lock for one, is held in the copy
  // for good. Threads of an earlier test may still be about to end.
  static void wait_until_alone() {
    const auto threads = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                           std::filesystem::directory_iterator());
    };
    for (const Nanos until = boottime_now() + kPatience; threads() > 1 && boottime_now() < until;) ::usleep(1000);
  }

  void start(Task how, bool goes_home = false) {
    wait_until_alone();
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    headroom = ::fork();
    if (headroom == 0) {
      {
        // Who stops when he is asked to has the time that busy cores take.
        auto guardian = Guardian::start(how == Task::kSleeps ? kPatience : kGrace, lock.get());
        guardian->set_batch(batch);
        Pids mine{.guardian = guardian->pid(), .task = start_task(how)};
        ::setenv("HEADROOM_ATTEMPT", (batch + ".1").c_str(), 1);
        mine.marked = start_task(how);
        guardian->add_group(mine.task);
        guardian->add_group(12345678);  // of a task that has ended since
        guardian->remove_group(12345678);
        [[maybe_unused]] const auto told = ::write(ends[1], &mine, sizeof mine);
        if (!goes_home)
          for (;;) ::pause();
      }
      ::_exit(0);
    }
    ::close(ends[1]);
    ASSERT_EQ(::read(ends[0], &pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
    ::close(ends[0]);
    lock.reset();  // the guardian's is another descriptor of the same lock
    const auto program = [](const std::string& pid) { return std::filesystem::read_symlink("/proc/" + pid + "/exe"); };
    for (const pid_t task : {pids.task, pids.marked})
      while (program(std::to_string(task)) == program("self")) ::usleep(1000);
  }
  void kill_headroom() {
    ::kill(headroom, SIGKILL);
    ASSERT_EQ(::waitpid(headroom, nullptr, 0), headroom);
    headroom = -1;
  }
  // How a child of ours, by birth or inherited, ended; the signal.
  static int signal_that_ended(pid_t& pid) {
    int status = 0;
    const Nanos until = boottime_now() + kPatience;
    while (boottime_now() < until) {
      if (::waitpid(pid, &status, WNOHANG) == pid) {
        pid = 0;
        return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      }
      ::usleep(2000);
    }
    return -1;
  }
  // Soon: it has just been started.
  static bool ignored_by(pid_t pid, int number) {
    for (const Nanos until = boottime_now() + kPatience; boottime_now() < until; ::usleep(1000)) {
      const auto status = read_file(fmt::format("/proc/{}/status", pid));
      const auto at = status ? status->find("SigIgn:") : std::string::npos;
      if (at == std::string::npos) return false;  // it is gone
      const auto mask = std::stoull(status->substr(at + 7), nullptr, 16);
      if ((mask >> static_cast<unsigned>(number - 1) & 1U) != 0) return true;
    }
    return false;
  }
  [[nodiscard]] bool locked() const {
    const Fd other(::open(lock_path.c_str(), O_RDWR | O_CLOEXEC));
    return ::flock(other.get(), LOCK_EX | LOCK_NB) != 0;
  }
};

TEST_F(BatchGuardian, StopsGroupsAndMarkedProcessesWhenHeadroomIsKilled) {
  start(Task::kSleeps);
  kill_headroom();
  EXPECT_EQ(signal_that_ended(pids.task), SIGTERM);
  EXPECT_EQ(signal_that_ended(pids.marked), SIGTERM);
  EXPECT_EQ(signal_that_ended(pids.guardian), 0) << "and goes";
}

TEST_F(BatchGuardian, KillsAfterTheGraceTimeAndKeepsTheLockUntilThen) {
  start(Task::kIgnoresSigterm);
  const Nanos began = boottime_now();
  kill_headroom();
  EXPECT_TRUE(locked());
  EXPECT_EQ(signal_that_ended(pids.task), SIGKILL);
  EXPECT_EQ(signal_that_ended(pids.marked), SIGKILL);
  EXPECT_GE(boottime_now() - began, kGrace - 20 * kMillisecond);
  EXPECT_EQ(signal_that_ended(pids.guardian), 0);
  EXPECT_FALSE(locked());
}

TEST_F(BatchGuardian, IgnoresTheSignalsOfATerminalAndOfAShutdown) {
  start(Task::kSleeps);
  constexpr std::array kSent{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  for (const int number : kSent) ::kill(pids.guardian, number);  // however soon
  for (const int number : kSent) EXPECT_TRUE(ignored_by(pids.guardian, number)) << number;
  EXPECT_NE(::getsid(pids.guardian), ::getsid(0));
  EXPECT_EQ(::waitpid(pids.task, nullptr, WNOHANG), -1) << "it is still the child of headroom";
  kill_headroom();
  EXPECT_EQ(signal_that_ended(pids.task), SIGTERM);
}

TEST_F(BatchGuardian, StopsNothingWhenItIsSentHome) {
  start(Task::kSleeps, true);
  ASSERT_EQ(::waitpid(headroom, nullptr, 0), headroom);
  headroom = -1;
  pids.guardian = 0;                                   // waited for by headroom
  for (const pid_t task : {pids.task, pids.marked}) {  // a SIGTERM that the guardian had sent would come first
    int status = 0;
    ::kill(task, SIGSTOP);
    ASSERT_EQ(::waitpid(task, &status, WUNTRACED), task);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
}

}  // namespace
}  // namespace headroom::batch
