// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/explanation.h"
#include "model/plan.h"

// Phrases that the text reports and the documents share.
namespace headroom::report {

[[nodiscard]] std::string finding_cost(const Explanation& e, const Finding& finding);  // "costs 9.6 s"; "": nothing
[[nodiscard]] std::vector<std::string> problem_words(const Explanation& e);  // what went wrong beside lost time
// Of a recording that ends before what it recorded did; "" of others.
[[nodiscard]] std::string cut_short(const RecordingMeta& meta);
[[nodiscard]] std::string recording_cost(const Explanation& e);  // "0.1 % of one core, 12 MiB of memory"
[[nodiscard]] std::string phase_words(const Explanation& e, const Phase& phase);
[[nodiscard]] std::string phases_title(const Explanation& e);
// What the GPU waited for most in a phase: "41 % host code"; "-" where nothing of it counts.
[[nodiscard]] std::string waited_for(const Explanation& e, std::int32_t phase);
[[nodiscard]] std::string figure(Metric metric, double value);  // with its unit

// "1.1x to 1.3x", "at most 1.3x", "no gain".
[[nodiscard]] std::string gain_range(const Gain& gain);
[[nodiscard]] std::string gain_time(const Gain& gain, double seconds);  // "5 s to 7 s instead of 9 s"
[[nodiscard]] std::string cause_words(const Option& option);            // what it is for; "" of an observation
[[nodiscard]] std::string plan_headline(const Plan& plan);

}  // namespace headroom::report
