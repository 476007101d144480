// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "export/output.h"
#include "stacks/profile.h"

namespace headroom {

struct StacksOptions {
  bool busy = false;  // also time in which kernels ran; else idle time alone
  std::string title;  // of the recording
};

// "frame;frame;frame MILLISECONDS" per line, as flamegraph.pl, inferno and speedscope read it.
[[nodiscard]] Result<void> write_collapsed(const std::vector<stacks::WeightedStack>& profile,
                                           const StacksOptions& options, const Output& output);

// A profile for https://www.speedscope.app (its file format, "sampled", seconds).
[[nodiscard]] Result<void> write_speedscope(const std::vector<stacks::WeightedStack>& profile,
                                            const StacksOptions& options, const Output& output);

// A flame graph as one SVG file without a script: the outermost function on top, as wide as its time, in the colour of
// what the GPU did meanwhile. What is narrower than a third of a pixel is left out, and so is Python's import
// machinery.
[[nodiscard]] Result<void> write_flame_graph(const std::vector<stacks::WeightedStack>& profile,
                                             const StacksOptions& options, const Output& output);

}  // namespace headroom
