// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "export/output.h"
#include "stacks/families.h"
#include "stacks/frame.h"

namespace headroom {

// How two of the forms begin; collapsed stacks have nothing that says whose they are.
inline constexpr std::string_view kSpeedscopeBeginning =
    R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"headroom")";
inline constexpr std::string_view kFlameGraphBeginning = "<svg id=\"headroom-stacks\" ";

struct StacksOptions {
  bool busy = false;           // also time in which kernels ran; else idle time alone
  std::string title;           // of the recording
  bool embedded = false;       // of a flame graph: an element of class "flame" for a page that brings the style
  double narrowest = 1.0 / 3;  // likewise: what is narrower is left out, in pixels of 1,200
};

// headroom.stacks/1. `why_none`: of a profile that is empty, for people; else "".
[[nodiscard]] std::string stacks_json(const std::vector<stacks::WeightedStack>& profile, const std::string& why_none);

// "frame;frame;frame MILLISECONDS" per line, as flamegraph.pl, inferno and speedscope read it.
[[nodiscard]] Result<void> write_collapsed(const std::vector<stacks::WeightedStack>& profile,
                                           const StacksOptions& options, const Output& output);

// A profile for https://www.speedscope.app (its file format, "sampled", seconds).
[[nodiscard]] Result<void> write_speedscope(const std::vector<stacks::WeightedStack>& profile,
                                            const StacksOptions& options, const Output& output);

// A flame graph as one SVG file without a script: the outermost function on top, as wide as its time, in the colour of
// what the GPU did meanwhile. What is too narrow is left out, and so is Python's import machinery.
[[nodiscard]] Result<void> write_flame_graph(const std::vector<stacks::WeightedStack>& profile,
                                             const StacksOptions& options, const Output& output);

// For people: what the stacks were at by their StackKind (the innermost function of the user's own, with the line that
// ran), with its time and share; the longest first.
[[nodiscard]] Result<void> write_functions(const std::vector<stacks::WeightedStack>& profile,
                                           const stacks::Families& families, const StacksOptions& options,
                                           const Output& output);

// The innermost functions of the stacks and their seconds, the longest first, `most` at most.
[[nodiscard]] std::vector<std::pair<std::string, double>> innermost_functions(
    const std::vector<stacks::WeightedStack>& profile, const StacksOptions& options, std::size_t most);

}  // namespace headroom
