// SPDX-License-Identifier: Apache-2.0
#include "batch/sweep.h"
#include "base/ids.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/child.h"
#include "base/fd.h"
#include "base/strings.h"

namespace headroom::batch {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::string_literals;

constexpr Nanos kGrace = 20 * kMillisecond;

TEST(BatchMarker, IsReadFromAnEnvironment) {
  EXPECT_EQ(marker("c0ffee", 7), "HEADROOM_ATTEMPT=c0ffee.7");
  EXPECT_EQ(attempt_in("A=1\0HEADROOM_ATTEMPT=c0ffee.7\0B=2\0"s, "c0ffee"), 7u);
  EXPECT_EQ(attempt_in("HEADROOM_ATTEMPT=c0ffee.18446744073709551615"s, "c0ffee"), 18446744073709551615u);
  for (const std::string& foreign :
       {""s, "\0\0"s, "HEADROOM_ATTEMPT=c0ffe.7"s, "HEADROOM_ATTEMPT=c0ffee2.7"s, "XHEADROOM_ATTEMPT=c0ffee.7"s,
        "HEADROOM_ATTEMPT=c0ffee."s, "HEADROOM_ATTEMPT=c0ffee.x"s, "HEADROOM_ATTEMPT=c0ffee.7x"s,
        "HEADROOM_ATTEMPT=c0ffee.-7"s, "HEADROOM_ATTEMPT=c0ffee.18446744073709551616"s, "A=HEADROOM_ATTEMPT=c0ffee.7"s})
    EXPECT_EQ(attempt_in(foreign, "c0ffee"), std::nullopt) << foreign;
}

// Processes of this test; each sleeps in a group of its own.
struct BatchSweep : ::testing::Test {
  const std::string batch = fmt::format("{:x}{:x}", ::getpid(), boottime_now());
  std::vector<Child> children;

  pid_t run(std::vector<std::string> argv, std::vector<std::string> environment = {}) {
    auto child = Child::spawn({.argv = std::move(argv), .set_env = std::move(environment), .own_group = true});
    EXPECT_TRUE(child);
    children.push_back(std::move(*child));
    return children.back().pid();
  }
  pid_t sleeper() { return run({"sleep", "1000"}); }
  // With nothing in its environment; returns once it is so.
  pid_t nameless(const std::string& script) {
    const pid_t pid = run({"env", "-i", "/bin/sh", "-c", script}, {marker(batch, 1)});
    const auto words = fmt::format("/proc/{}/cmdline", pid);
    for (auto text = read_file(words); text && (text->empty() || text->starts_with("env"s)); text = read_file(words)) {
    }
    return pid;
  }
  pid_t child_of(pid_t parent) {
    for (;;) {
      const auto text = read_file(fmt::format("/proc/{0}/task/{0}/children", parent));
      if (!text) return 0;
      if (const auto pid = parse_number<pid_t>(trim(*text))) return *pid;
    }
  }
  static bool lives(pid_t pid) {
    const auto stat = read_file(fmt::format("/proc/{}/stat", pid), 4096);
    return stat && stat->find(") Z") == std::string::npos;
  }
  [[nodiscard]] Root root(pid_t pid) const { return {.pid = pid, .start = process_start(pid).value_or(0)}; }
};
auto is(pid_t pid) { return Field(&Found::pid, pid); }

TEST_F(BatchSweep, FindsWhatCarriesTheMarkerAndNobodyElse) {
  const pid_t ours = run({"sleep", "1000"}, {marker(batch, 42)});
  const pid_t other_batch = run({"sleep", "1000"}, {marker(batch + "0", 42)});
  const pid_t stranger = sleeper();
  const auto found = find_processes(batch, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, ours);
  EXPECT_EQ(found[0].attempt, 42u);
  EXPECT_EQ(found[0].start, process_start(ours));
  stop_processes(batch, {}, kGrace);
  EXPECT_FALSE(lives(ours));
  EXPECT_TRUE(lives(other_batch) && lives(stranger));
  EXPECT_THAT(find_processes(batch, {}), IsEmpty()) << "a zombie is not living";
}

TEST_F(BatchSweep, FindsGroups) {
  const pid_t one = sleeper(), other = sleeper();
  const std::vector<pid_t> groups{one};
  const auto found = find_processes(batch, groups);
  EXPECT_THAT(found, AllOf(Contains(is(one)), Not(Contains(is(other)))));
  EXPECT_EQ(found[0].attempt, std::nullopt);
}

TEST_F(BatchSweep, APidCountsOnlyWithItsStartTime) {
  const pid_t pid = nameless("exec sleep 1000");
  std::vector<Root> roots{root(pid)};
  EXPECT_THAT(find_processes(batch, {}, roots), Contains(is(pid)));
  roots[0].start -= kSecond;  // it was another process that had this pid
  EXPECT_THAT(find_processes(batch, {}, roots), IsEmpty());
  EXPECT_THAT(stop_processes(batch, {}, kGrace, roots), IsEmpty());
  EXPECT_TRUE(lives(pid));
  roots[0] = {.pid = 0x3fffffff, .start = 1};
  EXPECT_THAT(find_processes(batch, {}, roots), IsEmpty());
}

TEST_F(BatchSweep, FindsWhatHasGoneIntoASessionOfItsOwnByItsParent) {
  const pid_t parent = nameless("setsid sleep 1000 & wait");
  const pid_t child = child_of(parent);
  ASSERT_GT(child, 0);
  while (::getpgid(child) == parent) ::usleep(1000);  // until it has called setsid()
  const std::vector<Root> roots{root(parent)};
  EXPECT_THAT(find_processes(batch, {}, roots), AllOf(Contains(is(parent)), Contains(is(child))));
  stop_processes(batch, {}, kGrace, roots);
  EXPECT_FALSE(lives(parent) || lives(child));
}

TEST_F(BatchSweep, WhatIgnoresSigtermIsKilledAlsoWhenItsParentWentFirst) {
  const pid_t parent = nameless("setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' & wait");
  const pid_t child = child_of(parent);
  ASSERT_GT(child, 0);
  ASSERT_GT(child_of(child), 0);  // past its trap
  stop_processes(batch, {}, kGrace, std::vector<Root>{root(parent)});
  EXPECT_FALSE(lives(parent) || lives(child));
}

TEST_F(BatchSweep, NeverFindsItselfNorWhoStartedIt) {
  const std::vector<pid_t> groups{::getpgrp(), ::getpgid(::getppid())};
  const std::vector<Root> roots{root(::getpid()), root(::getppid())};
  const pid_t child = sleeper();
  const auto found = find_processes(batch, groups, roots);
  EXPECT_THAT(found, AllOf(Not(Contains(is(::getpid()))), Not(Contains(is(::getppid()))), Not(Contains(is(child)))));
}

TEST(ProcessStart, IsTheSameAtEveryLook) {
  const auto start = process_start(::getpid());
  ASSERT_TRUE(start);
  EXPECT_EQ(process_start(::getpid()), start);
  EXPECT_LE(*start, boottime_now());
  EXPECT_GT(*start, boottime_now() - 3600 * kSecond);
  EXPECT_EQ(process_start(0x3fffffff), std::nullopt);
  EXPECT_FALSE(boot_id().empty());
}

}  // namespace
}  // namespace headroom::batch
