// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace headroom {

// SplitMix64 with distributions of its own: those of the standard library differ from one library to the next, and a
// replay or a bootstrap must not. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
// 2014.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() {  // Box-Muller, one of the pair
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }  // count > 0

 private:
  std::uint64_t state_;
};

}  // namespace headroom
