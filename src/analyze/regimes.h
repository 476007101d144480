// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

#include "analyze/ledger.h"
#include "analyze/stats.h"
#include "model/finding.h"
#include "model/ledger.h"

// Stretches of a device's time that its mean hides.
namespace headroom {

// Kernels that were resident and did nothing: a collective whose other side never came, say.
struct Stall {
  Window time;
  Metric by = Metric::kPower;   // that tells it; else Metric::kSmActive, else the memory's traffic
  double level = 0, usual = 0;  // of it, in that time and in its other readings with kernels
  bool memory_read = true;      // that it was untouched, beside what tells it
};

// All stretches, in order, whose readings all show a full GPU that draws at most `stall_power` of what its other busy
// readings draw and uses its memory for at most `stall_memory` of the time. Where the power was not read, the activity
// of the SMs tells in its place; of the memory's use, its bandwidth. Where only one of the two was read, it tells
// alone: that makes no lasting_stall(). None where there is no other regime.
[[nodiscard]] std::vector<Stall> find_stalls(const Track& track, const Window& window, const Thresholds& limits);
// The longest of them whose memory was read; nothing where it is shorter than `stall_shortest`, or has no useful time.
[[nodiscard]] std::optional<Stall> lasting_stall(const std::vector<Stall>& stalls, const std::vector<Slice>& slices,
                                                 const Thresholds& limits);

// Kernels that were resident and did nothing while another GPU had none, again and again: ranks that are done with
// their part of a step spin until the last one comes.
struct WaitsInKernels {
  Claims claims;           // of the GPUs that waited
  std::int64_t times = 0;  // on the GPU that waited most often
  Metric by = Metric::kPower;
  double level = 0, usual = 0;  // as of a Stall
  bool memory_read = true;
  std::optional<std::size_t>
      worker;               // the one GPU that worked meanwhile; else those that were waited for had no kernel
  bool everywhere = false;  // on all GPUs at the same times: for whom, if they wait, no GPU here tells
};
// `stalls` and `idle_peer` by position in `devices`. A GPU waits three times at least, and works after each wait: who
// never works again hangs. Of its kernels beside an idle GPU most wait: else it hardly does so for that one. Where none
// waits so, all GPUs but one may do so for that one: two at least, at the same times. Else all of them, for less than a
// lasting_stall() at a time, where their memory was read.
[[nodiscard]] WaitsInKernels waits_in_kernels(const std::vector<std::vector<Stall>>& stalls,
                                              const std::vector<DeviceTime>& devices,
                                              const std::vector<bool>& idle_peer, const Thresholds& limits);

// Time without a kernel from some instant to the end.
struct QuietEnd {
  Nanos from = 0;
  std::optional<double> memory_before, memory_after;  // bytes: while kernels ran, and in the last reading
  bool few_kernels = false;                           // not none: a desktop's, say
};

// Where the device ran kernels and then none to the end, for `held_long` at least and for `quiet_end` times its longest
// pause before. Where few ran for as long, and the memory was given back: that, too.
[[nodiscard]] std::optional<QuietEnd> find_quiet_end(const Track& track, const std::vector<Slice>& slices,
                                                     const Window& window, const Thresholds& limits);

// Bytes: with less in use no program has a context of CUDA there, whose own are 60 MiB and more; the driver takes some.
inline constexpr double kLeastContext = 32.0 * (1 << 20);

// Until when, from its first reading on, no program had a context there. Nothing where that is less than `held_long`,
// or lasts to the end, or its memory was not read.
[[nodiscard]] std::optional<Nanos> free_at_begin(const Track& track, const Window& window, const Thresholds& limits);

// Time between two uses of a device.
struct JobGap {
  Window time;                           // from the last reading of the one to the first of the other
  double before = 0, in = 0, after = 0;  // memory in use: bytes, of these readings and on average in between
};
// Stretches of `held_long` at least in which nearly all memory had been given back, until as much was in use again, and
// hardly a kernel ran.
[[nodiscard]] std::vector<JobGap> find_job_gaps(const Track& track, const Window& window, const Thresholds& limits);

}  // namespace headroom
