// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "host/cgroup.h"
#include "host/proc_dir.h"
#include "host/processes.h"
#include "model/entities.h"
#include "model/reader.h"

namespace headroom::host {

struct HostOptions {
  std::string root;                     // "" is this machine; else a fixture with root/proc and root/sys
  std::optional<std::int64_t> job_pid;  // whose cores and cgroup count; without one, ours
};

// The machine and the limits of the job on it, at most once a second; memory every 5 s, swapping every 10 s, limits
// every 30 s. /proc/stat of a machine with many cores and interrupts is dear: it is read the more rarely the longer it
// took, so that it stays below a ten-thousandth of a core.
//
// Sources: kHost, key "host", attrs as to_attrs(Host); kCgroup, key the group's path, attrs cpu_quota_cores,
// cpuset_cores, memory_max_bytes, version (1 or 2). Where limits are set at several levels the tightest is given;
// throttled time is that of the level whose quota binds.
class HostReader final : public Reader {
 public:
  explicit HostReader(HostOptions options);

  void read(Nanos at, RecordingSink& sink) override;
  void watch(std::int64_t job_pid) { job_pid_ = job_pid; }  // from any thread

  // The facts as attrs, at once: for `doctor` and for the recording's first source.
  [[nodiscard]] Host describe();

 private:
  void announce(RecordingSink& sink);
  void announce_cgroup(RecordingSink& sink);
  void read_cpu(Nanos at);
  void read_load();
  void read_memory(Nanos at);
  void read_swap(Nanos at);
  void read_pressure();
  void put(Metric metric, std::int64_t value) { cells_.push_back(Cell{metric, value, std::nullopt}); }
  void put_absent(Metric metric, const Reading<std::string_view>& text);
  [[nodiscard]] std::string job_folder() const;

  std::string root_;
  std::atomic<std::int64_t> job_pid_;  // 0: ours
  ProcDir files_;                      // the root of the file system
  KernelFacts kernel_;
  std::vector<Cell> cells_;
  SourceId host_ = kNoSource;
  Host announced_;
  CgroupPlace place_;
  CgroupLimits limits_;
  std::optional<CgroupProbe> cgroup_;
  SourceId cgroup_source_ = kNoSource;
  Fd stat_fd_, load_fd_, pressure_fds_[3];
  Nanos next_ = 0, next_facts_ = 0, next_cpu_ = 0, next_memory_ = 0, next_swap_ = 0;
};

}  // namespace headroom::host
