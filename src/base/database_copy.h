// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/locked_folder.h"
#include "base/result.h"

namespace headroom {

// When a database, its log and its journal were last written, and how large they are; changes with every commit that
// is not of the same tick of the file system's clock.
using DatabaseState = std::array<std::pair<std::filesystem::file_time_type, std::uintmax_t>, 3>;
[[nodiscard]] DatabaseState database_state(const std::string& path);

// A database that cannot be read where it lies, copied into a temporary folder with the log or journal that belongs to
// it: its writer died, and what is left must be merged or undone, where nothing may be written. The folder goes with
// this object; what a process that was killed has left of such goes with the next copy, or with remove_stale().
class DatabaseCopy {
 public:
  static constexpr std::uintmax_t kMostBytes = std::uintmax_t{8} << 30;

  // kBusy: it was written meanwhile. kNoSpace: it is larger than kMostBytes or than what may be taken of TMPDIR.
  [[nodiscard]] static Result<DatabaseCopy> make(const std::string& path);
  static void remove_stale();
  [[nodiscard]] std::string path() const { return folder_.path() + "/copy.sqlite"; }  // may be opened for writing

 private:
  explicit DatabaseCopy(LockedFolder folder) : folder_(std::move(folder)) {}
  LockedFolder folder_;
};

}  // namespace headroom
