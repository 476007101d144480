// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "model/finding.h"

// What the headline is put together from.
namespace headroom::diagnose {

// "GPUs 0 and 2"; "The 4 GPUs" where they are all.
[[nodiscard]] std::string subject(const Analysis& a, const std::vector<std::size_t>& devices);
// " (GPU 0 95 %, GPU 1 5 %)" where the shares of these devices lie far apart; else "". Of many the ends.
[[nodiscard]] std::string apart_words(const Analysis& a, const std::vector<std::size_t>& devices,
                                      const std::function<double(std::size_t)>& share);
// " on average (GPU 0 95 %, GPU 1 5 %)", from what apart_words() says; "" from "".
[[nodiscard]] std::string mean_of(const std::string& shares);
// How long the window is.
[[nodiscard]] std::string span_words(const Analysis& a);
[[nodiscard]] double share_of_span(const Analysis& a, Nanos ns);
// Of these devices together.
[[nodiscard]] Nanos total_of(const Analysis& a, Account account, const std::vector<std::size_t>& devices);

// headline_used.cc: "GPU 0 computed for 17 % of 21.6 s. It waited 77 % for its data." Of a log of which a job had a
// part only, also: "While memory was taken there (5:40 of 10:00), it was busy for 90 %."
[[nodiscard]] std::string about_used(const Analysis& a, const std::vector<Finding>& findings,
                                     const std::vector<std::size_t>& devices);

}  // namespace headroom::diagnose
