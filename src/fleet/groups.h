// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "model/fleet.h"

namespace headroom::fleet {

// Sums jobs of which only averages are known, one after the other: a year of them takes the memory of its groups.
class AverageSum {
 public:
  // Lists `most_groups` groups and `most_jobs` jobs one by one, and the sum of the other groups.
  AverageSum(FleetBy by, std::size_t most_groups, std::size_t most_jobs)
      : by_(by), most_groups_(most_groups), most_jobs_(most_jobs) {}
  void add(const AveragedJob& job);
  // `counts` but for its `jobs`.
  [[nodiscard]] FleetAverages take(AveragedCounts counts);

 private:
  FleetBy by_;
  std::size_t most_groups_, most_jobs_;
  std::map<std::string, AveragedGroup> groups_;
  std::vector<AveragedJob> look_at_;  // in order
};

// Sums the jobs of `fleet` by `fleet.by`, and sorts them and their groups: what could bring most back first. Groups
// beyond the first `most` become one. The total is the sum of the groups, and each of them that of its jobs.
void sum_up(std::size_t most, Fleet& fleet);

}  // namespace headroom::fleet
