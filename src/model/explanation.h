// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/finding.h"
#include "model/ledger.h"
#include "model/recording.h"
#include "model/requirement.h"
#include "model/said_metric.h"

namespace headroom {

// A reading left out of the statistics; it stays in the recording.
struct ExcludedReading {
  Nanos at = 0;
  double value = 0;    // in the metric's unit
  std::string reason;  // "above the enforced limit of 55 W", "robust z-score 41 (Hampel, median 20.5 W)"
  bool operator==(const ExcludedReading&) const = default;
};

// Statistics of one metric on one device; percentiles by the nearest-rank method.
struct MetricStats {
  Metric metric{};
  double mean = 0, min = 0, p50 = 0, p95 = 0, max = 0;  // in the metric's unit; only if samples > 0
  std::int64_t samples = 0;                             // readings used
  std::optional<Absent> absent;                         // why there is none, if samples == 0
  std::vector<ExcludedReading> excluded;
  bool operator==(const MetricStats&) const = default;
};

struct DeviceStats {
  std::size_t device = 0;  // index into Ledger::devices
  std::vector<MetricStats> metrics;
  bool operator==(const DeviceStats&) const = default;
  [[nodiscard]] const MetricStats* find(Metric metric) const;  // nullptr: the recording has none
};

// A phase of a device's time: one that recurs, found in its utilisation, or one that has a name.
struct Phase {
  std::string name;        // "kernels running", "partly busy", "idle"; or as the job or its stacks name it
  std::string named_by;    // "marks", "nvtx", "output", "stacks"; "": found in the utilisation
  std::size_t device = 0;  // index into Ledger::devices
  std::int64_t count = 0;  // occurrences
  Nanos total = 0;
  std::optional<double> gpu_util_ratio, power_watts;
  std::optional<double> memory_used_bytes, memory_util_ratio;
  std::optional<Nanos> period;  // time from one begin to the next, where it is regular
  std::optional<double> steps;  // done in it, where the job counts them
  double steps_shared = 0;      // of them or of others: between two counts that do not lie in one phase
  bool operator==(const Phase&) const = default;
};

// How fast the job did what it is for, by its own count.
struct Work {
  double steps = 0;            // in the window
  Nanos counted = 0;           // from its first count in the window to its last
  std::string via;             // "marks", "nvtx", "output"
  std::int64_t processes = 1;  // that count steps: this is the one that counted most
  std::optional<double> steps_per_second, samples_per_second;
  bool operator==(const Work&) const = default;
};

// What a job said of itself.
struct Said {
  std::vector<SaidMetric> metrics;                              // by name
  std::vector<std::pair<std::string, std::string>> parameters;  // likewise
  bool operator==(const Said&) const = default;
};

// Where a job is, by the numbers that it tells ("epoch 3/5", "epoch 3"), and how long the rest may take.
struct Progress {
  enum class Unit : std::uint8_t { kSteps, kEpochs, kFolds };
  struct At {
    std::int64_t number = 0, of = 0;  // as the job numbers them; of 0: it did not say of how many
    bool done = false;                // that number of them; else it is at it
    bool operator==(const At&) const = default;
  };
  struct Left {
    double low_seconds = 0, high_seconds = 0;
    Unit to_end_of = Unit::kSteps;  // the last one of these
    bool without_pauses = false;    // what comes between epochs was not seen yet, and is not in it
    bool operator==(const Left&) const = default;
  };
  struct Next {
    std::string phase;
    double low_seconds = 0, high_seconds = 0;
    bool operator==(const Next&) const = default;
  };
  std::optional<At> fold, epoch, step;  // one of them at least
  std::optional<Left> left;             // of a job that runs
  std::optional<Next> next_validation;
  bool operator==(const Progress&) const = default;
};

enum class Answer : std::uint8_t { kYes, kNo, kUnknown };
[[nodiscard]] std::string_view answer_name(Answer answer);

// One line of the health checklist: on the GPU? memory? progress? …
struct HealthCheck {
  std::string check;  // "runs_on_gpu", "memory_fits", "clocks", "progress", "no_oom", …
  Answer good = Answer::kUnknown;
  std::string evidence;
  bool operator==(const HealthCheck&) const = default;
};

// How much faster the same work could be done at most, and on what condition.
struct Bound {
  double speedup_high = 1.0;
  std::string condition;
  bool operator==(const Bound&) const = default;
};

// A job of which only a part uses a GPU: however fast that part becomes, the rest remains.
struct Pipeline {
  Nanos gpu_part = 0;  // from the first kernel of a process to its last, its waits included; short ones: as they lived
  Nanos kernels = 0;   // a kernel of the job ran on some GPU
  Nanos rest = 0;      // no process was at its GPU part
  bool operator==(const Pipeline&) const = default;
};

// What a batch's recording says beside its ledger.
struct BatchTimes {
  std::int64_t attempts = 0, not_succeeded = 0;  // that ran on a GPU
  // Attempts on a GPU that failed by themselves, or ran out of its memory alone on it, while none has succeeded.
  std::int64_t failed_before_any_success = 0;
  Nanos tail = 0;       // from the first GPU without a task to the end of the last task, after the last one was started
  Nanos tail_lost = 0;  // device time that was free meanwhile
  std::optional<double> room;                     // tasks that a GPU could hold, where too few did
  std::optional<double> at_once;                  // tasks that a GPU held on average, while others waited for a place
  std::optional<std::int64_t> largest_gpu_bytes;  // of an attempt, on one GPU
  bool too_large = false;                         // an attempt ran out of GPU memory alone on its GPU
  bool operator==(const BatchTimes&) const = default;
};

// What the processes on the GPU, those below them and the whole machine used of its cores, on average.
struct HostTime {
  double usable_cores = 0;           // cpuset and quota applied
  std::optional<double> busy_cores;  // of the whole machine, where that was recorded
  std::int64_t helpers = 0;          // below the processes on the GPU: the most that lived at once
  double owner_cores = 0, helper_cores = 0;
  double helpers_idle = 0;  // the share of looks in which a helper slept on a pipe, as who has nothing to do
  bool operator==(const HostTime&) const = default;
};

// What recording cost, where the recording says.
struct RecordingCost {
  std::optional<double> cpu_seconds;
  std::optional<double> core_ratio;  // of one core, over the span
  std::optional<std::int64_t> max_rss_bytes;
  std::optional<std::int64_t> file_bytes;  // known to who opened the file
  bool operator==(const RecordingCost&) const = default;
};

// One of the recordings that were joined and explained together. Times are by their common clock.
struct ExplainedRecording {
  std::string name;  // as findings call it: its machine, and which one of it, where it has several
  std::string path;  // "" where it lies in one file with the others
  std::string host;
  Nanos begin = 0, end = 0;
  std::size_t gpus = 0;  // of the budget
  std::string stop_reason;
  std::optional<int> exit_code;
};

// The answer of `headroom why` and of the report at the end of `headroom run`.
struct Explanation {
  std::string path;  // of the recording; "" while it is not one
  RecordingMeta meta;
  std::string headline;  // one or two plain sentences; of a recording that goes on "So far: " and these
  std::string sentence;  // the headline without that
  bool too_few = false;  // it was looked at too seldom, or for too short a time, to judge the rest by it
  Ledger ledger;
  std::vector<std::vector<Slice>> slices;  // per device of the ledger
  std::vector<DeviceStats> devices;
  std::vector<Phase> phases;  // of a device either those with names or those found in its utilisation
  std::optional<Work> work;   // where the job counts it
  Said said;
  std::optional<Progress> progress;
  std::vector<Finding> findings;  // most lost device-time first
  std::vector<OwnLimit> limits;   // of causes that findings leave open: what they can have cost in the whole run
  std::optional<Bound> bound;
  std::optional<Pipeline> pipeline;  // where the rest is a material part
  std::optional<BatchTimes> batch;   // of a batch
  std::optional<HostTime> host;      // where processes of the job and the machine's cores were recorded
  std::vector<HealthCheck> health;
  std::vector<Loss> losses;
  std::vector<JudgedRequirement> requirements;  // where the user gave some
  std::vector<ExplainedRecording> parts;        // where several recordings were joined
  std::vector<std::string> about_parts;         // sentences: which these are, how their clocks relate, what differs
  RecordingCost cost;
};

}  // namespace headroom
