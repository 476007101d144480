// SPDX-License-Identifier: Apache-2.0
#include "batch/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <system_error>

#include "base/filesystem.h"
#include "base/ids.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "batch/journal_rows.h"

namespace headroom::batch {

namespace {

constexpr Nanos kSyncEvery = 10 * kMillisecond;
constexpr off_t kReserveBytes = 2 << 20;          // given back to the file system when it is full
constexpr Nanos kReserveAgain = 10 * kSecond;     // after that, where there is room again
constexpr std::uint64_t kCheckpointEvery = 2000;  // transactions, about 20 MB of log

constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS runs(number INTEGER PRIMARY KEY, start INTEGER, end INTEGER, end_reason TEXT,"
    " command TEXT, cwd TEXT, git_commit TEXT, git_dirty INTEGER, recording TEXT);"
    "CREATE TABLE IF NOT EXISTS tasks(key INTEGER PRIMARY KEY, identity TEXT, occurrence INTEGER, name TEXT,"
    " grp TEXT, state INTEGER, reason TEXT, fingerprint TEXT, parameters TEXT, run INTEGER,"
    " added INTEGER, UNIQUE(identity, occurrence));"
    "CREATE TABLE IF NOT EXISTS attempts(id INTEGER PRIMARY KEY, task INTEGER, run INTEGER, number INTEGER,"
    " slot INTEGER, start INTEGER, pid INTEGER, boot_id TEXT, process_start INTEGER, log TEXT, facts TEXT,"
    " end INTEGER, outcome INTEGER, exit_code INTEGER, reason TEXT, proof INTEGER, result TEXT);";

constexpr std::string_view kWhyIo = " (a disk that fails, a quota, or a limit on the size of files: ulimit -f)";

// SQLite says "disk I/O error" for some of the ways in which a disk can be full.
bool is_full(const Error& error) { return error.code == Errc::kNoSpace || error.code == Errc::kIo; }

void bind_optional(Statement& statement, int index, const std::optional<std::int64_t>& value) {
  if (value)
    statement.bind(index, *value);
  else
    statement.bind_null(index);
}
}  // namespace

Result<std::unique_ptr<Journal>> Journal::open(const std::string& folder, Medium medium) {
  std::unique_ptr<Journal> journal(new Journal());
  journal->on_network_ = medium == Medium::kDetect ? !network_filesystem(folder).empty() : medium == Medium::kNetwork;
  auto ready = journal->prepare(folder);
  if (ready) return journal;
  Error error = within(fmt::format("journal {}", journal_path(folder)), ready.error());
  if (error.code == Errc::kInvalidInput) error.code = Errc::kCorrupt;  // not even a database
  if (error.code == Errc::kCorrupt) error.hint = "--fresh starts over; what is there is kept aside";
  if (is_full(error) && free_bytes(folder).value_or(kReserveBytes) < kReserveBytes) {
    error.what += ": the disk is full";
    error.hint = "make room, then give the same command again";
  } else if (error.code == Errc::kIo) {
    error.what += kWhyIo;
    error.hint = "--folder chooses another place";
  }
  return tl::unexpected(error);
}

Result<void> Journal::prepare(const std::string& folder) {
  path_ = journal_path(folder);
  folder_ = Fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  // With this mode SQLite makes the files beside it, too. Closed before it has any lock on the file.
  if (!Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR)))
    return tl::unexpected(errno_error("open"));
  HR_TRY(database_, Database::open(path_, Access::kReadWrite));
  HR_TRYV(database_.execute("PRAGMA busy_timeout=5000"));
  HR_TRYV(check_is_journal(database_));
  HR_TRYV(database_.execute(on_network_ ? "PRAGMA journal_mode=TRUNCATE" : "PRAGMA journal_mode=WAL"));
  HR_TRYV(database_.execute(on_network_ ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
  HR_TRYV(database_.execute("PRAGMA wal_autocheckpoint=0"));
  HR_TRYV(database_.execute("BEGIN IMMEDIATE"));
  HR_TRYV(database_.execute(kSchema));
  HR_TRYV(add_new_columns(database_));
  HR_TRYV(load());
  HR_TRYV(database_.execute("COMMIT"));
  HR_TRYV(prepare_statements());
  reserve_ = folder + "/reserve";
  make_reserve();
  if (!on_network_) start_syncing();
  remember_files();
  return {};
}

Result<void> Journal::prepare_statements() {
  HR_TRY(begin_, database_.prepare("BEGIN IMMEDIATE"));
  HR_TRY(commit_, database_.prepare("COMMIT"));
  HR_TRY(rollback_, database_.prepare("ROLLBACK"));
  HR_TRY(started_,
         database_.prepare("INSERT OR REPLACE INTO attempts(id, task, run, number, slot, start, boot_id, log, "
                           "facts) VALUES(?,?,?,?,?,?,?,?,?)"));
  // What an earlier run said of its end: should this run be killed, the task has not ended.
  HR_TRY(begun_, database_.prepare(fmt::format("UPDATE tasks SET state={0}, reason='' WHERE key=? AND state<>{0}",
                                               static_cast<int>(TaskState::kReady))));
  HR_TRY(process_, database_.prepare("UPDATE attempts SET pid=?, process_start=? WHERE id=?"));
  HR_TRY(ended_, database_.prepare("UPDATE attempts SET end=?, outcome=?, exit_code=?, reason=?, proof=?, result=?, "
                                   "pid=COALESCE(?, pid) WHERE id=?"));
  HR_TRY(task_, database_.prepare("UPDATE tasks SET state=?, reason=? WHERE key=?"));
  HR_TRY(fingerprint_, database_.prepare("UPDATE tasks SET fingerprint=? WHERE key=?"));
  HR_TRY(gpu_time_, database_.prepare("UPDATE attempts SET result=json_set(result, '$.gpu_time_ns', ?) WHERE id=?"));
  HR_TRY(metric_, database_.prepare("UPDATE attempts SET result=json_insert(json_insert(result, '$.metrics', "
                                    "json_array()), '$.metrics[#]', json(?1)) WHERE id=?2 AND NOT EXISTS(SELECT 1 FROM "
                                    "json_each(result, '$.metrics') WHERE json_extract(value, '$[0]')="
                                    "json_extract(?1, '$[0]'))"));
  HR_TRY(course_, database_.prepare("UPDATE attempts SET result=json_insert(json_insert(result, '$.courses', "
                                    "json_array()), '$.courses[#]', json(?1)) WHERE id=?2"));
  HR_TRY(run_text_, database_.prepare("UPDATE runs SET recording=? WHERE number=?"));
  HR_TRY(run_end_, database_.prepare("UPDATE runs SET end=?, end_reason=? WHERE number=?"));
  return {};
}

void Journal::make_reserve() {
  ::unlink(reserve_.c_str());
  if (const Fd reserve(::open(reserve_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR)); reserve)
    (void)::posix_fallocate(reserve.get(), 0, kReserveBytes);
}

Result<void> Journal::load() {
  HR_TRY(const std::int64_t version, database_.number("SELECT value+0 FROM meta WHERE key='version'"));
  if (version == 0) {
    batch_id_ = random_id();
    HR_TRYV(database_.execute(
        fmt::format("INSERT INTO meta VALUES('version','{}'),('batch_id','{}')", kJournalVersion, batch_id_).c_str()));
  } else {
    HR_TRY(Statement id, database_.prepare("SELECT value FROM meta WHERE key='batch_id'"));
    HR_TRY(const bool there, id.step());
    if (!there) return fail(Errc::kCorrupt, "it has no batch id");
    batch_id_ = id.bytes(0);
  }
  HR_TRY(const std::int64_t last, database_.number("SELECT max(id) FROM attempts"));
  next_attempt_ = static_cast<AttemptId>(last) + 1;
  HR_TRY(Statement runs,
         database_.prepare(fmt::format("SELECT {} FROM runs ORDER BY number DESC LIMIT 1", kRunColumns)));
  HR_TRY(const bool any, runs.step());
  if (any) {
    last_run_ = run_of(runs);
    run_ = last_run_->number;
  }
  return {};
}

Result<std::vector<KnownTask>> Journal::register_tasks(std::span<const TaskSpec> specs, When when) {
  HR_TRY(std::vector<KnownTask> tasks, known_of(database_, specs));
  HR_TRY(const std::int64_t last, database_.number("SELECT max(key) FROM tasks"));
  TaskKey next = last + 1;
  std::map<std::string_view, std::int64_t> seen;
  HR_TRY(Statement add, database_.prepare("INSERT INTO tasks(key, identity, occurrence, name, grp, state, parameters, "
                                          "run, added) VALUES(?,?,?,?,?,?,?,?,?)"));
  HR_TRY(Statement rename,
         database_.prepare("UPDATE tasks SET name=?, grp=?, parameters=?, run=?, added=? WHERE key=?"));
  HR_TRYV(begin_.run());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const TaskSpec& spec = specs[i];
    KnownTask& task = tasks[i];
    const std::int64_t occurrence = seen[spec.identity]++;
    task.name = spec.name, task.group = spec.group, task.parameters = spec.parameters,
    task.run = run_ + (when == When::kBeforeRun ? 1 : 0), task.added = when == When::kDuringRun;
    const std::string parameters = pairs_text(without_secrets(spec));
    if (task.key == 0) {
      task.key = next++;
      add.bind(1, task.key), add.bind(2, spec.identity), add.bind(3, occurrence), add.bind(4, spec.name);
      add.bind(5, spec.group), add.bind(6, static_cast<std::int64_t>(task.state)), add.bind(7, parameters);
      add.bind(8, task.run), add.bind(9, std::int64_t{task.added});
      HR_TRYV(add.run());
    } else {
      rename.bind(1, spec.name), rename.bind(2, spec.group), rename.bind(3, parameters), rename.bind(4, task.run);
      rename.bind(5, std::int64_t{task.added}), rename.bind(6, task.key);
      HR_TRYV(rename.run());
    }
  }
  HR_TRYV(commit_.run());
  return tasks;
}

Result<void> Journal::begin_run(Run run) {
  HR_TRY(Statement add, database_.prepare(fmt::format("INSERT INTO runs({}) VALUES(?,?,?,?,?,?,?,?,?)", kRunColumns)));
  HR_TRY(Statement close, database_.prepare("UPDATE attempts SET outcome=?, reason=? WHERE outcome IS NULL"));
  HR_TRYV(begin_.run());
  close.bind(1, static_cast<std::int64_t>(AttemptOutcome::kInterrupted));
  close.bind(2, std::string_view("Headroom died before the attempt's end was written"));
  HR_TRYV(close.run());
  run_ += 1;
  add.bind(1, run_), add.bind(2, run.start), add.bind_null(3), add.bind(4, std::string_view(""));
  const std::string command = hide_secrets(run.command);
  add.bind(5, std::string_view(command)), add.bind(6, run.working_directory), add.bind(7, run.git_commit);
  bind_optional(add, 8, run.git_dirty ? std::optional<std::int64_t>(*run.git_dirty ? 1 : 0) : std::nullopt);
  add.bind(9, run.recording);
  HR_TRYV(add.run());
  return commit_.run();
}

Result<std::size_t> Journal::added_and_left() {
  HR_TRY(Statement rows, database_.prepare("SELECT count(*) FROM tasks WHERE added=1 AND state<>?"));
  rows.bind(1, static_cast<std::int64_t>(TaskState::kSucceeded));
  HR_TRYV(rows.step());
  return static_cast<std::size_t>(rows.integer(0));
}

Result<std::vector<Root>> Journal::without_end(std::string_view boot_id) {
  std::vector<Root> roots;
  HR_TRY(Statement rows, database_.prepare("SELECT pid, process_start FROM attempts WHERE end IS NULL AND boot_id=? "
                                           "AND pid IS NOT NULL AND process_start IS NOT NULL"));
  rows.bind(1, boot_id);
  for (;;) {
    HR_TRY(const bool more, rows.step());
    if (!more) return roots;
    roots.push_back({.pid = static_cast<pid_t>(rows.integer(0)), .start = rows.integer(1)});
  }
}

TextPairs Journal::without_secrets(TextPairs pairs) const {
  for (auto& [name, value] : pairs)
    value = is_secret(name, value) ? hidden_value(value, batch_id_) : hide_known_secrets(value);
  return pairs;
}

// A parameter is called by its place, too: what the command hides is hidden here.
TextPairs Journal::without_secrets(const TaskSpec& spec) const {
  TextPairs pairs = without_secrets(spec.parameters);
  const std::vector<std::string> shown = hide_secrets(spec.argv);
  for (auto& [name, value] : pairs)
    for (std::size_t i = 0; i < std::min(shown.size(), spec.argv.size()); ++i)
      if (!value.empty() && shown[i].find(value) == std::string::npos && spec.argv[i].find(value) != std::string::npos)
        value = hidden_value(value, batch_id_);
  return pairs;
}

// Secrets are no part of it: it is copied into the recording, which people send around.
void Journal::note_started(const Attempt& attempt, TaskKey task) {
  Note note{.kind = Note::Kind::kStarted, .attempt = attempt, .task = task};
  note.attempt.argv = hide_secrets(attempt.argv);
  note.attempt.environment = without_secrets(attempt.environment);
  for (std::size_t i = 0; i < std::min(attempt.from_env_file, attempt.environment.size()); ++i)
    note.attempt.environment[i].second = hidden_value(attempt.environment[i].second, batch_id_);
  queue_.push_back(std::move(note));
  next_attempt_ = std::max(next_attempt_, attempt.id + 1);  // for another batch of the same run
}
void Journal::note_process(AttemptId attempt, std::int64_t pid, std::optional<Nanos> process_start) {
  Note note{.kind = Note::Kind::kProcess};
  note.attempt.id = attempt, note.attempt.pid = pid, note.attempt.process_start = process_start;
  queue_.push_back(std::move(note));
}
void Journal::note_ended(const Attempt& attempt) {
  queue_.push_back({.kind = Note::Kind::kEnded, .attempt = attempt});
  TextPairs& resolved = queue_.back().attempt.parameters_resolved;
  resolved = without_secrets(std::move(resolved));
}
void Journal::note_task(TaskKey task, TaskState state, const std::string& reason) {
  queue_.push_back({.kind = Note::Kind::kTask, .task = task, .state = state, .text = reason});
}
void Journal::note_fingerprint(TaskKey task, const std::string& fingerprint) {
  queue_.push_back({.kind = Note::Kind::kFingerprint, .task = task, .text = fingerprint});
}
void Journal::note_gpu_time(AttemptId attempt, Nanos gpu_time) {
  Note note{.kind = Note::Kind::kGpuTime};
  note.attempt.id = attempt, note.attempt.gpu_time = gpu_time;
  queue_.push_back(std::move(note));
}
void Journal::note_metric(const AttemptMetric& metric) {
  Note note{.kind = Note::Kind::kMetric, .text = metric_json(metric.said.name, metric.said.last)};
  note.attempt.id = metric.attempt;
  queue_.push_back(note);
  if (metric.said.values < 2) return;
  note.kind = Note::Kind::kCourse, note.text = course_json(metric.said);
  queue_.push_back(std::move(note));
}
void Journal::note_recording(const std::string& path) {
  queue_.push_back({.kind = Note::Kind::kRecording, .text = path});
}
void Journal::note_run_end(const std::string& reason, Nanos at) {
  queue_.push_back({.kind = Note::Kind::kRunEnd, .text = reason, .at = at});
}

std::size_t Journal::results_pending() const {
  return static_cast<std::size_t>(
      std::count_if(queue_.begin(), queue_.end(), [](const Note& note) { return note.kind == Note::Kind::kEnded; }));
}

Result<void> Journal::commit() {
  if (queue_.empty()) return {};
  auto written = write_queue();
  if (!written && is_full(written.error()) && ::unlink(reserve_.c_str()) == 0) {
    reserve_again_ = boottime_now() + kReserveAgain;
    written = write_queue();
  }
  if (written && reserve_again_ && boottime_now() > *reserve_again_ &&
      free_bytes(path_).value_or(0) > std::uint64_t{4} * kReserveBytes) {
    reserve_again_.reset();
    make_reserve();
  }
  if (!written) {
    Error error = within(fmt::format("journal {}", path_), written.error());
    if (error.code == Errc::kIo) error.what += kWhyIo;
    return tl::unexpected(error);
  }
  results_ += static_cast<std::int64_t>(results_pending());
  queue_.clear();
  remember_log_size();
  const std::lock_guard lock(mutex_);
  committed_ += 1;
  if (idle_) changed_.notify_all();  // else it looks by itself
  return {};
}

Result<void> Journal::write_queue() {
  HR_TRYV(begin_.run());
  auto written = [&]() -> Result<void> {
    for (const Note& note : queue_) HR_TRYV(write(note));
    return commit_.run();
  }();
  if (!written && database_.in_transaction()) (void)rollback_.run();
  return written;
}

Result<void> Journal::write(const Note& note) {
  switch (note.kind) {
    case Note::Kind::kStarted:
      return write_started(note);
    case Note::Kind::kEnded:
      return write_ended(note);
    case Note::Kind::kProcess:
      process_.bind(1, note.attempt.pid);
      bind_optional(process_, 2, note.attempt.process_start);
      process_.bind(3, static_cast<std::int64_t>(note.attempt.id));
      return process_.run();
    case Note::Kind::kTask:
      task_.bind(1, static_cast<std::int64_t>(note.state)), task_.bind(2, note.text), task_.bind(3, note.task);
      return task_.run();
    case Note::Kind::kFingerprint:
      fingerprint_.bind(1, note.text), fingerprint_.bind(2, note.task);
      return fingerprint_.run();
    case Note::Kind::kGpuTime:
      gpu_time_.bind(1, note.attempt.gpu_time.value_or(0));
      gpu_time_.bind(2, static_cast<std::int64_t>(note.attempt.id));
      return gpu_time_.run();
    case Note::Kind::kMetric:
      metric_.bind(1, note.text), metric_.bind(2, static_cast<std::int64_t>(note.attempt.id));
      return metric_.run();
    case Note::Kind::kCourse:
      course_.bind(1, note.text), course_.bind(2, static_cast<std::int64_t>(note.attempt.id));
      return course_.run();
    case Note::Kind::kRecording:
      run_text_.bind(1, note.text), run_text_.bind(2, run_);
      return run_text_.run();
    case Note::Kind::kRunEnd:
      run_end_.bind(1, note.at), run_end_.bind(2, note.text), run_end_.bind(3, run_);
      return run_end_.run();
  }
  return {};
}

Result<void> Journal::write_started(const Note& note) {
  const Attempt& attempt = note.attempt;
  const std::string facts = start_facts(attempt);
  started_.bind(1, static_cast<std::int64_t>(attempt.id)), started_.bind(2, note.task), started_.bind(3, run_);
  started_.bind(4, std::int64_t{attempt.number}), started_.bind(5, std::int64_t{attempt.slot});
  started_.bind(6, attempt.start), started_.bind(7, attempt.boot_id), started_.bind(8, attempt.log_path);
  started_.bind(9, facts);
  HR_TRYV(started_.run());
  begun_.bind(1, note.task);
  return begun_.run();
}

Result<void> Journal::write_ended(const Note& note) {
  const Attempt& attempt = note.attempt;
  const std::string facts = end_facts(attempt);
  bind_optional(ended_, 1, attempt.end);
  ended_.bind(2, static_cast<std::int64_t>(attempt.outcome.value_or(AttemptOutcome::kFailed)));
  bind_optional(ended_, 3, attempt.exit_code ? std::optional<std::int64_t>(*attempt.exit_code) : std::nullopt);
  ended_.bind(4, attempt.reason), ended_.bind(5, static_cast<std::int64_t>(attempt.proof)), ended_.bind(6, facts);
  bind_optional(ended_, 7, attempt.pid != 0 ? std::optional(attempt.pid) : std::nullopt);
  ended_.bind(8, static_cast<std::int64_t>(attempt.id));
  return ended_.run();
}

void Journal::start_syncing() {
  // SQLite's locks are on the database and its index, so a descriptor of the log may be opened and closed at will.
  wal_ = Fd(::open((path_ + "-wal").c_str(), O_RDONLY | O_CLOEXEC));
  if (!wal_) return;
  try {
    syncing_ = std::thread([this] { sync_loop(); });
  } catch (const std::system_error&) {  // no more threads for this user: then the batch itself waits for the disk
    (void)database_.execute("PRAGMA synchronous=FULL");
  }
}

void Journal::sync_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    idle_ = true;
    changed_.wait(lock, [&] { return closing_ || durable_ < committed_; });
    idle_ = false;
    if (durable_ == committed_) return;
    const std::uint64_t through = committed_;
    const bool last = closing_;
    lock.unlock();
    if (::fdatasync(wal_.get()) != 0) sync_error_ = errno;
    if (through - checkpointed_ >= kCheckpointEvery) checkpoint(through);
    lock.lock();
    durable_ = through;
    changed_.notify_all();
    if (!last) changed_.wait_for(lock, std::chrono::nanoseconds(kSyncEvery), [&] { return closing_; });
  }
}

// On a connection of its own, so that the batch does not wait for the disk.
void Journal::checkpoint(std::uint64_t through) {
  checkpointed_ = through;
  auto other = Database::open(path_, Access::kReadWrite);
  if (other) (void)other->execute("PRAGMA wal_checkpoint(PASSIVE)");
}

void Journal::sync() {
  std::unique_lock lock(mutex_);
  if (!syncing_.joinable()) return;
  changed_.wait(lock, [&] { return durable_ == committed_; });
}

Journal::~Journal() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  if (syncing_.joinable()) syncing_.join();
  ::unlink(reserve_.c_str());
}

}  // namespace headroom::batch
