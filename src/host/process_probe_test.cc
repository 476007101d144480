// SPDX-License-Identifier: Apache-2.0
#include "host/process_probe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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

}  // namespace
}  // namespace headroom::host
