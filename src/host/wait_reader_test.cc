// SPDX-License-Identifier: Apache-2.0
#include "host/wait_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace headroom::host {
namespace {

namespace fs = std::filesystem;

// A /proc of its own.
class WaitTree : public ::testing::Test {
 protected:
  WaitTree() { fs::create_directories(root_); }
  ~WaitTree() override { fs::remove_all(root_); }

  void process(std::int64_t pid, const std::string& comm) { put(pid, "comm", comm + "\n"); }
  void sleeps_in(std::int64_t pid, long call, std::int64_t first, std::int64_t second = 0) {
    put(pid, "syscall", fmt::format("{} {:#x} {:#x} 0x0 0x0 0x0 0x0 0x7ffd 0x7f1f\n", call, first, second));
  }
  void holds(std::int64_t pid, int file, const std::string& target, bool writes = false) {
    fs::create_directories(folder(pid) / "fd");
    fs::create_symlink(target, folder(pid) / "fd" / std::to_string(file));
    put(pid, fmt::format("fdinfo/{}", file), fmt::format("pos:\t0\nflags:\t0{}\nmnt_id:\t15\n", writes ? 1 : 0));
  }
  void put(std::int64_t pid, const std::string& name, const std::string& text) {
    fs::create_directories((folder(pid) / name).parent_path());
    std::ofstream(folder(pid) / name) << text;
  }
  std::vector<std::string> waits_of(std::int64_t pid, std::vector<std::int64_t> job, Nanos at = kSecond) {
    std::vector<std::string> texts;
    for (const WaitTarget& target : reader_.read(proc_, {pid}, job, at).targets) texts.push_back(to_text(target));
    return texts;
  }

 private:
  [[nodiscard]] fs::path folder(std::int64_t pid) const { return root_ / std::to_string(pid); }
  const fs::path root_ = fs::temp_directory_path() / fmt::format("wait_reader_test.{}", ::getpid());
  ProcDir proc_{(fs::create_directories(root_), root_.string())};
  WaitReader reader_{false};
};

using Texts = std::vector<std::string>;

TEST_F(WaitTree, APipeIsToldByWhoHoldsItsOtherEnd) {
  process(10, "python"), process(11, "ffmpeg"), process(12, "python");
  sleeps_in(10, SYS_read, 0);
  holds(10, 0, "pipe:[7]");
  holds(11, 1, "pipe:[7]", true);
  holds(12, 5, "pipe:[7]");  // another one that reads from it
  holds(12, 6, "pipe:[8]", true);
  EXPECT_EQ(waits_of(10, {10, 11, 12}), Texts{"pipe pids=11 ffmpeg"});
  sleeps_in(11, SYS_write, 1);
  EXPECT_EQ(waits_of(11, {10, 11, 12}, 3600 * kSecond), Texts{"full_pipe pids=10,12 python"});
}

TEST_F(WaitTree, APipeThatTheJobDoesNotFeedIsNotNamed) {
  process(10, "python");
  sleeps_in(10, SYS_read, 0);
  holds(10, 0, "pipe:[7]");
  EXPECT_EQ(waits_of(10, {10}), Texts{});
}

TEST_F(WaitTree, AConnectionIsToldByItsFarEndOrByThePortThatItWasMadeTo) {
  process(10, "python");
  put(10, "net/tcp",
      "  sl  local_address rem_address   st\n"
      "   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n"
      "   1: 0100007F:1F90 0700000A:CFB2 01 00000000:00000000 00:00000000 00000000     0        0 2 1\n"
      "   2: 0100007F:D266 0500000A:01BB 01 00000000:00000000 00:00000000 00000000     0        0 3 1\n");
  holds(10, 4, "socket:[2]"), holds(10, 5, "socket:[3]");
  sleeps_in(10, SYS_recvfrom, 5);
  EXPECT_EQ(waits_of(10, {10}), Texts{"connection 10.0.0.5:443"});
  sleeps_in(10, SYS_recvfrom, 4);
  EXPECT_EQ(waits_of(10, {10}, 100 * kSecond), Texts{"accepted 8080"});
  put(10, "fdinfo/9", "pos:\t0\nflags:\t02\ntfd:        4 events:       19 data: 4\ntfd:        5 events: 1 data: 5\n");
  sleeps_in(10, SYS_epoll_pwait, 9);
  EXPECT_EQ(waits_of(10, {10}), (Texts{"accepted 8080", "connection 10.0.0.5:443"}));
  holds(10, 6, "anon_inode:[eventfd]");
  put(10, "fdinfo/9", "tfd:        4 events:       19 data: 4\ntfd:        6 events: 1 data: 6\n");
  EXPECT_EQ(waits_of(10, {10}), Texts{}) << "another thread may wake it";
}

TEST_F(WaitTree, WhatAThreadWakesItselfUpByIsNothingItWaitsForAlone) {
  process(10, "python"), process(11, "ffmpeg");
  holds(10, 0, "pipe:[7]"), holds(11, 1, "pipe:[7]", true);
  holds(10, 3, "pipe:[8]"), holds(10, 4, "pipe:[8]", true);
  put(10, "fdinfo/9", "tfd:        0 events:       19 data: 4\ntfd:        3 events: 1 data: 5\n");
  sleeps_in(10, SYS_epoll_wait, 9);
  EXPECT_EQ(waits_of(10, {10, 11}), Texts{}) << "of how many threads is not known";
  put(10, "task/10/comm", "python\n");
  EXPECT_EQ(waits_of(10, {10, 11}, 100 * kSecond), Texts{"pipe pids=11 ffmpeg"});
  put(10, "task/12/comm", "python\n");
  EXPECT_EQ(waits_of(10, {10, 11}, 200 * kSecond), Texts{}) << "another thread may wake it";
}

TEST_F(WaitTree, FilesDevicesTerminalsAndChildrenHaveNames) {
  process(10, "python"), process(11, "nvcc");
  holds(10, 3, "/data/train/cat 1.jpg"), holds(10, 4, "/dev/nvidia0"), holds(10, 0, "/dev/pts/3"),
      holds(10, 5, "/dev/null");
  holds(10, 6, "anon_inode:[eventfd]");
  for (const auto& [file, told] :
       {std::pair(3, Texts{"file /data/train/cat 1.jpg"}), std::pair(4, Texts{"device /dev/nvidia0"}),
        std::pair(0, Texts{"terminal /dev/pts/3"}), std::pair(5, Texts{}), std::pair(6, Texts{})}) {
    sleeps_in(10, SYS_read, file);
    EXPECT_EQ(waits_of(10, {10}), told) << file;
  }
  for (const int lock : {SYS_flock, SYS_fcntl}) {
    sleeps_in(10, lock, 3);
    EXPECT_EQ(waits_of(10, {10}), Texts{"file_lock /data/train/cat 1.jpg"});
  }
  put(0, "../locks",
      "1: POSIX  ADVISORY  WRITE 7 08:01:5 0 EOF\n2: FLOCK  ADVISORY  WRITE 42 08:01:17 0 EOF\n"
      "2: -> FLOCK  ADVISORY  WRITE 9 08:01:17 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 10 08:01:17 0 EOF\n");
  sleeps_in(10, SYS_flock, 3);
  EXPECT_EQ(waits_of(10, {10}), Texts{"file_lock pids=42 /data/train/cat 1.jpg"}) << "whosever process that is";
  sleeps_in(10, SYS_wait4, 11);
  EXPECT_EQ(waits_of(10, {10, 11}), Texts{"child pids=11 nvcc"});
  sleeps_in(10, SYS_wait4, -1);
  EXPECT_EQ(waits_of(10, {10, 11}), Texts{}) << "for any child";
}

TEST_F(WaitTree, WhatCannotBeReadIsNotTold) {
  EXPECT_EQ(waits_of(10, {10}), Texts{}) << "it is gone";
  put(10, "syscall", "running\n");
  EXPECT_EQ(waits_of(10, {10}), Texts{});
  sleeps_in(10, SYS_futex, 3);
  EXPECT_EQ(waits_of(10, {10}), Texts{});
  sleeps_in(10, SYS_read, 77);
  EXPECT_EQ(waits_of(10, {10}), Texts{}) << "it has no such file";
}

}  // namespace
}  // namespace headroom::host
