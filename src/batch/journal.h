// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sqlite.h"
#include "batch/journal_writer.h"
#include "batch/sweep.h"
#include "model/batch.h"

namespace headroom::batch {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

// One invocation of `headroom batch` on a folder.
struct Run {
  std::int64_t number = 0;
  Nanos start = 0;  // Unix time, as everything in the journal
  std::optional<Nanos> end;
  std::string end_reason;  // "finished", "drained", "stopped", "failed"; "" while it runs, or when it was killed
  std::string command, working_directory, git_commit, recording;
  std::optional<bool> git_dirty;
  bool operator==(const Run&) const = default;
};

// What the journal knows of a task.
struct KnownTask {
  TaskKey key = 0;
  std::string name, group;
  TaskState state = TaskState::kReady;  // kReady: not ended
  std::string reason;
  int attempts = 0;
  int failures = 0;          // that counted against its retries
  bool changed = false;      // it succeeded under this name with another command, other parameters or other inputs
  bool in_flight = false;    // nobody saw the end of its last attempt: a run of the batch died meanwhile
  bool interrupted = false;  // its last attempt was, or nobody saw its end
  bool under_way = false;    // by what is written so far; only if a batch runs there is that so
  int deaths = 0;            // so many attempts ended like this, one after the other
  std::string fingerprint;   // of the files its command names and its environment, when it last succeeded
  std::vector<std::pair<std::string, std::string>> parameters;
  std::int64_t run = 0;     // the last one that was asked for it; 0: not known
  bool added = false;       // to that run while it went on: the run's command does not name it
  bool superseded = false;  // a later run asked for another task of this name
};

struct Contents {
  std::string batch_id, name;
  std::vector<Run> runs;
  std::vector<KnownTask> tasks;   // by key
  std::vector<Attempt> attempts;  // by id; Attempt::task is the position in `tasks`
};

// The batch's memory: a small SQLite file in the batch's folder, `journal.sqlite`, with one writer.
//
// What is noted is queued; commit() hands it to the kernel in one transaction, which takes tens of microseconds and
// survives every death of this process. A thread of the journal's own then makes it survive a power cut as well:
// one fdatasync for everything that was committed meanwhile, at most every 10 ms. On a network file system, where that
// division of labour does not exist, commit() does both.
class Journal final : public JournalWriter {
 public:
  // What the folder is on. kDetect: the file system is asked; the others are for tests.
  enum class Medium { kDetect, kLocal, kNetwork };
  // The folder must exist. kBusy: another batch writes it. kCorrupt: what is there is no journal, and stays as it is.
  // kUnsupported: it was written by a newer version.
  [[nodiscard]] static Result<std::unique_ptr<Journal>> open(const std::string& folder,
                                                             Medium medium = Medium::kDetect);
  ~Journal() override;

  [[nodiscard]] const std::string& batch_id() const { return batch_id_; }  // random, 16 hex digits
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] AttemptId next_attempt() const override { return next_attempt_; }
  [[nodiscard]] std::optional<Run> last_run() const { return last_run_; }  // the one before this

  // One transaction each.
  // What is known of every task, in their order; a task that is not known is added.
  enum class When { kBeforeRun, kDuringRun };
  [[nodiscard]] Result<std::vector<KnownTask>> register_tasks(std::span<const TaskSpec> specs,
                                                              When when = When::kBeforeRun);
  // Attempts that were under way when an earlier run died are closed as kInterrupted.
  [[nodiscard]] Result<void> begin_run(Run run);

  // Tasks that were added to earlier runs, are not among those that were registered, and have not succeeded.
  [[nodiscard]] Result<std::size_t> added_and_left();

  // The processes of attempts whose end no run has seen, in this run of the machine: some may still be alive.
  [[nodiscard]] Result<std::vector<Root>> without_end(std::string_view boot_id);

  void note_started(const Attempt& attempt, TaskKey task) override;
  void note_process(AttemptId attempt, std::int64_t pid, std::optional<Nanos> process_start) override;
  void note_ended(const Attempt& attempt) override;
  void note_task(TaskKey task, TaskState state, const std::string& reason) override;
  void note_fingerprint(TaskKey task, const std::string& fingerprint) override;
  void note_metric(const AttemptMetric& metric);  // of one that has ended; what its output said of that name stays
  void note_gpu_time(AttemptId attempt, Nanos gpu_time);  // of one that has ended, better known by now
  void note_recording(const std::string& path);
  void note_run_end(const std::string& reason, Nanos at);
  [[nodiscard]] bool pending() const override { return !queue_.empty(); }
  [[nodiscard]] std::size_t results_pending() const override;
  // On a full disk the reserve is given up first.
  [[nodiscard]] Result<void> commit() override;
  // Waits until everything committed would survive a power cut.
  void sync();

  [[nodiscard]] std::string damage() override;
  struct Wholeness {
    std::string words;  // "": nobody has touched it, and all is there
    bool kept = true;   // false: results were lost, or had to be written again
  };
  // Of this run, by what the next one would read; a file that was removed is written again. Where damage() has told of
  // something, the words say what of it is so at the end.
  [[nodiscard]] Wholeness check_whole();

 private:
  struct Note {
    enum class Kind {
      kStarted,
      kProcess,
      kEnded,
      kTask,
      kFingerprint,
      kGpuTime,
      kMetric,
      kCourse,
      kRecording,
      kRunEnd
    } kind;
    Attempt attempt = {};
    TaskKey task = 0;
    TaskState state = TaskState::kReady;
    std::string text = {};
    Nanos at = 0;
  };
  Journal() = default;
  [[nodiscard]] Result<void> prepare(const std::string& folder);
  [[nodiscard]] Result<void> prepare_statements();
  [[nodiscard]] Result<void> load();
  [[nodiscard]] std::string folder_now() const;
  [[nodiscard]] bool write_again();
  [[nodiscard]] std::string damage_now();
  [[nodiscard]] TextPairs without_secrets(TextPairs pairs) const;
  [[nodiscard]] TextPairs without_secrets(const TaskSpec& spec) const;
  void make_reserve();
  void remember_files();
  void remember_log_size();
  [[nodiscard]] Result<void> write_queue();
  [[nodiscard]] Result<void> write(const Note& note);
  [[nodiscard]] Result<void> write_started(const Note& note);
  [[nodiscard]] Result<void> write_ended(const Note& note);
  void start_syncing();
  void sync_loop();
  void checkpoint(std::uint64_t through);

  std::string path_, batch_id_, reserve_;
  Database database_;
  Statement begin_, commit_, rollback_, started_, begun_, process_, ended_, task_, fingerprint_, gpu_time_, metric_,
      course_, run_text_, run_end_;
  std::vector<Note> queue_;
  AttemptId next_attempt_ = 1;
  std::int64_t run_ = 0;
  std::optional<Run> last_run_;
  bool on_network_ = false;
  std::optional<Nanos> reserve_again_;  // it was given up; not before this
  bool damage_told_ = false;
  Fd folder_, wal_;
  struct {
    dev_t device = 0;
    ino_t database = 0, log = 0;
    off_t log_size = 0;
  } files_;                   // as they were found
  std::int64_t results_ = 0;  // ends of attempts that this run has committed

  std::thread syncing_;
  std::atomic<int> sync_error_{0};  // errno
  std::uint64_t checkpointed_ = 0;  // of that thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t committed_ = 0, durable_ = 0;  // guarded: transactions
  bool closing_ = false;                       // guarded
  bool idle_ = false;                          // guarded: everything is durable, and that thread waits for more
};

[[nodiscard]] std::string journal_path(const std::string& folder);
// For everybody else; also while it is written. Of a batch of several workers (shared_work.h) their journals as one.
[[nodiscard]] Result<Contents> read_journal(const std::string& folder);
[[nodiscard]] Result<Contents> read_own_journal(const std::string& folder);  // the one that lies there
// What it knows of each of `specs`, in their order; with key 0 of those that are new.
[[nodiscard]] Result<std::vector<KnownTask>> known_in(const std::string& folder, std::span<const TaskSpec> specs);
// Puts all of it into a recording that has ended, as tables of its own (docs/recording-format.md), so that one file can
// be handed on; all or nothing. The logs stay where they are.
[[nodiscard]] Result<void> copy_journal(const std::string& folder, const std::string& recording);
[[nodiscard]] Result<Contents> read_copied_journal(const std::string& recording);

// What an attempt's start and end are stored as; public for tests.
[[nodiscard]] std::string start_facts(const Attempt& attempt);
[[nodiscard]] std::string end_facts(const Attempt& attempt);
std::string metric_json(const std::string& name, double value);  // an element of its "metrics"
std::string course_json(const SaidMetric& metric);               // an element of its "courses"
void take_start_facts(std::string_view json, Attempt& attempt);
void take_end_facts(std::string_view json, Attempt& attempt);

}  // namespace headroom::batch
