// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compare/matching.h"
#include "model/comparison.h"

// What the programs were told and what they settled on, side by side.
namespace headroom::compare {

// Those that differ. `changed`: those that were meant to; absent: those that were asked differently.
[[nodiscard]] std::vector<ComparedParameter> compare_parameters(const Matching& matching,
                                                                const std::optional<std::vector<std::string>>& changed);

// "--num-workers 4" and "--num_workers=4" of a command as parameters "num_workers"; a flag without a value is "yes".
// What stands alone is "argument 1" and so on: the program's own name is none.
[[nodiscard]] Parameters parameters_of(const std::vector<std::string>& argv);

[[nodiscard]] std::string some_of(const std::set<std::string>& words);  // "a, b, c and 4 more"

// What differs is looked for in these: the pairs, and of repeats that are no pairs any of A against any of B.
[[nodiscard]] std::vector<SamplePair> pairs_that_tell(const Matching& matching);

// The last word of a name, as programs and people write it: "batch_size" of "--Batch-Size", "$BATCH_SIZE" and
// "train.batch_size".
[[nodiscard]] std::string plain_name(std::string_view name);

// Whether that is how many samples a step holds, or a part of it.
[[nodiscard]] bool is_batch_size(std::string_view plain_name);

// Samples in a step, where a parameter says so ("batch_size").
[[nodiscard]] std::optional<double> batch_size_of(const Sample& sample);

}  // namespace headroom::compare
