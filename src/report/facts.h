// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "report/document.h"
#include "report/tables.h"

// What a document says, apart from how it is written. Text from outside is as it came: who writes it escapes it.
namespace headroom::report {

[[nodiscard]] std::string gpu_label(const Explanation& e, std::size_t device);  // "GPU 0 · NVIDIA A100"
[[nodiscard]] std::string share_words(Nanos ns, Nanos whole);                   // "61.2 %"
[[nodiscard]] std::string since_begin(const view::View& view, Nanos at);        // "7:02" after the view's begin

// Of the GPUs that the job used, as the headline is, and `whole` their time; of all where it used all or none.
[[nodiscard]] std::vector<view::Share> shares_of_used(const Document& d, Nanos& whole);
[[nodiscard]] Table ledger_table(const Document& d);
// Accounts and readings of one GPU in a dozen stretches of time: what the strips show.
[[nodiscard]] Table time_table(const Document& d, std::size_t gpu);
[[nodiscard]] std::string ended(const view::Run& run);  // how, in a word or two
[[nodiscard]] Table runs_table(const Document& d);      // of a batch: those that did not succeed, and the longest
[[nodiscard]] Table phases_table(const Document& d);
[[nodiscard]] Table readings_table(const Document& d);
[[nodiscard]] Table processes_table(const Document& d);
[[nodiscard]] Table functions_table(const Document& d);
[[nodiscard]] Table options_table(const Document& d);
[[nodiscard]] Table health_table(const Document& d);
[[nodiscard]] Table losses_table(const Document& d);

[[nodiscard]] std::string stretch_words(const Document& d);                    // which part it is of; "": the whole
[[nodiscard]] std::string batch_words(const Document& d);                      // "" of what is no batch
[[nodiscard]] std::vector<std::string> finding_numbers(const Explanation& e);  // "1", "1a", "2"
[[nodiscard]] std::vector<Point> finding_points(const Explanation& e, const Finding& finding);
[[nodiscard]] std::vector<Point> option_points(const Plan& plan, const Option& option);
[[nodiscard]] std::vector<Point> plan_points(const Plan& plan);        // of the options together
[[nodiscard]] std::vector<Point> limits_points(const Explanation& e);  // how much faster at most
[[nodiscard]] std::vector<Point> provenance_points(const Explanation& e);
[[nodiscard]] std::vector<Point> parameter_points(const Explanation& e);  // as the job told them
[[nodiscard]] std::vector<Point> evidence_points(const Explanation& e);   // what it rests on, what is missing, its cost

}  // namespace headroom::report
