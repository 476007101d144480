// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/comparison.h"

// 95 % intervals of a ratio of times, by the bootstrap with a fixed seed.
//
// Everything is done with logarithms, so that A/B is the inverse of B/A (but for the draws). Deviations of the
// bootstrap's distribution are widened by t(n-1)/1.96 * sqrt(n/(n-1)): with few values its percentiles are too narrow,
// and with 5 they could never leave the values' own range. Source: Hesterberg, "What Teachers Should Know About the
// Bootstrap", The American Statistician 69(4), 2015 (expanded percentiles).
namespace headroom::compare {

// Two runs of one program differ by more than their steps tell: clocks, placement of memory, neighbours. Where only one
// run of each is there, so much (a standard deviation of the logarithm, per run) is taken for granted.
inline constexpr double kRunToRun = 0.01;
// Whole batches of tasks by more: which tasks come last, and beside which others, is not the same twice.
inline constexpr double kBatchToBatch = 0.05;

// Of pairs that ran side by side in time: the geometric mean of B/A over logarithms of the pairs' ratios. `runs` says
// how many runs of each side are behind them: with 1, kRunToRun is added.
enum class Runs { kOneEach, kRepeated };
[[nodiscard]] Ratio ratio_of_pairs(std::span<const double> log_ratios, Runs runs, std::uint64_t seed);
// Of repeats that are no pairs: logarithms of the times of either side.
[[nodiscard]] Ratio ratio_of_repeats(std::span<const double> log_a, std::span<const double> log_b, std::uint64_t seed);

// Of one run each, by its stretches: seconds per unit of work.
//
// Times of neighbouring steps hang together (caches, clocks, data), so whole blocks of stretches are drawn: circular
// blocks (Politis and Romano, 1992) at least twice as long as the correlation time, which is summed by Geyer's initial
// positive sequence (Statistical Science 7(4), 1992). The number of blocks is the n above.
struct Rate {
  double seconds = 0, work = 0;
};
struct StretchRatio {
  Ratio ratio;
  std::size_t a_blocks = 0, b_blocks = 0;  // that are as good as independent
};
// Of whole runs: what either took outside of its stretches, taken as it is.
struct Outside {
  double a_seconds = 0, b_seconds = 0;
};
[[nodiscard]] StretchRatio ratio_of_rates(std::span<const Rate> a, std::span<const Rate> b, std::uint64_t seed,
                                          const Outside& outside = {});

// Of the times of two batches, one of each: nothing but kBatchToBatch says how sure that is.
[[nodiscard]] Ratio ratio_of_batches(double a_seconds, double b_seconds);

}  // namespace headroom::compare
