// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_storage.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/database_copy.h"
#include "base/sqlite.h"
#include "storage/sqlite_tables.h"

namespace headroom {

namespace {

namespace fs = std::filesystem;

std::uintmax_t bytes_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

bool has_leftovers(const std::string& path) { return bytes_of(path + "-wal") > 0 || bytes_of(path + "-journal") > 0; }

// Unix time of the last write to the file or its log.
std::optional<Nanos> written_at(const std::string& path) {
  std::optional<Nanos> latest;
  for (const char* suffix : {"", "-wal"}) {
    struct stat info {};
    if (::stat((path + suffix).c_str(), &info) == 0)
      latest = std::max(latest.value_or(0), info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec);
  }
  return latest;
}

// For files of anybody: what a damaged or hostile one could make SQLite do is limited.
Result<void> restrain(Database& database, const std::string& path) {
  sqlite3_db_config(database.raw(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database.raw(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  HR_TRYV(database.execute("PRAGMA query_only=1; PRAGMA cell_size_check=1; PRAGMA cache_size=-8192;"));
  constexpr std::int64_t kAnyFile = std::int64_t{1} << 28, kPerByte = 1000;
  database.limit_steps(kAnyFile + kPerByte * static_cast<std::int64_t>(bytes_of(path) + bytes_of(path + "-wal")));
  return {};
}

// The pages of the file in memory, of one moment. Takes a tenth of the time that reading the rows takes.
Result<Database> copied(Database& file) {
  HR_TRY(Database copy, Database::open(":memory:", Access::kReadWrite));
  sqlite3_backup* const backup = sqlite3_backup_init(copy.raw(), "main", file.raw(), "main");
  if (backup == nullptr) return tl::unexpected(sqlite_error(copy.raw()));
  sqlite3_backup_step(backup, -1);
  if (sqlite3_backup_finish(backup) != SQLITE_OK) return tl::unexpected(sqlite_error(copy.raw()));
  return copy;
}

// In WAL mode nobody waits for a reader.
Result<bool> keeps_writers_waiting(Database& database) {
  HR_TRY(Statement mode, database.prepare("PRAGMA journal_mode"));
  HR_TRY(const bool row, mode.step());
  return row && mode.bytes(0) != "wal";
}

enum class Writers { kNone, kPerhaps };

Result<StorageContent> read_as(const std::string& name, Access access, Writers writers, const StorageRequest& request,
                               const std::string& path, const SqliteReading& reading) {
  HR_TRY(Database database, Database::open(name, access));
  sqlite3_busy_timeout(database.raw(), static_cast<int>(reading.patience / kMillisecond));
  HR_TRYV(restrain(database, path));
  bool waiting = false;
  if (writers == Writers::kPerhaps) {
    HR_TRY(waiting, keeps_writers_waiting(database));
  }
  if (!waiting) return read_sqlite_tables(request, database, reading.hold, Pauses::kNo);
  if (bytes_of(path) > reading.copied_whole) return read_sqlite_tables(request, database, reading.hold, Pauses::kYes);
  HR_TRY(Database copy, copied(database));
  database.close();
  HR_TRYV(restrain(copy, path));
  return read_sqlite_tables(request, copy, reading.hold, Pauses::kNo);
}

// Two writes within a tick of the file system's clock look like one.
bool is_fresh(const std::string& path) {
  std::error_code error;
  return fs::last_write_time(path, error) > fs::file_time_type::clock::now() - std::chrono::seconds(2);
}

// Where nobody has the file open: as it lies, without locks, or a copy where a dead writer's log or journal must be
// merged or undone. kBusy: it was written meanwhile, so that somebody has it open after all.
Result<StorageContent> read_left_alone(const StorageRequest& request, const std::string& path,
                                       const SqliteReading& reading) {
  if (has_leftovers(path) || is_fresh(path)) {
    HR_TRY(const DatabaseCopy copy, DatabaseCopy::make(path));
    return read_as(copy.path(), Access::kReadWrite, Writers::kNone, request, path, reading);
  }
  const DatabaseState before = database_state(path);
  auto answer = read_as(immutable_name(path), Access::kReadOnly, Writers::kNone, request, path, reading);
  if (database_state(path) != before) return fail(Errc::kBusy, "it was written while it was read");
  return answer;
}

// Who has a file in WAL mode open has its log and the index of it beside it, until the last one closes it.
bool is_left_alone_in_wal_mode(const std::string& path, std::string_view header) {
  constexpr std::size_t kReadVersion = 19;
  constexpr char kUsesLog = 2;
  std::error_code error;
  return header.size() > kReadVersion && header[kReadVersion] == kUsesLog && !fs::exists(path + "-shm", error);
}

Error explain(Error error) {
  constexpr const char* kRecover =
      "copy it again from where it came; sqlite3 FILE .recover saves what can be read of it";
  if (error.code == Errc::kBusy)
    return {Errc::kBusy, "its writers did not let go of it for a minute",
            "try again when they write less, or copy the file, with its -wal or -journal if there is one, and read the "
            "copy"};
  if (!error.hint.empty()) return error;
  if (error.code == Errc::kInvalidInput)
    return {Errc::kCorrupt, "it begins as an SQLite database, and what follows is none", kRecover};
  error.hint = error.code == Errc::kCorrupt
                   ? kRecover
                   : "read it as its owner, or copy it, with its -wal or -journal if there is one, and read the copy";
  return error;
}

}  // namespace

Result<StorageContent> read_sqlite(const StorageRequest& request, const std::string& name, std::string_view header,
                                   const SqliteReading& reading) {
  // Log, index and journal lie where the file is, not where a link to it is.
  std::error_code gone;
  const std::string path = fs::canonical(name, gone).string();
  if (gone) return fail(Errc::kNotFound, fmt::format("open: {}", gone.message()), "is it still there?");
  const auto written = written_at(path);
  bool live = !is_left_alone_in_wal_mode(path, header);
  const auto read = [&] {
    return live ? read_as(path, Access::kReadOnly, Writers::kPerhaps, request, path, reading)
                : read_left_alone(request, path, reading);
  };
  // Where nothing may be written, SQLite cannot share a log's index, and a reader may not undo what a writer died in.
  // Somebody who opens the file meanwhile spoils the other way, and makes it needless.
  const auto may_go_the_other_way = [&live](const Error& error) {
    return error.code == Errc::kIo || error.code == Errc::kNoPermission || error.code == Errc::kNoSpace ||
           (error.code == Errc::kBusy && !live);
  };
  auto answer = read();
  for (int tries = 0; tries < 4 && !answer && may_go_the_other_way(answer.error()); ++tries) {
    live = !live;
    answer = read();
  }
  if (!answer) return tl::unexpected(explain(answer.error()));
  for (Study& study : answer->studies) study.written = written;
  return answer;
}

}  // namespace headroom
