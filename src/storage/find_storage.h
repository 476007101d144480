// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headroom {

enum class StorageEngine { kFile, kPostgresql };

// Where a storage is, from its name as Optuna takes it.
struct StorageName {
  StorageEngine engine = StorageEngine::kFile;
  std::string path;  // of a file: which kind it is, its content says
};

// kInvalidInput: a name that says no place; kUnsupported: a database or server that is not read.
[[nodiscard]] Result<StorageName> parse_storage_name(const std::string& name);

enum class FileKind { kSqlite, kJournal, kEmpty, kOther };

inline constexpr std::size_t kFileBeginning = 4096;  // bytes that are enough to tell

// The kind of a file, by how it begins.
[[nodiscard]] FileKind file_kind(std::string_view beginning);
// The same in words, for people who named the wrong file: "a gzip archive", "a text file".
[[nodiscard]] std::string_view file_kind_name(std::string_view beginning);

// Whether bytes from the beginning of a file are those of a storage of Optuna: an SQLite file whose first pages define
// its tables, or a journal.
[[nodiscard]] bool begins_as_storage(std::string_view bytes);

// The first of these files that begins so. Reads without a lock, 256 KiB of a file at most; never waits for a FIFO.
[[nodiscard]] std::optional<std::string> find_storage(const std::vector<std::string>& paths);

// Files that a word of a command may name as a storage: "study.db", "--storage=study.db", "sqlite:///study.db".
[[nodiscard]] std::vector<std::string> files_in_word(std::string_view word);

}  // namespace headroom
