// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/explanation.h"
#include "model/plan.h"

// Phrases that the text reports and the documents share.
namespace headroom::report {

// Whether all that it claims is time that no reading covers: that costs nothing that is known.
[[nodiscard]] bool is_unknown_time(const Finding& finding);
[[nodiscard]] std::string finding_cost(const Explanation& e, const Finding& finding);  // "costs 9.6 s"; "": nothing
[[nodiscard]] std::vector<std::string> problem_words(const Explanation& e);  // what went wrong beside lost time
[[nodiscard]] bool length_is_assumed(const Explanation& e);                  // one reading has none
// Of a recording that ends before what it recorded did; "" of others.
[[nodiscard]] std::string cut_short(const RecordingMeta& meta);
// "Computing: a kernel was on the GPU.": what that account means, and whether copies may be in it; "" where there is
// none.
[[nodiscard]] std::string computing_words(const Explanation& e);
// "Unexplained: in 3.0 s of it a process ended, …", where that is enough to be seen.
[[nodiscard]] std::string ends_words(const Ledger& ledger);
// ", as far as readings tell (for 3.0 s of GPU time there is none)", where that is enough to be seen.
[[nodiscard]] std::string unread_words(const Ledger& ledger);
[[nodiscard]] std::string recording_cost(const Explanation& e);  // "0.1 % of one core, 12 MiB of memory"
[[nodiscard]] std::string phase_words(const Explanation& e, const Phase& phase);
[[nodiscard]] std::string phases_title(const Explanation& e);
// "25", "~25" where they are shared with other phases by time, "-" where none are counted.
[[nodiscard]] std::string steps_words(const Phase& phase);
[[nodiscard]] bool steps_are_shared(const Phase& phase);
inline constexpr std::string_view kSharedSteps = "shared by time: their counts lie further apart than these phases";
// What the GPU waited for most in a phase: "41 % host code"; "-" where nothing of it counts.
[[nodiscard]] std::string waited_for(const Explanation& e, std::int32_t phase);
[[nodiscard]] std::string figure(Metric metric, double value);  // with its unit

// "1.1x to 1.3x", "at most 1.3x", "no gain".
[[nodiscard]] std::string gain_range(const Gain& gain);
[[nodiscard]] std::string gain_time(const Gain& gain, double seconds);  // "5 s to 7 s instead of 9 s"
[[nodiscard]] std::string cause_words(const Option& option);            // what it is for; "" of an observation
[[nodiscard]] std::string condition_words(const Option& option);        // when its gain holds, or that there is none
[[nodiscard]] std::string shown_words(const Option& option);            // what earlier predictions did to its low end
[[nodiscard]] std::string plan_headline(const Plan& plan);

}  // namespace headroom::report
