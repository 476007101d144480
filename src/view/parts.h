// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "view/view.h"

// The parts of a view, each from what it needs. For view.cc.
namespace headroom::view {

// The kGpu sources of the ledger's devices; kNoSource where the recording has none of that name.
[[nodiscard]] std::vector<SourceId> gpu_sources(const Recording& recording, const Ledger& ledger);

[[nodiscard]] std::vector<Series> series_of(const Recording& recording, const Explanation& explanation,
                                            std::size_t device, SourceId gpu, std::size_t bins);
// Sets what is told of the last readings alone.
void add_last_readings(const Track& track, const View& view, Gpu& gpu);
[[nodiscard]] std::vector<Run> runs_of(const Recording& recording, const Ledger& ledger,
                                       const std::vector<SourceId>& gpus);
// The boxes of runs. Neighbours shorter than `least` may share one, and longer ones while there are more than `most`.
void add_bars(View& view, Nanos least, std::size_t most);
// Sets View::processes and processes_left_out.
void add_processes(const Recording& recording, const Explanation& explanation, const std::vector<SourceId>& gpus,
                   std::size_t most, View& view);

}  // namespace headroom::view
