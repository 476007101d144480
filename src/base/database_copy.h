// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace headroom {

// When a database, its log and its journal were last written, and how large they are; changes with every commit that
// is not of the same tick of the file system's clock.
using DatabaseState = std::array<std::pair<std::filesystem::file_time_type, std::uintmax_t>, 3>;
[[nodiscard]] DatabaseState database_state(const std::string& path);

// A database that cannot be read where it lies, copied into a temporary folder with the log or journal that belongs to
// it: its writer died, and what is left must be merged or undone, where nothing may be written. kBusy: it was written
// meanwhile. The folder goes with this object.
class DatabaseCopy {
 public:
  [[nodiscard]] static Result<DatabaseCopy> make(const std::string& path);
  DatabaseCopy(DatabaseCopy&& other) noexcept;
  DatabaseCopy& operator=(DatabaseCopy&&) = delete;
  ~DatabaseCopy();
  [[nodiscard]] std::string path() const { return folder_ + "/copy.sqlite"; }  // may be opened for writing

 private:
  explicit DatabaseCopy(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;  // "": moved from
};

}  // namespace headroom
