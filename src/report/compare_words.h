// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "model/comparison.h"

// Phrases that the text of a comparison and its document share.
namespace headroom::report {

[[nodiscard]] std::string refusal_words(const Comparison& c);  // "These two cannot be compared, for 4 reasons"
[[nodiscard]] std::string answer_words(const Comparison& c);   // of those that can
[[nodiscard]] std::string reason_label(CompareReason reason);  // "different tasks"
[[nodiscard]] std::string time_words(double seconds);          // three digits below a second: sides differ in the last
[[nodiscard]] std::string per_unit(const ComparedSide& side);  // time of one step, one run; "" where not known
[[nodiscard]] std::string metric_words(double mean, const std::optional<double>& spread);
// Of phases that have no time of their own; "" where there are none.
[[nodiscard]] std::string short_phases_words(const Comparison& c);
inline constexpr std::string_view kMemoryTitle = "GPU memory, and what differs beside it";
[[nodiscard]] std::string artefact_words(const Comparison& c);  // how many are the same; "" where there are none

}  // namespace headroom::report
