// SPDX-License-Identifier: Apache-2.0
#include "record/open.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/strings.h"
#include "base/visible.h"
#include "record/format.h"

namespace headroom {

namespace {

namespace fs = std::filesystem;

enum class Missing { kNothing, kPages };

// Enough to see whether SQLite can read here at all: schema, log and locks. Of a file that was cut SQLite reads
// nothing, unless it is told that its schema is being mended.
Result<Database> try_open(const std::string& name, Missing missing = Missing::kNothing) {
  HR_TRY(Database database, Database::open(name, Access::kReadOnly));
  sqlite3_busy_timeout(database.raw(), 1000);
  HR_TRYV(database.distrust(static_cast<int>(kMaxBlobBytes)));
  if (missing == Missing::kPages) {
    sqlite3_db_config(database.raw(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
    HR_TRYV(database.execute("PRAGMA writable_schema=ON"));
  }
  HR_TRYV(database.execute("PRAGMA query_only=1; PRAGMA cache_size=-2048;"));
  HR_TRY(const auto tables, database.number("SELECT count(*) FROM sqlite_schema"));
  (void)tables;
  return database;
}

std::string plain_name(const std::string& path) { return path.starts_with("file:") ? "./" + path : path; }

std::uintmax_t log_bytes(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path + "-wal", error);
  return error ? 0 : size;
}

Result<void> check_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return tl::unexpected(errno_error(fmt::format("open {}", path), "headroom recordings lists what there is"));
  HR_TRYV(check_regular_files(path));
  if (::access(path.c_str(), R_OK) != 0)
    return tl::unexpected(errno_error(fmt::format("open {}", path), "read it as its owner, or copy it first"));
  if (info.st_size == 0 && log_bytes(path) == 0)
    return fail(Errc::kCorrupt, fmt::format("{} is empty: the recorder ended before it wrote anything", path));
  return {};
}

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

// What a file lacks of the pages that its own header counts, in words; "" if it is whole or cannot tell. The count is
// right where the version that wrote it is the last one that wrote anything (SQLite's file format, 1.3.7).
std::string missing_part(const std::string& path) {
  constexpr std::size_t kHeader = 100;
  const auto file = open_read(path);
  std::string header(kHeader, '\0');
  std::error_code error;
  const std::uint64_t size = fs::file_size(path, error);
  if (!file || error || ::pread(file->get(), header.data(), kHeader, 0) != static_cast<ssize_t>(kHeader)) return "";
  const std::string_view bytes = header;
  if (big_endian(bytes.substr(24, 4)) != big_endian(bytes.substr(92, 4))) return "";
  const std::uint64_t page = big_endian(bytes.substr(16, 2)), pages = big_endian(bytes.substr(28, 4));
  const std::uint64_t whole = (page == 1 ? 65536 : page) * pages;
  if (size >= whole) return "";
  return fmt::format("the file was cut: its last {} of {} bytes are missing", whole - size, whole);
}

// What a recorder writes is in the log first: the file alone is one page, marked for a log and without a table.
Result<void> check_log_is_there(const std::string& path, Database& database) {
  constexpr off_t kWriteVersion = 18;
  constexpr char kUsesLog = 2;
  char version = 0;
  const auto file = open_read(path);
  if (!file || ::pread(file->get(), &version, 1, kWriteVersion) != 1 || version != kUsesLog || log_bytes(path) > 0)
    return {};
  HR_TRY(const auto tables, database.number("SELECT count(*) FROM sqlite_schema"));
  if (tables > 0) return {};
  return fail(Errc::kCorrupt, fmt::format("{0}: what was recorded is in {0}-wal, which is not beside it", path),
              "a recording that did not come to its end is two files: copy both, or one whole copy of it: "
              "headroom export NAME -f hrec");
}

// By the first bytes of gzip and zstd.
bool is_packed(const std::string& path) {
  std::array<char, 4> bytes{};
  const auto file = open_read(path);
  if (!file || ::pread(file->get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return false;
  const std::string_view first(bytes.data(), bytes.size());
  return first.starts_with("\x1f\x8b") || first == "\x28\xb5\x2f\xfd";
}

Error explain(const std::string& path, Error error) {
  if (error.code == Errc::kInvalidInput)
    return {Errc::kInvalidInput, fmt::format("{} is not a Headroom recording", path),
            is_packed(path) ? "it is packed: unpack it first (gunzip or unzstd)" : ""};
  if (error.code == Errc::kBusy)
    return {Errc::kBusy, fmt::format("{} is locked by its recorder", path),
            "on a network file system a recording can be read once it has ended"};
  if (error.code == Errc::kCorrupt && error.hint.empty())
    error.hint = "it was damaged after it was written; copy it again from where it came, or record again";
  return within(fmt::format("open {}", path), std::move(error));
}

}  // namespace

Result<OpenedFile> OpenedFile::open(const std::string& path) {
  HR_TRYV(check_file(path));
  OpenedFile file;
  auto database = try_open(plain_name(path));
  if (!database) {
    // What fails where nothing may be written is SQLite's shared memory. Without a log it is not needed (immutable);
    // with one, and nobody who holds it open, a copy of both is whole.
    const bool read_only = database.error().code == Errc::kNoPermission || database.error().code == Errc::kIo;
    if (read_only && log_bytes(path) == 0) {
      database = try_open(immutable_name(path));
    } else if (read_only && ::access((path + "-shm").c_str(), F_OK) != 0) {
      HR_TRY(DatabaseCopy copy, DatabaseCopy::make(path));
      file.copy_.emplace(std::move(copy));
      database = try_open(file.copy_->path());
    }
  }
  if (!database && database.error().code == Errc::kCorrupt) {
    file.cut_ = missing_part(path);
    if (!file.cut_.empty()) {
      auto rest = try_open(immutable_name(path), Missing::kPages);
      if (!rest) rest = tl::unexpected(file.explained(rest.error()));
      database = std::move(rest);
    }
  }
  if (!database) return tl::unexpected(explain(path, database.error()));
  if (log_bytes(path) == 0) file.cut_ = missing_part(path);  // within a page, SQLite reads zeros for the rest
  file.database_ = std::move(*database);
  if (auto known = file.check_format(path); !known) {
    HR_TRYV(check_log_is_there(path, file.database_));
    return tl::unexpected(within(path, known.error()));
  }
  if (auto stored = file.check_contents(path); !stored)
    return tl::unexpected(explain(path, file.explained(stored.error())));
  return file;
}

Error OpenedFile::explained(Error error) const {
  if (cut_.empty() || (error.code != Errc::kCorrupt && error.code != Errc::kInvalidInput)) return error;
  return {Errc::kCorrupt, fmt::format("{}, and what is left cannot be read", cut_),
          "copy it again from where it came, or record again"};
}

Result<void> OpenedFile::check_contents(const std::string& path) {
  constexpr std::int64_t kAnyFile = std::int64_t{1} << 28, kPerByte = 1000;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  database_.limit_steps(kAnyFile + kPerByte * static_cast<std::int64_t>((error ? 0 : size) + log_bytes(path)));
  for (const std::span<const std::string_view> names :
       {std::span<const std::string_view>(kTables), std::span<const std::string_view>(kListTables),
        std::span<const std::string_view>(kTablesOfJournal)})
    HR_TRYV(database_.check_stored_tables(names));
  return {};
}

// A table of somebody's own monitor, if one by its names may be that, as CSV.
std::string OpenedFile::as_csv(const std::string& path) {
  constexpr const char* kOfGpus =
      "SELECT name FROM sqlite_schema WHERE type='table' AND (sql LIKE '%gpu%' OR sql LIKE '%util%') ORDER BY "
      "name NOT LIKE '%gpu%', name LIMIT 1";
  auto row = database_.prepare(kOfGpus);
  if (!row || !row->step().value_or(false)) return "";
  const std::string table(row->bytes(0));
  const bool plain = std::all_of(table.begin(), table.end(), [](char c) {
    return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  if (!plain) return "";
  return fmt::format(
      "if its table {} has times and readings of GPUs: sqlite3 -csv -header {} \"SELECT * FROM {}\" > gpu.csv; "
      "headroom why gpu.csv",
      table, typed_word(path), table);
}

// What to do with a database of another program.
std::string OpenedFile::instead_of(const std::string& path) {
  const auto has = [&](std::string_view tables, std::int64_t count) {
    return database_.number(fmt::format("SELECT count(*) FROM sqlite_schema WHERE name IN ({})", tables)).value_or(0) ==
           count;
  };
  if (has("'studies', 'trials'", 2))
    return fmt::format("it holds studies of Optuna: headroom study {}", typed_word(path));
  if (!has("'experiments', 'runs', 'metrics'", 3)) return as_csv(path);
  return fmt::format(
      "it holds runs of MLflow; what the last one logged of its GPUs (log_system_metrics): sqlite3 -csv -header {} "
      "\"SELECT key, value, timestamp FROM metrics WHERE key LIKE 'system/gpu%' AND run_uuid = (SELECT run_uuid FROM "
      "runs "
      "ORDER BY start_time DESC LIMIT 1) ORDER BY timestamp\" > gpu.csv; headroom why gpu.csv",
      typed_word(path));
}

Result<void> OpenedFile::check_format(const std::string& path) {
  HR_TRY(const auto id, database_.number("PRAGMA application_id"));
  if (id != kApplicationId)
    return fail(Errc::kInvalidInput, "this SQLite file is not a Headroom recording", instead_of(path));
  HR_TRY(const auto major, database_.number("PRAGMA user_version"));
  if (major <= kFormatMajor) return {};
  std::string writer = "a newer program";
  std::int64_t needed = major;
  if (auto row = database_.prepare("SELECT value FROM meta WHERE key='writer'"); row && row->step().value_or(false))
    writer = row->bytes(0);
  if (auto row = database_.prepare("SELECT value FROM meta WHERE key='min_reader'"); row && row->step().value_or(false))
    needed = row->integer(0);
  if (needed <= kFormatMajor) return {};
  return fail(Errc::kUnsupported,
              fmt::format("it was written by {} in format {}; this program reads formats up to {}", writer, major,
                          kFormatMajor),
              "update Headroom, or export the recording to JSONL with the program that wrote it");
}

}  // namespace headroom
