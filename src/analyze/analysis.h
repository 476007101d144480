// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analyze/code_seen.h"
#include "analyze/common_lows.h"
#include "analyze/gpu_analysis.h"
#include "analyze/host_summary.h"
#include "analyze/job.h"
#include "analyze/ledger.h"
#include "analyze/peer_waits.h"
#include "analyze/rank_paces.h"
#include "model/explanation.h"
#include "model/finding.h"
#include "model/thresholds.h"
#include "stacks/families.h"

// From a recording and a window of its time to one value, which is all that the diagnosis looks at. Everything in it is
// of that window: two lines of a report cannot be of different times.
namespace headroom {

// A GPU of the machine, whether or not it is in the budget.
struct MachineGpu {
  SourceId source = kNoSource;
  Device device;
};

// A process that lived in the window.
struct RecordedProcess {
  SourceId source = kNoSource;
  Process facts;
};

// A process outside the job with a compute context on a device of the budget.
struct Tenant {
  ContextUse use;
  Process process;              // no more than its pid where the host side did not know it
  std::size_t device = 0;       // position in Analysis::devices
  std::int64_t peak_bytes = 0;  // of device memory
};

// What a recording cannot know and a person may.
struct Told {
  std::optional<Nanos> job_duration;         // how long the job itself ran, for logs of a whole box
  std::vector<stacks::FamilyRule> families;  // before the rules that are built in
  SourceText source_text;
};

struct LostDevice {
  Nanos at = 0;
  SourceId source = kNoSource;  // kNoSource: a log did not say which
  std::string word;             // the driver's
};

// Lines of the job's output that say that a GPU's memory did not suffice.
struct SaidOutOfMemory {
  Nanos first = 0, last = 0;
  std::size_t lines = 0;
  std::string words;  // of the last
};

struct Analysis {
  RecordingMeta meta;
  Window window;
  Thresholds limits;
  Told told;
  JobView job;                      // uses and attempts: those of the window
  std::vector<DeviceTime> devices;  // the budget's, in order of index; their slices end with the window
  Ledger ledger;
  std::vector<GpuAnalysis> gpus;    // by position in `devices`
  std::vector<Phase> phases;        // those found in the utilisation, then those with a name
  std::vector<bool> pauses;         // by position in `phases`: any but the busiest of its device
  WaitsInKernels waits_in_kernels;  // none in a batch
  std::optional<SaidOutOfMemory> out_of_memory;
  std::optional<int> returned;  // by the job, with which it ended; nothing where a signal ended it, or nobody says
  std::string exception;        // that its output ended with, where it was read
  std::string no_nvtx;          // why NVTX ranges were not recorded though wanted
  std::vector<RankPace> ranks;  // the slowest first; empty: fewer than three count steps
  std::optional<CommonLows> common_lows;  // of the devices that worked
  std::vector<MachineGpu> machine;        // in order of index
  std::vector<RecordedProcess> processes;
  // Of a process the last row or Python stack, where there is one: when it was found gone it may have been so since
  // then.
  std::map<SourceId, Nanos> last_seen;
  std::vector<Tenant> tenants;
  std::optional<Work> work;
  Said said;
  std::vector<PeerWait> peer_waits;
  CodeSeen code;
  HostSummary host;
  Nanos late_from = 0;  // the last part of the window, in which something should still move
  std::vector<LostDevice> lost;
  std::vector<Loss> losses;
  bool goes_on = false;  // somebody still writes the recording: the window ends with its last reading
  Claims doubtful;       // time of the devices about which readings were lost

  // That ended the job by its exit code, 128 and that, or by what it returned where a shell says so of what it ran.
  [[nodiscard]] std::optional<int> signal() const;
  [[nodiscard]] double share(Nanos ns) const;  // of the budget
  [[nodiscard]] bool material(Nanos ns) const { return share(ns) >= limits[Threshold::kMaterial]; }
  [[nodiscard]] const MetricStats* stats_of(std::size_t device, Metric metric) const;
  [[nodiscard]] std::string device_name(std::size_t device) const;  // "GPU 0"
  [[nodiscard]] std::string when(Nanos at) const;                   // clock time, or time since the recording's start
  // Whether an attempt of a batch had the device then whose work was thrown away, and nobody beside it whose work was
  // not: the device would have been idle without it, too.
  [[nodiscard]] bool held_for_nothing(const Slice& slice) const;
  [[nodiscard]] const TaskAttempt* attempt_at(std::int32_t task, Nanos at) const;  // nullptr: none
  // Whether a slice or an entry of this phase lies where its device's work pauses.
  [[nodiscard]] bool is_pause(std::int32_t phase) const {
    return phase >= 0 && pauses[static_cast<std::size_t>(phase)];
  }

  std::vector<std::vector<std::size_t>> attempts_of_task;  // by task: positions in job.batch.attempts
  std::map<SourceId, std::vector<Window>> wanted;          // by GPU: when it had attempts whose work counts; disjoint
};

// `window` is clipped to the recording's span. Pure: the same answer for the same recording.
[[nodiscard]] Analysis analyze(const Recording& recording, Window window, const Thresholds& limits = {},
                               const Told& told = {});
[[nodiscard]] Analysis analyze(const Recording& recording);  // the whole of it

}  // namespace headroom
