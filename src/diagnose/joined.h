// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/regimes.h"
#include "diagnose/explain.h"
#include "model/explanation.h"
#include "model/parts.h"
#include "model/recording.h"

namespace headroom {

// One of several recordings, explained by itself: all that is said of it rests on its own evidence. What the others
// are needed for is kept beside it.
struct ExplainedPart {
  RecordingMeta meta;
  std::string path;  // of its file; "" where it lies in one with the others
  Explanation explanation;
  std::vector<std::vector<Stall>> stalls;  // by device of the explanation's ledger
  std::vector<bool> idle_peers;            // likewise
  bool has_host = false;                   // its processes were looked at
  Recording steps;                         // who counts steps, and these; nothing else
};
// `options` are those of this part, with a window on its own clock.
[[nodiscard]] ExplainedPart explain_part(const Recording& part, const ExplainOptions& options);

// All parts together: one ledger over all their GPUs, from the first instant of any to the last of all, in which what a
// part has no reading of is unobserved; findings of one kind are one, and name the machine; and what only shows beside
// the others (a rank, or a machine, for which they wait). They must be such as can_be_joined() lets pass.
[[nodiscard]] Explanation join_parts(std::vector<ExplainedPart> parts, const ExplainOptions& options);

// Of a recording that has_parts().
[[nodiscard]] Explanation explain_parts(const Recording& recording, const ExplainOptions& options);

}  // namespace headroom
