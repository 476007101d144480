// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/explanation.h"
#include "model/plan.h"
#include "model/probe.h"
#include "model/recording.h"

namespace headroom {

// What loads a job's data, as far as its stacks tell: PyTorch's DataLoader, a Pool of multiprocessing, neither of them.
enum class Loader : std::uint8_t { kUnknown, kDataLoader, kPool, kOther };
[[nodiscard]] Loader loader_of(const Recording& recording);

// What a recording cannot know and a person may, and what an explanation of it does not say.
struct PlanRequest {
  std::optional<Nanos> left;                       // work still to do, in time at today's pace
  std::optional<std::int64_t> trials, epochs;      // of a sweep, each of so many epochs
  std::optional<Nanos> epoch;                      // how long one takes; default: what the recording says
  std::optional<std::pair<double, double>> batch;  // size now, and the one considered
  // Seconds of a step at two batch sizes, as measured: t(b) = a + c*b.
  std::optional<std::pair<std::pair<double, double>, std::pair<double, double>>> step_times;
  std::optional<std::int64_t> workers;  // of the loader, considered
  std::optional<std::int64_t> tasks;    // per GPU, considered
  std::optional<ProbeReport> probe;     // what was measured of values of `batch` or `workers`
  std::vector<CauseHistory> history;    // at most one for a cause
  Loader loader = Loader::kUnknown;     // loader_of() the recording
};

// From an explanation to options: the catalogue's fixes (model/catalogue.h) for what its findings name, with gains
// simulated on the ledger's slices (plan/step_model.h). Pure.
//
// A gain is [low, high]. High is the finding's own bound, or the simulation's where that is less. Low is 1 where the
// cause is not certain or nothing shows that the change saves anything; where the recording shows it (plan/shown.h),
// half of what was seen, and where predictions for the cause were verified, what these showed. What a probe measured of
// the asked values is both ends, as far as the recording allows it.
[[nodiscard]] Plan plan(const Explanation& explanation, const PlanRequest& request = {});

}  // namespace headroom
