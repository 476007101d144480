// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "analyze/beat.h"
#include "analyze/clocks.h"
#include "analyze/gpu_works.h"
#include "analyze/held_memory.h"
#include "analyze/ledger.h"
#include "analyze/link.h"
#include "analyze/power_levels.h"
#include "analyze/regimes.h"
#include "analyze/stats.h"
#include "model/thresholds.h"

// What the readings of one GPU tell, beside where its time went.
namespace headroom {

// Over PCIe to a device, between two readings.
struct CopiedBytes {
  Nanos begin = 0, end = 0;
  double bytes = 0;
};

// Device memory at the end of a job.
struct MemoryEnd {
  Nanos at = 0;                // of the last reading while the job ran
  double used = 0, total = 0;  // total 0: not known
  double grown = 0;            // from the reading before: bytes per second, if it grew
  // Bytes per second in the second half of the time, if it grew in each quarter of that; or, where that half has too
  // few readings, over the last five of all, if it grew alike between them beside kernels. Else 0.
  double pace = 0;

  // Until it is full at this pace; nothing where it grows at none.
  [[nodiscard]] std::optional<double> full_in_seconds() const {
    return pace > 0 && total > 0 ? std::optional(std::max(0.0, total - used) / pace) : std::nullopt;
  }
};

struct GpuAnalysis {
  DeviceStats stats;
  ClockLimits clocks;
  std::vector<Stall> stalls;   // in kernels that do nothing, in order of time
  std::optional<Stall> stall;  // the lasting one
  std::optional<QuietEnd> quiet_end;
  std::optional<Beat> beat;
  std::vector<JobGap> job_gaps;                    // between two uses
  std::optional<Nanos> free_until;                 // from the begin on
  std::optional<std::vector<CopiedBytes>> copied;  // absent if not counted
  std::optional<PcieLink> link;                    // absent if hardly looked at
  std::optional<MemoryEnd> memory_end;             // for a window up to the end only
  std::optional<DeviceProfile> profile;            // absent: no profiler looked
  std::optional<HeldMemory> held;
  std::optional<PowerLevels> power_levels;  // where its utilisation is not known
  bool idle_peer = false;                   // it did nothing while another worked
  bool of_others = false;   // and kernels of other programs ran there, and no process of the job ever was
  bool unreported = false;  // it has readings, and never one of its utilisation
  Nanos busy_error = 0;     // its busy time may be so much less or more
};

// Of the device that is `index` of the budget, in the time of the ledger: all but `idle_peer` and `of_others`, which
// other GPUs decide.
[[nodiscard]] GpuAnalysis gpu_analysis(const Recording& recording, std::size_t index, const DeviceTime& time,
                                       const Ledger& ledger, const Thresholds& limits);

// At the ends of the recording, whatever was read there belongs to the window.
[[nodiscard]] Window readings_of(const Recording& recording, Window window);

}  // namespace headroom
