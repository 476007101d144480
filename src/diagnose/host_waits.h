// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// What the rules share that ask what the process on a GPU did, or waited for, while the GPU was idle.
namespace headroom::diagnose {

using Causes = std::vector<Cause>;

// Appends those that are not there.
void add(Causes& causes, const Causes& more);

// Makes it the likeliest, whether it was there or not.
void put_first(Causes& causes, Cause cause);

// A finding about steps and one about pauses; one about both where they would say the same.
[[nodiscard]] std::vector<Finding> of_parts(const Analysis& a, const Claims& claims,
                                            Finding (*about)(const Analysis&, Claims, bool));

[[nodiscard]] bool no_loader(const Analysis& a, const HostSummary& s);
// Whether a process on these GPUs looks again and again whether its kernels are done: what it runs is no work then.
[[nodiscard]] bool spins(const Analysis& a, const Claims& claims);

// What a thread may wait for where it was seen asleep, the likeliest first.
[[nodiscard]] Causes waits_in(WaitChannel channel, bool loader, bool in_pauses);

struct Seen {
  double share;
  WaitChannel channel;
};
// Where it was seen asleep, most often first.
[[nodiscard]] std::vector<Seen> seen_in(const Looks& looks, double least);
// The least share of the claimed time in which the main thread slept on a lock (a futex), if all looks that saw it
// elsewhere were in that time; of a thread that hardly runs in it. 0 with a few looks only.
[[nodiscard]] double on_a_lock(const HostSummary& s, const Claims& claims);
// What the main thread may have waited for that no kernel of its own does: where it was seen asleep, and what its
// process read and wrote meanwhile.
[[nodiscard]] Causes waited_for(const Analysis& a, const HostSummary& s, const Claims& claims, bool in_pauses);
// Whether its process wrote much to storage meanwhile; of what comes in steps in most of the readings.
[[nodiscard]] bool wrote(const Analysis& a, const HostSummary& s, const Claims& claims, bool in_pauses);

// The share of the claimed time that what came over PCIe takes if it is copied from pageable memory.
[[nodiscard]] double copying(const Analysis& a, const Claims& claims);

// The share that they take at the best of the device's link as it was; nothing where bytes or link were not read.
[[nodiscard]] std::optional<double> copying_at_the_link(const Analysis& a, const Claims& claims);
// Whether that link is less than device and slot allow.
[[nodiscard]] bool over_a_narrow_link(const Analysis& a, const Claims& claims);

// Adds a slow link to a set with copies in it, with how slow.
void may_be_the_link(const Analysis& a, Finding& finding);
// "the link of GPU 0 ran as PCIe 4.0 x4 of 4.0 x16 while kernels ran" for each of these devices that is so.
[[nodiscard]] std::vector<std::string> link_sentences(const Analysis& a, const Claims& claims);

// Puts copies first where so many bytes came over PCIe that they take most of the claimed time.
void suspect_copies(const Analysis& a, Finding& finding);

// Takes copies out of a set where the bytes that came over PCIe were counted and are too few.
void exclude_copies(const Analysis& a, Finding& finding);

// Takes storage out of a set where nothing was read, and no look saw its main thread asleep at what may have data for
// it: a lock or a timer alone is none. Pages of a file that is mapped are read in state D. Likewise logging, of who
// slept and wrote nothing.
void exclude_storage(const Analysis& a, const HostSummary& s, Finding& finding);

// Whether the main thread's waits for a core may be a good part of the claimed time: the readings are of longer.
[[nodiscard]] bool may_want_cores(const Analysis& a, const HostSummary& s, const Claims& claims);

// What a thread may be at that sleeps in the claimed time and whose stacks name code that nobody knows, the likeliest
// first.
[[nodiscard]] Causes asleep_for(const Analysis& a, const HostSummary& s, const Claims& claims, bool in_pauses);

// Whether the process on a GPU is the kernel of a notebook; or that, or an interactive interpreter.
[[nodiscard]] bool notebook(const Analysis& a);
[[nodiscard]] bool takes_commands(const Analysis& a);

// Who types at a notebook, or asks a server, lets it wait as long as it pleases.
void may_wait_for_somebody(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding);

// A process of the job beside the one on the GPU, such as the other end of a pipe, may be what it waits for.
void name_the_neighbour(const Analysis& a, Finding& finding);

}  // namespace headroom::diagnose
