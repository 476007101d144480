// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "model/figure.h"
#include "model/requirement.h"

namespace CLI {
class App;
}

// --require of run, batch, compare and verify.
namespace headroom::cli {

void declare_require(CLI::App& app, std::vector<std::string>& given, const char* what);
[[nodiscard]] Result<std::vector<Requirement>> read_requirements(const std::vector<std::string>& given);
// Of recordings that are there: kInvalidInput where a figure is neither known nor written by the job.
[[nodiscard]] Result<std::vector<JudgedRequirement>> judged_of(const std::vector<Requirement>& requirements,
                                                               const std::vector<Figure>& figures);

}  // namespace headroom::cli
