// SPDX-License-Identifier: Apache-2.0
#include "report/slurm_words.h"

#include <fmt/format.h>

#include "base/visible.h"

namespace headroom::report {

std::string slurm_words(const std::optional<SlurmJob>& job) {
  if (!job) return "";
  std::string words = fmt::format("Slurm job {}", job->job);
  if (job->array_job) words += fmt::format(" (array {}, task {})", *job->array_job, *job->array_task);
  if (job->step) words += fmt::format(", step {}", *job->step);
  if (!job->node.empty()) words += ", node " + visible(job->node);
  if (job->rank) words += fmt::format(", rank {}", *job->rank);
  if (job->rank && job->tasks) words += fmt::format(" of {}", *job->tasks);
  if (!job->partition.empty()) words += ", partition " + visible(job->partition);
  if (job->restarts.value_or(0) > 0) words += fmt::format(", restart {}", *job->restarts);
  return words;
}

std::string rank_words(const Attrs& extra) {
  const auto rank = extra.find("rank"), ranks = extra.find("world_size");
  if (rank == extra.end() || ranks == extra.end() || ranks->second == "1") return "";
  return fmt::format("Rank {} of {}", visible(rank->second), visible(ranks->second));
}

}  // namespace headroom::report
