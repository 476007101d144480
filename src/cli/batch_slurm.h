// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/result.h"
#include "cli/batch_options.h"

namespace headroom::cli {

// `headroom batch --on slurm[:PARTITION]`: asks Slurm for an array of jobs, each a worker of the batch (--shared), and
// shows how far they are until all have ended. The exit code. What cannot be is an error before anything is submitted.
[[nodiscard]] Result<int> batch_on_slurm(const BatchCommand& command);

}  // namespace headroom::cli
