// SPDX-License-Identifier: Apache-2.0
#include "base/database_copy.h"

#include <stdlib.h>

#include <filesystem>
#include <utility>

#include "base/sqlite.h"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr std::array kSuffixes{"", "-wal", "-journal"};

}  // namespace

DatabaseState database_state(const std::string& path) {
  DatabaseState state;
  std::error_code ignored;
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = {fs::last_write_time(path + kSuffixes[i], ignored), fs::file_size(path + kSuffixes[i], ignored)};
  return state;
}

Result<DatabaseCopy> DatabaseCopy::make(const std::string& path) {
  constexpr const char* kHint = "set TMPDIR to a directory with room";
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "headroom-XXXXXX").string();
  if (error || ::mkdtemp(folder.data()) == nullptr)
    return fail(Errc::kIo, fmt::format("{} must be copied to be read, and no temporary folder can be made", path),
                kHint);
  DatabaseCopy copy(std::move(folder));
  HR_TRYV(check_regular_files(path));
  const auto before = database_state(path);
  for (const char* suffix : kSuffixes) {
    fs::copy_file(path + suffix, copy.path() + suffix, error);
    const bool none = *suffix != '\0' && error == std::errc::no_such_file_or_directory;
    if (error && !none)
      return fail(Errc::kIo, fmt::format("copy {}{} to a temporary folder: {}", path, suffix, error.message()), kHint);
  }
  if (database_state(path) != before) return fail(Errc::kBusy, fmt::format("{} was written while it was copied", path));
  return copy;
}

DatabaseCopy::DatabaseCopy(DatabaseCopy&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}

DatabaseCopy::~DatabaseCopy() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

}  // namespace headroom
