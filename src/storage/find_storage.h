// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Whether bytes from the beginning of a file are those of a storage of Optuna: an SQLite file whose first pages define
// its tables, or a journal.
[[nodiscard]] bool begins_as_storage(std::string_view bytes);

// The first of these files that begins so. Reads without a lock, 256 KiB of a file at most; never waits for a FIFO.
[[nodiscard]] std::optional<std::string> find_storage(const std::vector<std::string>& paths);

// Files that a word of a command may name as a storage: "study.db", "--storage=study.db", "sqlite:///study.db".
[[nodiscard]] std::vector<std::string> files_in_word(std::string_view word);

}  // namespace headroom
