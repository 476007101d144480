// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "model/probe.h"

// What the runs of a probe say of its values. Pure.
namespace headroom::probe {

// What a run differs by once its value and its round are accounted for.
struct Noise {
  double deviation = 0;  // standard deviation of the logarithm of a run's time
  int degrees = 0;       // of freedom
  int rounds = 0;        // that all values have
};

// Fills in everything of `report` that follows from its runs: values, the best, the runner-up. Values and runs are
// there.
//
// The times' logarithms are taken apart into value, round and rest (a randomised complete block design: what a round
// has in common cancels), over the rounds that every value with runs has. The rest is pooled over the values, with
// (values-1)(rounds-1) degrees of freedom. Intervals of times over the best's hold for all values together
// (Bonferroni), because the best was chosen by the same runs. Nothing where less than two rounds are complete.
void evaluate(ProbeReport& report);

[[nodiscard]] std::optional<Noise> noise_of(const ProbeReport& report);

}  // namespace headroom::probe
