// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "scheduler/group_stats.h"
#include "scheduler/planned_task.h"

// What is known of each group on each GPU model: from earlier batches, and from what ran in this one.
namespace headroom::scheduler {

// What earlier batches learned about a group on a GPU model (and what this one learned, for the next).
struct GroupHistory {
  GroupIndex group = 0;
  std::string gpu_model;
  std::int64_t finished = 0;                   // tasks it rests on
  std::optional<std::int64_t> peak_gpu_bytes;  // largest seen
  std::optional<double> gpu_util_ratio;        // alone, while stepping
  std::optional<double> cores;                 // alone
  std::optional<Nanos> startup, duration;      // of one task, alone
  std::optional<double> seconds_per_step;      // alone
};

// What one task per GPU would have done, of the tasks that finished: `tasks` in `alone_seconds` of a GPU of this model.
// A task's length alone is what the clock said where it was alone, here or in an earlier batch, or its steps at the
// speed that they had alone; else, where several of its group were alone, their mean (GroupStats::all_alone).
struct AloneRate {
  std::string gpu_model;
  std::int64_t tasks = 0;                       // finished, on one GPU each, whose length alone is known
  std::int64_t assumed_tasks = 0;               // of them: held to be as long as those of the group that were alone
  double alone_seconds = 0, error_seconds = 0;  // and half of its interval
  std::int64_t alone_attempts = 0;    // it rests on: those that had a GPU to themselves for seconds, or all their life
  std::int64_t unmeasured_tasks = 0;  // finished, but too few of the group were alone, and its steps were not counted
  bool from_history = false;          // for some tasks it rests on earlier batches
  // Alone, the time with kernels on the GPU, at least; absent where it is not known of all groups, and where kernels
  // run side by side. One after the other, they cannot do more than 1 / busy_ratio of the work of one per GPU.
  std::optional<double> busy_ratio;
};

class Learned {
 public:
  explicit Learned(std::span<const GroupHistory> history);

  // `gpu_model`: "" for tasks without a GPU.
  [[nodiscard]] const GroupStats& stats(GroupIndex group, std::string_view gpu_model) const;
  [[nodiscard]] GroupStats& to_learn(GroupIndex group, const std::string& gpu_model);
  [[nodiscard]] std::size_t group_count() const { return groups_.size(); }
  void host_used(GroupIndex group, std::int64_t bytes);
  [[nodiscard]] std::int64_t host_peak_bytes(GroupIndex group) const;  // 0: not known

  [[nodiscard]] std::vector<AloneRate> alone_rates() const;  // one for each GPU model, by its name
  [[nodiscard]] std::vector<GroupHistory> histories() const;

 private:
  struct Group {
    std::int64_t host_peak_bytes = 0;
    std::map<std::string, GroupStats, std::less<>> stats;  // by GPU model
  };
  [[nodiscard]] Group& group(GroupIndex index);
  std::vector<Group> groups_;
  GroupStats nothing_known_;
};

}  // namespace headroom::scheduler
