// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

namespace headroom::diagnose {

// Where else the function ran that has most of some pauses, for at least half as long as one of them: before the first
// kernel, as what prepares the next kernels does, or after the last one, as what ends an epoch does. Nothing where the
// pauses come so often that each may be a part of a step.
struct Rhythm {
  bool prepares = false;  // else it ends
  std::string sentence;   // evidence
};
[[nodiscard]] std::optional<Rhythm> rhythm_of(const Analysis& a, const Claims& pauses);

}  // namespace headroom::diagnose
