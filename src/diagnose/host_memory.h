// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// What too little memory of the host has to do with idle time: pages are swapped in, or dropped and read again.
namespace headroom::diagnose {

// Whether at any time pages were swapped in, or some process waited for memory: else there is nothing to look for.
[[nodiscard]] bool memory_was_short(const Analysis& a);

// Whether the machine swapped in, and page faults of the job are among those that did: as many pages as faults.
[[nodiscard]] bool may_swap(const Analysis& a, const HostSummary& s);

// The part of `idle` in which pages were swapped in while processes of the job were blocked and hardly ran. Else
// nothing.
[[nodiscard]] Claims swapping(const Analysis& a, const Claims& idle);
// ... in which the kernel counts processes as waiting for memory, none is swapped in, and the job reads from storage,
// blocked there.
[[nodiscard]] Claims rereading(const Analysis& a, const Claims& idle);
// Whether it is the job's own cgroup whose processes wait for memory, and not just some of the machine.
[[nodiscard]] bool waits_for_memory_itself(const Analysis& a, const HostSummary& s);

// "the machine swapped in 1,200 pages per second, ..."; nothing where that was not counted.
[[nodiscard]] std::vector<std::string> memory_sentences(const Analysis& a, const HostSummary& s);

// Of a job that failed: that the kernel killed a process of it for want of the host's memory, or may have.
struct HostKill {
  bool sure = false;
  std::string words;  // no full stop
};
[[nodiscard]] std::optional<HostKill> host_kill(const Analysis& a);

// Adds these causes to a finding about idle time, with what says so, where they may be a part of it.
void may_want_memory(const Analysis& a, const HostSummary& s, Finding& finding);

}  // namespace headroom::diagnose
