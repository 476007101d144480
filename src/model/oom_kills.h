// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

// Processes that the kernel kills for want of the host's memory: what a recording keeps of its count, and what programs
// say of a process of theirs that was killed.
namespace headroom {

// Keys of RecordingMeta::extra: how many it killed while a job ran that failed, and among which processes it counts.
inline constexpr std::string_view kOomKills = "oom_kills", kOomKillsOf = "oom_kills_of";
inline constexpr std::string_view kOfCgroup = "cgroup", kOfMachine = "machine";

// A loader worker of PyTorch that is gone, by what the process says that waited for it.
struct GoneWorker {
  std::int64_t pid = 0;  // the first, of several
  bool killed = false;   // by SIGKILL, as it says; else it does not say how
  bool operator==(const GoneWorker&) const = default;
};
[[nodiscard]] std::optional<GoneWorker> gone_loader_worker(std::string_view line);

}  // namespace headroom
