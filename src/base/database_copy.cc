// SPDX-License-Identifier: Apache-2.0
#include "base/database_copy.h"

#include <fcntl.h>
#include <sys/sendfile.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/human.h"
#include "base/regular_file.h"
#include "base/sqlite.h"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr std::array kSuffixes{"", "-wal", "-journal"};
constexpr const char* kCopies = "headroom-copy";
constexpr auto kNone = static_cast<std::uintmax_t>(-1);  // the size of a file that is not there
constexpr const char* kRoom = "set TMPDIR to a directory with room";

// What is left of a dead writer is merged or undone, and what was written a moment ago is not new any more: then
// nothing needs to be copied.
constexpr const char* kMend =
    "open and close it once with what writes it (sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'), and try again "
    "seconds "
    "later";

constexpr auto kEndless = std::uintmax_t{1} << 50;  // sums of such sizes do not wrap

// The log is written into the copy: it takes its room twice.
std::uintmax_t bytes_needed(const DatabaseState& state) {
  std::uintmax_t bytes = 0;
  for (std::size_t i = 0; i < state.size(); ++i)
    if (state[i].second != kNone) bytes += (i == 1 ? 2 : 1) * std::min(state[i].second, kEndless);
  return bytes;
}

Result<void> check_room(const std::string& path, const std::string& place, std::uintmax_t needed) {
  const auto bytes = [](std::uintmax_t count) { return human_bytes(static_cast<std::int64_t>(count)); };
  if (needed > DatabaseCopy::kMostBytes)
    return fail(Errc::kNoSpace,
                fmt::format("{} must be copied to be read, and takes {}: more than {} are not copied", path,
                            bytes(needed), bytes(DatabaseCopy::kMostBytes)),
                kMend);
  const auto free = free_bytes(place);
  if (free && needed > *free / 8 * 7)  // others live off that room, too
    return fail(Errc::kNoSpace,
                fmt::format("{} must be copied to be read, and takes {}: {} has {} free", path, bytes(needed), place,
                            bytes(*free)),
                fmt::format("{}; or {}", kRoom, kMend));
  return {};
}

// At most `bytes`, whatever the file has become meanwhile.
Result<void> copy_file(const std::string& from, const std::string& to, std::uintmax_t bytes) {
  constexpr std::uintmax_t kAtATime = std::uintmax_t{16} << 20;
  HR_TRY(const Fd in, open_regular(from));
  HR_TRY(const Fd out, open_write(to));
  while (bytes > 0) {
    const ssize_t copied =
        ::sendfile(out.get(), in.get(), nullptr, static_cast<std::size_t>(std::min(bytes, kAtATime)));
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) return tl::unexpected(errno_error(fmt::format("copy {} to a temporary folder", from), kRoom));
    if (copied == 0) break;
    bytes -= static_cast<std::uintmax_t>(copied);
  }
  return {};
}

}  // namespace

DatabaseState database_state(const std::string& path) {
  DatabaseState state;
  std::error_code ignored;
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = {fs::last_write_time(path + kSuffixes[i], ignored), fs::file_size(path + kSuffixes[i], ignored)};
  return state;
}

void DatabaseCopy::remove_stale() {
  std::error_code error;
  if (const fs::path place = fs::temp_directory_path(error); !error) remove_stale_folders(place.string(), kCopies);
}

Result<DatabaseCopy> DatabaseCopy::make(const std::string& path) {
  remove_stale();
  HR_TRYV(check_regular_files(path));
  std::error_code error;
  const std::string place = fs::temp_directory_path(error).string();
  const auto before = database_state(path);
  Result<LockedFolder> folder = fail(Errc::kIo, error.message());
  if (!error) {
    HR_TRYV(check_room(path, place, bytes_needed(before)));
    folder = LockedFolder::make(place, kCopies, LockedFolder::Lock::kWhereItCan);
  }
  if (!folder)
    return fail(Errc::kIo, fmt::format("{} must be copied to be read, and no temporary folder can be made", path),
                kRoom);
  DatabaseCopy copy(std::move(*folder));
  Result<void> copied;
  for (std::size_t i = 0; i < before.size() && copied; ++i)
    if (i == 0 || before[i].second != kNone)
      copied = copy_file(path + kSuffixes[i], copy.path() + kSuffixes[i], std::min(before[i].second, kMostBytes));
  // Before what could not be copied: a log that is gone was merged meanwhile.
  if (database_state(path) != before) return fail(Errc::kBusy, fmt::format("{} was written while it was copied", path));
  if (!copied) return tl::unexpected(copied.error());
  return copy;
}

}  // namespace headroom
