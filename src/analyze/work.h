// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "analyze/stats.h"
#include "model/batch.h"
#include "model/explanation.h"

// What a job counts of its own work: steps and samples, and what else it says of itself.
namespace headroom {

// The steps of the job: of one process that counts them, the one that counted most (the others of a distributed job
// count the same ones), in the most trusted way that it has.
class StepCounts {
 public:
  struct Count {
    Nanos at = 0;
    std::int64_t steps = 0;               // done by then
    std::optional<std::int64_t> samples;  // likewise
  };
  StepCounts() = default;
  StepCounts(const Track& track, std::string via);
  [[nodiscard]] std::int64_t all() const { return counts_.empty() ? 0 : counts_.back().steps; }
  std::int64_t processes = 1;                                                 // that count in this way
  [[nodiscard]] const std::vector<Count>& counts() const { return counts_; }  // in order of time
  // Counted within these times, between two counts in proportion; nothing where none are counted.
  [[nodiscard]] std::optional<double> within(std::span<const Window> times) const;
  // So many lie between two counts one of which is outside: as far as all of these may be within, or none.
  [[nodiscard]] double shared(std::span<const Window> times) const;
  [[nodiscard]] std::optional<Work> work(const Window& window) const;

 private:
  [[nodiscard]] double at(Nanos when) const;
  std::vector<Count> counts_;
  std::string via_;
};
[[nodiscard]] StepCounts step_counts(const Recording& recording);

// As of the end of the window.
[[nodiscard]] Said said_of(const Recording& recording, const Window& window);

// Of a batch's recording: what the processes of each attempt said of its metrics.
[[nodiscard]] std::vector<AttemptMetric> metrics_of_attempts(const Recording& recording);

}  // namespace headroom
