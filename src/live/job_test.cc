// SPDX-License-Identifier: Apache-2.0
#include "live/job.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace headroom {
namespace {

// A job followed by a loop of its own; signals are blocked while it lasts.
struct JobTest : testing::Test {
  Signals signals = std::move(*Signals::block(ForegroundJob::kSignals));
  std::unique_ptr<Loop> loop = std::move(*Loop::create());
  std::vector<std::pair<pid_t, ExitStatus>> reaped;
  JobEnd end;
  std::unique_ptr<ForegroundJob> job;

  ~JobTest() override { signals.release(); }

  pid_t follow(std::vector<std::string> argv, std::vector<pid_t> inherited = {}) {
    auto child =
        Child::spawn({.argv = std::move(argv), .signal_mask = signals.mask_before(), .on_drop = OnDrop::kKill});
    EXPECT_TRUE(child);
    const pid_t pid = child->pid();
    auto followed =
        ForegroundJob::follow(*loop, signals, std::move(*child),
                              {.on_end =
                                   [this](const JobEnd& ended) {
                                     end = ended;
                                     loop->stop();
                                   },
                               .on_stopped = [](Nanos, Nanos, int) {},
                               .on_reaped = [this](pid_t who, ExitStatus status) { reaped.emplace_back(who, status); }},
                              std::move(inherited));
    EXPECT_TRUE(followed);
    job = std::move(*followed);
    return pid;
  }
};

TEST_F(JobTest, ItsEndIsTold) {
  const pid_t pid = follow({"sh", "-c", "exit 5"});
  loop->run();
  EXPECT_EQ(end.status, (ExitStatus{.code = 5, .signal = 0}));
  EXPECT_FALSE(end.died_of_terminal);
  EXPECT_THAT(reaped, testing::ElementsAre(std::pair{pid, end.status}));
}

TEST_F(JobTest, ASignalSentHereIsForwarded) {
  follow({"sleep", "60"});
  ::kill(::getpid(), SIGTERM);
  loop->run();
  EXPECT_EQ(end.status.signal, SIGTERM);
  EXPECT_FALSE(end.died_of_terminal);
}

TEST_F(JobTest, AnEndBeforeItIsFollowedIsNotMissed) {
  auto child = Child::spawn({.argv = {"true"}, .signal_mask = signals.mask_before()});
  ASSERT_TRUE(child);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child->pid()), &info, WEXITED | WNOWAIT), 0);
  auto followed = ForegroundJob::follow(*loop, signals, std::move(*child),
                                        {.on_end = [this](const JobEnd&) { loop->stop(); },
                                         .on_stopped = [](Nanos, Nanos, int) {},
                                         .on_reaped = [](pid_t, ExitStatus) {}});
  ASSERT_TRUE(followed);
  loop->run();
}

TEST_F(JobTest, WhatTheJobLeavesBehindIsNamed) {
  ForegroundJob::adopt_orphans();
  follow({"sh", "-c", "sleep 60 & exit 0"});
  loop->run();
  ASSERT_EQ(end.left_over.size(), 1U);
  EXPECT_EQ(::kill(end.left_over[0], SIGKILL), 0);
  ::waitpid(end.left_over[0], nullptr, 0);
}

TEST_F(JobTest, WhatEndsRightAfterTheJobDoesNotStay) {
  ForegroundJob::adopt_orphans();
  follow({"sh", "-c", "sleep 60 & sleep 0.05 & exit 0"});
  loop->run();
  ASSERT_EQ(end.left_over.size(), 2U);
  auto stay = those_that_stay(end.left_over, 0);
  while (stay.size() > 1) stay = those_that_stay(stay, 10 * kMillisecond);
  ASSERT_EQ(stay.size(), 1U) << "one runs for a minute";
  EXPECT_EQ(::kill(stay[0], SIGKILL), 0);
  EXPECT_TRUE(those_that_stay(stay, 10 * kSecond).empty()) << "nobody has reaped it yet";
  for (const pid_t pid : end.left_over) ::waitpid(pid, nullptr, 0);
}

TEST_F(JobTest, WhatWasThereBeforeTheJobIsNotLeftByIt) {
  auto earlier = Child::spawn({.argv = {"sleep", "60"}});
  ASSERT_TRUE(earlier);
  follow({"sh", "-c", "exit 0"}, ForegroundJob::adopt_orphans());
  loop->run();
  EXPECT_TRUE(end.left_over.empty());
  earlier->kill(SIGKILL);
  ::waitpid(earlier->pid(), nullptr, 0);
}

TEST(InTreeOf, ClimbsToTheRoot) {
  EXPECT_TRUE(in_tree_of(::getpid(), ::getpid()));
  EXPECT_TRUE(in_tree_of(::getpid(), ::getppid()));
  EXPECT_FALSE(in_tree_of(::getppid(), ::getpid()));
  EXPECT_FALSE(in_tree_of(0, ::getpid()));
  EXPECT_FALSE(in_tree_of(999'999'999, ::getpid()));
}

}  // namespace
}  // namespace headroom
