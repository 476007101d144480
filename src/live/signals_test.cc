// SPDX-License-Identifier: Apache-2.0
#include "live/signals.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace headroom {
namespace {

constexpr pid_t kStep = 70, kBatch = 71, kExtern = 72, kShell = 73, kHidden = 74;

// A /proc with a slurmstepd of each kind and a shell.
class SlurmSignals : public ::testing::Test {
 protected:
  SlurmSignals() {
    add(kStep, "slurmstepd: [7.0]");
    add(kBatch, "slurmstepd: [7.batch]");
    add(kExtern, "slurmstepd: [7.extern]");
    add(kShell, "bash");
  }
  ~SlurmSignals() override { std::filesystem::remove_all(folder_); }
  void add(pid_t pid, const std::string& title) {
    const auto folder = std::filesystem::path(folder_) / "proc" / std::to_string(pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "cmdline") << title << '\0';
  }
  bool to_whole_step(pid_t sender, int number, bool from_kernel = false) {
    return sent_to_whole_step({.number = number, .from_kernel = from_kernel, .sender = sender}, folder_);
  }

  std::string pattern_ = (std::filesystem::temp_directory_path() / "headroom-slurm-XXXXXX").string();
  const std::string folder_ = ::mkdtemp(pattern_.data());
};

TEST_F(SlurmSignals, OfAStepAreSentToAllOfIt) {
  for (const int number : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT}) {
    EXPECT_TRUE(to_whole_step(kStep, number));
    for (const pid_t other : {kShell, kExtern, kHidden, 0}) EXPECT_FALSE(to_whole_step(other, number)) << other;
  }
  EXPECT_FALSE(to_whole_step(kStep, SIGINT, true));
}

TEST_F(SlurmSignals, OfABatchScriptMayBeForItAlone) {
  for (const int number : {SIGUSR1, SIGTERM}) EXPECT_FALSE(to_whole_step(kBatch, number));
}

}  // namespace
}  // namespace headroom
