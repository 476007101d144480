// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "scheduler/group_stats.h"
#include "scheduler/order_queue.h"
#include "scheduler/packing.h"
#include "scheduler/planner.h"

// The inside of the planner: only planner*.cc include this.
namespace headroom::scheduler {

inline constexpr double kHostFactor = 1.5;        // of the cores: a step waits for the GPU now and then
inline constexpr double kHostMemory = 0.95;       // of the host's, for everybody together
inline constexpr std::size_t kLookThrough = 256;  // buckets looked at for one event: bounds its cost
inline constexpr int kOvertaken = 64;             // starts behind a blocked task, until it is given way

inline constexpr double kMeasurable = 3.0;  // seconds with a GPU to itself that tell a task's speed alone

// What tasks have in common; most batches have a handful of these.
struct Profile {
  GroupIndex group = 0;
  ResourceRequest resources;
  RetryPolicy retry;
  std::optional<Nanos> timeout, hang_timeout;
};

struct TaskRecord {
  std::uint32_t profile = 0;
  std::uint32_t blockers = 0;  // tasks and groups it still waits for
  int priority = 0;
  Nanos expected = -1;            // alone; < 0: not known
  std::int64_t reserve = 0;       // after an OOM: GPU bytes
  std::int64_t host_reserve = 0;  // after an OOM: host bytes
  int attempts = 0, failures = 0;
  std::uint8_t ooms = 0, device_losses = 0;
  bool alone = false;
  TaskState state = TaskState::kWaiting;
  ReadyQueue::Bucket bucket = 0;
};

struct Group {
  std::int64_t members = 0, unfinished = 0;
  bool failed = false;  // a member did not succeed
  bool released = false;
  std::optional<int> max_running;
  int running = 0;
  std::vector<TaskIndex> dependants;
  std::optional<std::int64_t> host_peak;
  std::map<std::string, GroupStats, std::less<>> stats;  // by GPU model; "" for tasks without a GPU
};

struct Running {
  AttemptId id = 0;
  TaskIndex task = 0;
  std::vector<GpuIndex> gpus;
  int slot = 0;
  Nanos start = 0;
  RunningMemory memory;
  bool alone = false;  // asked for: nothing else may join
  bool had_company = false;
  bool in_startup = true;
  bool seen = false;  // a reading of it came
  std::int64_t host_need = 0, host_now = 0;
  double cores_now = 0;
  std::optional<double> steps;
  std::optional<std::int64_t> io_bytes;
  double done_seconds = 0;             // of its work, as if alone, until last_reading
  bool all_told = true;                // all its work until then was measured
  double alone_seconds = 0;            // of stepping with the GPU to itself
  std::optional<double> work_seconds;  // the same, of the reading that is being taken in
  struct {
    double seconds = 0, gpu = 0, cpu = 0, step_seconds = 0, steps = 0;
    bool alone = true, steps_alone = true, has_gpu = false, has_cpu = false;
  } window;  // stepping, not yet shown to its group's statistics
  Nanos last_reading = 0, last_progress = 0;
  std::optional<StopReason> stopping;
};

struct Gpu {
  GpuFacts facts;
  bool usable = true;
  std::vector<AttemptId> running;
  Packer packer;
  std::int64_t others_bytes = 0;
  bool others_compute = false;
  std::optional<Nanos> tenant_seen;
  std::vector<std::pair<TaskIndex, GroupIndex>> failures;  // in a row, of different tasks
  std::map<GroupIndex, int> successes_elsewhere;           // of these groups, since that row began
};

// A task that waits for whole GPUs, or was overtaken too often: what is claimed is given to nobody behind it.
struct Claim {
  TaskIndex task = 0;
  std::vector<GpuIndex> gpus;
  bool host = false;
};

// The rest of the batch as a fluid, from lengths known beforehand: tasks of the usual load on the usable GPUs.
struct Outlook {
  double work_seconds = 0;               // alone, of all that waits or runs
  std::vector<double> critical_seconds;  // alone, of the longest task on each usable GPU
  std::vector<double> speeds;            // of each of n tasks beside each other, relative to alone; from n = 1
  int full = 1;                          // more of them do not do more
  double end_seconds = 0;                // from now
  [[nodiscard]] int most(double speed) const;
  [[nodiscard]] double capacity(double seconds) const;
  [[nodiscard]] double end() const;
};

class Planner::State {
 public:
  explicit State(PlannerSetup given);

  void on(const TasksAdded& event);
  void on(const GroupLimit& event);
  void on(const AttemptStarted& event);
  void on(const AttemptEnded& event);
  void on(const Readings& event);
  void on(const GpuLost& event);
  void on(const GpuBack& event);
  void on(const CancelTask& event);
  void on(const Drain& event);
  void on(const Stop& event);
  void on(const Tick& event);
  void wake();   // retries and deadlines that are due
  void place();  // starts what fits

  // planner_tasks.cc: tasks, dependencies, the queue
  void add(const PlannedTask& given);
  void wait_for(const PlannedTask& given);
  void make_ready(TaskIndex task);
  void unqueue(TaskIndex task);
  void end_task(TaskIndex task, TaskState state, std::string reason);
  void settle(TaskIndex task, TaskState state);  // counts, groups and dependants of an end
  void release(Group& of);
  [[nodiscard]] std::optional<std::string> impossible(const Profile& profile) const;
  [[nodiscard]] ReadyQueue::Bucket bucket_of(const TaskRecord& task);
  [[nodiscard]] QueueKey key_of(TaskIndex task) const;
  [[nodiscard]] std::uint32_t profile_of(const PlannedTask& given);
  Group& group(GroupIndex index);
  void set_state(TaskIndex task, TaskState state);

  // planner_attempts.cc
  void stop(Running& attempt, StopReason reason);
  [[nodiscard]] AttemptOutcome judged(const Running& attempt, const AttemptEnded& event) const;
  void learn_from_end(const Running& attempt, const AttemptEnded& event, AttemptOutcome outcome);
  void after_attempt(const Running& attempt, const AttemptEnded& event, AttemptOutcome outcome);
  void after_failure(TaskIndex task, AttemptOutcome outcome, const std::string& reason);
  void after_oom(const Running& attempt, const AttemptEnded& event, AttemptOutcome outcome);
  void requeue(TaskIndex task, AttemptOutcome outcome, Nanos at);
  void quarantine(GpuIndex gpu, std::string reason);
  void suspect(const Running& attempt, AttemptOutcome outcome);

  // planner_readings.cc
  void read_gpu(const GpuReading& reading);
  void note_progress(Running& attempt, const AttemptReading& reading, bool moved) const;
  void read_attempt(const AttemptReading& reading);
  void learn_speed(Running& attempt, GroupStats& learned, const AttemptReading& reading, double dt,
                   std::optional<double> steps);
  void learn_memory(Running& attempt, GroupStats& learned, const AttemptReading& reading) const;
  static void take_work(Running& attempt, std::optional<double> measured, double expected);
  void observe_gpu(std::size_t index, const std::map<AttemptId, const AttemptReading*>& readings);
  [[nodiscard]] GroupStats& stats(GroupIndex group, const Running& attempt);
  [[nodiscard]] GroupStats& stats_on(GroupIndex group, GpuIndex gpu);

  // planner_place.cc
  struct Need {
    std::int64_t bytes = 0;        // beside others
    std::int64_t alone_bytes = 0;  // on an empty GPU: without the margin
    bool probe = false;            // nothing is known of it there
    double load = 0;
  };
  void look_through();
  [[nodiscard]] bool hopeless(const TaskRecord& task, std::span<const TaskIndex> refused) const;
  [[nodiscard]] bool try_start(TaskIndex task, bool behind_claim);
  [[nodiscard]] bool try_slot(TaskIndex task);
  [[nodiscard]] bool try_shared(TaskIndex task, bool behind_claim);
  [[nodiscard]] bool try_whole(TaskIndex task, bool behind_claim);
  [[nodiscard]] bool fits(const TaskRecord& task, GpuIndex gpu, const Need& need);
  [[nodiscard]] bool probe_runs(GroupIndex of);
  [[nodiscard]] bool host_fits(const TaskRecord& task, bool extra);
  [[nodiscard]] bool memory_fits(const Gpu& gpu, const Need& need) const;
  [[nodiscard]] bool claimed(GpuIndex gpu, const TaskRecord& task, bool behind_claim) const;
  [[nodiscard]] Nanos longest_before_claim() const;  // a task so long ends before the claimed GPUs are empty
  [[nodiscard]] bool try_bucket(const QueueKey& head, ReadyQueue::Bucket bucket);
  [[nodiscard]] bool wants_whole(const TaskRecord& task) const;
  void claim(TaskIndex task, int overtaken);
  [[nodiscard]] Need need_of(const TaskRecord& task, GpuIndex gpu);
  [[nodiscard]] std::int64_t host_need(const TaskRecord& task);
  void start(TaskIndex task, std::vector<GpuIndex> on, const Need& need);
  [[nodiscard]] std::vector<double> loads(const Gpu& gpu);
  [[nodiscard]] std::int64_t counted(const Gpu& gpu) const;
  [[nodiscard]] std::int64_t limit(const Gpu& gpu) const;
  [[nodiscard]] double cores_counted() const;
  [[nodiscard]] Nanos remaining(const Running& attempt) const;  // alone; < 0: not known
  [[nodiscard]] int slots() const;
  [[nodiscard]] std::size_t usable_gpus() const;
  [[nodiscard]] const Profile& profile(const TaskRecord& task) const { return profiles[task.profile]; }

  // planner_outlook.cc
  [[nodiscard]] const Outlook* outlook(double load);
  [[nodiscard]] double soonest_place(GpuIndex besides) const;  // seconds, until another GPU's next task ends
  [[nodiscard]] bool delays_critical(const TaskRecord& task, GpuIndex gpu, double load);

  template <class A>
  void act(A action) {
    actions.emplace_back(std::in_place_type<A>, std::move(action));
  }

  PlannerSetup setup;
  Nanos now = 0;
  std::vector<Action> actions;
  std::vector<TaskRecord> tasks;
  std::vector<Profile> profiles;
  std::vector<Group> groups;
  std::vector<Gpu> gpus;
  std::map<AttemptId, Running> running;
  std::unordered_map<TaskIndex, std::vector<TaskIndex>> dependants;
  ReadyQueue queue;
  std::vector<int> overtaken;  // by bucket
  std::map<std::string, std::uint32_t, std::less<>> profile_index, bucket_index;
  std::set<std::pair<Nanos, TaskIndex>> backing_off;
  std::optional<Claim> claim_;
  std::optional<Outlook> outlook_;  // of this instant; absent: not asked for yet
  std::optional<std::int64_t> host_available;
  std::set<int> free_slots;  // below the highest ever used
  int next_slot = 0, on_slots = 0;
  AttemptId next_attempt = 1;
  std::int64_t by_state[8] = {};
  std::int64_t ready_for_gpu = 0;
  double queued_seconds = 0;         // expected, of tasks that neither run nor ended; no Nanos: there may be a million
  std::int64_t unknown_lengths = 0;  // tasks not ended whose length is not known
  double host_busy_ratio = 0;
  bool use_outlook = true;
  bool more_tasks = false, draining = false, stopped = false;
};

}  // namespace headroom::scheduler
