// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/side.h"
#include "model/comparison.h"

// May two runs be compared, and if so, by how much do they differ? Pure: the same answer for the same values.
namespace headroom::compare {

enum class By {
  kAuto,   // steps where each side is one run that counts them, else tasks
  kTasks,  // the time of whole runs: of the same tasks, or of repeats
  kSteps,  // the time of a step (or sample), from the first counted to the last
  kWhole,  // the time of a whole run, start-up included; where one of each ran, its steps say how sure that is
};

struct CompareRequest {
  By by = By::kAuto;
  // Parameters that were meant to differ. Absent: those that the commands themselves say differently.
  std::optional<std::vector<std::string>> changed;
  // What only A had and B was meant to be without: said beside the ratio, where it would refuse it. Tenants and lowered
  // clocks; a comparison of any two runs leaves it empty.
  std::vector<CompareReason> mended = {};
  bool other_steps = false;  // the change gives a step other work: steps alone do not count it
  std::uint64_t seed = 1;    // of the bootstrap
  std::string here = {};     // the folder in which the command of a valid pair will be given
};

// The ratio of time at equal work with a 95 % interval (interval.h), unless a reason refuses it: then there is no
// number, but the reasons with figures and the command that makes a valid pair. Of one run each that may be compared by
// its steps and as a whole, the other measure stands beside it: start-up and what else is no step makes them differ.
[[nodiscard]] Comparison compare(const Side& a, const Side& b, const CompareRequest& request = {});

}  // namespace headroom::compare
