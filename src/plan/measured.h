// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "model/probe.h"
#include "plan/candidates.h"

// What a probe measured of two values of a parameter, instead of what a recording only bounds.
namespace headroom::planning {

// What a probe varied, by the parameter's name.
enum class Varied { kBatchSize, kWorkers, kOther };
[[nodiscard]] Varied varied(const ProbeReport& probe);

// How many times faster a unit of work is with `then` than with `now`, at least and at most; never below 1. Absent
// where either was not measured by every round.
[[nodiscard]] std::optional<MeasuredChange> measured_change(const ProbeReport& probe, double now, double then);

// Makes the change do as much as was measured of the loop, where the recording allows as much; what lies outside of it
// stays. `model`: of the recording.
void fit(const StepModel& model, const MeasuredChange& measured, Candidate& candidate);

}  // namespace headroom::planning
