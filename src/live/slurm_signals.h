// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "live/signals.h"

namespace headroom {

// Whether Slurm sent it to every process of a step, the job of this process among them: what the slurmstepd of a step
// sends. To a batch script it sends for `--signal=B:` and `scancel --batch` to the script's own process alone, at the
// end to all, and nothing tells the one from the other; nor is anything known of a slurmstepd that /proc hides
// (hidepid). `root` is "" for this machine, else a fixture with root/proc.
[[nodiscard]] bool sent_to_whole_step(const Signal& signal, const std::string& root = "");

}  // namespace headroom
