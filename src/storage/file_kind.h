// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string_view>

namespace headroom {

enum class FileKind { kSqlite, kJournal, kEmpty, kOther };

inline constexpr std::size_t kFileBeginning = 4096;  // bytes that are enough to tell

// What a file is, by how it begins.
[[nodiscard]] FileKind file_kind(std::string_view beginning);
// The same in words, for people who named the wrong file: "a gzip archive", "a text file".
[[nodiscard]] std::string_view file_kind_name(std::string_view beginning);

}  // namespace headroom
