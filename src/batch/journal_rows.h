// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string_view>

#include "batch/journal.h"

// The journal's rows as values: only batch_journal*.cc include this.
namespace headroom::batch {

inline constexpr std::string_view kRunColumns =
    "number, start, end, end_reason, command, cwd, git_commit, git_dirty, recording";

[[nodiscard]] Run run_of(const Statement& row);  // of kRunColumns
// Every task, with the counts that only attempts know.
[[nodiscard]] Result<std::map<TaskKey, KnownTask>> known_tasks(Database& database);

// What is known of each of `specs`, in their order; with key 0 of those that are new. Tasks with one identity are told
// apart by how many of them came before.
[[nodiscard]] Result<std::vector<KnownTask>> known_of(Database& database, std::span<const TaskSpec> specs);

// Names and values as one text, and back; what is no such text gives none.
[[nodiscard]] std::string pairs_text(const TextPairs& pairs);
[[nodiscard]] TextPairs pairs_of(std::string_view text);

// Columns that came later, in a journal that began without them.
[[nodiscard]] Result<void> add_new_columns(Database& database);

inline constexpr std::int64_t kJournalVersion = 1;
// An empty database will do. kCorrupt: it belongs to something else. kUnsupported: it was written by a newer version.
[[nodiscard]] Result<void> check_is_journal(Database& database);

}  // namespace headroom::batch
