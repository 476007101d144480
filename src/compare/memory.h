// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "compare/side.h"
#include "model/comparison.h"

// Where two sides held unlike amounts of GPU memory: what else differs that changes memory as a rule.
namespace headroom::compare {

// Nothing where neither the peak nor the mean differs, or neither is known of both. Of that which differs no sentence
// says that it is why. Where nothing of it does, the last one says that, and what would tell. `figures`, `parameters`:
// of the comparison.
[[nodiscard]] std::vector<ComparedMemory> memory_facts(const Side& a, const Side& b,
                                                       const std::vector<ComparedFigure>& figures,
                                                       const std::vector<ComparedParameter>& parameters);

}  // namespace headroom::compare
