// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/probe.h"

// Evaluates the runs of a probe, value by value. Pure.
namespace headroom::probe {

// The scatter of runs once their value and their round are accounted for.
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

// The time of a step by its batch size, and the most that a larger batch may gain. Pure.

struct SizeTime {
  double batch = 0;         // samples, > 0
  double step_seconds = 0;  // median of its runs, > 0
};

// t(b) = a + c*b by least squares. Nothing with less than two different sizes.
[[nodiscard]] std::optional<BatchLine> fit_line(std::span<const SizeTime> times);

// From the size `from`, which is among `times`, to `to`. By the line a step takes t(to), and a sample
// (to/from)*t(from)/t(to) times less; that is capped by 1/busy, for the GPU cannot do more than be busy all the time,
// and by to/from, as if a step cost the same whatever is in it; and never below 1, since nobody has to take the larger
// one. Each bound alone has over-promised on measured pairs; the least of them seldom (docs/ab.md). The interval of
// t(to): the noise of the medians carried through the fit, and the misfit where there are more than two sizes.
[[nodiscard]] std::optional<LargerBatch> larger_batch(std::span<const SizeTime> times, double from, double to,
                                                      std::optional<double> busy_ratio,
                                                      const std::optional<Noise>& noise);

}  // namespace headroom::probe
