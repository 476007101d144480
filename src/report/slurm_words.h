// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "model/recording.h"
#include "model/slurm.h"

// Where in Slurm a recording was made.
namespace headroom::report {

// "Slurm job 123 (array 120, task 3), step 0, node n1, rank 0 of 2, partition gpu"; "": in no job of Slurm.
[[nodiscard]] std::string slurm_words(const std::optional<SlurmJob>& job);

// "Rank 1 of 4", as a trace of PyTorch tells it; "": it does not.
[[nodiscard]] std::string rank_words(const Attrs& extra);

}  // namespace headroom::report
