// SPDX-License-Identifier: Apache-2.0
#include "base/child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace headroom {
namespace {

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/headroom-child-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

Child spawn(ChildOptions options) {
  auto child = Child::spawn(options);
  EXPECT_TRUE(child.has_value()) << (child ? "" : child.error().what);
  return std::move(*child);
}

std::string output_of(ChildOptions options) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd reading(ends[0]), writing(ends[1]);
  options.standard_out = writing.get();
  Child child = spawn(options);
  writing.reset();
  std::string all;
  char block[4096];
  for (ssize_t got = 0; (got = ::read(reading.get(), block, sizeof block)) > 0;)
    all.append(block, static_cast<std::size_t>(got));
  EXPECT_EQ(child.wait(), ExitStatus{});
  return all;
}

TEST(Child, GivesItsExitCode) {
  EXPECT_EQ(spawn({.argv = {"sh", "-c", "exit 7"}}).wait(), (ExitStatus{.code = 7, .signal = 0}));
}

TEST(Child, ASignalIsNotACode) {
  const ExitStatus status = spawn({.argv = {"sh", "-c", "kill -TERM $$"}}).wait();
  EXPECT_EQ(status, (ExitStatus{.code = 0, .signal = SIGTERM}));
  EXPECT_EQ(status.as_code(), 143);
}

TEST(Child, WhatDoesNotExistIsNotFound) {
  const auto child = Child::spawn({.argv = {"no-such-program-anywhere"}});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, Errc::kNotFound);
  EXPECT_THAT(child.error().what, testing::HasSubstr("not found in PATH"));
  EXPECT_EQ(Child::spawn({.argv = {"/no/such/file"}}).error().code, Errc::kNotFound);
  EXPECT_EQ(Child::spawn({.argv = {""}}).error().code, Errc::kNotFound);
}

TEST(Child, WhatIsNoProgramIsNotExecutable) {
  EXPECT_EQ(Child::spawn({.argv = {"/tmp"}}).error().code, Errc::kNoPermission);
  EXPECT_EQ(Child::spawn({.argv = {"/etc/passwd"}}).error().code, Errc::kNoPermission);
}

TEST(Child, AScriptWithoutInterpreterLineIsRunByTheShell) {
  const Folder folder;
  const std::string script = folder.path + "/script";
  ASSERT_TRUE(write_file(script, "echo \"$0\" \"$1\"\n"));
  ::chmod(script.c_str(), 0755);
  EXPECT_EQ(output_of({.argv = {script, "a b"}}), script + " a b\n");
}

TEST(Child, TheEnvironmentIsReplacedByName) {
  ::setenv("HEADROOM_TEST_A", "old", 1);
  ::setenv("HEADROOM_TEST_AB", "kept", 1);
  const std::string out = output_of({.argv = {"sh", "-c", "echo $HEADROOM_TEST_A $HEADROOM_TEST_AB $HEADROOM_TEST_C"},
                                     .set_env = {"HEADROOM_TEST_A=new", "HEADROOM_TEST_C=c=d"}});
  EXPECT_EQ(out, "new kept c=d\n");
}

TEST(Child, RunsInTheFolderAndGroupAskedFor) {
  EXPECT_EQ(output_of({.argv = {"pwd"}, .cwd = "/"}), "/\n");
  EXPECT_EQ(::getpgid(spawn({.argv = {"sleep", "60"}, .own_group = true}).pid()) == ::getpgrp(), false);
}

TEST(Child, GetsTheSignalMaskAskedFor) {
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  sigset_t none;
  ::sigemptyset(&none);
  Child child = spawn({.argv = {"sleep", "60"}, .signal_mask = none});
  child.kill(SIGTERM);
  EXPECT_EQ(child.wait().signal, SIGTERM);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Child, ItsPidfdSaysWhenItEnded) {
  Child child = spawn({.argv = {"true"}});
  const auto process = open_pidfd(child.pid());
  if (!process) GTEST_SKIP() << "not possible here: this kernel has no pidfd_open";
  pollfd ended{.fd = process->get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ended, 1, 60'000), 1);
  EXPECT_EQ(child.try_wait(), ExitStatus{});
}

TEST(Child, DroppingItKillsItsGrandchildrenToo) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd reading(ends[0]), writing(ends[1]);
  {
    const Child child =
        spawn({.argv = {"sh", "-c", "sleep 60 & echo; wait"}, .standard_out = writing.get(), .own_group = true});
    writing.reset();
    char byte = 0;
    EXPECT_EQ(::read(reading.get(), &byte, 1), 1);  // the grandchild was started
  }
  char byte = 0;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0);  // end of file: nobody holds the other end any more
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(Child, ALeftChildLivesOn) {
  pid_t pid = -1;
  { pid = spawn({.argv = {"sleep", "60"}, .on_drop = OnDrop::kLeave}).pid(); }
  EXPECT_EQ(::kill(pid, 0), 0);
  ::kill(pid, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
}

}  // namespace
}  // namespace headroom
