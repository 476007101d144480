// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "model/comparison.h"

namespace headroom::cli {

// Two files, or the files of two folders by their path below it (compare/artefact.h); those that only one folder has
// are not the same.
[[nodiscard]] Result<std::vector<ComparedArtefact>> compare_artefacts(const std::string& a, const std::string& b,
                                                                      double tolerance);

}  // namespace headroom::cli
