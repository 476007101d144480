// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "batch/attempt_book.h"
#include "batch/clock.h"
#include "batch/executor/executor.h"
#include "batch/journal.h"
#include "batch/messages.h"
#include "batch/options.h"
#include "batch/placement_watch.h"
#include "batch/recorder.h"
#include "batch/snapshot.h"
#include "batch/start_queue.h"
#include "batch/statistics.h"
#include "model/batch.h"
#include "model/batch_progress.h"
#include "scheduler/eta.h"
#include "scheduler/order.h"
#include "scheduler/planner.h"

namespace headroom::batch {

struct BatchEnd {
  BatchSummary summary;
  std::string reason;                      // "finished", "drained", "stopped", "failed"
  std::vector<std::string> cpu_fallbacks;  // names
  std::vector<AttemptSpan> on_gpus;        // attempts that ran on GPUs
  int signal = 0;                          // that ended it
  std::size_t unwritten = 0;               // results that the journal could not take
};

// One run of a batch: the planner decides, the executor runs, this carries between them and keeps the books. It has no
// thread, timer or descriptor of its own: whoever owns those calls it when something has happened, or next_wake().
class Batch {
 public:
  struct Parts {
    Executor& executor;
    JournalWriter& journal;
    Recorder& recorder;
    const Clock& clock;
    Messages::Sink say;
  };
  // `known`: what the journal knows of each task.
  Batch(BatchOptions options, scheduler::TaskPlan plan, const std::vector<KnownTask>& known, Parts parts);

  void begin();
  void wake();  // the time of next_wake() has come, or the executor has events
  void look(const Snapshot& now);
  void interrupt(int signal);  // SIGINT ends it once what runs has ended; again, or another: stops; and then: kills
  // Those of these names or patterns that have not ended: which they were. Fails with the reason in words where one
  // names no task, or all have ended.
  [[nodiscard]] Result<std::vector<std::string>> cancel(const std::vector<std::string>& patterns);

  // Further tasks, of which those that it has already are left out. Fails where a name is taken, a task to come after
  // is not known or did not succeed, or the batch is ending.
  struct Addition {
    std::vector<TaskSpec> tasks;
    scheduler::TaskPlan plan;  // of all
  };
  [[nodiscard]] Result<Addition> plan_addition(const std::vector<TaskSpec>& given) const;
  void add(Addition addition, const std::vector<KnownTask>& known);  // they are in the journal

  [[nodiscard]] std::optional<Nanos> next_wake() const;
  [[nodiscard]] bool done() const { return ending_.done; }
  [[nodiscard]] BatchProgress progress() const;
  [[nodiscard]] BatchEnd end() const;

 private:
  struct Unsettled {  // an attempt that failed on a GPU: the next look shows whether the driver has lost that
    AttemptId attempt = 0;
    Nanos ended = 0;
  };

  void settle();  // everything that follows from what has happened, up to the starts
  void feed(const scheduler::Event& event);
  void drain();
  void finish_when_done();
  void tell_queue_state();

  void on(const AttemptRuns& runs);
  void on(const AttemptIdentified& identified);
  void on(const AttemptNotStarted& failed);
  void on(const AttemptExited& exited);
  void on(const OutputRead& read);
  void on(const Message& message) { messages_.say(message); }
  void never_ran(AttemptId id, EndEvidence evidence);
  void is_misplaced(const PlacementWatch::Misplaced& seen);
  void conclude(BookedAttempt& attempt);
  void conclude_unsettled(Nanos ended_before);
  void complete_evidence(BookedAttempt& attempt, const AttemptExited& exited) const;
  [[nodiscard]] bool has_to_read(const BookedAttempt& attempt) const;
  [[nodiscard]] ReadOutput reading_of(const BookedAttempt& attempt) const;
  void read_steps(BookedAttempt& attempt);
  void settle_end(BookedAttempt& attempt);

  void act(const scheduler::StartAttempt& start);
  void act(const scheduler::StopAttempt& stop);
  void act(const scheduler::CloseAttempt& closed);
  void act(const scheduler::RequeueTask& requeue);
  void act(const scheduler::EndTask& end);
  void act(const scheduler::QuarantineGpu& quarantined);

  [[nodiscard]] const TaskSpec& spec(TaskIndex task) const { return options_.tasks[task]; }
  [[nodiscard]] const BatchGpu& gpu(scheduler::GpuIndex index) const {
    return options_.gpus[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] std::vector<scheduler::Eta::Running> how_far(Nanos now) const;
  [[nodiscard]] std::string gpu_name(const std::string& uuid) const;

  BatchOptions options_;  // its tasks may become more
  Parts parts_;
  scheduler::Planner planner_;
  scheduler::TasksAdded tasks_;  // until begin()
  std::vector<scheduler::GroupLimit> limits_;
  scheduler::Eta eta_;
  Messages messages_;
  AttemptBook book_;
  StartQueue starts_;
  PlacementWatch watch_;
  BatchStatistics statistics_;
  std::vector<scheduler::Action> actions_;  // that wait to be done
  std::vector<Unsettled> unsettled_;
  struct {
    Nanos begin = 0, second = 0;
  } times_;
  struct {
    bool draining = false, stopping = false, done = false;
    int signal = 0;
  } ending_;
  struct {
    bool tasks_wait = false;  // as the recording was last told: for a GPU
    bool tree = false;        // the recorder follows this process's children
    std::string damage;       // of the journal
  } told_;
};

}  // namespace headroom::batch
