// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_table.h"
#include "base/time.h"
#include "model/requirement.h"
#include "model/said_metric.h"

// The words of `headroom batch`: what a person asked for (TaskSpec), how it went (Attempt), what it came to
// (BatchSummary). Plain values; the planner, the journal, the executors and the reports all speak of these.
namespace headroom {

// Position of a task in the batch, in the order of the task file. Stable within one batch; across runs of the same
// file a task is known by TaskSpec::identity.
using TaskIndex = std::uint32_t;
// One run of one task. Counts up from 1 over the life of the batch, resumes included; never used twice.
using AttemptId = std::uint64_t;

// What a task needs. What is absent was not said: it is learned (memory, cores) or not limited.
struct ResourceRequest {
  int gpus = 1;                                   // 0: runs on a slot, without a GPU; > 1: all of them or none
  std::optional<std::int64_t> gpu_memory_bytes;   // per GPU; trusted as the task's peak until an attempt shows more
  std::optional<double> cpus;                     // cores it keeps busy
  std::optional<std::int64_t> host_memory_bytes;  // peak
  bool alone = false;                             // nothing else of the batch on its GPUs
  bool operator==(const ResourceRequest&) const = default;
};

// Retries are for failures that are the task's own (exit status, timeout, hang). An out-of-memory requeue, a lost GPU
// and a resume are not retries and are not counted here.
struct RetryPolicy {
  int retries = 0;                    // after the first attempt
  Nanos backoff = 1 * kSecond;        // before the first retry
  double backoff_factor = 2.0;        // each further one waits this much longer …
  Nanos backoff_max = 300 * kSecond;  // … up to this
  bool operator==(const RetryPolicy&) const = default;
};

// One task as asked for. Everything a template, a grid or an overlay said is already filled in.
struct TaskSpec {
  std::string name;      // unique in the batch; people and `after` use it
  std::string identity;  // hash of command, parameters and named inputs: the same task in another run of the file
  std::string group;     // tasks that behave alike: memory, cores and durations are learned per group and GPU model
  std::string command_template;  // as written, without its parameters: what durations are learned for
  // In argv and in the values of environment, {gpu} {gpu_index} {gpu_uuid} {slot} are left for the start of an attempt,
  // and a brace that is meant as one is doubled: run/template.h, fill_place().
  std::vector<std::string> argv;                                 // for a shell line: {"/bin/sh", "-c", line}
  bool shell = false;                                            // argv came from a shell line
  std::vector<std::pair<std::string, std::string>> environment;  // on top of the batch's own, later ones win
  std::size_t from_env_file = 0;  // so many of the first of these are from an env_file: where written, they are hidden
  std::string working_directory;  // "": where the batch was started
  std::vector<std::pair<std::string, std::string>> parameters;  // as asked
  std::vector<std::string> inputs;   // files whose hashes are recorded, and part of the identity
  std::vector<std::string> outputs;  // files that a finished attempt leaves
  std::string resolved;              // a JSON file in which it leaves its parameters as it resolved them; "": none
  ResourceRequest resources;
  RetryPolicy retry;
  std::optional<Nanos> timeout;       // of one attempt, from its start
  std::optional<Nanos> hang_timeout;  // no CPU, no I/O, no step and no kernel for so long: stopped as hung
  int priority = 0;                   // higher first
  std::vector<std::string> after;     // names of tasks or of groups (all their tasks) that must succeed first
  std::string file;                   // where it was asked for …
  int line = 0;                       // … 0: no line to name
  bool operator==(const TaskSpec&) const = default;
};

// A limit over all tasks of a group.
struct GroupSpec {
  std::string name;
  std::optional<int> max_running;  // at most so many at the same time, over all GPUs
  bool operator==(const GroupSpec&) const = default;
};

enum class TaskState : std::uint8_t {
  kWaiting = 0,     // for a task it comes after
  kReady = 1,       // for a place
  kRunning = 2,     // an attempt is under way
  kBackingOff = 3,  // for the time of its next attempt
  kSucceeded = 4,   // this and the following: ended, for good
  kFailed = 5,
  kSkipped = 6,  // a task it comes after did not succeed
  kCancelled = 7,
};
// How an attempt ended. The numbers are stored in journals: add at the end only.
enum class AttemptOutcome : std::uint8_t {
  kSucceeded = 0,
  kFailed = 1,           // exit status other than 0, or a signal that Headroom did not send
  kGpuOutOfMemory = 2,   // requeued with a larger reservation
  kHostOutOfMemory = 3,  // likewise, of host memory
  kTimedOut = 4,
  kHung = 5,
  kCancelled = 6,    // a person cancelled the task
  kInterrupted = 7,  // the batch was stopped, or died: runs again at the next resume
  kDeviceLost = 8,   // its GPU went away: not the task's fault
  kMisplaced = 9,    // it computed on another GPU than the one given, and was stopped for it
  kNotStarted = 10,  // the command could not be executed
};
struct OutcomeInfo {
  AttemptOutcome id;
  std::string_view name;   // JSON, journal listings
  std::string_view label;  // for people
  bool tasks_fault;        // counts against the task's retries
};
inline constexpr std::array kOutcomes{
    OutcomeInfo{AttemptOutcome::kSucceeded, "succeeded", "succeeded", false},
    OutcomeInfo{AttemptOutcome::kFailed, "failed", "failed", true},
    OutcomeInfo{AttemptOutcome::kGpuOutOfMemory, "gpu_out_of_memory", "out of GPU memory", false},
    OutcomeInfo{AttemptOutcome::kHostOutOfMemory, "host_out_of_memory", "out of host memory", false},
    OutcomeInfo{AttemptOutcome::kTimedOut, "timed_out", "timed out", true},
    OutcomeInfo{AttemptOutcome::kHung, "hung", "hung", true},
    OutcomeInfo{AttemptOutcome::kCancelled, "cancelled", "cancelled", false},
    OutcomeInfo{AttemptOutcome::kInterrupted, "interrupted", "interrupted", false},
    OutcomeInfo{AttemptOutcome::kDeviceLost, "device_lost", "GPU lost", false},
    OutcomeInfo{AttemptOutcome::kMisplaced, "misplaced", "on the wrong GPU", true},
    OutcomeInfo{AttemptOutcome::kNotStarted, "not_started", "could not be started", true},
};
static_assert(in_order_of_ids(kOutcomes));
[[nodiscard]] inline const OutcomeInfo& info(AttemptOutcome outcome) {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}
struct TaskStateInfo {
  TaskState id;
  std::string_view name;  // JSON, and for people
};
inline constexpr std::array kTaskStates{
    TaskStateInfo{TaskState::kWaiting, "waiting"},     TaskStateInfo{TaskState::kReady, "ready"},
    TaskStateInfo{TaskState::kRunning, "running"},     TaskStateInfo{TaskState::kBackingOff, "backing_off"},
    TaskStateInfo{TaskState::kSucceeded, "succeeded"}, TaskStateInfo{TaskState::kFailed, "failed"},
    TaskStateInfo{TaskState::kSkipped, "skipped"},     TaskStateInfo{TaskState::kCancelled, "cancelled"},
};
static_assert(in_order_of_ids(kTaskStates));
[[nodiscard]] inline std::string_view name(TaskState state) {
  return kTaskStates[static_cast<std::size_t>(state)].name;
}
[[nodiscard]] inline bool has_ended(TaskState state) { return state >= TaskState::kSucceeded; }

// What the driver's process lists said about where an attempt ran.
enum class PlacementProof : std::uint8_t {
  kUnseen = 0,       // too short for the sampling: neither proof nor accusation
  kVerified = 1,     // seen on the GPUs it was given, and on no other
  kMisplaced = 2,    // seen on another GPU
  kCpuFallback = 3,  // ran long and never held a context
};
struct PlacementProofInfo {
  PlacementProof id;
  std::string_view name;  // JSON, events
};
inline constexpr std::array kPlacementProofs{
    PlacementProofInfo{PlacementProof::kUnseen, "unseen"},
    PlacementProofInfo{PlacementProof::kVerified, "verified"},
    PlacementProofInfo{PlacementProof::kMisplaced, "misplaced"},
    PlacementProofInfo{PlacementProof::kCpuFallback, "cpu_fallback"},
};
static_assert(in_order_of_ids(kPlacementProofs));
[[nodiscard]] inline std::string_view name(PlacementProof proof) {
  return kPlacementProofs[static_cast<std::size_t>(proof)].name;
}

// One run of a task, with its provenance. Times are Unix nanoseconds; what could not be read is absent.
struct Attempt {
  AttemptId id = 0;
  TaskIndex task = 0;
  int number = 1;                      // 1: the task's first
  std::vector<std::string> gpu_uuids;  // given; none for a task on a slot
  int slot = 0;
  std::int64_t pid = 0;
  std::string boot_id;                 // of the machine's run in which the pid means something
  std::optional<Nanos> process_start;  // tells a reused pid from the attempt's
  Nanos start = 0;
  std::optional<Nanos> end;
  std::optional<AttemptOutcome> outcome;
  std::optional<int> exit_code;   // 128+n for signal n
  std::string reason;             // why it ended so, in words, with the evidence line where there is one
  std::vector<std::string> argv;  // placeholders filled in
  std::vector<std::pair<std::string, std::string>> environment;  // what differs from the batch's own
  std::size_t from_env_file = 0;                                 // as in TaskSpec; of one that was read, 0
  std::vector<std::pair<std::string, std::string>> parameters_resolved;
  std::vector<std::pair<std::string, double>> metrics;  // the last value of each
  std::vector<SaidMetric> courses;                      // of those of which the recording keeps several values
  std::string working_directory, git_commit;
  std::optional<bool> git_dirty;
  std::vector<std::pair<std::string, std::string>> input_hashes;  // path, hash
  std::string driver_version, log_path;
  std::optional<std::int64_t> reserved_gpu_bytes, peak_gpu_bytes, peak_host_bytes;
  std::optional<Nanos> cpu_time, gpu_time;  // used
  std::optional<double> steps;              // done, where its log reports them
  PlacementProof proof = PlacementProof::kUnseen;
  std::vector<std::string> seen_gpu_uuids;
};

// What an attempt said of one of its metrics.
struct AttemptMetric {
  AttemptId attempt = 0;
  SaidMetric said;
};

// Mirrors the schema headroom.batch/1 (DESIGN section 8).
struct BatchSummary {
  struct Tasks {
    std::int64_t total = 0, succeeded = 0, failed = 0, skipped = 0, cancelled = 0;
    std::int64_t left = 0;  // not run yet: the batch was drained or stopped; a resume runs them
  };
  struct DeviceUse {
    std::string uuid;
    int index = 0;
    std::int64_t tasks = 0;
    std::optional<double> busy_ratio;
    bool quarantined = false;
  };
  struct Misplaced {
    std::string task, wanted, found;
  };
  struct Packing {
    std::string device;
    double concurrency = 0;                                              // mean over the time it had work
    std::optional<double> work_per_second, one_per_gpu_work_per_second;  // steps, or tasks where no steps were reported
    std::string_view unit = "tasks";
    double one_per_gpu_error_ratio = 0;  // half of that rate's interval
    std::optional<double>
        alone_busy_ratio;                   // one after the other, no more than 1 / this is possible; absent: not known
    std::int64_t one_per_gpu_attempts = 0;  // that rate rests on so many that ran alone on a GPU of this model …
    bool one_per_gpu_from_history = false;  // … and, for some groups, on earlier batches
    std::string_view one_per_gpu_unknown;   // why that rate is absent, in words; "" where it is not
  };
  Tasks tasks;
  std::int64_t attempts = 0, retries = 0, oom_requeues = 0;
  double wall_seconds = 0;
  std::vector<DeviceUse> devices;
  std::int64_t verified = 0, unseen = 0;
  std::vector<Misplaced> misplaced;
  std::vector<Packing> packing;
  std::vector<std::string> rerun_after_crash;  // names of tasks that ran again because their end was not journalled
  std::string recording, journal;
  Nanos longest_call = 0;                       // CPU time of the longest one of a handler of its event loop
  std::vector<JudgedRequirement> requirements;  // where the user gave some
};

}  // namespace headroom
