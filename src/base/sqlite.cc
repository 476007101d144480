// SPDX-License-Identifier: Apache-2.0
#include "base/sqlite.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/answers.h"
#include "base/fd.h"

namespace headroom {

namespace {
Errc errc_of_sqlite(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Errc::kNoSpace;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Errc::kBusy;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return Errc::kNoPermission;
    case SQLITE_INTERRUPT:  // limit_steps()
    case SQLITE_CORRUPT:
      return Errc::kCorrupt;
    case SQLITE_NOTADB:
      return Errc::kInvalidInput;
    default:
      return Errc::kIo;
  }
}

constexpr std::array kBeside{"-wal", "-shm", "-journal"};

// SQLite's own access to files, but for two doors. A rollback journal may name a "super-journal", the journal of a
// transaction over several files, and SQLite deletes the file of that name. Nothing of ours, and nothing that we read,
// writes such transactions; so the name is whatever somebody has put there. It is not opened, and nothing but the three
// files that SQLite keeps beside a database is deleted.
constexpr const char* kVfs = "headroom";

int open_file(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* opened) {
  sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  file->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_SUPER_JOURNAL) != 0) return SQLITE_CANTOPEN;
  return system->xOpen(system, name, file, flags, opened);
}

int delete_file(sqlite3_vfs*, const char* name, int sync) {
  sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  const std::string_view path = name;
  if (std::none_of(kBeside.begin(), kBeside.end(), [path](const char* suffix) { return path.ends_with(suffix); }))
    return SQLITE_IOERR_DELETE;
  return system->xDelete(system, name, sync);
}

void configure_once() {
  static std::once_flag once;
  static sqlite3_vfs vfs;
  std::call_once(once, [] {
    // Memory statistics cost a mutex per allocation; must be set before the library starts.
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    vfs = *sqlite3_vfs_find(nullptr);
    vfs.zName = kVfs;
    vfs.pNext = nullptr;
    vfs.xOpen = open_file;
    vfs.xDelete = delete_file;
    sqlite3_vfs_register(&vfs, 0);
  });
}

// The name of a super-journal ends a rollback journal (SQLite's file format, section 3; pager.c, readSuperJournal):
// its length and checksum, four bytes each, and these.
constexpr std::string_view kJournalMagic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8);

Result<void> check_names_no_other_file(const std::string& path) {
  const std::string journal = path + "-journal";
  const Fd file(::open(journal.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  std::string end(kJournalMagic.size(), '\0');
  const off_t size = file ? ::lseek(file.get(), 0, SEEK_END) : 0;
  const off_t at = size - static_cast<off_t>(end.size());
  // Shorter than header, name's length, checksum and magic: no journal.
  if (at <= 0 || ::pread(file.get(), end.data(), end.size(), at) != static_cast<ssize_t>(end.size())) return {};
  if (end != kJournalMagic) return {};
  return fail(Errc::kInvalidInput,
              fmt::format("{} names another file, which undoing it would delete; headroom does not open it", journal),
              fmt::format("remove {} if you trust {} as it is", journal, path));
}
}  // namespace

Result<void> check_regular_files(const std::string& path) {
  HR_TRYV(answers(path));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return fail(Errc::kInvalidInput, fmt::format("{} is not a file", path));
  // SQLite follows a link to the database, and looks for the others beside what it leads to.
  const std::unique_ptr<char, decltype(&::free)> real(::realpath(path.c_str(), nullptr), ::free);
  const std::string there = real ? real.get() : path;
  for (const char* suffix : kBeside)
    if (::lstat((there + suffix).c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      return fail(Errc::kInvalidInput, fmt::format("{}{} is not a file", there, suffix));
  return check_names_no_other_file(there);
}

Error sqlite_error(sqlite3* connection) {
  if (connection == nullptr) return {Errc::kIo, "SQLite has no memory", ""};
  return {errc_of_sqlite(sqlite3_errcode(connection)), sqlite3_errmsg(connection), ""};
}

std::string immutable_name(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                       c == '.' || c == '-' || c == '_';
    if (plain)
      uri += c;
    else
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri + "?immutable=1";
}

void Statement::bind(int index, std::int64_t value) { sqlite3_bind_int64(statement_.get(), index, value); }
void Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_.get(), index, text.data() ? text.data() : "", text.size(), SQLITE_STATIC, SQLITE_UTF8);
}
void Statement::bind_blob(int index, std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), index, bytes.data() ? bytes.data() : "", bytes.size(), SQLITE_STATIC);
}
void Statement::bind_null(int index) { sqlite3_bind_null(statement_.get(), index); }

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return tl::unexpected(sqlite_error(sqlite3_db_handle(statement_.get())));
}

Result<void> Statement::run() {
  Result<void> done;
  for (;;) {
    const auto row = step();
    if (!row) done = tl::unexpected(row.error());
    if (!row || !*row) break;
  }
  reset();
  return done;
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
bool Statement::is_number(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string_view() : std::string_view(data, static_cast<std::size_t>(size));
}

Result<Database> Database::open(const std::string& name, Access access) {
  configure_once();
  const bool of_one_file = name != ":memory:" && !name.starts_with("file:");
  if (of_one_file) HR_TRYV(check_regular_files(name));
  Database database;
  sqlite3* connection = nullptr;
  const int mode = access == Access::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  const int code = sqlite3_open_v2(name.c_str(), &connection, mode | SQLITE_OPEN_URI, kVfs);
  database.connection_.reset(connection);
  if (code != SQLITE_OK) return tl::unexpected(sqlite_error(connection));
  sqlite3_extended_result_codes(connection, 1);
  return database;
}

Result<void> Database::execute(const char* sql) {
  if (sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return tl::unexpected(sqlite_error(connection_.get()));
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK)
    return tl::unexpected(sqlite_error(connection_.get()));
  return Statement(statement);
}

Result<std::int64_t> Database::number(std::string_view sql) {
  HR_TRY(Statement statement, prepare(sql));
  HR_TRY(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

namespace {
// Table names are the same to SQLite in capitals or not.
Result<void> check_stored_table(Database& database, std::string_view name) {
  HR_TRY(Statement found, database.prepare("SELECT type, sql FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE"
                                           " AND type IN ('table', 'view')"));
  found.bind(1, name);
  HR_TRY(const bool exists, found.step());
  if (!exists) return {};
  constexpr std::string_view kTable = "CREATE TABLE";
  if (found.bytes(0) != "table" || !found.bytes(1).starts_with(kTable))
    return fail(Errc::kCorrupt, fmt::format("{} is no table", name));
  HR_TRY(Statement columns, database.prepare("SELECT count(*) FROM pragma_table_xinfo(?1) WHERE hidden <> 0 OR "
                                             "length(dflt_value) > 64"));
  columns.bind(1, name);
  HR_TRY(const bool counted, columns.step());
  if (counted && columns.integer(0) != 0)
    return fail(Errc::kCorrupt, fmt::format("{} has columns that are not stored", name));
  return {};
}
}  // namespace

Result<void> Database::check_stored_tables(std::span<const std::string_view> names) {
  for (const std::string_view name : names) HR_TRYV(check_stored_table(*this, name));
  return {};
}

Result<void> Database::distrust(int most_bytes) {
  sqlite3_limit(connection_.get(), SQLITE_LIMIT_LENGTH, most_bytes);
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return execute("PRAGMA cell_size_check=1");
}

void Database::limit_steps(std::int64_t steps) {
  constexpr int kBetween = 1 << 16;
  steps_left_ = std::make_unique<std::int64_t>(steps);
  const auto count = [](void* left) { return (*static_cast<std::int64_t*>(left) -= kBetween) < 0 ? 1 : 0; };
  sqlite3_progress_handler(connection_.get(), kBetween, count, steps_left_.get());
}

Result<void> Database::sync() {
  // By SQLite's own descriptor: closing another one would drop its locks.
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
      file == nullptr || file->pMethods == nullptr || file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) != SQLITE_OK)
    return fail(Errc::kIo, "the file cannot be synchronised with the disk");
  return {};
}

}  // namespace headroom
