// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>

// How computing trials share one GPU. A trial's kernels run for `kernel_share` of its steps when it is alone; where k
// trials' steps fall together by chance, some kernel runs for 1 - (1 - kernel_share)^k of the time.
namespace headroom::tune {

[[nodiscard]] inline double gpu_busy(std::int64_t computing, double kernel_share) {
  return 1 - std::pow(1 - kernel_share, static_cast<double>(computing));
}

// By how much a step takes longer beside computing - 1 others: kernels of different processes run one after the other
// (time slicing), so that all trials together get no more kernel time than the GPU is busy. 0: they never meet.
[[nodiscard]] inline double gpu_slow_down(std::int64_t computing, double kernel_share) {
  if (computing <= 1 || kernel_share <= 0) return 1;
  return static_cast<double>(computing) * kernel_share / gpu_busy(computing, kernel_share);
}

}  // namespace headroom::tune
