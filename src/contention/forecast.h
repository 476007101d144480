// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "contention/sharing.h"

// Answers about shared devices without stepping through time, or on a made-up clock: for packing and planning.
namespace headroom::contention {

// A queue of kernels of one kind.
struct Load {
  Nanos backlog = 0;
  std::uint32_t share_permille = 1000;
};

// Time until loads[which] has attained `work` (at most its backlog), if nothing arrives, at full speed.
[[nodiscard]] Nanos completion_processor_sharing(std::span<const Load> loads, std::size_t which, Nanos work);
// `running` has the device for another `slice_left` (> 0).
[[nodiscard]] Nanos completion_round_robin(std::span<const Load> loads, std::size_t which, Nanos work, Nanos quantum,
                                           std::size_t running, Nanos slice_left);
[[nodiscard]] Nanos completion_space_sharing(std::span<const Load> loads, std::size_t which, Nanos work);

// The speed of each of k always-busy kernels, relative to running alone.
[[nodiscard]] double relative_speed(std::span<const Load> loads, Schedule schedule);

// A job that repeats: host work, then device work, then waits for the device. `in_flight` steps may be queued before
// it waits (1: it waits after each).
struct Job {
  Nanos device = 0;
  Nanos host = 0;
  std::uint32_t share_permille = 1000;
  int in_flight = 1;
};
struct JobRate {
  double steps_per_second = 0;
  double device_share = 0;  // of the device's time, its own kernels
};
// How fast the jobs (at most kMaxStreams) run together, simulated over `span`; the first tenth is left out.
// Host work runs on a core of its own: contention for the CPU is not in here.
[[nodiscard]] std::vector<JobRate> run_together(std::span<const Job> jobs, const Policy& policy, Nanos span);

}  // namespace headroom::contention
