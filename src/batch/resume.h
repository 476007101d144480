// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "batch/identity.h"
#include "batch/journal.h"
#include "batch/say.h"
#include "model/batch.h"

// What earlier runs of a batch left: tasks that are done, tasks that have changed since, processes.
namespace headroom::batch {

// Stops what an earlier run left running: it was killed together with its guardian, or the process had left its tree.
void stop_what_was_left(Journal& journal, Nanos grace, const Say& say);

// A success counts for as long as what it made is there: `known` is changed where it is not. How many count; says why
// others run again.
[[nodiscard]] std::size_t keep_or_rerun(const std::vector<TaskSpec>& tasks, std::vector<KnownTask>& known,
                                        const Say& say);

// Of the scripts that each task's command names, by size and time, and of the environment it is given.
[[nodiscard]] std::vector<std::string> fingerprints_of(const std::vector<TaskSpec>& tasks);

// Says that what is done was done by another version of the script or of the repository, or in another environment.
void warn_of_changes(const std::vector<KnownTask>& known, const std::vector<std::string>& fingerprints,
                     const std::optional<Run>& last, const std::optional<GitState>& git, const Say& say);

}  // namespace headroom::batch
