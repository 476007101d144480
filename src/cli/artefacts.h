// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli11.h"
#include "model/comparison.h"

namespace headroom::cli {

// --artefacts and --tolerance.
struct ArtefactOptions {
  std::vector<std::string> paths;  // none, or two: of A and of B
  double tolerance = 1e-6;
};
void declare_artefacts(CLI::App& app, ArtefactOptions& options);

// Two files, or the files of two folders by their path below it (compare/artefact.h); those that only one folder has
// are not the same.
[[nodiscard]] Result<std::vector<ComparedArtefact>> compare_artefacts(const std::string& a, const std::string& b,
                                                                      double tolerance);

}  // namespace headroom::cli
