// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compare/matching.h"
#include "model/comparison.h"

// What the programs were told and what they settled on, side by side.
namespace headroom::compare {

struct ParametersCompared {
  std::vector<ComparedParameter> differing;
  bool a_resolved = false, b_resolved = false;  // every run says what it settled on
};
// `changed`: those that were meant to differ; absent: those that were asked differently.
[[nodiscard]] ParametersCompared compare_parameters(const Matching& matching,
                                                    const std::optional<std::vector<std::string>>& changed);

// "--num-workers 4" and "--num_workers=4" of a command as parameters "num_workers"; a flag without a value is "yes".
// What stands alone is "argument 1" and so on: the program's own name is none.
[[nodiscard]] Parameters parameters_of(const std::vector<std::string>& argv);

// Samples in a step, where a parameter says so ("batch_size").
[[nodiscard]] std::optional<double> batch_size_of(const Sample& sample);

}  // namespace headroom::compare
