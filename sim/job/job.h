// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"

// A virtual training program: kernels, copies and memory on a virtual GPU; everything else (CPU, processes, pipes,
// files) is real.
namespace headroom::sim {

struct JobOptions {
  std::int64_t epochs = 1, steps = 100;  // steps per epoch
  int device = 0;                        // CUDA ordinal
  bool no_gpu = false;                   // never makes a context: steps cost host time only
  // A step: input, host work, copy, kernel. Up to `in_flight` steps are queued before it waits for the device.
  double step_gpu_ms = 10, sm = 0.8, host_ms = 0, host_sleep_ms = 0;
  std::int64_t in_flight = 2;
  double copy_mib = 0;
  bool pinned = false;
  std::int64_t batch = 0;  // adds gpu_ms_per_sample and mib_per_sample, times batch
  double gpu_ms_per_sample = 0, mib_per_sample = 0;
  double memory_mib = 512, memory_growth_mib = 0;  // growth: per epoch
  // Once, or per epoch.
  double startup_s = 0, startup_sleep_s = 0;
  double graph_s = 0;  // host code before the epoch's first step
  double validation_s = 0, validation_gpu = 0.3;
  double checkpoint_mib = 0;  // written, synced, and removed again
  double hold_s = 0;          // keeps its context and does nothing, at the end
  // Input: child processes that burn `loader_ms` of CPU per batch; without workers the trainer does it itself.
  std::int64_t loader_workers = 0;
  double loader_ms = 0, loader_sleep_ms = 0, loader_startup_ms = 0;
  bool loader_restart = false;  // new workers every epoch
  bool no_burn = false;         // host phases sleep instead of using CPU
  // Trouble.
  std::int64_t fail_at_step = 0, oom_at_step = 0;  // counted over all epochs, from 1; 0: never
  int exit_code = 1;                               // of fail_at_step
  std::string set_visible_late;                    // CUDA_VISIBLE_DEVICES, set after the context exists
  double jitter = 0;                               // relative standard deviation of step durations
  std::uint64_t seed = 1;
  std::string report;          // JSON of the job's own truth: a file, or "-" for stdout
  bool force = false;          // the file may be anything
  std::string checkpoint_dir;  // "": TMPDIR or /tmp
  bool quiet = false;          // no line per epoch
};

// Runs it; returns its exit code. Errors of the virtual GPU are printed as a training program would.
[[nodiscard]] Result<int> run_job(const JobOptions& options);

}  // namespace headroom::sim
