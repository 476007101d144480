// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/time.h"
#include "model/explanation.h"
#include "model/recording.h"
#include "model/thresholds.h"
#include "stacks/families.h"

namespace headroom {

struct Analysis;

// What a recording cannot know and a person may.
struct ExplainOptions {
  std::string path;  // of the recording, for the answer
  std::optional<std::int64_t> file_bytes;
  std::optional<Nanos> job_duration;              // how long the job itself ran, for logs of a whole box
  std::optional<std::pair<Nanos, Nanos>> window;  // offsets from the recording's start; default: all of it
  std::vector<stacks::FamilyRule> families;       // of stacks: the user's own rules
  SourceText source_text;                         // of the job's code
  Thresholds limits;                              // others than the table's only to ask what they decide
};

// From a recording to an explanation: pure, the same answer for the same recording. `look` is shown the analysis that
// it is made of, for what an explanation does not hold (stacks): to analyze a day again takes as long as to explain it.
// Of several recordings that were joined each is explained by itself (diagnose/joined.h), and `look` is shown nothing.
[[nodiscard]] Explanation explain(const Recording& recording, const ExplainOptions& options = {},
                                  const std::function<void(const Analysis&)>& look = {});

// Metrics that explain() never looks at: the same explanation comes from a recording without them.
[[nodiscard]] std::span<const Metric> metrics_not_explained();

}  // namespace headroom
