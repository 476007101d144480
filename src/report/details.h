// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/explanation.h"
#include "report/layout.h"

// What a report says on request only.
namespace headroom::report {

// The phases that have a name, if any do: how long, how much of it the GPU computed, and what it waited for; at most
// `most` lines, and nothing in fewer than three phases take, or all if there are fewer.
[[nodiscard]] std::string named_phases_text(const Explanation& explanation, const TextOptions& options,
                                            std::size_t most);
// How many lines that is at least; 0 where no phase has a name.
[[nodiscard]] std::size_t least_phase_lines(const Explanation& explanation);
// Metrics and parameters that the job told; "" where it told none.
[[nodiscard]] std::string said_text(const Explanation& explanation, const TextOptions& options);
[[nodiscard]] std::string readings_text(const Explanation& explanation, const TextOptions& options);  // with the phases
// How much faster at most, and what was asked to be projected.
[[nodiscard]] std::string limits_text(const Explanation& explanation, const TextOptions& options);

}  // namespace headroom::report
