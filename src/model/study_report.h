// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/ledger.h"
#include "model/safety.h"
#include "model/study.h"

// The answer of `headroom study`: what a study's workers did with their time, what its GPU did meanwhile where a
// recording says so, and what would have found its best value sooner. Plain values.
namespace headroom {

// An estimate and the range in which the truth is expected, 90 % of the time.
struct Estimate {
  double low = 0, value = 0, high = 0;
  bool operator==(const Estimate&) const = default;
};

// Nearest rank, of `count` values; all 0 where there is none.
struct Quantiles {
  std::int64_t count = 0;
  double min = 0, p10 = 0, p50 = 0, p90 = 0, max = 0;
  bool operator==(const Quantiles&) const = default;
};

// Where the storage's naive times lie on the clock of this machine.
struct StudyClock {
  Nanos offset = 0;    // what is added to a trial's times to get Unix time
  bool known = false;  // false: nothing here tells, and 0 is used
  std::string how;     // "as told", "heartbeats", "the storage was written at …", "GPU of the recording", …
  bool operator==(const StudyClock&) const = default;
};

// ------------------------------------------------------------------------------------------- pruner, as it decides

enum class PrunerKind : std::uint8_t {
  kNone = 0,           // optuna.pruners.NopPruner
  kMedian,             // MedianPruner
  kPercentile,         // PercentilePruner
  kSuccessiveHalving,  // SuccessiveHalvingPruner
  kHyperband,          // HyperbandPruner
  kThreshold,          // ThresholdPruner
};

// One of Optuna's pruners with its settings, under Optuna's names. What a kind does not have is left at its default.
struct PrunerSettings {
  PrunerKind kind = PrunerKind::kNone;
  std::optional<std::int64_t> patience;  // PatientPruner around it
  double min_delta = 0;                  // of the PatientPruner
  // SuccessiveHalving, Hyperband
  std::optional<std::int64_t> min_resource = 1;  // absent: "auto" (successive halving only)
  std::optional<std::int64_t> max_resource;      // absent: "auto" (Hyperband only)
  std::int64_t reduction_factor = 3;             // Optuna's default is 4 for successive halving, 3 for Hyperband
  std::int64_t min_early_stopping_rate = 0;
  std::int64_t bootstrap_count = 0;
  // Median, Percentile
  double percentile = 50;
  std::int64_t n_startup_trials = 5;
  std::int64_t n_min_trials = 1;
  // Median, Percentile, Threshold
  std::int64_t n_warmup_steps = 0;
  std::int64_t interval_steps = 1;
  // Threshold
  std::optional<double> lower, upper;
  bool operator==(const PrunerSettings&) const = default;
};

// What decided about the trials: told by the person, or what the storage lets one infer.
struct Inferred {
  std::string text;      // "PatientPruner(HyperbandPruner(…), patience=2)", "TPESampler", "unknown"
  bool told = false;     // by --pruner or --sampler
  std::string evidence;  // "rungs are stored; the earliest prune is at step 4"; "" if told
  bool operator==(const Inferred&) const = default;
};

// A sampler's first trials, which it draws at random.
struct RandomStart {
  std::int64_t needed = 0;   // so many have to complete or to be pruned; failed ones do not count
  bool per_bracket = false;  // of each bracket of Hyperband
  std::int64_t trials = 0;   // that had begun by then; not known per bracket
  bool over = false;         // so many have
  bool operator==(const RandomStart&) const = default;
};

// --------------------------------------------------------------------------------------------------------- facts

// A parameter, and how many of the trials have it so.
struct StudyParameter {
  ParameterSpace space;
  std::int64_t trials = 0;
  bool operator==(const StudyParameter&) const = default;
};

struct StateFacts {
  TrialState state{};
  std::int64_t count = 0;
  Quantiles duration_seconds;  // of trials with both times
  Quantiles steps;             // reports per trial
  double worker_seconds = 0;   // a running trial's: until the end of the study's time, unless it is dead
  std::optional<Nanos> gpu;    // time in which a kernel of theirs ran; only with a recording
  bool operator==(const StateFacts&) const = default;
};

// Time before a trial's first step.
struct StartupFacts {
  std::optional<Estimate> inside_seconds;   // per trial, between its begin and its first step
  std::optional<Estimate> between_seconds;  // per trial, between the end of one and the begin of the next of a worker
  std::optional<double> share;              // of worker time, both kinds
  std::string method;     // of `inside_seconds`: "Theil-Sen regression of duration on steps"; absent: why not known
  std::string borne_out;  // what else bears it out, or bounds it; "": nothing
  bool operator==(const StartupFacts&) const = default;
};

// Time of one step (one report), and the parameter it hangs on most.
struct StepTimeFacts {
  std::optional<Estimate> seconds;  // of the middle trial
  std::string parameter;            // "": no parameter explains a third of its variation
  double explained = 0;             // share of the variation (rank correlation squared, or between categories)
  std::string direction;            // "longer with higher layers"
  // One per trial: what its parameter makes of a step's time, over the middle trial's; 1 where nothing is known.
  std::vector<double> relative;
  bool operator==(const StepTimeFacts&) const = default;
};

// One trial at a time, and from one on several; or several from the first on.
struct ParallelSince {
  std::int64_t trial = 0;   // the first that began beside another; from the first on: that one
  bool from_first = false;  // and then `seconds` is 0
  std::int64_t early = 0;   // from the first on: so many had begun when the first one ended
  double seconds = 0;       // since the study's begin
  std::int64_t most = 0;    // open at once from then on
  bool operator==(const ParallelSince&) const = default;
};

// How many trials were open, over time; its pauses (StudyReport::paused_seconds) are in no mean and no share.
struct ParallelismFacts {
  double open_mean = 0;                  // RUNNING as the storage has it, dead ones included
  double alive_mean = 0;                 // without the dead ones
  std::optional<double> computing_mean;  // past their start-up
  std::optional<double> any_computing;   // share of time with at least one past its start-up
  std::int64_t open_max = 0;
  std::int64_t workers = 0;  // told or inferred
  bool workers_told = false;
  // Since the study's begin, in seconds: from then on so many workers, where they became fewer; empty: they did not, or
  // it is not clear.
  std::vector<std::pair<double, std::int64_t>> fewer;
  std::optional<ParallelSince> since;                // absent: never, or not clear
  std::vector<std::pair<Nanos, std::int64_t>> open;  // since the study's begin: from then on so many; at most 2,000
  bool operator==(const ParallelismFacts&) const = default;
};

// Worker-seconds, every one of them in one of these; they sum to `total`.
struct WorkerTime {
  double total = 0;   // workers x the time from the first begin to the last end, less pauses; more while more were open
  double useful = 0;  // steps of trials that completed
  double discarded = 0;  // steps of trials that were pruned
  double failed = 0;     // of trials that failed or are dead, their start-up included
  double startup = 0;    // before the first step of trials that completed, were pruned or run
  double running = 0;    // steps of trials that still run
  double between = 0;    // no trial of the worker was open
  bool operator==(const WorkerTime&) const = default;
};

// Failures that lie together.
struct FailureGroup {
  std::string where;                // "batch_size >= 256 and layers >= 6", "at step 1", "spread over all parameters"
  std::int64_t failed = 0, of = 0;  // so many of the trials there
  bool before_first_step = false;
  bool region = false;   // of the parameters: `where` may be avoided
  bool in_time = false;  // a stretch of the study, whatever the parameters
  bool to_end = false;   // likewise, and its last
  bool worker = false;   // of one of several workers, as the storage has them
  // Of those that failed, by a recording: the output said so as they ended; the GPU's memory was full as they did.
  std::int64_t said_out_of_memory = 0, memory_full = 0;
  double worker_seconds = 0;         // of those that failed
  std::vector<std::int64_t> trials;  // numbers, at most 20
  bool operator==(const FailureGroup&) const = default;
};

// Something that wants an explanation, or an action.
struct StudyAnomaly {
  std::string kind;  // "dead_trial", "more_open_than_workers", "slow_trial", "duplicates", "non_finite", …
  std::string text;  // a sentence with its numbers
  std::string next;  // what to do or to look at; may be ""
  std::vector<std::int64_t> trials;  // numbers, at most 20
  bool operator==(const StudyAnomaly&) const = default;
};

// The best value so far, each time it got better. One objective; only COMPLETE, feasible trials.
struct BestPoint {
  std::int64_t trial = 0;
  std::int64_t trials_finished = 0;
  double seconds = 0;         // since the study's begin
  double worked_seconds = 0;  // of them, without its pauses
  double value = 0;
  bool operator==(const BestPoint&) const = default;
};

struct RungFacts {
  int bracket = 0, rung = 0;
  std::int64_t step = 0;      // at which it decides; 0: unknown
  std::int64_t reached = 0;   // trials that have it
  std::int64_t promoted = 0;  // of them, that went on past it
  bool operator==(const RungFacts&) const = default;
};

// One trial for a picture: a bar in time, its curve is Study's.
struct TrialBar {
  std::int64_t trial = 0;
  TrialState state{};
  std::int64_t lane = 0;                      // worker: as the journal says, else the first one that was free
  double begin = 0, first_step = 0, end = 0;  // seconds since the study's begin; first_step is an estimate
  bool dead = false;
  bool operator==(const TrialBar&) const = default;
};

// ------------------------------------------------------------------------------------------------------- what-if

// How the first `trials` to end go. A study's first trials are pruned less than its later ones: a study that is yet
// short is held against these.
struct FirstTrials {
  std::int64_t trials = 0;
  Estimate trials_per_hour;
  Estimate pruned_share;   // of those that ended
  Estimate trial_seconds;  // the median of those that ended
  Estimate at_once;        // trials open, on average
  bool operator==(const FirstTrials&) const = default;
};

// One change, replayed. Everything here is simulated from the study's own trials.
struct WhatIf {
  std::string change;        // "warm workers", "6 trials at once", "patience 2 -> 10"
  std::string how;           // the exact edit: Optuna code, an environment variable, or a headroom command
  Estimate trials_per_hour;  // finished: completed, pruned, failed
  Estimate utilisation;      // 0..1, as modelled; of what: StudyReport::utilisation_of_gpu
  // Of the time to the best value that was observed, change / as it is; < 1 is sooner. Under another pruner, replays
  // that do not reach it count as all their time and then the time as it is.
  Estimate time_to_best_ratio;
  Estimate time_to_best_seconds;  // of single studies, whose trials come in other orders
  double best_reached = 1;        // share of the replays that reached it
  // Of all trials but the last, with which the workers run dry; as FirstTrials has them.
  Estimate pruned_share, trial_seconds, at_once;
  std::vector<FirstTrials> first;                // of so many: rising
  double gpu_hours = 0;                          // until the same trials are through
  std::optional<std::int64_t> memory_bytes;      // on the GPU, as many trials at once as there may be, each the largest
  std::optional<Estimate> memory_at_once_bytes;  // the most that trials which are open at once hold together
  std::optional<double> cores;                   // busy on the host, all together
  std::array<double, kTrialStates> states{};     // mean count per state, by TrialState
  std::optional<PrunerSettings> pruner;          // under the change; absent: it is not known
  Safety safety = Safety::kSafe;
  std::string why;     // of the safety: "memory: 6 x 3.4 GB of 24 GB", "running processes do not reload it", …
  bool fits = true;    // false: more trials at once than the GPU's memory holds
  bool helps = false;  // the whole interval of the ratio is below 1, and it fits
  bool operator==(const WhatIf&) const = default;
};

// Whether the replay under the study's own settings gives the study. Without that there is no what-if.
struct Calibration {
  bool good = false;
  std::string why;                                          // why not, or how near it came
  std::array<double, kTrialStates> observed{}, replayed{};  // counts by TrialState
  double observed_seconds = 0;
  Estimate replayed_seconds;
  std::int64_t replays = 0;  // seeds
  bool operator==(const Calibration&) const = default;
};

// --------------------------------------------------------------------------------------------------------- answer

// What a recording adds.
struct StudyRecording {
  std::string path;
  double covered = 0;                                  // share of the study's time that it covers
  std::optional<double> gpu_busy;                      // share of the covered time in which a kernel of the job ran
  std::optional<Nanos> gpu_discarded;                  // kernel time of pruned and failed trials
  std::optional<std::int64_t> memory_per_trial_bytes;  // highest, on the GPU
  std::optional<std::int64_t> memory_at_once_bytes;    // highest of all processes of the job together, at a reading
  std::int64_t trials_matched = 0;                     // with a process of their own or a share of a worker's
  bool shared = false;                                 // kernels were divided among open trials: an estimate
  bool operator==(const StudyRecording&) const = default;
};

struct StudyReport {
  std::string name;
  std::string storage;  // as the person named it
  std::string engine;   // "SQLite, schema v3.0.0.d, Optuna 3.1.0"
  std::vector<Direction> directions;
  std::int64_t trials = 0;
  std::vector<StateFacts> states;   // one per TrialState, in order
  std::optional<Nanos> begin, end;  // Unix time by `clock`; end: of the last trial, or now while trials run
  bool live = false;                // a trial runs that is not dead
  StudyClock clock;
  Inferred pruner, sampler;
  std::optional<RandomStart> random_start;  // of a sampler that is known to begin so
  std::vector<StudyParameter> parameters;
  std::optional<PrunerSettings> pruner_settings;  // where they are known well enough to be replayed
  StartupFacts startup;
  StepTimeFacts step_time;
  ParallelismFacts parallelism;
  double paused_seconds = 0;  // in which the study stood still and no trial was open: nobody's time
  WorkerTime worker_time;
  std::vector<FailureGroup> failures;
  std::vector<RungFacts> rungs;
  std::vector<BestPoint> best;       // over time; empty with several objectives
  std::vector<std::int64_t> pareto;  // numbers of the trials that no other dominates; several objectives only
  std::vector<TrialBar> bars;
  std::vector<StudyAnomaly> anomalies;  // most costly first
  Calibration calibration;
  std::optional<WhatIf> as_it_is;  // the study's own settings, replayed: what the changes are compared with
  std::vector<WhatIf> what_if;     // what helps first, then by time to best
  // The kernels' share of a step is told or recorded; else of trials past their start-up, or open where it is not
  // known.
  bool utilisation_of_gpu = false;
  std::vector<std::string> assumptions;  // of the what-if, a sentence each
  std::optional<StudyRecording> recording;
  std::int64_t left_out = 0;  // rows of the storage that make no sense
};

}  // namespace headroom
