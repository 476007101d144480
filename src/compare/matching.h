// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/interval.h"
#include "compare/side.h"

// Which runs of A answer which runs of B.
namespace headroom::compare {

using SamplePair = std::pair<const Sample*, const Sample*>;  // of A, of B

struct Matching {
  std::size_t a_tasks = 0, b_tasks = 0;      // that either side ran
  std::size_t common = 0;                    // that both ran
  std::vector<const Sample*> a, b;           // runs of the common tasks, in order of begin
  std::vector<SamplePair> pairs;             // of one task and one repeat; empty where repeats are no pairs
  bool interleaved = false;                  // A's and B's runs took turns
  std::size_t a_repeats = 0, b_repeats = 0;  // runs of the task that ran least often
};
[[nodiscard]] Matching match(const Side& a, const Side& b);

// How many ran at once, on average over the time in which any of `runs` did: everything of the side counts.
struct Concurrency {
  double mean = 0;
  std::size_t others = 0;  // that are not among `runs`, and ran meanwhile
  double span = 0;         // seconds from the first begin to the last end of `runs`, …
  double covered = 0;      // … and those of them in which any ran
};
[[nodiscard]] Concurrency concurrency_of(const std::vector<const Sample*>& runs, const Side& side);

// Whether runs of the two sides were under way at the same time for a part of it that counts.
[[nodiscard]] bool at_the_same_time(const std::vector<const Sample*>& a, const std::vector<const Sample*>& b);

// The unit in which both sides count their work.

enum class Unit {
  kNone,  // nothing that both count
  kSteps,
  kSamples,  // as the programs count them …
  kBatches,  // … or steps times the batch size, where that differs
  kUneven,   // steps that hold different numbers of samples, which nobody counts
};
inline constexpr double kSameWork = 0.01;  // relative
[[nodiscard]] Unit unit_of(const Matching& matching, const Side& a, const Side& b);

[[nodiscard]] std::optional<double> work_of(const Sample& sample, Unit unit);
// The stretches of one side in that unit; those without work are joined to the next.
[[nodiscard]] std::vector<Rate> rates_of(const Side& side, Unit unit);
[[nodiscard]] std::string name_of(Unit unit);  // of one: "step", "sample"

}  // namespace headroom::compare
