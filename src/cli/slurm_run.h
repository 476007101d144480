// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "model/slurm.h"

// What `run` does otherwise in a job of Slurm, whose srun starts it once for each task of a step.
namespace headroom::cli {

// A folder becomes a file in it, of this job, step and node (slurm_file_name); any other name stays, as it does
// elsewhere.
[[nodiscard]] std::string named_in_slurm(const std::string& output, const std::optional<SlurmJob>& job);

// Rank 0 of several prints its report; the others would print one each, at the same time and to the same place.
[[nodiscard]] bool prints_report(const std::optional<SlurmJob>& job);
// What rank 0 says below it, and each of the others that ended with an error. `recording` is its own.
void say_where_others_are(const SlurmJob& job, const std::string& recording);
void say_how_rank_ended(const SlurmJob& job, int code, const std::string& recording);

}  // namespace headroom::cli
