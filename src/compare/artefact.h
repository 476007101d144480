// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "model/comparison.h"

// What two runs left behind: is it the same?
namespace headroom::compare {

// Text is compared number by number: equal are those that differ by at most `tolerance` of the larger one (of 1, where
// both are smaller). Dates, times of day, and numbers that a word about time stands before ("train_seconds": 3.1) are
// left apart. Everything else must be the same, blanks and line ends included. What holds a NUL is compared by bytes.
[[nodiscard]] ComparedArtefact compare_artefact(std::string name, std::string_view a, std::string_view b,
                                                double tolerance);

}  // namespace headroom::compare
