// SPDX-License-Identifier: Apache-2.0
#include "host/process_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/fd.h"

namespace headroom::host {

namespace {

std::optional<std::int64_t> channel_of(const ProcessProbe& probe) {
  for (const Cell& cell : probe.cells())
    if (cell.metric == Metric::kWaitChannel) return cell.value;
  return std::nullopt;
}

// A process that sleeps has the same CPU time at every look, so that nothing but the probe itself asks again.
TEST(ProcessProbe, AWaitThatTheKernelDidNotTellYetIsAskedForAgain) {
  const pid_t pid = ::fork();
  if (pid == 0)
    for (;;) ::pause();
  const auto root = std::filesystem::temp_directory_path() / fmt::format("process_probe_test.{}", pid);
  const auto folder = root / fmt::format("{}", pid);
  std::filesystem::create_directories(folder);
  const auto put = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  put("stat",
      fmt::format("{} (sleeper) S 1 {} {} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 "
                  "0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                  pid, pid, pid));
  put("schedstat", "1000 0 1\n");
  put("wchan", "0");
  ProcDir proc(root.string());
  KernelFacts kernel;
  kernel.cpu_clocks = true;
  const Pace pace;
  constexpr Nanos kBegin = 1000 * kSecond;
  ProcessProbe probe(pid, 4242, false);
  EXPECT_EQ(probe.sample(proc, kernel, pace, kBegin), ProcessProbe::Outcome::kAlive);
  EXPECT_EQ(channel_of(probe), static_cast<std::int64_t>(WaitChannel::kUnknown));
  put("wchan", "pipe_read");
  EXPECT_EQ(probe.sample(proc, kernel, pace, kBegin + 2 * pace.dear), ProcessProbe::Outcome::kAlive);
  EXPECT_EQ(channel_of(probe), static_cast<std::int64_t>(WaitChannel::kPipe));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  std::filesystem::remove_all(root);
}

// A folder as /proc has them, with one process whose open files are links.
class OneProcess : public ::testing::Test {
 protected:
  OneProcess() : root_(std::filesystem::path(::testing::TempDir()) / ("gpu_files." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(root_ / "100" / "fd");
    open("/dev/pts/0");
    open("pipe:[42]");
  }
  ~OneProcess() override { std::filesystem::remove_all(root_); }
  void open(const std::string& link) {
    std::filesystem::create_symlink(link, root_ / "100" / "fd" / std::to_string(next_++));
  }
  std::filesystem::path root_;
  int next_ = 0;
};

TEST_F(OneProcess, HasAFileOfAGpuOrNot) {
  ProcDir proc(root_);
  EXPECT_EQ(has_gpu_file(proc, 100, ""), false);
  open("/dev/nvme0n1");
  EXPECT_EQ(has_gpu_file(proc, 100, ""), false) << "a disk is no GPU";
  open("/run/box/alive");
  EXPECT_EQ(has_gpu_file(proc, 100, ""), false);
  EXPECT_EQ(has_gpu_file(proc, 100, "/run/box/alive"), true);
  for (const char* file : {"/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/dxg"}) {
    open(file);
    EXPECT_EQ(has_gpu_file(proc, 100, ""), true) << file;
    std::filesystem::remove(root_ / "100" / "fd" / std::to_string(--next_));
  }
  EXPECT_EQ(has_gpu_file(proc, 101, ""), std::nullopt) << "it is gone";
}

TEST_F(OneProcess, WithVeryManyFilesIsNotLookedThrough) {
  for (int i = 0; i < 600; ++i) open("pipe:[43]");
  ProcDir proc(root_);
  EXPECT_EQ(has_gpu_file(proc, 100, ""), std::nullopt);
}

TEST_F(OneProcess, IsLookedAtUntilItHasOneAndTheRarerTheOlderItIs) {
  constexpr Nanos kLeast = 200 * kMillisecond, kStart = 5 * kSecond;
  ProcDir proc(root_);
  GpuFiles files(kStart);
  std::vector<Nanos> looks;
  for (Nanos at = kStart; at < kStart + 32 * kSecond; at += 50 * kMillisecond) {
    if (!files.due(at, at)) continue;  // it runs
    EXPECT_FALSE(files.look(proc, 100, "", kLeast, at));
    EXPECT_EQ(files.none_until(), at);
    looks.push_back(at);
  }
  EXPECT_EQ(looks[1] - looks[0], kLeast);
  EXPECT_NEAR(static_cast<double>(looks.back() - looks[looks.size() - 2]), 32e9 / 16, 0.4e9);
  EXPECT_LT(looks.size(), 60U);
  open("/dev/nvidia0");
  EXPECT_TRUE(files.look(proc, 100, "", kLeast, kStart + 40 * kSecond));
  EXPECT_EQ(files.none_until(), looks.back());
  EXPECT_FALSE(files.due(kSecond, kStart + 400 * kSecond));
  GpuFiles of_another(0);
  EXPECT_FALSE(of_another.look(proc, 101, "", kLeast, kStart)) << "where none can be seen, none is there";
  EXPECT_FALSE(of_another.due(kSecond, 400 * kSecond));
  EXPECT_EQ(of_another.none_until(), std::nullopt);
}

TEST_F(OneProcess, ThatDidNotRunHasOpenedNothing) {
  ProcDir proc(root_);
  GpuFiles files(0);
  ASSERT_TRUE(files.due(kMillisecond, kSecond));
  EXPECT_FALSE(files.look(proc, 100, "", kSecond, kSecond));
  for (Nanos at = 2 * kSecond; at < 100 * kSecond; at += kSecond) EXPECT_FALSE(files.due(kMillisecond, at));
  EXPECT_EQ(files.none_until(), 99 * kSecond);
  EXPECT_TRUE(files.due(2 * kMillisecond, 100 * kSecond));
  EXPECT_TRUE(files.due(std::nullopt, 100 * kSecond)) << "who cannot tell has to look";
}

}  // namespace

}  // namespace headroom::host
