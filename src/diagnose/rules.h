// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"
#include "diagnose/idle_parts.h"
#include "model/finding.h"

namespace headroom::diagnose {

// A rule looks at the analysis and nothing else, not at other rules either, and says nothing where its cause is not
// there. It claims the slices it answers for; keep_the_law() settles what two of them claim.
using Rule = std::vector<Finding> (*)(const Analysis&);
// ... about idle time, which is cut into parts first.
using IdleRule = std::vector<Finding> (*)(const Analysis&, const IdleParts&);

// rules_readings.cc: of readings of GPUs alone
[[nodiscard]] std::vector<Finding> idle_inseparable(const Analysis&);  // all causes look the same
// rules_phases.cc
[[nodiscard]] std::vector<Finding> idle_phases(const Analysis&);  // idle time that recurs in phases
// rules_late_gpus.cc
[[nodiscard]] std::vector<Finding> late_gpus(const Analysis&);  // others' kernels only wait for it
// rules_log_ends.cc: of logs
[[nodiscard]] std::vector<Finding> quiet_end(const Analysis&);
[[nodiscard]] std::vector<Finding> between_jobs(const Analysis&);
[[nodiscard]] std::vector<Finding> jobs_in_turn(const Analysis&);
[[nodiscard]] std::vector<Finding> no_kernel_seen(const Analysis&);
// rules_unknown.cc
[[nodiscard]] std::vector<Finding> owners_unknown(const Analysis&);
[[nodiscard]] std::vector<Finding> utilisation_not_reported(const Analysis&);
[[nodiscard]] std::vector<Finding> device_lost(const Analysis&);
// rules_input.cc: the job waits for its data
[[nodiscard]] std::vector<Finding> idle_input(const Analysis&, const IdleParts&);
[[nodiscard]] std::vector<Finding> restarted_workers(const Analysis&, const IdleParts&);
// rules_host.cc
[[nodiscard]] std::vector<Finding> idle_host_code(const Analysis&, const IdleParts&);  // code runs on the CPU
[[nodiscard]] std::vector<Finding> idle_unknown(const Analysis&, const IdleParts&);  // tier P, and still nothing to see
[[nodiscard]] std::vector<Finding> idle_checkpoint(const Analysis&, const IdleParts&);
// rules_cores.cc
[[nodiscard]] std::vector<Finding> wanting_cores(const Analysis&, const IdleParts&);
// rules_memory_host.cc
[[nodiscard]] std::vector<Finding> wanting_memory(const Analysis&, const IdleParts&);  // of the host
// rules_stacks.cc: what only stacks tell apart
[[nodiscard]] std::vector<Finding> idle_validation(const Analysis&, const IdleParts&);
[[nodiscard]] std::vector<Finding> idle_copies(const Analysis&, const IdleParts&);
[[nodiscard]] std::vector<Finding> idle_sync(const Analysis&, const IdleParts&);
// rules_traces.cc: what a profiler saw to the nanosecond
[[nodiscard]] std::vector<Finding> profiled_waits(const Analysis&);
// Of a trace no driver was asked and no process was looked at: what a rule for those found rests on the trace.
void name_the_trace(const Analysis&, Finding&);
// "5 times, as a rule 896 ms at a time, every 1.3 s": of the waits that most of its time is, and not each step's.
void say_rounds(const Analysis&, Finding&);
[[nodiscard]] std::vector<Finding> exposed_communication(const Analysis&);
// rules_ranks.cc: several GPUs
[[nodiscard]] std::vector<Finding> slow_rank(const Analysis&);
[[nodiscard]] std::vector<Finding> waiting_ranks(const Analysis&, const IdleParts&);
[[nodiscard]] std::vector<Finding> waiting_for_peers(const Analysis&, const IdleParts&);
[[nodiscard]] std::vector<Finding> uneven_gpus(const Analysis&, const IdleParts&);
[[nodiscard]] std::vector<Finding> free_beside_others(const Analysis&);
// rules_startup.cc
[[nodiscard]] std::vector<Finding> slow_first_steps(const Analysis&, const IdleParts&);
// rules_stopped.cc: a process that a signal had stopped
[[nodiscard]] std::vector<Finding> stopped(const Analysis&);
// rules_install.cc
[[nodiscard]] std::vector<Finding> installed_first(const Analysis&);  // before any process holds the device
// rules_ends.cc: before the first kernel and after the last
[[nodiscard]] std::vector<Finding> startup(const Analysis&);
// Of claimed start-up what came after a first kernel of the same process: frameworks import much of themselves where it
// is used for the first time.
[[nodiscard]] Nanos imported_later(const Analysis& a, const Claims& claims);
[[nodiscard]] std::vector<Finding> unreleased(const Analysis&);
[[nodiscard]] std::vector<Finding> out_of_memory(const Analysis&);
// Its output said so at its end. Long before that it was something that the job could live with.
[[nodiscard]] bool last_words_of_memory(const Analysis& a);
// rules_placement.cc, rules_pinning.cc
[[nodiscard]] std::vector<Finding> never_uses_gpu(const Analysis&);
[[nodiscard]] std::vector<Finding> placement(
    const Analysis&);  // GPUs that did nothing, and what sent the work elsewhere
[[nodiscard]] std::vector<Finding> foreign_tenant(const Analysis&);
// rules_clocks.cc
[[nodiscard]] std::vector<Finding> throttling(const Analysis&);
// rules_device.cc
[[nodiscard]] std::vector<Finding> sensor_outlier(const Analysis&);
[[nodiscard]] std::vector<Finding> busy_but_inefficient(const Analysis&);
[[nodiscard]] std::vector<Finding> stalled(const Analysis&);
// rules_recording.cc
[[nodiscard]] std::vector<Finding> mostly_something_else(const Analysis&);
[[nodiscard]] std::vector<Finding> losses(const Analysis&);
// rules_steps.cc
[[nodiscard]] std::vector<Finding> no_process_there(const Analysis&);
// rules_batch.cc, rules_packing.cc: of a batch only
[[nodiscard]] std::vector<Finding> tail_imbalance(const Analysis&);
[[nodiscard]] std::vector<Finding> tasks_waited(const Analysis&);
[[nodiscard]] std::vector<Finding> discarded_work(const Analysis&);
[[nodiscard]] std::vector<Finding> under_packing(const Analysis&);

// What the rules share.

// From the first process of the job to its last, within the window (rules_recording.cc).
[[nodiscard]] Window job_lifetime(const Analysis& a);
// The processes of the job that hold a GPU at some time, and those above them (rules_steps.cc).
[[nodiscard]] std::set<SourceId> towards_the_gpus(const Analysis& a);
// Time without a process of the job on any GPU, before the first one that will be: what is to start it was starting
// itself. Nothing where other steps of a script had ended by then, nor for a batch (rules_steps.cc).
[[nodiscard]] Claims before_the_first(const Analysis& a);
// Time without a process of the job on a GPU that it uses, while one is on another GPU; nothing for a batch
// (rules_steps.cc).
[[nodiscard]] Claims free_while_others_work(const Analysis& a);
// When installers of the job ran, on all its devices; nothing for a batch (rules_install.cc).
[[nodiscard]] Claims installing(const Analysis& a);
// The part of the claims in which compilers of the job ran (rules_install.cc).
[[nodiscard]] Claims compiling(const Analysis& a, const Claims& claims);
// What the environment of the processes of the job told them, against where the driver saw them (rules_pinning.cc).
[[nodiscard]] std::vector<Finding> wrong_pins(const Analysis& a);
// Workers whose masks meant one of these devices, all of which ended without having been seen on a GPU.
[[nodiscard]] std::vector<std::string> gone_workers_of(const Analysis& a, const std::vector<std::size_t>& devices);
// Many tasks that each start from nothing, of a batch; nothing where there are few starts (rules_packing.cc).
[[nodiscard]] std::optional<Finding> trial_churn(const Analysis& a, const Claims& startup);
// From the time in which tasks of a batch waited for a place; nothing where no kernel ran then (rules_packing.cc).
struct PackedTasks {
  std::optional<double> room;     // how many a GPU could hold at once, by kernels, memory and cores
  std::optional<double> at_once;  // how many it held, on average
};
[[nodiscard]] PackedTasks packed_tasks(const Analysis& a);
// Whether the driver lowered a device's clocks lastingly; then by which share, which may be that of usual boost clocks
// (rules_clocks.cc).
[[nodiscard]] std::optional<double> clocks_limited(const Analysis& a, std::size_t device);
// ... and by much.
[[nodiscard]] std::optional<double> clocks_lost(const Analysis& a, std::size_t device);
// A limit other than a cap of power that the driver names most of the time, and no highest clock tells what it costs.
[[nodiscard]] bool limit_of_unknown_cost(const Analysis& a, std::size_t device);

}  // namespace headroom::diagnose
