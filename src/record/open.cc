// SPDX-License-Identifier: Apache-2.0
#include "record/open.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "record/format.h"

namespace headroom {

namespace {

namespace fs = std::filesystem;

// Enough to see whether SQLite can read here at all: schema, log and locks.
Result<Database> try_open(const std::string& name) {
  HR_TRY(Database database, Database::open(name, Access::kReadOnly));
  sqlite3_busy_timeout(database.raw(), 1000);
  sqlite3_limit(database.raw(), SQLITE_LIMIT_LENGTH, static_cast<int>(kMaxBlobBytes));
  sqlite3_db_config(database.raw(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database.raw(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  HR_TRYV(database.execute("PRAGMA query_only=1; PRAGMA cell_size_check=1; PRAGMA cache_size=-2048;"));
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

Result<std::string> copy_with_log(const std::string& path) {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "headroom-XXXXXX").string();
  if (error || ::mkdtemp(folder.data()) == nullptr)
    return fail(Errc::kIo, fmt::format("{} must be copied to be read, and no temporary folder can be made", path),
                "set TMPDIR to a directory with room");
  for (const char* suffix : {"", "-wal"}) {
    fs::copy_file(path + suffix, folder + "/copy.hrec" + suffix, error);
    if (error) {
      const std::string why = error.message();
      fs::remove_all(folder, error);
      return fail(Errc::kIo, fmt::format("copy {}{} to a temporary folder: {}", path, suffix, why),
                  "set TMPDIR to a directory with room");
    }
  }
  return folder;
}

Result<void> check_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return tl::unexpected(errno_error(fmt::format("open {}", path), "headroom recordings lists what there is"));
  if (!S_ISREG(info.st_mode)) return fail(Errc::kInvalidInput, fmt::format("{} is not a file", path));
  if (::access(path.c_str(), R_OK) != 0)
    return tl::unexpected(errno_error(fmt::format("open {}", path), "read it as its owner, or copy it first"));
  if (info.st_size == 0 && log_bytes(path) == 0)
    return fail(Errc::kCorrupt, fmt::format("{} is empty: the recorder ended before it wrote anything", path));
  return {};
}

Error explain(const std::string& path, Error error) {
  if (error.code == Errc::kInvalidInput)
    return {Errc::kInvalidInput, fmt::format("{} is not a Headroom recording", path), ""};
  if (error.code == Errc::kBusy)
    return {Errc::kBusy, fmt::format("{} is locked by its recorder", path),
            "on a network file system a recording can be read once it has ended"};
  return within(fmt::format("open {}", path), std::move(error));
}

}  // namespace

OpenedFile& OpenedFile::operator=(OpenedFile&& other) noexcept {
  if (this != &other) {
    remove_copy();
    database_ = std::move(other.database_);
    copy_folder_ = std::exchange(other.copy_folder_, {});
  }
  return *this;
}

OpenedFile::~OpenedFile() { remove_copy(); }

void OpenedFile::remove_copy() {
  database_.close();
  std::error_code ignored;
  if (!copy_folder_.empty()) fs::remove_all(copy_folder_, ignored);
  copy_folder_.clear();
}

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
      HR_TRY(file.copy_folder_, copy_with_log(path));
      database = try_open(file.copy_folder_ + "/copy.hrec");
    }
  }
  if (!database) return tl::unexpected(explain(path, database.error()));
  file.database_ = std::move(*database);
  if (auto known = file.check_format(); !known) return tl::unexpected(within(path, known.error()));
  return file;
}

Result<void> OpenedFile::check_format() {
  HR_TRY(const auto id, database_.number("PRAGMA application_id"));
  if (id != kApplicationId) return fail(Errc::kInvalidInput, "this SQLite file is not a Headroom recording");
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
