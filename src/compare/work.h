// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compare/interval.h"
#include "compare/matching.h"

// What both sides count their work in.
namespace headroom::compare {

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
