// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "host/proc_dir.h"
#include "model/recording.h"

namespace headroom::host {

// Where the limits and counters of a process's cgroup are found: v1, v2, or both mounted side by side. Each list goes
// from the process's own group up to the top that is mounted, as paths under the root without a leading '/'; limits of
// all levels hold, the tightest binds. Empty: the controller is not there, or outside of what this namespace shows.
struct CgroupPlace {
  std::string path;  // as the kernel names it: of the cpu controller, or of memory where that is at the top
  bool cpu_v2 = false, memory_v2 = false;
  std::vector<std::string> cpu, cpuacct, cpuset, memory, unified;
  bool operator==(const CgroupPlace&) const = default;
};
[[nodiscard]] CgroupPlace place_cgroup(std::string_view cgroup_text, std::string_view mountinfo_text);

struct CgroupLimits {
  std::optional<double> quota_cores;  // the tightest of all levels
  std::string quota_folder;           // where it is set; else the process's own group
  std::optional<int> cpuset_cores;
  std::optional<std::int64_t> memory_max_bytes;
  bool operator==(const CgroupLimits&) const = default;
};
[[nodiscard]] CgroupLimits read_cgroup_limits(ProcDir& root, const CgroupPlace& place);

struct OomKills {
  std::int64_t count = 0;
  bool of_machine = false;
  bool operator==(const OomKills&) const = default;
};

// The group of this process; `root` is "" or a fixture's folder.
class OwnCgroup {
 public:
  explicit OwnCgroup(const std::string& root = "");
  [[nodiscard]] CgroupLimits limits() { return read_cgroup_limits(root_, place_); }
  // How often the kernel's OOM killer struck in it (v2: or below it); on the machine, where the group's are not
  // counted.
  [[nodiscard]] std::optional<OomKills> oom_kills();

 private:
  ProcDir root_;
  CgroupPlace place_;
};

// The counters of one cgroup; files stay open between reads.
class CgroupProbe {
 public:
  CgroupProbe(const CgroupPlace& place, const CgroupLimits& limits);
  // CPU time, throttled time, memory, and pressure where the kernel keeps it per group (v2).
  void sample(ProcDir& root, std::vector<Cell>& cells);

 private:
  struct File {
    std::string path;
    Fd fd;
  };
  File cpu_usage_, cpu_throttled_, memory_usage_, pressure_cpu_, pressure_io_, pressure_memory_;
  bool cpu_v2_;
};

}  // namespace headroom::host
