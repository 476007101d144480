// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "diagnose/joined.h"
#include "model/explanation.h"
#include "model/parts.h"

// What is said of several recordings together. `e`: their explanation, with its ledger and its parts.
namespace headroom::diagnose {

[[nodiscard]] std::string joined_sentence(const Explanation& e, const std::vector<ExplainedPart>& parts,
                                          const Thresholds& limits);

// Which recordings these are, how their clocks relate, whose readings end early, and that they are of several jobs.
[[nodiscard]] std::vector<std::string> about_parts(const Explanation& e, const std::vector<ExplainedPart>& parts,
                                                   const std::vector<PartName>& names);

// What tells of a recording's job whether another one is of it: its number in Slurm, else its command.
[[nodiscard]] std::string job_key(const RecordingMeta& meta);
// Whether all are of one job that ran on several machines at once.
[[nodiscard]] bool are_one_job(const std::vector<ExplainedPart>& parts);

}  // namespace headroom::diagnose
