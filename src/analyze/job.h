// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyze/attempts.h"
#include "model/entities.h"
#include "model/recording.h"
#include "model/thresholds.h"
#include "model/wait_target.h"

namespace headroom {

// A process's use of one device, from the driver's process lists.
struct ContextUse {
  SourceId device = kNoSource;      // the kGpu source
  SourceId source = kNoSource;      // the kGpuProcess source
  std::optional<SourceId> process;  // the kProcess source, where the host side knew it
  std::int64_t pid = 0;
  ContextKind kind = ContextKind::kCompute;
  bool ours = false;    // of the recorded job; everything is, where there is no job
  Nanos begin = 0;      // process start, else one listing before it was first seen
  Nanos held_from = 0;  // before that it had no context: it was not listed, or had no file of a GPU open
  Nanos end = 0;        // process end, else one listing after it was last seen
  Nanos first_seen = 0, last_seen = 0;
  Nanos seen_until = 0;  // the last reading of any kind that saw it: it ended after that, and at `end` at the latest.
                         // `end` where that is known, and in a batch, which gives a GPU to an attempt until that ends
  bool from_before = false;   // it held the device when the recording began: its first kernel may have been before
  std::int32_t attempt = -1;  // of a batch: index into BatchView::attempts
};

// What a process did between two of its rows. Ratios are shares of the interval, per core (4 busy threads: 4.0).
struct Activity {
  Nanos begin = 0, end = 0;
  double cpu = 0;                  // all threads
  std::optional<double> main_cpu;  // the main thread
  double run_delay = 0;            // main thread runnable without a core
  std::optional<double> io_delay;  // blocked on block I/O; absent where the kernel does not count it
  double unseen_cpu = 0;           // of children that ended meanwhile and lived too shortly to have rows of their own
  // To and from storage; absent where the counters were not read. A reading speaks for the time since the one before.
  std::optional<double> read_bytes_per_second, write_bytes_per_second;
  // Read through files and pipes, page cache included; absent where that was not counted.
  std::optional<double> passed_bytes_per_second;
  // The same and the growth of its memory; absent where neither was read.
  std::optional<double> loaded_bytes_per_second;
  std::optional<double> major_faults_per_second;  // page faults that read a disk; absent where they were not counted
  std::int64_t threads = 0;                       // when looked at, at its end; 0 where nobody counted
  char state = '?';                               // likewise
  WaitChannel wait = WaitChannel::kUnknown;       // likewise; kUnknown where nobody looked
  ListId waits_for = kNoList;                     // likewise; a key of JobView::waits, if that is known
  float sent = 0, received = 0;  // bytes over that, where it is a connection, since the last look at it
};

// What the whole machine, or the job's cgroup, did between two of its rows; absent is what it does not count.
struct MachineActivity {
  Nanos begin = 0, end = 0;
  std::optional<double> busy_cores;
  std::optional<double> io_pressure;      // share of the time in which some process waited for I/O
  std::optional<double> memory_pressure;  // ... for memory: a page that is read again, or one to be freed
  std::optional<double> swapped_in_pages_per_second;
};

// Who did what: the processes and contexts of a recording, matched by pid and start time.
struct JobView {
  bool has_contexts = false;         // the recording knows which processes hold which device
  bool owners_unknown = false;       // kernels ran, and no listed process can be found: whose they were is unknown
  bool no_kernel_yet = false;        // a job that goes on has run none so far on any device that it holds
  bool has_job = false;              // it is about one job (`run`, `record --pid`, `batch`), not about a whole box
  bool has_host = false;             // it has rows of processes (tier P)
  std::vector<ContextUse> uses;      // compute and MPS contexts only, in order of begin
  std::vector<ContextUse> graphics;  // desktop processes: they own nothing
  Nanos listing_interval = kSecond;  // median time between process listings
  BatchView batch;
  std::vector<std::vector<SourceId>> children;  // by SourceId of a process
  std::set<SourceId> trackers;                  // processes of Python's own, which do nothing for the job
  // Of processes that hold a context of `uses`: their numbers in a distributed job, where each has one of its own.
  std::map<SourceId, std::int64_t> ranks;
  std::vector<bool> holds;                          // by SourceId of a process: it holds a context of `uses`
  std::vector<bool> in_job;                         // likewise: it belongs to the job
  std::vector<Nanos> no_gpu_until;                  // likewise: nothing of it ran on a GPU before (begin: not known)
  std::vector<bool> opened_gpu;                     // likewise: it had a file of a GPU open after that
  std::vector<std::vector<Activity>> did;           // by SourceId of a process; empty for fewer than two rows
  std::map<ListId, std::vector<WaitTarget>> waits;  // what main threads slept for; the first that is ready ends it
  std::vector<MachineActivity> machine;
  std::vector<MachineActivity> group;  // of the cgroup, where it counts pressure of its own
  // The most that processes of the job could have to keep files in; absent where that is not recorded.
  std::optional<std::int64_t> memory_for_files;
  double usable_cores = 0;   // cpuset and quota applied; 0 where that is not recorded
  double machine_cores = 0;  // online; 0 where that is not recorded
};

[[nodiscard]] JobView job_view(const Recording& recording, const Thresholds& limits = {});

// The activities of a kProcess source, one per pair of consecutive rows; of a process that started within the recording
// also the one up to its first row, without what it read and wrote: that was mostly its program.
[[nodiscard]] std::vector<Activity> activities(const Recording& recording, SourceId process);

// When the driver's list of the processes on this device was read; empty where that is not recorded.
[[nodiscard]] std::vector<Nanos> list_readings(const Recording& recording, SourceId gpu);

// The sources of processes below `process` (children, grandchildren, …), itself and trackers excluded.
[[nodiscard]] std::vector<SourceId> descendants(const JobView& job, SourceId process);

}  // namespace headroom
