// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/batch.h"

// The batch's decisions: state + event -> actions. No clock, no process, no file: time is an argument, and the same
// events at the same times give the same actions. Whoever owns the processes (the executor) feeds events in and does
// what the actions say, in their order; an event may be handed in while the actions of the one before are still being
// done, as long as every StartAttempt is answered by AttemptStarted (or AttemptEnded) in the end.
namespace headroom::scheduler {

// Position in PlannerSetup::gpus / in the list of groups that the batch's owner keeps.
using GpuIndex = int;
using GroupIndex = int;

struct GpuFacts {
  std::string uuid;
  std::string model;  // memory and speed are learned per group and model
  std::int64_t memory_bytes = 0;
};

struct HostFacts {
  double cores = 1;               // usable: cpuset and quota applied
  std::int64_t memory_bytes = 0;  // usable; 0: not known, not a limit
};

enum class PackMode : std::uint8_t {
  kPack,       // as many as memory, host and measured throughput allow
  kFixed,      // per_gpu tasks a GPU (--per-gpu N): the person knows; memory is not second-guessed
  kOnePerGpu,  // --no-pack
};

// What earlier batches learned about a group on a GPU model (and what this one learned, for the next).
struct GroupHistory {
  GroupIndex group = 0;
  std::string gpu_model;
  std::int64_t finished = 0;                   // tasks it rests on
  std::optional<std::int64_t> peak_gpu_bytes;  // largest seen
  std::optional<double> gpu_util_ratio;        // alone, while stepping
  std::optional<double> cores;                 // alone
  std::optional<Nanos> startup, duration;      // of one task, alone
  std::optional<double> seconds_per_step;      // alone
};

struct PlannerSetup {
  std::vector<GpuFacts> gpus;
  HostFacts host;
  PackMode pack = PackMode::kPack;
  int per_gpu = 1;             // kFixed
  int slots = 0;               // places for tasks without a GPU; 0: as many as cores
  bool space_sharing = false;  // MPS runs on the GPUs: kernels of several processes run side by side
  Nanos decide_every = 5 * kSecond;
  int ooms_until_failed = 4;            // the third puts the task alone on its GPU; so many end it
  Nanos tenant_memory = 600 * kSecond;  // how long a GPU keeps room for another user's process after it was seen
  std::vector<GroupHistory> history;
  AttemptId first_attempt = 1;  // a resume goes on counting
};

// A task as the planner needs it; plan_tasks() makes them from TaskSpecs.
struct PlannedTask {
  TaskIndex task = 0;  // added in this order, without gaps
  GroupIndex group = 0;
  ResourceRequest resources;
  RetryPolicy retry;
  std::optional<Nanos> timeout, hang_timeout;
  int priority = 0;
  std::vector<TaskIndex> after;  // may be larger than `task`; no cycles (order.h refuses them)
  std::vector<GroupIndex> after_groups;
  std::optional<Nanos> expected;        // duration alone, from earlier batches only
  TaskState state = TaskState::kReady;  // an ended one (resume): counts for those that come after it, never runs
  int attempts_before = 0;              // resume: the next attempt's number is one more
  int failures_before = 0;              // resume: retries used up
};

// --- events ---
// Tasks come in one batch, or as they are read; what comes `after` a task may be added before it.
struct TasksAdded {
  std::vector<PlannedTask> tasks;
  bool more = false;  // further tasks will come: a group in `after_groups` is not complete yet
};
struct GroupLimit {
  GroupIndex group = 0;
  std::optional<int> max_running;
};
struct AttemptStarted {
  AttemptId attempt = 0;
};
// `outcome` is what the executor saw. A stopped attempt may be reported as kFailed or kInterrupted: the planner knows
// why it asked for the stop. kSucceeded is believed even then.
struct AttemptEnded {
  AttemptId attempt = 0;
  AttemptOutcome outcome = AttemptOutcome::kSucceeded;
  std::optional<std::int64_t> peak_gpu_bytes;  // per GPU, the largest
  std::optional<std::int64_t> peak_host_bytes;
  std::optional<Nanos> startup, gpu_time;  // until its first kernel; of its own kernels, as far as they were seen
  std::optional<Nanos> cpu_time;           // of all its processes
  std::string reason;                      // in words, for the task's end
};
struct GpuReading {
  GpuIndex gpu = 0;
  std::optional<double> util_ratio;          // of the device, since the last reading
  std::optional<std::int64_t> others_bytes;  // memory used by processes that are not the batch's
  bool others_compute = false;               // another user's compute process is on it
};
// What is absent could not be read. Counters are totals since the attempt's start.
struct AttemptReading {
  AttemptId attempt = 0;
  std::optional<std::int64_t> gpu_bytes;   // now, on its (fullest) GPU
  std::optional<double> gpu_util_ratio;    // its own kernels, since the last reading
  std::optional<double> cores;             // CPU time per time, its whole tree, since the last reading
  std::optional<double> cores_wanted;      // with the time that it waited for a core; absent: as `cores`
  std::optional<double> steps;             // done so far, where the job reports them
  std::optional<std::int64_t> host_bytes;  // now
  std::optional<std::int64_t> io_bytes;    // read and written so far
  bool in_startup = false;                 // no kernel yet
};
struct Readings {
  std::vector<GpuReading> gpus;
  std::vector<AttemptReading> attempts;
  std::optional<std::int64_t> host_available_bytes;
};
struct GpuLost {
  GpuIndex gpu = 0;
  std::string reason;
};
struct GpuBack {
  GpuIndex gpu = 0;
};
struct CancelTask {
  TaskIndex task = 0;
};
struct Drain {};  // start nothing more; what runs may finish
struct Stop {};   // and stop what runs
struct Tick {};
using Event = std::variant<TasksAdded, GroupLimit, AttemptStarted, AttemptEnded, Readings, GpuLost, GpuBack, CancelTask,
                           Drain, Stop, Tick>;

// --- actions ---
struct StartAttempt {
  AttemptId attempt = 0;
  TaskIndex task = 0;
  int number = 1;
  std::vector<GpuIndex> gpus;           // none for a task on a slot
  int slot = 0;                         // smallest number that no running attempt has
  std::int64_t reserved_gpu_bytes = 0;  // per GPU
  bool probe = false;                   // first of its group: shows what the others need
  bool alone = false;
};
enum class StopReason : std::uint8_t { kTimedOut, kHung, kCancelled, kBatchStopped, kDeviceLost };
struct StopAttempt {
  AttemptId attempt = 0;
  StopReason reason = StopReason::kCancelled;
};
// The attempt's final outcome, after the planner's judgement; one for each StartAttempt.
struct CloseAttempt {
  AttemptId attempt = 0;
  TaskIndex task = 0;
  AttemptOutcome outcome = AttemptOutcome::kSucceeded;
};
// The task will run again, not before `at`.
struct RequeueTask {
  TaskIndex task = 0;
  AttemptOutcome after = AttemptOutcome::kFailed;
  Nanos at = 0;
  std::int64_t reserved_gpu_bytes = 0;  // its next reservation; 0: not changed
  bool alone = false;                   // on a GPU of its own
};
// The task's end; one per task, except those that a drain or a stop leaves for a resume.
struct EndTask {
  TaskIndex task = 0;
  TaskState state = TaskState::kSucceeded;
  std::string reason;
};
struct QuarantineGpu {
  GpuIndex gpu = 0;
  std::string reason;
};
using Action = std::variant<StartAttempt, StopAttempt, CloseAttempt, RequeueTask, EndTask, QuarantineGpu>;

// --- what can be asked of it, for reports, status and tests ---
struct GpuView {
  bool usable = true;              // false: quarantined
  std::vector<AttemptId> running;  // oldest first
  std::int64_t counted_bytes = 0;  // what the running attempts count for
  std::int64_t limit_bytes = 0;    // what they may count for: 98 % of the memory, less what others use or may want
  double load = 0;                 // sum of the groups' utilisation
  double parallelism = 1;          // learned: tasks' worth of kernels that run side by side
  double predicted_rate = 0;       // tasks' worth of work per task alone on a GPU
  std::optional<double> max_load;  // the guard's limit, while it holds
  int direction_changes = 0;       // how often concurrency turned from up to down or back while tasks were queued
};
struct BatchCounts {
  std::int64_t total = 0, waiting = 0, ready = 0, running = 0, backing_off = 0, succeeded = 0, failed = 0, skipped = 0,
               cancelled = 0;
  std::int64_t ready_for_gpu = 0;  // of those ready: that want a GPU
};

// What one task per GPU would have done, of the tasks that finished: `tasks` in `alone_seconds` of a GPU of this model.
// A task's length alone is its measured work (steps, kernel time or CPU time) at the speed its group had alone.
struct AloneRate {
  std::string gpu_model;
  std::int64_t tasks = 0;  // finished, on one GPU each, whose work was measured
  double alone_seconds = 0;
  std::int64_t alone_attempts = 0;  // it rests on: those that had a GPU to themselves for seconds, or all their life
  std::int64_t untold_tasks = 0;    // finished, but no task of the group was seen alone, or its work was not measured
  bool from_history = false;        // for some groups it rests on earlier batches only
};

class Planner {
 public:
  explicit Planner(PlannerSetup setup);
  ~Planner();
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;

  // `now` never goes back. Unknown attempts and tasks are ignored (a late report is no error).
  [[nodiscard]] std::vector<Action> handle(Nanos now, const Event& event);
  // When a Tick is due (a retry, a timeout, the next packing decision); absent: only when something happens.
  [[nodiscard]] std::optional<Nanos> next_wake() const;
  // Nothing runs and nothing will: every task has ended, or the batch was drained or stopped.
  [[nodiscard]] bool finished() const;

  [[nodiscard]] TaskState state(TaskIndex task) const;
  [[nodiscard]] BatchCounts counts() const;
  [[nodiscard]] GpuView gpu(GpuIndex gpu) const;
  [[nodiscard]] double cores_counted() const;  // of the running attempts, as the host gate counts them
  // Why the first task in the queue does not run, in words; "" when none is ready.
  [[nodiscard]] std::string why_waiting() const;
  [[nodiscard]] std::vector<AloneRate> alone_rates() const;  // one for each GPU model, by its name
  // What was learned, for the next batch's PlannerSetup::history.
  [[nodiscard]] std::vector<GroupHistory> learned() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headroom::scheduler
