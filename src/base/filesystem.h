// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace headroom {

// The name of a network (or user-space) file system by its statfs magic number: "nfs", "cifs", "lustre", "fuse", …;
// "" for local ones. Shared memory between hosts does not exist there, so SQLite's WAL may have one user only.
[[nodiscard]] std::string_view network_filesystem_name(std::int64_t magic);
// The same for the file system that holds the directory `path`; "" if it cannot be asked.
[[nodiscard]] std::string network_filesystem(const std::string& path);
// Bytes an ordinary user may still write there; nothing if it cannot be asked.
[[nodiscard]] std::optional<std::uint64_t> free_bytes(const std::string& path);
// The directory part of a path, "." if there is none.
[[nodiscard]] std::string directory_of(const std::string& path);
// The folder, for its owner alone (0700), and the folders above it, as usual. What is there stays as it is.
[[nodiscard]] Result<void> make_private_folder(const std::string& path);
[[nodiscard]] std::string current_directory();  // absolute; "" where it was removed

}  // namespace headroom
