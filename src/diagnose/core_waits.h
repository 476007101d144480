// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// Idle time that is a wait for a CPU core more than anything else, whatever code it lies in.
namespace headroom::diagnose {

// What would overturn that cores are what is missing.
inline constexpr std::string_view kCoresOfItsOwn =
    "run it on cores that nothing else uses: if the GPU is idle for as long, this is wrong";

// The process that held a device; nothing where several did, at once or one after the other.
[[nodiscard]] std::optional<SourceId> only_owner(const Analysis& a, std::size_t device);

// "these 2 cores"; "this core".
[[nodiscard]] std::string these_cores(double usable);

// How long the main thread of the process on a GPU waited for a core, as the scheduler counts it. Shares of the time
// from the first kernel to the last one.
struct CoreWaits {
  double idle = 0;           // without a kernel
  double waited = 0;         // for a core
  double ran = 0;            // on one
  double at_least = 0;       // both, whatever of its waits for a core was while kernels ran
  double waited_of_all = 0;  // for a core, of the whole time: before its first kernel and after the last one, too
  double ran_of_all = 0;     // on one from its first kernel to the last, of the whole time
};
// Of one GPU; nothing where several work, where no process on it was watched, and for a batch.
[[nodiscard]] std::optional<CoreWaits> core_waits(const Analysis& a);

// `idle`, idle time in which code of the job ran or waited for kernels, if it is a wait for a core for most of it: no
// other cause can be larger then. Else nothing.
[[nodiscard]] Claims for_want_of_cores(const Analysis& a, Claims idle);

// How many times faster it were at most without these waits, shares of the whole time: cores to spare give back what
// was waited for one, and of the time on one what sharing it may have cost.
[[nodiscard]] double without_waits(double waited, double ran);
// "if its main thread had a core of its own whenever it wanted one, and ran on it in a quarter less time, sharing it
// with nobody"
[[nodiscard]] std::string own_core_words(std::string_view whose);

// These shares of the whole time bound the gain where that is less than it was: code needs the rest anyhow. `whose`
// wait it is.
void gains_the_wait(const Analysis& a, Finding& finding, double waited, double ran, std::string_view whose);

// Whether each of its helpers runs, or wants to, as one thread can.
[[nodiscard]] bool of_one_thread(const HostSummary& s);

// Whether the job's own threads fill the cores that it may use, and one of its processes runs several: only then may
// fewer of them be quicker. Where others use a good part of the cores, fewer threads get a smaller share of them.
[[nodiscard]] bool own_threads_fill_cores(const HostSummary& s);

// What to try against a wait for these cores.
[[nodiscard]] std::string advice_for_cores(const HostSummary& s);

// Notes whose threads they are of a finding that may be too few cores.
void see_whose_threads(const Analysis& a, Finding& finding);

}  // namespace headroom::diagnose
