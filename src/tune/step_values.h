// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace headroom::tune {

// What the completed trials reported, by step.
class StepValues {
 public:
  void add(std::int64_t step, double value);

  // Percentile (0..100) of the values at a step, interpolated linearly, as NumPy has it; NaN where fewer than `least`
  // trials reported there, or nothing but NaN. Infinite neighbours give NaN, too.
  [[nodiscard]] double percentile(std::int64_t step, double percentile, std::int64_t least) const;

 private:
  struct Values {
    std::vector<double> sorted;  // without NaN
    std::int64_t reported = 0;   // with them
  };
  std::unordered_map<std::int64_t, Values> steps_;
};

}  // namespace headroom::tune
