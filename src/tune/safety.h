// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>

#include "tune/changes.h"

namespace headroom::tune {

inline constexpr std::int64_t kReserveBytes = 2'000'000'000;  // of the GPU: contexts, fragmentation, a larger batch

struct Circumstances {
  bool pruner_changed = false;
  std::int64_t base_workers = 1;
  bool mid_study = false;  // the study runs, or the change is one in its middle
};

// Sets the change's `safety`, `why` and `fits`: the worst of memory, cores, the pruner and the workers.
void judge(Change& change, const Circumstances& circumstances, const StudyOptions& options);

// Measured, else told.
[[nodiscard]] std::optional<std::int64_t> memory_per_trial(const StudyOptions& options);
// On the GPU, all trials that are open at once; absent: not known.
[[nodiscard]] std::optional<std::int64_t> memory_of(const Change& change, const StudyOptions& options);
// That may be busy at once: each trial's own process and its loader workers. Absent: the loader workers are not known.
[[nodiscard]] std::optional<double> cores_of(const Change& change, const StudyOptions& options);

}  // namespace headroom::tune
