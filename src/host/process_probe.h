// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "host/proc_dir.h"
#include "host/proc_parse.h"
#include "host/processes.h"
#include "model/cpu_list.h"
#include "model/recording.h"

namespace headroom::host {

inline constexpr std::size_t kFilesPerProbe = 4;

// The least time between two full looks at a process that runs; those that use under 2 % of a core are light.
struct Pace {
  Nanos busy = 0;
  Nanos light = 0;
  Nanos dear = kSecond;   // between two looks at the dearer files, io and wchan
  Nanos files = kSecond;  // between two looks for open files of GPUs
};

// The numbers of one process over time. Cheap by four rules:
//   1. A process whose CPU clock stands still since the last look (one system call) has changed none of its counters:
//      nothing is read, the last values hold. A full look follows at least every ten seconds all the same.
//   2. Dearer files are read at most once a second (io, wchan; every 200 ms of the process on the GPU), every 5 s
//      (status) or 10 s (states of the threads), and only if the process ran since; in between their cells are left
//      out, never repeated.
//   3. A main thread that was not scheduled since still sleeps in the same place: wchan is not read again.
//   4. What is read often stays open where the caller has descriptors to spare.
//   5. In a large tree a process that ran is looked at every few seconds only, see Pace.
class ProcessProbe {
 public:
  enum class Outcome { kAlive, kZombie, kGone };

  // Without `start_ticks`: of whatever process has the number.
  ProcessProbe(std::int64_t pid, std::optional<std::int64_t> start_ticks, bool keep_open);

  // One look. Then cells() is the row to record; empty if there is none this time.
  [[nodiscard]] Outcome sample(ProcDir& proc, const KernelFacts& kernel, const Pace& pace, Nanos at);
  [[nodiscard]] std::span<const Cell> cells() const { return {cells_.data(), count_}; }

  [[nodiscard]] std::int64_t pid() const { return pid_; }
  [[nodiscard]] std::string_view comm() const { return {comm_.data(), comm_size_}; }
  [[nodiscard]] bool keeps_open() const { return keep_open_; }
  [[nodiscard]] bool io_denied() const { return io_absent_ == Absent::kNoPermission; }
  // CPU time of all its threads before the last look or try; nothing where it is not told.
  [[nodiscard]] std::optional<Nanos> cpu_clock() const { return clock_; }
  // Whether the last look read what the main thread sleeps in: it may be something else than before.
  [[nodiscard]] bool slept_anew() const { return slept_anew_; }
  // Blocked in the kernel, as on a disk or a server that is gone, when last looked at.
  [[nodiscard]] bool blocked() const { return state_ == 'D'; }
  // Of a zombie, in waitpid(2)'s form, where the kernel lets us know it.
  [[nodiscard]] std::optional<int> wait_status() const { return wait_status_; }

 private:
  void put(Metric metric, std::int64_t value) { cells_[count_++] = Cell{metric, value, std::nullopt}; }
  void put_absent(Metric metric, Absent why) { cells_[count_++] = Cell{metric, 0, why}; }
  [[nodiscard]] bool can_wait(const KernelFacts& kernel, const Pace& pace, Nanos at);
  [[nodiscard]] Reading<std::string_view> read(ProcDir& proc, Fd& kept, const char* name);
  [[nodiscard]] const char* path(std::string_view name);
  // Whether a dearer file has to wait; if so, a process that falls asleep now is looked at again when it is due.
  [[nodiscard]] bool not_due(Nanos at, Nanos due);
  [[nodiscard]] std::optional<Outcome> read_stat(ProcDir& proc, const KernelFacts& kernel);
  void read_schedstat(ProcDir& proc);
  void read_wait_channel(ProcDir& proc, Nanos at, Nanos period);
  [[nodiscard]] WaitChannel what_it_reads(ProcDir& proc);
  void read_io(ProcDir& proc, Nanos at, Nanos period);
  void read_switches(ProcDir& proc, Nanos at);
  void read_thread_states(ProcDir& proc, Nanos at);

  std::int64_t pid_;
  std::optional<std::int64_t> start_ticks_;
  bool keep_open_;
  Fd stat_fd_, schedstat_fd_, wchan_fd_, io_fd_;
  std::array<char, 40> path_{};  // "<pid>/" and room for the file's name
  std::size_t path_prefix_ = 0;

  std::array<Cell, 24> cells_{};
  std::size_t count_ = 0;
  std::array<char, 64> comm_{};
  std::size_t comm_size_ = 0;
  char state_ = '?';
  std::int64_t threads_ = 0;
  bool may_know_ = false;  // the kernel shows us this process's private fields
  std::optional<int> wait_status_;
  std::optional<Nanos> clock_;
  std::optional<Nanos> looked_clock_;  // the CPU clock just before the last full look
  std::optional<Nanos> tick_clock_;    // at the last tick
  Nanos looked_at_ = 0, ran_at_ = 0;
  std::optional<std::int64_t> timeslices_;       // of the main thread, at the last full look
  std::optional<std::int64_t> wait_timeslices_;  // when the wait channel was read
  WaitChannel wait_channel_ = WaitChannel::kUnknown;
  bool slept_anew_ = false;
  int unknown_waits_ = 0;  // readings of it in a row that told nothing
  std::optional<Absent> io_absent_;
  Nanos owed_ = 0;  // the earliest time at which a file that was skipped is due
  Nanos next_full_ = 0, next_wait_ = 0, next_io_ = 0, next_switches_ = 0, next_threads_ = 0;
};

// CPU time of all threads of a process of this machine: one system call, no permission needed. Nothing if it is gone.
[[nodiscard]] std::optional<Nanos> process_cpu_clock(std::int64_t pid);

// The cores on which any thread of a process of this machine may run: one system call for each, no permission needed.
// Nothing if it is gone, or has too many.
[[nodiscard]] std::optional<CpuSet> allowed_cpus(ProcDir& proc, std::int64_t pid);

// Whether the process has a file of a GPU's driver open: /dev/nvidia*, those of Tegra boards (/dev/nvhost*, /dev/nvmap,
// /dev/nvgpu), WSL2's /dev/dxg, or `virtual_gpus`, the one that users of virtual GPUs hold ("" for none). Without one,
// no kernel of it can run. Nothing: that could not be seen (another user's process, or too many files).
[[nodiscard]] std::optional<bool> has_gpu_file(ProcDir& proc, std::int64_t pid, std::string_view virtual_gpus);

// Until when nothing of one process ran on a GPU, from looks at its files. The first file of a driver that is seen
// ends it: later looks would tell nothing. A look costs tens of microseconds: the older a process is, the rarer they
// are. One that did not run since, by its CPU clock, has opened nothing.
class GpuFiles {
 public:
  explicit GpuFiles(Nanos start) : start_(start) {}
  [[nodiscard]] Nanos start() const { return start_; }  // of the process

  // Whether it takes a look to know more. `clock`: CPU time of the process, where that can be told.
  [[nodiscard]] bool due(std::optional<Nanos> clock, Nanos at);
  // `least`: the time between two looks at a young process. From the first file on, and where none can be seen, it is
  // not due any more. True: there it is.
  [[nodiscard]] bool look(ProcDir& proc, std::int64_t pid, std::string_view virtual_gpus, Nanos least, Nanos at);
  // At every look until then it had none open; nothing where there was no such look.
  [[nodiscard]] std::optional<Nanos> none_until() const { return none_until_; }

 private:
  Nanos start_, next_ = 0;
  bool over_ = false;
  std::optional<Nanos> none_until_, clock_;  // the latter: at the last look, before the files
};

}  // namespace headroom::host
