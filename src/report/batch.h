// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/batch.h"
#include "model/explanation.h"
#include "report/layout.h"

namespace headroom::report {

// What to say at a batch's end beside the summary itself.
struct BatchEndFacts {
  std::string resume;                      // the command that goes on with it; "" where nothing is left to do
  std::vector<std::string> cpu_fallbacks;  // tasks that were given a GPU and never used one
  std::size_t earlier = 0;                 // tasks that had succeeded before this run
  bool placement_readable = true;          // the driver's process lists could be read, and mean something here
};
// With the ledger of all GPUs together and the largest findings, where the batch was recorded.
[[nodiscard]] std::string to_text(const BatchSummary& summary, const BatchEndFacts& facts,
                                  const std::optional<Explanation>& explanation, const TextOptions& options);
[[nodiscard]] std::string to_text(const BatchSummary& summary, const BatchEndFacts& facts, const TextOptions& options);
// "headroom.batch/1"
[[nodiscard]] std::string to_json(const BatchSummary& summary, const BatchEndFacts& facts,
                                  const std::optional<Explanation>& explanation = std::nullopt);

// Everything that is known of one attempt; an element of "attempts" in "headroom.batch-show/1".
struct NamedAttempt {
  std::string task;
  std::vector<std::pair<std::string, std::string>> parameters = {};  // of the task, as asked
  Attempt attempt = {};
};
[[nodiscard]] std::string to_text(const NamedAttempt& attempt, const TextOptions& options);
[[nodiscard]] std::string to_json(const std::vector<NamedAttempt>& attempts);

}  // namespace headroom::report
