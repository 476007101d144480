// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/explanation.h"
#include "report/layout.h"

namespace headroom::report {

// The three largest findings with their evidence in short, what to try and what it gains, in at most `lines` lines
// where that can be done.
[[nodiscard]] std::string top_findings(const Explanation& explanation, const TextOptions& options, std::size_t lines);
// How many lines the top three take with what to try and what it brings, and little else.
[[nodiscard]] std::size_t least_lines(const Explanation& explanation, const TextOptions& options);

// All findings with all that is known of them.
[[nodiscard]] std::string all_findings(const Explanation& explanation, const TextOptions& options);

// "GPU driver, process times": what the letters of evidence stand for.
[[nodiscard]] std::string evidence_words(std::string_view letters);

// How the next command names the recording, as a shell takes it.
[[nodiscard]] std::string recording_argument(const Explanation& explanation, const TextOptions& options);

}  // namespace headroom::report
