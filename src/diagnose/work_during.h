// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// What processes of the job did in some of its time.
namespace headroom::diagnose {

struct Work {
  double cores = 0;         // of these processes together, on average
  double most = 0;          // of the one that used most ...
  Process busiest;          // ... which is this
  std::size_t workers = 0;  // those that used a tenth of it, or more
};
[[nodiscard]] Work work_during(const Analysis& a, const Claims& claims,
                               const std::function<bool(const RecordedProcess&)>& wanted);

// Of the processes that those on the claimed devices have started, and that hold none of these: the one that used the
// CPU most, if any of them worked.
[[nodiscard]] std::optional<Work> children_at_work(const Analysis& a, const Claims& claims);

// Whether the process on the GPU waited in this time for the end of one that it had started, by its stacks or its
// sleep.
[[nodiscard]] bool waits_for_child(const Analysis& a, const HostSummary& s, const Claims& claims);

// Which they were, and what they used.
[[nodiscard]] std::string child_sentence(const Work& child);

// Says in a finding about time in which the process on the GPU waited for a process that it had started, and that
// worked, that it did, and for which. Changes nothing where neither stacks nor its sleep tell that.
void name_the_child(const Analysis& a, const HostSummary& s, Finding& finding);

// Says in a finding about time in which the process on the GPU waited for another one of the job that this, with all
// that it has started, hardly used the CPU or storage, if it is so: then nothing is made or read there, and it waits
// for the time, for somebody or for something beyond.
void may_sleep_itself(const Analysis& a, const RecordedProcess& other, Finding& finding);

// Its command line, cut where it is long.
[[nodiscard]] std::string name_of(const Process& process);

}  // namespace headroom::diagnose
