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

// Of a set whose causes were weighed (diagnose/weigh.h) the likeliest are told with what tells them apart; of one that
// was not, all.
[[nodiscard]] std::size_t told_of_a_set(const Finding& finding);
// The names of the others, and of those beside a cause that is likely; "" where there are none.
[[nodiscard]] std::string less_likely(const Finding& finding);

// How the next command names the recording, as a shell takes it.
[[nodiscard]] std::string recording_argument(const Explanation& explanation, const TextOptions& options);

}  // namespace headroom::report
