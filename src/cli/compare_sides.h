// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/stats.h"
#include "base/result.h"
#include "batch/journal.h"
#include "compare/side.h"
#include "diagnose/explain.h"
#include "import/import.h"
#include "model/recording.h"

// Recordings and batches as sides of a comparison.
namespace headroom::cli {

// What `headroom compare` accepts for a side: a recording, the folder or task file of a batch, or several of these
// separated by commas: repeats of one thing. `changed`: parameters that do not tell one task from another.
[[nodiscard]] Result<compare::Side> side_of(const std::string& what, const std::vector<std::string>& changed,
                                            const ImportOptions& import);

// The recording of a job, explained with the options: one run. Without label.
[[nodiscard]] compare::Side side_of_job(const Recording& recording, const ExplainOptions& options);
// From its start to its end: what its recorder did before and after it is not its time.
[[nodiscard]] Window job_of(const Recording& recording);
// Repeats: the runs of both, and what was seen of all.
void join_sides(compare::Side more, compare::Side& all);
// A batch: its attempts, without what only the recording of it says.
[[nodiscard]] compare::Side side_of_journal(const batch::Contents& contents, const std::vector<std::string>& changed);
// What the recording of a batch says beside its journal: the GPUs that it used, and where their time went.
void take_batch_recording(const Recording& recording, compare::Side& side);
[[nodiscard]] inline std::string base_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace headroom::cli
