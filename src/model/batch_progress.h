// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/batch.h"

// What people may want to know of a batch while it runs.
namespace headroom {

// A GPU that a batch may use.
struct BatchGpu {
  std::string uuid, model;
  int index = 0;  // as nvidia-smi numbers
  std::int64_t memory_bytes = 0;
};

struct BatchProgress {
  struct Tasks {
    std::int64_t total = 0, waiting = 0, ready = 0, running = 0, backing_off = 0, succeeded = 0, failed = 0,
                 skipped = 0, cancelled = 0;
    [[nodiscard]] std::int64_t ended() const { return succeeded + failed + skipped + cancelled; }
  };
  struct Gpu {
    BatchGpu gpu;
    std::size_t running = 0;
    std::optional<std::int64_t> used_bytes;
    std::optional<double> util_ratio, power_watts, temperature_celsius;
    double tasks_per_second = 0;
    std::optional<double> alone_tasks_per_second;  // what one task per GPU would do, as far as tasks ran alone
    bool usable = true;
  };
  struct Running {
    std::string task;
    Nanos elapsed = 0;
    AttemptId attempt = 0;
    std::string log_path;
  };
  Tasks tasks;
  Nanos elapsed = 0;
  std::optional<Nanos> left, left_low, left_high;  // expected
  std::vector<Gpu> gpus;
  std::vector<Running> running;  // longest first
  std::string waiting_for;       // why the first task in the queue does not run; may be ""
  bool draining = false;
};

}  // namespace headroom
