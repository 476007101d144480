// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "base/result.h"
#include "compare/side.h"
#include "model/probe.h"

// What the recording of one repeat says.
namespace headroom::cli {

// As a side with one sample and without label. kCorrupt: the recording was not completed.
[[nodiscard]] Result<compare::Side> side_of_run(const std::string& recording);

// The part of a run that counts: from its first count of at least `warm_up` steps to the first that is `steps` more (0:
// its last). Where nothing counts steps, or for kWholeRun, all of it as one unit of work. Value and round are the
// caller's.
enum class Counting : std::uint8_t { kSteps, kWholeRun };
struct CountedPart {
  ProbedRun run;
  bool by_steps = false, of_lines = false;  // of_lines: lines of its output counted them, at least
};
[[nodiscard]] Result<CountedPart> counted_part(const std::string& recording, Counting how, std::int64_t warm_up,
                                               std::int64_t steps);

}  // namespace headroom::cli
