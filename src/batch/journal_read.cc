// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/database_copy.h"
#include "base/strings.h"
#include "batch/journal_rows.h"
#include "record/format.h"
#include "record/open.h"

// The journal for everybody but its writer: in the batch's folder, and copied into a recording.
namespace headroom::batch {

namespace {

struct Copied {
  const char* table;  // of the journal
  const char* copy;   // of the recording
};
constexpr std::array kCopied{Copied{"meta", "batch_meta"}, Copied{"runs", "batch_run"}, Copied{"tasks", "batch_task"},
                             Copied{"attempts", "batch_attempt"}};

std::optional<std::int64_t> optional_integer(const Statement& statement, int column) {
  if (statement.is_null(column)) return std::nullopt;
  return statement.integer(column);
}

template <class E>
E enum_of(std::int64_t stored, std::size_t known, E otherwise) {
  return stored >= 0 && static_cast<std::size_t>(stored) < known ? static_cast<E>(stored) : otherwise;
}

Attempt attempt_of(const Statement& row) {
  Attempt attempt;
  attempt.id = static_cast<AttemptId>(row.integer(0));
  attempt.number = static_cast<int>(row.integer(2));
  attempt.slot = static_cast<int>(row.integer(3));
  attempt.start = row.integer(4);
  attempt.pid = row.integer(5);
  attempt.boot_id = row.bytes(6);
  attempt.process_start = optional_integer(row, 7);
  attempt.log_path = row.bytes(8);
  take_start_facts(row.bytes(9), attempt);
  attempt.end = optional_integer(row, 10);
  if (const auto outcome = optional_integer(row, 11))
    attempt.outcome = enum_of(*outcome, kOutcomes.size(), AttemptOutcome::kFailed);
  if (const auto code = optional_integer(row, 12)) attempt.exit_code = static_cast<int>(*code);
  attempt.reason = row.bytes(13);
  attempt.proof = enum_of(row.integer(14), 4, PlacementProof::kUnseen);
  take_end_facts(row.bytes(15), attempt);
  return attempt;
}
constexpr std::string_view kAttemptColumns =
    "id, task, number, slot, start, pid, boot_id, process_start, log, facts, end, outcome, exit_code, reason, proof, "
    "result";

Result<Contents> read_tables(Database& database) {
  Contents result;
  HR_TRYV(database.execute("BEGIN"));  // one state of all tables
  HR_TRY(Statement meta, database.prepare("SELECT key, value FROM meta"));
  for (;;) {
    HR_TRY(const bool more, meta.step());
    if (!more) break;
    if (meta.bytes(0) == "batch_id") result.batch_id = meta.bytes(1);
  }
  HR_TRY(Statement runs, database.prepare(fmt::format("SELECT {} FROM runs ORDER BY number", kRunColumns)));
  for (;;) {
    HR_TRY(const bool more, runs.step());
    if (!more) break;
    result.runs.push_back(run_of(runs));
  }
  HR_TRY(auto known, known_tasks(database));
  std::map<TaskKey, TaskIndex> index;
  for (auto& [key, task] : known) {
    index.emplace(key, static_cast<TaskIndex>(result.tasks.size()));
    result.tasks.push_back(std::move(task));
  }
  HR_TRY(Statement rows, database.prepare(fmt::format("SELECT {} FROM attempts ORDER BY id", kAttemptColumns)));
  for (;;) {
    HR_TRY(const bool more, rows.step());
    if (!more) break;
    const auto task = index.find(rows.integer(1));
    if (task == index.end()) continue;
    result.attempts.push_back(attempt_of(rows));
    result.attempts.back().task = task->second;
  }
  return result;
}

}  // namespace

Run run_of(const Statement& row) {
  Run run;
  run.number = row.integer(0);
  run.start = row.integer(1);
  run.end = optional_integer(row, 2);
  run.end_reason = row.bytes(3);
  run.command = row.bytes(4);
  run.working_directory = row.bytes(5);
  run.git_commit = row.bytes(6);
  if (const auto dirty = optional_integer(row, 7)) run.git_dirty = *dirty != 0;
  run.recording = row.bytes(8);
  return run;
}

namespace {

struct NewColumn {
  const char *name, *type;
};
constexpr std::array kNewColumns{NewColumn{"parameters", "TEXT"}, NewColumn{"run", "INTEGER"},
                                 NewColumn{"added", "INTEGER"}};  // of the tasks

Result<std::set<std::string>> columns_there(Database& database) {
  std::set<std::string> there;
  HR_TRY(Statement rows, database.prepare("SELECT name FROM pragma_table_info('tasks')"));
  for (;;) {
    HR_TRY(const bool more, rows.step());
    if (!more) return there;
    there.emplace(rows.bytes(0));
  }
}

// Of tasks with one name that of the latest run counts, and of one run the one that was added last.
void mark_superseded(std::map<TaskKey, KnownTask>& tasks) {
  std::map<std::string_view, KnownTask*> latest;
  for (auto& [key, task] : tasks) {
    KnownTask*& best = latest[task.name];
    const bool newer = best == nullptr || task.run >= best->run;
    if (best != nullptr) (newer ? best : &task)->superseded = true;
    if (newer) best = &task;
  }
}

}  // namespace

Result<void> add_new_columns(Database& database) {
  HR_TRY(const auto there, columns_there(database));
  for (const NewColumn& column : kNewColumns)
    if (!there.contains(column.name))
      HR_TRYV(database.execute(fmt::format("ALTER TABLE tasks ADD COLUMN {} {}", column.name, column.type).c_str()));
  return {};
}

Result<std::map<TaskKey, KnownTask>> known_tasks(Database& database) {
  std::map<TaskKey, KnownTask> known;
  HR_TRY(const auto columns, columns_there(database));
  HR_TRY(Statement rows,
         database.prepare(fmt::format("SELECT key, name, state, reason, grp, fingerprint, {}, {} FROM tasks",
                                      columns.contains("run") ? "parameters, run" : "NULL, 0",
                                      columns.contains("added") ? "added" : "0")));
  for (;;) {
    HR_TRY(const bool more, rows.step());
    if (!more) break;
    KnownTask task{.key = rows.integer(0), .name = std::string(rows.bytes(1))};
    task.state = enum_of(rows.integer(2), kTaskStates.size(), TaskState::kReady);
    task.reason = rows.bytes(3);
    task.group = rows.bytes(4);
    task.fingerprint = rows.bytes(5);
    task.parameters = pairs_of(rows.bytes(6));
    task.run = rows.integer(7), task.added = rows.integer(8) != 0;
    known.emplace(task.key, std::move(task));
  }
  HR_TRY(Statement attempts, database.prepare("SELECT task, outcome, end FROM attempts ORDER BY id"));
  for (;;) {
    HR_TRY(const bool more, attempts.step());
    if (!more) break;
    const auto found = known.find(attempts.integer(0));
    if (found == known.end()) continue;
    found->second.attempts += 1;
    const auto outcome = optional_integer(attempts, 1);
    found->second.deaths = attempts.is_null(2) ? found->second.deaths + 1 : 0;
    found->second.under_way = attempts.is_null(2) && !outcome;
    found->second.interrupted =
        attempts.is_null(2) || outcome == static_cast<std::int64_t>(AttemptOutcome::kInterrupted);
    found->second.in_flight = attempts.is_null(2);  // of the last one; begin_run() gives it an outcome, and no end
    if (outcome && info(enum_of(*outcome, kOutcomes.size(), AttemptOutcome::kFailed)).tasks_fault)
      found->second.failures += 1;
  }
  mark_superseded(known);
  return known;
}

Result<std::vector<KnownTask>> known_of(Database& database, std::span<const TaskSpec> specs) {
  HR_TRY(const auto known, known_tasks(database));
  std::map<std::pair<std::string, std::int64_t>, TaskKey> keys;
  HR_TRY(Statement rows, database.prepare("SELECT identity, occurrence, key FROM tasks"));
  for (;;) {
    HR_TRY(const bool more, rows.step());
    if (!more) break;
    keys.emplace(std::pair{std::string(rows.bytes(0)), rows.integer(1)}, rows.integer(2));
  }
  std::set<std::string_view> done;
  for (const auto& [key, task] : known)
    if (task.state == TaskState::kSucceeded) done.insert(task.name);
  std::map<std::string_view, std::int64_t> seen;
  std::vector<KnownTask> result;
  result.reserve(specs.size());
  for (const TaskSpec& spec : specs) {
    const auto found = keys.find({spec.identity, seen[spec.identity]++});
    KnownTask task;
    if (found != keys.end()) task = known.at(found->second);
    task.changed = task.state != TaskState::kSucceeded && done.contains(spec.name);
    result.push_back(std::move(task));
  }
  return result;
}

Result<void> check_is_journal(Database& database) {
  HR_TRY(const auto tables, database.number("SELECT count(*) FROM sqlite_schema WHERE type='table'"));
  if (tables == 0) return {};
  HR_TRY(const auto ours, database.number("SELECT count(*) FROM sqlite_schema WHERE type='table' AND name IN "
                                          "('meta','runs','tasks','attempts')"));
  if (ours != 4) return fail(Errc::kCorrupt, "it is no journal of a batch");
  constexpr std::string_view kTables[]{"meta", "runs", "tasks", "attempts"};
  HR_TRYV(database.check_stored_tables(kTables));
  HR_TRY(const auto version, database.number("SELECT value+0 FROM meta WHERE key='version'"));
  if (version > kJournalVersion)
    return fail(Errc::kUnsupported, fmt::format("written by a newer headroom (version {} of the journal)", version),
                "use that version, or start over with --fresh");
  return {};
}

std::string journal_path(const std::string& folder) { return folder + "/journal.sqlite"; }

namespace {

std::int64_t size_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

bool has_content(const std::string& path) { return size_of(path) > 0; }

// Of SQLite's machine, for a journal of this size that may be anybody's.
std::int64_t steps_for(const std::string& path) {
  constexpr std::int64_t kAnyJournal = std::int64_t{1} << 28, kPerByte = 1000, kLargest = std::int64_t{1} << 50;
  return kAnyJournal + kPerByte * std::min(kLargest, size_of(path) + size_of(path + "-wal"));
}

// `read` of the database of that name; `empty` where it was never filled, since the batch died while it began.
template <class Answer, class Read>
Result<Answer> read_as(const std::string& name, Access access, std::int64_t steps, const Answer& empty,
                       const Read& read) {
  constexpr int kLongestText = 64 << 20;
  HR_TRY(Database database, Database::open(name, access));
  (void)database.execute("PRAGMA busy_timeout=5000");
  HR_TRYV(database.distrust(kLongestText));
  database.limit_steps(steps);
  HR_TRYV(check_is_journal(database));
  HR_TRY(const auto tables, database.number("SELECT count(*) FROM sqlite_schema WHERE type='table'"));
  if (tables == 0) return empty;
  return read(database);
}

// The same of the journal, wherever it lies and however its writer ended. Nothing in the folder is changed.
template <class Answer, class Read>
Result<Answer> read_in(const std::string& folder, const Answer& empty, const Read& read) {
  const std::string path = journal_path(folder);
  if (::access(path.c_str(), R_OK) != 0)
    return fail(Errc::kNotFound, fmt::format("there is no batch in {}", folder),
                "name the folder of a batch (….batch), or the task file it was started with");
  HR_TRYV(check_regular_files(path));
  const auto read_at = [&](const std::string& name, Access access) {
    return read_as(name, access, steps_for(path), empty, read);
  };
  auto answer = read_at(path, Access::kReadOnly);
  const auto unreadable = [&answer] {
    return !answer && (answer.error().code == Errc::kIo || answer.error().code == Errc::kNoSpace ||
                       answer.error().code == Errc::kNoPermission);
  };
  // On a full disk, or where nothing may be written, SQLite cannot share memory, and a reader may not undo what a
  // writer died in. Without log and journal nobody writes, and there is nothing to undo; else a copy is read. A batch
  // that goes on meanwhile spoils the copy, and makes it needless.
  for (int tries = 0; tries < 3 && unreadable(); ++tries) {
    if (!has_content(path + "-wal") && !has_content(path + "-journal")) {
      if (auto again = read_at(immutable_name(path), Access::kReadOnly)) return again;
    } else if (const auto copy = DatabaseCopy::make(path)) {
      if (auto again = read_at(copy->path(), Access::kReadWrite)) return again;
    }
    answer = read_at(path, Access::kReadOnly);
  }
  if (!answer) return tl::unexpected(within(fmt::format("journal {}", path), answer.error()));
  return answer;
}

}  // namespace

Result<Contents> read_own_journal(const std::string& folder) { return read_in(folder, Contents{}, read_tables); }

Result<std::vector<KnownTask>> known_in(const std::string& folder, std::span<const TaskSpec> specs) {
  return read_in(folder, std::vector<KnownTask>(specs.size()),
                 [specs](Database& database) { return known_of(database, specs); });
}

Result<void> copy_journal(const std::string& folder, const std::string& recording) {
  auto copied = [&]() -> Result<void> {
    HR_TRY(Database database, Database::open(recording, Access::kReadWrite));
    HR_TRY(const auto id, database.number("PRAGMA application_id"));
    if (id != kApplicationId) return fail(Errc::kInvalidInput, "it is no recording");
    HR_TRY(Statement attach, database.prepare("ATTACH ? AS journal"));
    const std::string path = journal_path(folder);
    attach.bind(1, std::string_view(path));
    HR_TRYV(attach.run());
    HR_TRYV(database.execute("BEGIN"));
    for (const Copied& one : kCopied)
      HR_TRYV(
          database.execute(fmt::format("CREATE TABLE {} AS SELECT * FROM journal.{}", one.copy, one.table).c_str()));
    return database.execute("COMMIT");
  }();
  if (!copied) return tl::unexpected(within(fmt::format("copy the journal into {}", recording), copied.error()));
  return {};
}

Result<Contents> read_copied_journal(const std::string& recording) {
  HR_TRY(OpenedFile file, OpenedFile::open(recording));
  Database& database = file.database();
  HR_TRY(
      const auto copies,
      database.number("SELECT count(*) FROM sqlite_schema WHERE type='table' AND name LIKE 'batch\\_%' ESCAPE '\\'"));
  if (copies < static_cast<std::int64_t>(kCopied.size()))
    return fail(Errc::kNotFound, fmt::format("{} holds no batch", recording),
                "a batch is copied into its recording when it ends; headroom batch show --folder reads its journal");
  auto contents = [&]() -> Result<Contents> {
    HR_TRYV(database.execute("PRAGMA query_only=0"));  // views of this connection's own; the file is opened read-only
    for (const Copied& one : kCopied)
      HR_TRYV(
          database.execute(fmt::format("CREATE TEMP VIEW {} AS SELECT * FROM main.{}", one.table, one.copy).c_str()));
    return read_tables(database);
  }();
  if (!contents) return tl::unexpected(within(recording, contents.error()));
  return contents;
}

}  // namespace headroom::batch
