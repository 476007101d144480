// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/analysis.h"

// Evidence lines that several rules share.
namespace headroom::diagnose {

[[nodiscard]] std::string owner_sentence(const HostSummary& s);
[[nodiscard]] std::string helper_sentence(const HostSummary& s);
// Rates to and from storage; nothing where they were not read.
[[nodiscard]] std::vector<std::string> storage_sentences(const HostSummary& s);
// What the whole machine used beside the job: whether cores were short because of others; nothing where unknown.
[[nodiscard]] std::vector<std::string> cores_sentence(const HostSummary& s);
// "GPU 0 is idle for 1:00 at a time, 3 times, every 7:00" for every device (or this one) with an idle phase that
// recurs.
[[nodiscard]] std::vector<std::string> recurrences(const Analysis& a, std::optional<std::size_t> device = std::nullopt);

[[nodiscard]] std::string gpu_names(const Analysis& a, const std::vector<std::size_t>& devices);  // "GPUs 0 and 2"

// So short a recording that the driver may not have listed a process of it that was there.
[[nodiscard]] bool too_short_to_list(const Analysis& a);

void append(std::vector<std::string>& list, std::vector<std::string> more);

}  // namespace headroom::diagnose
