// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "batch/journal.h"
#include "batch/notes.h"
#include "batch/processes.h"
#include "batch/sensors.h"
#include "host/cgroup.h"
#include "live/loop.h"
#include "live/signals.h"
#include "model/batch.h"
#include "scheduler/eta.h"
#include "scheduler/order.h"
#include "scheduler/planner.h"
#include "tasks/template.h"

namespace headroom::batch {

struct BatchGpu {
  std::string uuid, model;
  int index = 0;  // as nvidia-smi numbers
  std::int64_t memory_bytes = 0;
};

enum class PinBy { kUuid, kIndex, kNothing };

struct BatchOptions {
  std::string folder;
  std::vector<TaskSpec> tasks;
  std::vector<GroupSpec> group_limits;
  std::vector<std::string> fingerprints;  // of the scripts that each task names; kept with a success
  std::vector<BatchGpu> gpus;
  PinBy pin = PinBy::kUuid;         // kNothing: Headroom leaves CUDA_VISIBLE_DEVICES alone (--gpus none)
  scheduler::PlannerSetup planner;  // gpus and first_attempt are filled in
  Nanos grace = 10 * kSecond;
  bool stop_misplaced = false;
  int max_failures = 0;               // so many failed tasks, and nothing more is started; 0: any number
  bool gpu_processes_visible = true;  // false: in a container the driver's pids are not ours
  std::string driver_version, git_commit;
  std::optional<bool> git_dirty;
  // Provenance that others know how to get; may be empty. The second fills in metrics and parameters from the log.
  std::function<std::vector<std::pair<std::string, std::string>>(const TaskSpec&)> inspect_inputs;
  std::function<void(const TaskSpec&, Attempt&)> inspect_log;
  // How many steps the attempt has done, by its log so far; empty: nobody said how to tell.
  std::function<std::optional<double>(const Attempt&)> count_steps;
  // For the history across batches: a success, and how many times longer than alone it took because of those beside it.
  std::function<void(const TaskSpec&, const Attempt&, const std::string& gpu_model, double stretch)> learn;
};

// What people may want to know while it runs.
struct Progress {
  scheduler::BatchCounts counts;
  Nanos elapsed = 0;
  std::optional<Nanos> left, left_low, left_high;  // expected
  struct Gpu {
    BatchGpu gpu;
    std::size_t running = 0;
    std::optional<std::int64_t> used_bytes;
    std::optional<double> util_ratio;
    double tasks_per_second = 0;
    std::optional<double> alone_tasks_per_second;  // what one task per GPU would do, as far as tasks ran alone
    bool usable = true;
  };
  std::vector<Gpu> gpus;
  struct Running {
    std::string task;
    Nanos elapsed = 0;
    AttemptId attempt = 0;
    std::string log_path;
  };
  std::vector<Running> running;  // longest first
  std::string waiting_for;       // why the first task in the queue does not run; may be ""
  bool draining = false;
};

struct BatchEnd {
  BatchSummary summary;
  std::string reason;                      // "finished", "drained", "stopped", "failed"
  std::vector<std::string> failed;         // names
  std::vector<std::string> cpu_fallbacks;  // names
  int signal = 0;                          // that ended it
  std::size_t unwritten = 0;               // results that the journal could not take
};

// One run of a batch: the planner decides, this does. Everything happens on the thread that calls run().
class Batch {
 public:
  struct Parts {
    Loop& loop;
    Signals& signals;
    Guardian& guardian;
    Journal& journal;
    std::function<std::unique_ptr<Sensors>(std::function<void(Sensed)>, std::function<void(Error)>)> make_sensors;
    std::function<void(NoteKind, const std::string&)> note;  // a line for people
    std::function<void(std::int64_t pid)> watch_tree;        // the first child: the recording follows it and all others
  };
  Batch(BatchOptions options, scheduler::TaskPlan plan, std::vector<KnownTask> known, Parts parts);

  [[nodiscard]] BatchEnd run();
  [[nodiscard]] Progress progress() const;
  // For the control socket: false with the reason in words if it cannot be.
  [[nodiscard]] Result<void> cancel(const std::string& task);
  void drain();
  void stop();
  [[nodiscard]] Sensors* sensors() { return sensors_.get(); }
  [[nodiscard]] const std::vector<TaskSpec>& tasks() const { return options_.tasks; }

 private:
  struct Live {  // an attempt under way
    Attempt facts;
    std::vector<scheduler::GpuIndex> gpus;
    Nanos start = 0;  // CLOCK_BOOTTIME
    bool started = false;
    std::set<std::string> seen;
    std::optional<std::int64_t> gpu_bytes;
    std::optional<Nanos> first_kernel;
    double gpu_seconds = 0;
    bool gpu_time_known = false;
    std::optional<Nanos> cpu_before, core_wait_before;
    Nanos cpu_at = 0;
    bool misplaced_told = false, fallback_told = false;
    double alone_seconds = 0;  // how long it would have taken so far with nothing beside it, as the planner predicts
    Nanos alone_at = 0;        // up to when that is counted
    double speed = 1;          // since then, of alone
    std::optional<AttemptOutcome> stopped_as;          // what it did wrong
    std::optional<scheduler::StopReason> stop_reason;  // why the planner wanted it stopped
    std::optional<double> gpu_util;
  };
  struct Closing {  // an attempt that has ended, until the planner has closed it
    Attempt facts;
    double stretch = 1;
  };
  struct Later {
    Nanos at = 0;  // when it ended
    scheduler::AttemptEnded event;
  };
  struct TreeProcess {
    std::optional<AttemptId> attempt;
    Nanos looked = 0, asked = 0, cpu = 0, core_wait = 0;
    std::int64_t rss = 0, io = 0;
  };
  struct TreeTotals {
    std::size_t processes = 0;
    Nanos cpu = 0, core_wait = 0;
    std::int64_t rss = 0, io = 0;
  };

  void begin();
  void handle_signals();
  void interrupt(int signal);
  void feed(const scheduler::Event& event);
  void act();  // all actions, then the journal, then the processes
  void do_action(const scheduler::Action& action);
  void prepare(const scheduler::StartAttempt& start);  // notes it; it starts once that is written
  void start_prepared();
  void abandon_unwanted();
  [[nodiscard]] bool disk_full() const;
  [[nodiscard]] bool room_for_logs();
  void start_one(AttemptId attempt);
  void note_fresh();
  void on_ended(const Ended& ended);
  void feed_later(Nanos seen);  // what ended before the GPUs were looked at
  void close(const scheduler::CloseAttempt& closed);
  void stop_attempt(const scheduler::StopAttempt& stop);
  void end_task(const scheduler::EndTask& end);
  void requeue(const scheduler::RequeueTask& requeue);
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment_for(const TaskSpec& task,
                                                                                 const tasks::Place& place) const;
  void abandon(AttemptId attempt, AttemptOutcome outcome);
  void count(const Attempt& facts);
  [[nodiscard]] PlacementProof proof_of(const Live& live, Nanos end) const;
  void every_second();
  [[nodiscard]] AttemptOutcome judge(Live& live, const Ended& ended);
  void sensed(const Sensed& now);
  void tell_lost(const std::string& uuid, bool lost);
  void note_placement(Live& live, const std::string& uuid, std::int64_t pid);
  void check_fallback(Live& live, Nanos now);
  void watch_new_placements();
  [[nodiscard]] std::optional<AttemptId> attempt_of(std::int64_t pid, Nanos now);
  void look_at_trees(const Sensed& now);
  void look_at_gpus(const Sensed& now);
  [[nodiscard]] scheduler::Readings readings(const Sensed& now);
  [[nodiscard]] scheduler::AttemptReading reading_of(AttemptId id, Live& live, Nanos now);
  void account(Nanos elapsed);
  void note(NoteKind kind, const std::string& text) { parts_.note(kind, text); }
  void say(const std::vector<Note>& notes) {
    for (const Note& one : notes) note(one.kind, one.text);
  }
  void commit_soon(Nanos delay);
  void set_wake();
  void tell_queue();
  void count_alone(Live& live, Nanos now) const;
  void finish_when_done();
  [[nodiscard]] BatchEnd summary();
  void add_packing(const BatchGpu& gpu, const std::vector<scheduler::AloneRate>& alone);
  [[nodiscard]] const TaskSpec& spec(TaskIndex task) const { return options_.tasks[task]; }
  [[nodiscard]] std::string gpu_name(const std::string& uuid) const;

  BatchOptions options_;
  scheduler::TaskPlan plan_;
  std::vector<KnownTask> known_;
  Parts parts_;
  scheduler::Planner planner_;
  std::unique_ptr<Processes> processes_;
  std::unique_ptr<Sensors> sensors_;
  std::vector<scheduler::Action> actions_;
  bool acting_ = false;
  std::vector<AttemptId> prepared_, fresh_;
  std::vector<Later> later_;
  std::unordered_map<AttemptId, Live> live_;
  std::unordered_map<AttemptId, Closing> ended_;
  std::optional<scheduler::Eta> eta_;
  EndNotes end_notes_;
  std::unordered_map<TaskIndex, Nanos> took_;  // of successes, alone, until the task's end
  std::int64_t queue_told_ = 0;                // tasks waiting for a GPU, as the recording was last told
  std::unordered_map<std::int64_t, TreeProcess> tree_;
  std::unordered_map<std::string, TaskIndex> by_name_;
  std::unordered_map<std::string, GpuNow> gpu_now_;
  std::string boot_id_;
  Loop::TimerId wake_ = 0, commit_timer_ = 0, second_ = 0;
  Nanos start_ = 0, last_sensed_ = 0, no_room_until_ = 0;
  Nanos wake_at_ = 0, unseen_since_ = 0, lists_read_ = 0;
  bool draining_ = false, stopping_ = false, journal_failing_ = false, no_room_ = false, watching_tree_ = false,
       done_ = false;
  int signal_ = 0;
  host::OwnCgroup cgroup_;
  std::int64_t oom_kills_before_ = 0;
  std::set<std::string> quarantined_;
  BatchSummary summary_;
  std::vector<std::string> failed_;
  struct GpuUse {
    double busy_seconds = 0, seconds_with_work = 0, task_seconds = 0, steps = 0;
    std::int64_t tasks = 0, without_steps = 0;
  };
  std::unordered_map<std::string, GpuUse> use_;
  std::unordered_map<std::string, std::int64_t> others_;  // bytes of processes that are not the batch's
  std::unordered_map<AttemptId, TreeTotals> totals_;      // of the last tick
  std::vector<std::string> cpu_fallbacks_;
  std::set<std::string> others_compute_;
};

}  // namespace headroom::batch
