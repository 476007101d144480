// SPDX-License-Identifier: Apache-2.0
#include "host/processes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

namespace headroom::host {

namespace {

class JobRoot : public ::testing::Test {
 protected:
  ~JobRoot() override { std::filesystem::remove_all(root_); }
  void process(std::int64_t pid, std::int64_t parent, const std::string& comm, int uid = 1000) {
    const auto folder = std::filesystem::path(root_) / "proc" / fmt::format("{}", pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat") << fmt::format("{} ({}) S {} {}", pid, comm, parent, pid)
                                   << " 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 18446744073709551615\n";
    std::ofstream(folder / "status") << fmt::format("Name:\t{}\nUid:\t{}\t{}\t{}\t{}\n", comm, uid, uid, uid, uid);
  }
  const std::string root_ = ::testing::TempDir() + fmt::format("job_root.{}", ::getpid());
};

TEST_F(JobRoot, IsBelowTheShell) {
  process(1, 0, "systemd", 0);
  process(10, 1, "bash");
  process(20, 10, "torchrun");
  process(21, 20, "python");
  EXPECT_EQ(root_of_job(21, root_), 20);
  EXPECT_EQ(root_of_job(20, root_), 20);
  EXPECT_EQ(user_of_process(21, root_), 1000);
  EXPECT_FALSE(root_of_job(99, root_));
}

TEST_F(JobRoot, KernelsOfOneNotebookServerAreJobsOfTheirOwn) {
  process(10, 1, "jupyter-lab");
  process(20, 10, "python3");
  EXPECT_EQ(root_of_job(20, root_), 20);
}

TEST_F(JobRoot, TasksOfABatchAreJobsOfTheirOwn) {
  process(10, 1, "headroom");
  process(20, 10, "python");
  EXPECT_EQ(root_of_job(20, root_), 20);
}

TEST_F(JobRoot, TheNearestSlurmstepdIsTold) {
  process(10, 1, "slurmstepd", 0);
  process(20, 10, "srun");
  process(30, 20, "slurmstepd", 0);
  process(40, 30, "bash");
  process(50, 40, "headroom");
  const auto title = [&](std::int64_t pid, const std::string& text) {
    std::ofstream(std::filesystem::path(root_) / "proc" / fmt::format("{}", pid) / "cmdline") << text << '\0';
  };
  title(10, "slurmstepd: [7.batch]");
  EXPECT_EQ(slurmstepd_above(50, root_), (Slurmstepd{.job = 7}));  // the nearer one is hidden
  title(30, "slurmstepd: [7.0]");
  title(40, "slurmstepd: [9.0]x");
  EXPECT_EQ(slurmstepd_above(50, root_), (Slurmstepd{.job = 7, .step = 0}));
  EXPECT_FALSE(slurmstepd_above(10, root_));
}

TEST_F(JobRoot, IsOfOneUserAndNeverTheInit) {
  process(1, 0, "entrypoint", 1000);
  process(10, 1, "driver", 7);
  process(20, 10, "python", 1000);
  EXPECT_EQ(root_of_job(20, root_), 20) << "started by another user's";
  process(30, 1, "python", 1000);
  EXPECT_EQ(root_of_job(30, root_), 30);
}

TEST_F(JobRoot, WhatThisProcessDescendsFromIsNoJob) {
  process(10, 1, "runner");
  process(::getpid(), 10, "headroom");
  process(20, 10, "python");
  EXPECT_EQ(root_of_job(20, root_), 20);
}

bool found(std::span<const Candidate> candidates, std::int64_t pid) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& one) { return one.pid == pid; });
}

TEST(Discovery, WhoCouldNotBeJudgedIsFoundOnceMore) {
  ProcDir proc("/proc");
  Discovery discovery;
  EXPECT_TRUE(found(discovery.fresh(proc), ::getpid()));
  EXPECT_FALSE(found(discovery.fresh(proc), ::getpid()));
  discovery.look_again_at(::getpid());
  discovery.look_again_at(::getpid());
  const auto again = discovery.fresh(proc);
  EXPECT_EQ(std::count_if(again.begin(), again.end(), [](const Candidate& one) { return one.pid == ::getpid(); }), 1);
  EXPECT_FALSE(found(discovery.fresh(proc), ::getpid()));
}

}  // namespace

}  // namespace headroom::host
