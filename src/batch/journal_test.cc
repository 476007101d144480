// SPDX-License-Identifier: Apache-2.0
#include "batch/journal.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>

#include "batch/journal_testing.h"

namespace headroom::batch {
namespace {

using testing::BatchJournal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::specs;

TEST_F(BatchJournal, ATaskKeepsItsPlaceAndStateWhenTheFileChanges) {
  begin({"a", "b"});
  end(start(0), AttemptOutcome::kSucceeded);
  journal->note_task(known[0].key, TaskState::kSucceeded, "");
  journal->note_fingerprint(known[0].key, "print");
  ASSERT_TRUE(journal->commit());
  const TaskKey a = known[0].key, b = known[1].key;
  const std::string id = journal->batch_id();
  resume({"b", "c", "a"});
  EXPECT_EQ(journal->batch_id(), id);
  ASSERT_THAT(known, SizeIs(3));
  EXPECT_EQ(known[0].key, b);
  EXPECT_EQ(known[2].key, a);
  EXPECT_EQ(known[2].state, TaskState::kSucceeded);
  EXPECT_EQ(known[2].fingerprint, "print");
  EXPECT_EQ(known[2].attempts, 1);
  EXPECT_EQ(known[1].state, TaskState::kReady);
  EXPECT_EQ(journal->last_run()->number, 1);
}

TEST_F(BatchJournal, WhatTheLedgerSaysOfGpuTimeReplacesTheEstimate) {
  begin({"a"});
  const AttemptId id = start(0);
  end(id, AttemptOutcome::kSucceeded);
  journal->note_gpu_time(id, 1500 * kMillisecond);
  ASSERT_TRUE(journal->commit());
  const Attempt attempt = contents().attempts.front();
  EXPECT_EQ(attempt.gpu_time, 1500 * kMillisecond);
  EXPECT_EQ(attempt.outcome, AttemptOutcome::kSucceeded);
}

TEST_F(BatchJournal, AMetricThatWasMarkedIsAddedToWhatTheOutputSaid) {
  begin({"a", "b"});
  const AttemptId printed = start(0), silent = start(1);
  Attempt attempt{.id = printed};
  attempt.end = 10, attempt.outcome = AttemptOutcome::kSucceeded, attempt.metrics = {{"loss", 0.5}};
  journal->note_ended(attempt);
  end(silent, AttemptOutcome::kSucceeded);
  const SaidMetric course{.name = "loss",
                          .last = 0.25,
                          .first = 2,
                          .lowest = 0.125,
                          .highest = 2,
                          .values = 3,
                          .better = Better::kLower,
                          .curve = {2, 0.125, 0.25}};
  for (const AttemptId id : {printed, silent}) {
    journal->note_metric({id, course});
    journal->note_metric({id, {.name = "it's \"odd\"", .last = std::numeric_limits<double>::quiet_NaN()}});
  }
  ASSERT_TRUE(journal->commit());
  const auto attempts = contents().attempts;
  ASSERT_EQ(attempts[0].metrics.size(), 2U);
  EXPECT_EQ(attempts[0].metrics[0], (std::pair<std::string, double>{"loss", 0.5})) << "as it was printed";
  EXPECT_EQ(attempts[0].metrics[1].first, "it's \"odd\"");
  EXPECT_TRUE(std::isnan(attempts[0].metrics[1].second));
  EXPECT_EQ(attempts[1].metrics[0], (std::pair<std::string, double>{"loss", 0.25}));
  EXPECT_EQ(attempts[1].courses, std::vector{course}) << "of one value there is no course";
}

TEST_F(BatchJournal, TasksWithOneIdentityAreToldApartByTheirOrder) {
  begin({"a", "a", "b"});
  EXPECT_NE(known[0].key, known[1].key);
  journal->note_task(known[1].key, TaskState::kSucceeded, "");
  ASSERT_TRUE(journal->commit());
  resume({"b", "a", "a", "a"});
  EXPECT_EQ(known[1].state, TaskState::kReady);
  EXPECT_EQ(known[2].state, TaskState::kSucceeded);
  EXPECT_EQ(known[3].state, TaskState::kReady);
}

TEST_F(BatchJournal, ATaskThatWasRenamedIsTheSame) {
  begin({"a"});
  auto renamed = specs({"a"});
  renamed[0].name = "other";
  const auto again = journal->register_tasks(renamed);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)[0].key, known[0].key);
  EXPECT_EQ(contents().tasks[0].name, "other");
}

TEST_F(BatchJournal, NumbersOfAttemptsAreNeverUsedTwice) {
  begin({"a"});
  const AttemptId first = start(0);
  die();
  resume({"a"});
  EXPECT_GT(journal->next_attempt(), first);
}

TEST_F(BatchJournal, WhatWasUnderWayIsKnownThroughSeveralDeaths) {
  begin({"a", "b"});
  end(start(0, 70, 700), AttemptOutcome::kSucceeded);
  start(1, 71, 710);
  die();
  for (int deaths = 0; deaths < 3; ++deaths) {
    resume({"a", "b"});
    EXPECT_FALSE(known[0].in_flight) << deaths;
    EXPECT_TRUE(known[1].in_flight) << deaths;
    EXPECT_THAT(*journal->without_end("boot"), ElementsAre(Root{.pid = 71, .start = 710})) << deaths;
    EXPECT_THAT(*journal->without_end("another"), IsEmpty()) << "pids mean nothing after the machine was started anew";
    EXPECT_EQ(contents().attempts[1].outcome, AttemptOutcome::kInterrupted);
    die();
  }
  resume({"a", "b"});
  end(start(1), AttemptOutcome::kSucceeded);
  ASSERT_TRUE(journal->commit());
  resume({"a", "b"});
  EXPECT_FALSE(known[1].in_flight);
}

TEST_F(BatchJournal, ATaskThatBeganAgainHasNotEndedAndIsInterrupted) {
  begin({"a", "b", "c"});
  for (std::size_t i : {0U, 1U}) journal->note_task(known[i].key, TaskState::kCancelled, "cancelled");
  ASSERT_TRUE(journal->commit());
  resume({"a", "b", "c"});
  end(start(0), AttemptOutcome::kInterrupted);
  start(2);
  ASSERT_TRUE(journal->commit());
  const auto tasks = contents().tasks;
  EXPECT_EQ(tasks[0].state, TaskState::kReady);
  EXPECT_EQ(tasks[0].reason, "");
  EXPECT_TRUE(tasks[0].interrupted);
  EXPECT_EQ(tasks[1].state, TaskState::kCancelled) << "it did not begin again";
  EXPECT_FALSE(tasks[1].interrupted);
  EXPECT_TRUE(tasks[2].interrupted && tasks[2].under_way) << "if no batch runs there";
}

TEST_F(BatchJournal, OnlyTheTasksOwnFailuresAreCounted) {
  begin({"a"});
  for (const auto outcome : {AttemptOutcome::kFailed, AttemptOutcome::kInterrupted, AttemptOutcome::kTimedOut,
                             AttemptOutcome::kGpuOutOfMemory, AttemptOutcome::kDeviceLost})
    end(start(0), outcome);
  ASSERT_TRUE(journal->commit());
  resume({"a"});
  EXPECT_EQ(known[0].attempts, 5);
  EXPECT_EQ(known[0].failures, 2);
}

TEST_F(BatchJournal, NothingIsThereBeforeTheCommitAndEverythingAfter) {
  begin({"a", "b"});
  const AttemptId one = start(0), two = start(1);
  end(one, AttemptOutcome::kSucceeded);
  journal->note_task(known[0].key, TaskState::kSucceeded, "");
  end(two, AttemptOutcome::kFailed);
  EXPECT_EQ(journal->results_pending(), 2u);
  EXPECT_FALSE(contents().attempts[0].end || contents().attempts[1].end);
  ASSERT_TRUE(journal->commit());
  EXPECT_EQ(journal->results_pending(), 0u);
  EXPECT_FALSE(journal->pending());
  EXPECT_TRUE(contents().attempts[0].end && contents().attempts[1].end);
  EXPECT_EQ(contents().tasks[0].state, TaskState::kSucceeded);
  journal->sync();  // returns
}

TEST_F(BatchJournal, EveryFactOfAnAttemptIsReadBack) {
  begin({"a"});
  Attempt attempt{.id = journal->next_attempt(), .number = 3, .gpu_uuids = {"GPU-1", "GPU-2"}, .slot = 4};
  attempt.boot_id = "boot", attempt.start = 1000, attempt.log_path = "/l";
  attempt.argv = {"sh", "-c", "x \"y\" \xff"}, attempt.environment = {{"A", "1"}, {"A", "2"}};
  attempt.working_directory = "/w", attempt.git_commit = "c0ffee", attempt.git_dirty = true;
  attempt.input_hashes = {{"in", "00"}}, attempt.driver_version = "535", attempt.reserved_gpu_bytes = 1;
  journal->note_started(attempt, known[0].key);
  journal->note_process(attempt.id, 4242, 99);
  attempt.end = 2000, attempt.outcome = AttemptOutcome::kHung, attempt.exit_code = 137, attempt.reason = "why";
  attempt.proof = PlacementProof::kMisplaced, attempt.parameters_resolved = {{"lr", "0.1"}};
  attempt.metrics = {{"loss", 0.5}}, attempt.peak_gpu_bytes = 2, attempt.peak_host_bytes = 3, attempt.cpu_time = 4;
  attempt.gpu_time = 5, attempt.seen_gpu_uuids = {"GPU-9"};
  journal->note_ended(attempt);
  ASSERT_TRUE(journal->commit());
  const Attempt read = contents().attempts.at(0);
  EXPECT_EQ(read.pid, 4242);
  EXPECT_EQ(read.process_start, 99);
  EXPECT_EQ(read.argv[1], "-c");
  EXPECT_THAT(read.argv[2], HasSubstr("x \"y\" "));  // what is no text is replaced: JSON cannot hold it
  EXPECT_EQ(read.environment, attempt.environment);
  EXPECT_EQ(read.gpu_uuids, attempt.gpu_uuids);
  EXPECT_EQ(read.git_dirty, true);
  EXPECT_EQ(read.input_hashes, attempt.input_hashes);
  EXPECT_EQ(read.outcome, AttemptOutcome::kHung);
  EXPECT_EQ(read.exit_code, 137);
  EXPECT_EQ(read.proof, PlacementProof::kMisplaced);
  EXPECT_EQ(read.metrics, attempt.metrics);
  EXPECT_EQ(read.seen_gpu_uuids, attempt.seen_gpu_uuids);
  EXPECT_EQ(read.gpu_time, 5);
  EXPECT_EQ(read.log_path, "/l");
}

// The disk of a test: no file of this process grows beyond `bytes`.
struct FileLimit {
  explicit FileLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_FSIZE, &before); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  rlimit before{};
};

TEST_F(BatchJournal, WhatCannotBeWrittenStaysQueuedAndIsWrittenLater) {
  begin({"a", "b"});
  const AttemptId one = start(0);
  struct stat info {};
  ASSERT_EQ(::stat((folder + "/reserve").c_str(), &info), 0);
  {
    const FileLimit limit(4096);
    end(one, AttemptOutcome::kSucceeded);
    journal->note_task(known[0].key, TaskState::kSucceeded, "");
    const auto failed = journal->commit();
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().what, HasSubstr(journal->path()));
    EXPECT_TRUE(journal->pending());
    EXPECT_EQ(journal->results_pending(), 1u);
    EXPECT_NE(::stat((folder + "/reserve").c_str(), &info), 0) << "the reserve was not given up";
    end(start_queued(1), AttemptOutcome::kFailed);
    EXPECT_FALSE(journal->commit());
    EXPECT_EQ(journal->results_pending(), 2u);
    EXPECT_EQ(contents().tasks[0].state, TaskState::kReady);
  }
  ASSERT_TRUE(journal->commit());
  EXPECT_FALSE(journal->pending());
  const Contents now = contents();
  EXPECT_EQ(now.tasks[0].state, TaskState::kSucceeded);
  EXPECT_EQ(now.attempts.at(1).outcome, AttemptOutcome::kFailed);
}

TEST_F(BatchJournal, OnANetworkFileSystemThereIsNoLogBesideIt) {
  begin({"a"}, Journal::Medium::kNetwork);
  end(start(0), AttemptOutcome::kSucceeded);
  ASSERT_TRUE(journal->commit());
  EXPECT_FALSE(std::filesystem::exists(journal->path() + "-wal"));
  journal->sync();  // nothing to wait for: it returns
  EXPECT_EQ(contents().attempts.at(0).outcome, AttemptOutcome::kSucceeded);
  resume({"a"});  // and on a local one it goes on
  EXPECT_EQ(known[0].attempts, 1);
}

TEST_F(BatchJournal, WhatIsNoJournalIsLeftAlone) {
  const auto refused = [&](Errc code, const char* words) {
    const auto before = read_file(journal_path(folder));
    const auto opened = Journal::open(folder);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, code) << opened.error().what;
    EXPECT_THAT(opened.error().what, HasSubstr(words));
    EXPECT_THAT(opened.error().hint, HasSubstr("--fresh"));
    const auto read = read_journal(folder);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().what, HasSubstr(words));
    EXPECT_EQ(before, read_file(journal_path(folder)));
  };
  ASSERT_TRUE(write_file(journal_path(folder), std::string(8192, 'x')));
  refused(Errc::kCorrupt, "not a database");
  ASSERT_TRUE(write_file(journal_path(folder), ""));
  {
    auto foreign = Database::open(journal_path(folder), Access::kReadWrite);
    ASSERT_TRUE(foreign);
    ASSERT_TRUE(foreign->execute("CREATE TABLE tasks(x); CREATE TABLE recipes(y)"));
  }
  refused(Errc::kCorrupt, "no journal of a batch");
}

TEST_F(BatchJournal, OneOfANewerVersionIsRefused) {
  begin({"a"});
  die();
  {
    auto newer = Database::open(journal_path(folder), Access::kReadWrite);
    ASSERT_TRUE(newer);
    ASSERT_TRUE(newer->execute("UPDATE meta SET value='2' WHERE key='version'"));
  }
  const auto opened = Journal::open(folder);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kUnsupported);
  EXPECT_THAT(opened.error().what, HasSubstr("newer headroom (version 2"));
  EXPECT_EQ(read_journal(folder).error().code, Errc::kUnsupported);
}

// Cut off and damaged in the middle: every byte of a journal matters but those of free pages, so a part that reads as a
// journal holds no more than the whole did, and opening and reading agree.
TEST_F(BatchJournal, OneThatWasCutOffIsAnErrorAndNoCrash) {
  begin({"a", "b", "c"});
  for (int i = 0; i < 40; ++i) end(start(static_cast<std::size_t>(i % 3)), AttemptOutcome::kFailed);
  ASSERT_TRUE(journal->commit());
  const Contents before = contents();
  die();
  const auto whole = read_file(journal_path(folder));
  ASSERT_TRUE(whole);
  int refused = 0;
  for (std::size_t size = 1; size < whole->size(); size += 997) {
    std::string cut = whole->substr(0, size);
    if (size > 5000) cut.replace(size / 2, 100, std::string(100, '\xee'));
    ASSERT_TRUE(write_file(journal_path(folder), cut));
    const auto read = read_journal(folder);
    if (read) {
      EXPECT_LE(read->attempts.size(), before.attempts.size()) << size;
    } else {
      ++refused;
      EXPECT_THAT(read.error().what, HasSubstr(journal_path(folder))) << size;
    }
    EXPECT_EQ(read_file(journal_path(folder)), cut) << "reading changed it, at " << size;
    auto opened = Journal::open(folder, Journal::Medium::kNetwork);
    if (opened) (void)(*opened)->register_tasks(specs({"a"}));
    if (!opened) {
      EXPECT_THAT(opened.error().hint, HasSubstr("--fresh")) << size << opened.error().what;
    }
  }
  EXPECT_GT(refused, 5);
}

// Runs `body` in a process that then dies without a word; its exit code.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// While SQLite makes the file one with a log, and always on a network file system, a transaction is undone by a journal
// of its own. A reader may not undo it in place.
TEST_F(BatchJournal, ATransactionThatItsWriterDiedInIsUndoneForReaders) {
  begin({"a", "b"}, Journal::Medium::kNetwork);
  end(start(0), AttemptOutcome::kSucceeded);
  ASSERT_TRUE(journal->commit());
  const Contents before = contents();
  die();
  ASSERT_EQ(in_child([this] {
              auto writer = Database::open(journal_path(folder), Access::kReadWrite);
              if (!writer) return 1;
              const auto half = writer->execute(
                  "PRAGMA cache_size=1; PRAGMA journal_mode=DELETE; BEGIN; DELETE FROM attempts;"
                  "INSERT INTO runs(command) SELECT hex(zeroblob(5000)) FROM (VALUES(1),(2),(3),(4),(5),(6),(7),(8));");
              ::_exit(half ? 0 : 2);  // before the transaction ends
            }),
            0);
  const std::string undo = journal_path(folder) + "-journal";
  ASSERT_TRUE(std::filesystem::exists(undo));
  const auto file = read_file(journal_path(folder)), log = read_file(undo);
  const Contents after = contents();
  EXPECT_EQ(after.attempts.size(), before.attempts.size());
  EXPECT_EQ(after.runs, before.runs);
  const auto known_now = known_in(folder, specs({"a"}));
  ASSERT_TRUE(known_now) << known_now.error().what;
  EXPECT_EQ(known_now->at(0).attempts, 1);
  EXPECT_EQ(read_file(journal_path(folder)), file) << "a reader changed it";
  EXPECT_EQ(read_file(undo), log) << "a reader changed it";
  resume({"a", "b"});
  EXPECT_EQ(known[0].attempts, 1);
}

// As somebody else, in a folder that may not be written to: with the log that a dead writer left, and with and without
// the memory that it shared.
TEST_F(BatchJournal, ADeadWritersLogIsReadWhereNothingMayBeWritten) {
  const bool root = ::geteuid() == 0;
  ASSERT_EQ(in_child([this]() -> int {
              begin({"a", "b"});
              end(start(0), AttemptOutcome::kSucceeded);
              ::_exit(journal->commit() ? 0 : 1);
            }),
            0);
  const auto as_other = [&] {
    return in_child([&] {
      if (root && ::setresuid(65534, 65534, 65534) != 0) return 9;
      const auto read = read_journal(folder);
      if (!read) std::fprintf(stderr, "%s\n", read.error().what.c_str());
      return read ? static_cast<int>(read->attempts.size()) : 8;
    });
  };
  ASSERT_GT(std::filesystem::file_size(journal_path(folder) + "-wal"), 0U);
  for (const bool shared : {true, false}) {
    if (!shared) std::filesystem::remove(journal_path(folder) + "-shm");
    std::filesystem::permissions(folder, std::filesystem::perms(0555));
    for (const auto& entry : std::filesystem::directory_iterator(folder))  // as if its owner had given it away
      std::filesystem::permissions(entry.path(), std::filesystem::perms(0644));
    EXPECT_EQ(as_other(), 1) << (shared ? "with" : "without") << " shared memory";
    std::filesystem::permissions(folder, std::filesystem::perms(0755));
  }
}

TEST_F(BatchJournal, WhatIsComputedOrNoFileIsNotRead) {
  for (const char* sql : {"ALTER TABLE tasks ADD COLUMN more AS (hex(zeroblob(400000000)))",
                          "ALTER TABLE tasks RENAME TO other; CREATE VIEW tasks AS SELECT * FROM other",
                          "ALTER TABLE attempts RENAME TO other; CREATE VIEW attempts AS SELECT * FROM other"}) {
    begin({"a"});
    die();
    {
      auto database = Database::open(journal_path(folder), Access::kReadWrite);
      ASSERT_TRUE(database);
      ASSERT_TRUE(database->execute(sql)) << sql;
    }
    const auto read = read_journal(folder);
    ASSERT_FALSE(read) << sql;
    EXPECT_EQ(read.error().code, Errc::kCorrupt) << read.error().what;
    EXPECT_FALSE(known_in(folder, specs({"a"}))) << sql;
    EXPECT_FALSE(Journal::open(folder, Journal::Medium::kLocal)) << sql;
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(journal_path(folder) + suffix);
  }
  for (const char* suffix : {"-wal", "-journal", ""}) {
    begin({"a"});
    die();
    const std::string path = journal_path(folder) + suffix;
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const auto read = read_journal(folder);
    ASSERT_FALSE(read) << suffix;
    EXPECT_THAT(read.error().what, ::testing::HasSubstr("is not a file"));
    std::filesystem::remove(path);
  }
}

TEST_F(BatchJournal, AnEmptyFileIsANewJournal) {  // of a batch that was killed while it began
  ASSERT_TRUE(write_file(journal_path(folder), ""));
  EXPECT_THAT(contents().runs, IsEmpty());
  const auto none = known_in(folder, specs({"a"}));
  ASSERT_TRUE(none) << none.error().what;
  EXPECT_EQ(none->at(0).key, 0);
  begin({"a"});
  EXPECT_EQ(known[0].attempts, 0);
}

TEST(BatchJournalFacts, AMetricThatIsNoNumberTakesNoOtherWithIt) {
  Attempt attempt, read;
  attempt.metrics = {{"loss", std::numeric_limits<double>::quiet_NaN()}, {"auc", 0.75}};
  take_end_facts(end_facts(attempt), read);
  ASSERT_EQ(read.metrics.size(), 2U);
  EXPECT_TRUE(std::isnan(read.metrics[0].second)) << read.metrics[0].second;
  EXPECT_EQ(read.metrics[1], attempt.metrics[1]);
}

TEST(BatchJournalFacts, WhatCannotBeReadIsAbsentAndNotZero) {
  Attempt attempt;
  take_end_facts(R"({"steps": null, "peak_gpu_bytes": "much", "gpu_time_ns": 5})", attempt);
  EXPECT_FALSE(attempt.steps);
  EXPECT_FALSE(attempt.peak_gpu_bytes);
  EXPECT_EQ(attempt.gpu_time, 5);
}

TEST(BatchJournalFacts, AnOlderOrNewerWayToWriteThemIsReadAsFarAsItGoes) {
  Attempt attempt;
  take_start_facts(R"({"argv": "not a list", "driver_version": "5", "unheard_of": 1})", attempt);
  take_start_facts("no JSON", attempt);
  take_end_facts("[]", attempt);
  EXPECT_THAT(attempt.argv, IsEmpty());
  EXPECT_EQ(attempt.driver_version, "5");
}

TEST_F(BatchJournal, ParametersAreKeptWithoutSecrets) {
  std::vector<TaskSpec> tasks = specs({"a"});
  tasks[0].parameters = {{"lr", "0.1"}, {"api_token", "abcdef"}, {"1", "hunter22"}};
  tasks[0].argv = {"train", "--password", "hunter22", "--lr", "0.1"};
  journal = std::move(*Journal::open(folder, Journal::Medium::kLocal));
  ASSERT_TRUE(journal->register_tasks(tasks));
  journal.reset();
  const auto contents = read_journal(folder);
  ASSERT_TRUE(contents);
  const auto& kept = contents->tasks.at(0).parameters;
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0].second, "0.1");
  EXPECT_THAT(kept[1].second, ::testing::StartsWith("***"));
  EXPECT_THAT(kept[2].second, ::testing::StartsWith("***"));
}

TEST_F(BatchJournal, AJournalWithoutTheNewColumnsGoesOn) {
  begin({"a", "b"});
  die();
  {
    auto database = Database::open(journal_path(folder), Access::kReadWrite);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("ALTER TABLE tasks DROP COLUMN parameters"));
    ASSERT_TRUE(database->execute("ALTER TABLE tasks DROP COLUMN run"));
  }
  const auto read = read_journal(folder);
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_TRUE(read->tasks.at(0).parameters.empty());
  begin({"a", "b"});
  EXPECT_EQ(known.at(1).key, 2);
}

TEST_F(BatchJournal, WhatWasAddedIsNotOfTheRunsCommand) {
  begin({"a"});
  ASSERT_TRUE(journal->register_tasks(specs({"b"}), Journal::When::kDuringRun));
  EXPECT_FALSE(contents().tasks[0].added);
  EXPECT_TRUE(contents().tasks[1].added);
  resume({"a", "b"});
  EXPECT_FALSE(contents().tasks[1].added) << "asked for by a command now";
}

TEST_F(BatchJournal, OfTasksWithOneNameTheLatestRunsCounts) {
  std::vector<TaskSpec> first = specs({"a", "b"}), second = first;
  second[0].identity = "changed";
  for (const auto* tasks : {&first, &second, &first}) {
    journal = std::move(*Journal::open(folder, Journal::Medium::kLocal));
    ASSERT_TRUE(journal->register_tasks(*tasks));
    ASSERT_TRUE(journal->begin_run({.start = 5}));
    const auto contents = read_journal(folder);
    ASSERT_TRUE(contents);
    int superseded = 0;
    for (const auto& task : contents->tasks) superseded += task.superseded ? 1 : 0;
    EXPECT_EQ(superseded, static_cast<int>(contents->tasks.size()) - 2);
    if (tasks == &second) {
      EXPECT_TRUE(contents->tasks.at(0).superseded);
    }
    journal.reset();
  }
  const auto last = read_journal(folder);
  ASSERT_TRUE(last);
  EXPECT_FALSE(last->tasks.at(0).superseded) << "asked for again";
  EXPECT_TRUE(last->tasks.at(2).superseded);
}

}  // namespace
}  // namespace headroom::batch
