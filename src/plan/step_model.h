// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/catalogue.h"
#include "model/explanation.h"

namespace headroom::planning {

// The recorded time as a sum of parts that changes act on, so that what one change leaves is what the next one finds.
//
// Of a job, an instant belongs to the findings that claim it on any device: its devices may all wait for one another.
// Of a batch tasks go to any GPU, so a part is a share of the devices' time. Claims of one cause are limited by the
// gain of its finding, which knows more than their length (diagnose/claims.h, removal()).
struct StepModel {
  struct Part {
    std::uint64_t claimed_by = 0;  // bit i: finding i
    double seconds = 0;
    bool outside = false;          // of the loop: start-up, validation, checkpoints, an end
    bool input = false;            // a wait for data
    std::uint64_t counted_by = 0;  // bit i: the gain of finding i counts it, too, beside its claims
  };
  struct Claimed {
    double seconds = 0;  // of parts with its bit
    double most = 0;     // seconds that its own gain lets go; 0 where it has none
    bool outside = false;
    bool input = false;
  };
  double seconds = 0;  // all of it
  double least = 0;    // below which it cannot go while the kernels stay as they are
  double kernels = 0;  // of the busiest device
  std::vector<Part> parts;
  std::vector<Claimed> findings;  // by index; of the first 64
  double outside = 0, input = 0;  // of `seconds`: of parts that are
  double rest = 0;  // of `seconds`: no process was at its GPU part, so that more GPUs change nothing there

  // The loader: CPU-seconds of its processes, how many there are (0: the training process loads its data itself), how
  // much of a core each uses, cores that can be theirs, and how many of these others used meanwhile.
  double loading = 0;
  double workers = 0;
  double cores_each = 1;
  std::optional<double> cores;
  double others = 0;
  double owner_cores = 0;  // of them more, if the processes on the GPU used no core
};
// All of the recorded time; of a log that goes on after its job had ended, until then.
[[nodiscard]] Nanos time_of_job(const Explanation& explanation);
[[nodiscard]] StepModel step_model(const Explanation& explanation);

// A change as the simulation sees it: it does `share` (0..1) of what it can.
struct Change {
  Mechanism mechanism = Mechanism::kRemoves;
  std::optional<std::size_t> finding;
  std::uint64_t also = 0;  // bit i: finding i may have the same cause
  double share = 1;
  double workers = 0;     // kLoads: then
  bool cheaper = false;   // the loader has less to do, too
  bool frees = false;     // cores that others used are the loader's
  bool only_own = false;  // what its finding claims, and no other time that its gain allows
  bool keeps = false;     // kernels where they are, so that StepModel::least holds, whatever the finding's gain
  double beside = 0;      // kRemoves: seconds of what it ends that its finding does not claim, kernels among them
  double most = 0;        // seconds: all that it ends, where that is not what its finding's own gain lets go
  double factor = 1;      // kEnlarges: of time per sample, at most; kPacks and kSpreads without a gain: of all time
};

// Cores that the workers of this change can have: those that the training process needs no more among them, where it
// loads its data itself until then.
[[nodiscard]] std::optional<double> cores_then(const StepModel& model, const Change& change);

// Seconds that the loader takes beside all else, if the changes are made; 0 where it is no limit.
[[nodiscard]] double loading_time(const StepModel& model, std::span<const Change> changes);

// Seconds of the same work with all changes in effect. Never more than without one of them.
[[nodiscard]] double simulate(const StepModel& model, std::span<const Change> changes);

}  // namespace headroom::planning
