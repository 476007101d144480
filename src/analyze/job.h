// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyze/attempts.h"
#include "model/entities.h"
#include "model/recording.h"
#include "model/thresholds.h"

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
  Nanos held_from = 0;  // first seen holding the context, less one listing interval
  Nanos end = 0;        // process end, else one listing after it was last seen
  Nanos first_seen = 0, last_seen = 0;
  std::int32_t attempt = -1;  // of a batch: index into BatchView::attempts
};

// What a process did between two of its rows. Ratios are shares of the interval, per core (4 busy threads: 4.0).
struct Activity {
  Nanos begin = 0, end = 0;
  double cpu = 0;                  // all threads
  std::optional<double> main_cpu;  // the main thread
  double run_delay = 0;            // main thread runnable without a core
  std::optional<double> io_delay;  // blocked on block I/O; absent where the kernel does not count it
  double read_bytes_per_second = 0, write_bytes_per_second = 0;
  char state = '?';
  WaitChannel wait = WaitChannel::kUnknown;
};

// Who did what: the processes and contexts of a recording, matched by pid and start time.
struct JobView {
  bool has_contexts = false;         // the recording knows which processes hold which device
  bool has_job = false;              // it is about one job (`run`, `record --pid`, `batch`), not about a whole box
  bool has_host = false;             // it has rows of processes (tier P)
  std::vector<ContextUse> uses;      // compute and MPS contexts only, in order of begin
  std::vector<ContextUse> graphics;  // desktop processes: they own nothing
  Nanos listing_interval = kSecond;  // median time between process listings
  BatchView batch;
  std::vector<std::vector<SourceId>> children;  // by SourceId of a process
  std::vector<bool> holds;                      // by SourceId of a process: it holds a context of `uses`
  std::vector<std::vector<Activity>> did;       // by SourceId of a process; empty for fewer than two rows
};

[[nodiscard]] JobView job_view(const Recording& recording, const Thresholds& limits = {});

// The activities of a kProcess source, one per pair of consecutive rows; empty for fewer than two rows.
[[nodiscard]] std::vector<Activity> activities(const Recording& recording, SourceId process);

// The sources of processes below `process` (children, grandchildren, …), itself excluded.
[[nodiscard]] std::vector<SourceId> descendants(const JobView& job, SourceId process);

}  // namespace headroom
