// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string_view>

#include "live/batch_journal.h"

// The journal's rows as values: only batch_journal*.cc include this.
namespace headroom::batch {

inline constexpr std::string_view kRunColumns =
    "number, start, end, end_reason, command, cwd, git_commit, git_dirty, recording";

[[nodiscard]] Run run_of(const Statement& row);  // of kRunColumns
// Every task, with the counts that only attempts know.
[[nodiscard]] Result<std::map<TaskKey, KnownTask>> known_tasks(Database& database);

inline constexpr std::int64_t kJournalVersion = 1;
// An empty database will do. kCorrupt: it belongs to something else. kUnsupported: it was written by a newer version.
[[nodiscard]] Result<void> check_is_journal(Database& database);

}  // namespace headroom::batch
