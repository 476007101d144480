// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/ledger.h"
#include "analyze/rank_paces.h"
#include "analyze/regimes.h"
#include "model/recording.h"

// Ranks of one job on several machines, by the steps that they count themselves, and by the waits of their kernels.
namespace headroom::diagnose {

// The marks of a part that count steps, with the GPU of their process, where it has one; nothing else.
[[nodiscard]] Recording steps_in(const Recording& part);

// How long their steps took beside those of the others, the slowest first, each called by its machine. Where all ranks
// of the machine of the slowest one are slow, that machine is one rank, and so are the others, where they are enough.
// `steps` and `machines`: of each part.
[[nodiscard]] std::vector<RankPace> paces_of_all(std::vector<Recording> steps, const std::vector<std::string>& machines,
                                                 const Window& window, const Thresholds& limits);

// What GPUs of one machine do beside one another its own explanation tells. Of hundreds some are idle at any time: it
// takes one that works alone, or is idle for most of the time in which others wait, on another machine than one of
// them.
[[nodiscard]] bool shows_beside_others(const WaitsInKernels& waits, const std::vector<DeviceTime>& devices,
                                       const std::vector<bool>& idle_peers, const Thresholds& limits);

}  // namespace headroom::diagnose
