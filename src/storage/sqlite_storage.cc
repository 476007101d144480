// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_storage.h"

#include <sys/stat.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/database_copy.h"
#include "base/sqlite.h"
#include "base/strings.h"
#include "base/visible.h"
#include "storage/rdb_schema.h"

namespace headroom {

namespace {

class SqliteTables {
 public:
  SqliteTables(const StorageRequest& request, Database& database, Nanos hold, Pauses pauses)
      : request_(request), database_(database), hold_(hold), pauses_(pauses), assembler_(request.study) {}

  Result<StorageContent> read() {
    HR_TRYV(check());
    HR_TRYV(read_studies());
    HR_TRYV(read_trials());
    HR_TRYV(read_parameters());
    HR_TRYV(read_values());
    HR_TRYV(read_reports());
    HR_TRYV(read_attributes());
    HR_TRYV(read_heartbeats());
    auto content = finished_content(request_, assembler_,
                                    fmt::format("SQLite, schema {}, Optuna {}", visible(schema_), visible(library_)));
    if (!content) return content;
    for (Study& study : content->studies) {
      study.storage = "sqlite";
      study.schema = schema_;
      study.library_version = library_;
    }
    return content;
  }

 private:
  // What the first column of a query with one row has; "" where there is none.
  Result<std::string> text(std::string_view sql) {
    HR_TRY(Statement statement, database_.prepare(sql));
    HR_TRY(const bool row, statement.step());
    return std::string(row ? statement.bytes(0) : std::string_view());
  }

  Result<bool> has_table(std::string_view name) {
    HR_TRY(Statement found, database_.prepare("SELECT 1 FROM sqlite_schema WHERE type='table' AND name=?1"));
    found.bind(1, name);
    return found.step();
  }

  // The column, or an empty text where a table of an older schema has none.
  Result<std::string> column(std::string_view table, std::string_view name) {
    HR_TRY(Statement found, database_.prepare("SELECT 1 FROM pragma_table_info(?1) WHERE name=?2"));
    found.bind(1, table);
    found.bind(2, name);
    HR_TRY(const bool there, found.step());
    return std::string(there ? name : "''");
  }

  Result<void> check() {
    for (const std::string_view name : {"version_info", "studies", "trials"}) {
      HR_TRY(const bool there, has_table(name));
      if (!there) return not_optuna();
    }
    HR_TRYV(database_.check_stored_tables(kOptunaTables));
    HR_TRYV(database_.check_stored_tables(std::array{kHeartbeatTable}));
    HR_TRY(const bool versions, has_table("alembic_version"));
    if (versions) {
      HR_TRY(schema_, text("SELECT version_num FROM alembic_version"));
    }
    HR_TRYV(check_schema(schema_));
    for (const std::string_view name : kOptunaTables) {
      HR_TRY(const bool there, has_table(name));
      if (!there) return fail(Errc::kCorrupt, fmt::format("Optuna's table {} is missing in it", name));
    }
    HR_TRY(library_, text("SELECT library_version FROM version_info"));
    return {};
  }

  Result<void> not_optuna() {
    constexpr std::string_view kFirst =
        "SELECT group_concat(name, ', ') FROM (SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name LIMIT "
        "6)";
    constexpr std::string_view kTrace =
        "SELECT name FROM sqlite_schema WHERE name LIKE 'CUPTI%' OR name IN ('NVTX_EVENTS', "
        "'TARGET_INFO_SESSION_START_TIME') LIMIT 1";
    HR_TRY(const std::string trace, text(kTrace));
    if (!trace.empty())
      return fail(Errc::kInvalidInput, "an export of Nsight Systems, no storage of Optuna",
                  fmt::format("headroom why {}", typed_word(request_.name)));
    HR_TRY(const std::string tables, text(kFirst));
    return fail(Errc::kInvalidInput,
                tables.empty() ? "an SQLite database without a table"
                               : fmt::format("an SQLite database with other tables than Optuna's: {}", visible(tables)),
                "name the file that optuna.create_study(storage=…) was given");
  }

  // Calls `row` for each row of a table, whose columns count from 1. A lock is held from the first step to the reset.
  template <class Row>
  Result<void> each_row(std::string_view table, const std::string& columns, Row row) {
    HR_TRY(Statement rows,
           database_.prepare(fmt::format("SELECT rowid, {} FROM {} WHERE rowid > ?1 ORDER BY rowid", columns, table)));
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (bool more = true; more;) {
      rows.bind(1, last);
      Nanos begin = 0, now = 0;
      do {
        HR_TRY(more, rows.step());
        now = monotonic_now();
        if (begin == 0) begin = now;
        if (!more) break;
        const std::int64_t id = rows.integer(0);
        if (id <= last) return fail(Errc::kCorrupt, fmt::format("the rows of {} are not in order", table));
        last = id;
        row(rows);
      } while (now - begin < hold_);
      rows.reset();
      if (more && pauses_ == Pauses::kYes) std::this_thread::sleep_for(std::chrono::nanoseconds(now - begin));
    }
    return {};
  }

  static std::optional<double> number(const Statement& row, int column) {
    return row.is_number(column) ? std::optional(row.real(column)) : std::nullopt;
  }

  // Absent where it is NULL; a text that is no time makes the row one that was left out.
  std::optional<Nanos> time(const Statement& row, int column) {
    if (row.is_null(column)) return std::nullopt;
    const auto at = stored_time(row.bytes(column));
    if (!at) assembler_.count_left_out();
    return at;
  }

  Result<void> read_studies() {
    HR_TRYV(each_row("studies", "study_id, study_name",
                     [this](const Statement& row) { assembler_.add_study(row.integer(1), row.bytes(2)); }));
    HR_TRYV(each_row("study_directions", "study_id, objective, direction", [this](const Statement& row) {
      assembler_.add_direction(row.integer(1), row.integer(2), direction_of(row.bytes(3)));
    }));
    return each_row("study_system_attributes",
                    fmt::format("study_id, key, CASE WHEN {} THEN value_json END", kReadKeys),
                    [this](const Statement& row) {
                      if (StudyAssembler::is_read(row.bytes(2)))
                        assembler_.add_study_attribute(row.integer(1), row.bytes(2), parse_python_json(row.bytes(3)));
                    });
  }

  Result<void> read_trials() {
    return each_row("trials", "trial_id, study_id, number, state, datetime_start, datetime_complete",
                    [this](const Statement& row) {
                      const auto state = trial_state_of(row.bytes(4));
                      if (!state) return assembler_.count_left_out();
                      TrialRow trial{.id = row.integer(1), .study = row.integer(2), .state = *state};
                      if (!row.is_null(3)) trial.number = row.integer(3);
                      trial.start = time(row, 5);
                      trial.complete = time(row, 6);
                      assembler_.add_trial(trial);
                    });
  }

  Result<void> read_parameters() {
    return each_row("trial_params", "trial_id, param_name, param_value, distribution_json",
                    [this](const Statement& row) {
                      assembler_.add_parameter(row.integer(1), row.bytes(2), number(row, 3), row.bytes(4));
                    });
  }

  Result<void> read_values() {
    HR_TRY(const std::string type, column("trial_values", "value_type"));
    return each_row("trial_values", fmt::format("trial_id, objective, value, {}", type), [this](const Statement& row) {
      assembler_.add_value(row.integer(1), row.integer(2), stored_value(number(row, 3), row.bytes(4)));
    });
  }

  Result<void> read_reports() {
    HR_TRY(const std::string type, column("trial_intermediate_values", "intermediate_value_type"));
    return each_row("trial_intermediate_values", fmt::format("trial_id, step, intermediate_value, {}", type),
                    [this](const Statement& row) {
                      assembler_.add_report(row.integer(1), row.integer(2), stored_value(number(row, 3), row.bytes(4)));
                    });
  }

  Result<void> read_attributes() {
    return each_row("trial_system_attributes",
                    fmt::format("trial_id, key, CASE WHEN {} THEN value_json END", kReadKeys),
                    [this](const Statement& row) {
                      if (StudyAssembler::is_read(row.bytes(2)))
                        assembler_.add_attribute(row.integer(1), row.bytes(2), parse_python_json(row.bytes(3)));
                    });
  }

  Result<void> read_heartbeats() {
    HR_TRY(const bool there, has_table(kHeartbeatTable));
    if (!there) return {};
    return each_row(kHeartbeatTable, "trial_id, heartbeat", [this](const Statement& row) {
      assembler_.add_heartbeat(row.integer(1), stored_time(row.bytes(2)));
    });
  }

  const StorageRequest& request_;
  Database& database_;
  Nanos hold_;
  Pauses pauses_;
  StudyAssembler assembler_;
  std::string schema_, library_;
};

}  // namespace

Result<StorageContent> read_sqlite_tables(const StorageRequest& request, Database& database, Nanos hold,
                                          Pauses pauses) {
  return SqliteTables(request, database, hold, pauses).read();
}

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
