// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "bench/synthetic.h"
#include "record/reader.h"

namespace headroom::bench {

// Ends the program with the error on standard error.
[[noreturn]] void give_up(const Error& error);

// Writes `box` as a recording (1 Hz). With stacks: of one Python process per GPU, so many looks a second at its main
// thread, which is in one of 40 stacks of training, or of 8 of validation and pauses; with its counters at 1 Hz.
// `node`: the number of the machine that it is of, where there are several.
void write_recording(const std::string& path, const SyntheticBox& box, int stacks_per_second = 0, int node = 0);

[[nodiscard]] Recording read(const std::string& path, const ReadOptions& options = {});

}  // namespace headroom::bench
