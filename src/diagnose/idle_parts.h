// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// Idle time of a job between its kernels, cut into parts that have different causes. The rules about idle time share
// it: what one of these parts takes, the others leave.
namespace headroom::diagnose {

// Loader workers that ended and were replaced, and the pauses of the GPU around it.
struct WorkerRestarts {
  std::size_t workers = 0;    // that took another's place
  std::vector<Nanos> starts;  // one instant for each time that workers were replaced
  // By exit code: of those whose place was taken, that ended neither well nor by SIGTERM, as who is told to end does.
  std::map<int, std::size_t> failures;
  Claims pauses;
  // The pauses around the starts of processes that may have taken the place of others, too: they run what the process
  // on the GPU runs, as workers do that it forks, and were not seen for as long as it takes to be sure.
  Claims maybe;
};
[[nodiscard]] WorkerRestarts worker_restarts(const Analysis& a);

// Time in which a GPU was idle while another one of the same process computed: of GPUs that do far less than that one,
// that take turns with it, or that have kernels at the same time and are done earlier.
struct UnevenTime {
  Claims claims;
  bool in_turn = false, at_once = false;
};
[[nodiscard]] UnevenTime uneven_time(const Analysis& a);

[[nodiscard]] bool one_process_on_several(const Analysis& a);
// The devices of those processes that hold several, and of ranks, as positions.
[[nodiscard]] std::set<std::size_t> devices_of_one_process(const Analysis& a);
[[nodiscard]] std::set<std::size_t> devices_of_ranks(const Analysis& a);
// Where a slow rank is the likeliest cause, kernels may be its own: the gain allows for equal shares of them.
void gains_of_a_straggler(const Analysis& a, Finding& finding);

// Processes with one GPU each, on several GPUs.
[[nodiscard]] bool has_ranks(const Analysis& a);

// Of what processes with a GPU each wait for others the time in which another one's GPU is in `account`.
[[nodiscard]] Claims waits_beside(const Analysis& a, Account account);
// The finding is about these, too, and says whose they are.
void claim_waits_beside(const Analysis& a, const Claims& beside, Finding& finding);

// Idle time of GPUs with a process each, of which some worked on the CPU while the others slept, but for `known`.
[[nodiscard]] Claims rank_waits(const Analysis& a, const Claims& known);

// Whether it would be known that its process waits for others: stacks or marks tell of most of the idle time of its
// loop.
[[nodiscard]] bool would_show_waits(const Analysis& a, std::size_t device);

// Of processes with a GPU each that wait for one another, and would show it, the one that waits least, if it is so for
// far less than another: what its GPU is idle for while others wait, but for `known`, is what they wait for. By stacks
// or marks; nothing where rank_waits() tells it.
struct LateRank {
  std::size_t device = 0;
  Claims claims;  // of that device
};
[[nodiscard]] LateRank late_rank(const Analysis& a, const Claims& known);

// Of idle time the long pauses soon after a device's start-up in code that launches kernels and hardly ever pauses
// later: what it uses is loaded, or tuned, at its first use. Nothing for a batch, nor where the start was not seen.
[[nodiscard]] Claims first_steps(const Analysis& a, const Claims& idle);

// Of host code what lies at a line that is seen to copy to a device for a good part of its time, where so many bytes
// came that they take most of both: a look between two copies, or before one, finds the same line without the call.
[[nodiscard]] Claims at_copies(const Analysis& a, const Claims& host, const Claims& copies);

// All of these parts, found once: each looks through all slices.
struct IdleParts {
  Claims beside_checkpoint, beside_validation;  // of ranks that wait for one that saves its state, or validates
  Claims first_steps;
  WorkerRestarts restarts;
  UnevenTime uneven;
  Claims ranks;
  LateRank late;
  Claims swapping, rereading;  // host_memory.h
  Claims copies;               // host code that is a part of copies
  Claims cores;                // core_waits.h
};
[[nodiscard]] IdleParts idle_parts(const Analysis& a);

// The time in one of these accounts that none of these parts takes, without what attempts held that did not succeed.
[[nodiscard]] Claims open_time(const Analysis& a, const IdleParts& parts, std::initializer_list<Account> accounts);

// Idle time that a profiler's trace accounts for: the rules of rules_traces.cc speak of it, and no others.
[[nodiscard]] bool is_profiled(const Analysis& a);
[[nodiscard]] Claims profiled_idle(const Analysis& a);

// What of the claims lies in long pauses of the GPU, in code that stacks see for as long at a time and no kernel beside
// it, or in phases in which it works less than at its best: what is no matter of a usual step.
[[nodiscard]] Claims in_pauses(const Analysis& a, const Claims& claims);

// counted_time.cc: what a gain counts beside a finding's own time.

// Time whose account marks, output, or stacks of a family tell: no guess by counters.
[[nodiscard]] Claims told_time(const Analysis& a);

// ", counting 3 s of other time that may have the same cause".
[[nodiscard]] std::string counting(const Claims& more);

// The same, if the claims were widened by all time whose account is not sure: that may have the same cause. Nor is it
// sure that what helpers did meanwhile was what the process waited for. `ends`: what follows the last kernel, too,
// whatever it is at then.
void gains_at_most(const Analysis& a, Finding& finding, const std::string& condition, bool ends = false);

// Where findings count the same time beside their own, each later one leaves it to the one before, where that bounds
// all of its causes, and names that one in any case.
void count_once(const Analysis& a, std::vector<Finding>& findings);

}  // namespace headroom::diagnose
