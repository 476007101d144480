// SPDX-License-Identifier: Apache-2.0
#include "scheduler/learned.h"

#include <algorithm>

namespace headroom::scheduler {

Learned::Learned(std::span<const GroupHistory> history) {
  const auto in_seconds = [](std::optional<Nanos> ns) { return ns ? std::optional(seconds(*ns)) : std::nullopt; };
  for (const GroupHistory& past : history) {
    GroupStats& known = to_learn(past.group, past.gpu_model);
    known.recall(past.finished, past.peak_gpu_bytes);
    known.recall_speed(past.gpu_util_ratio, past.cores, in_seconds(past.startup), in_seconds(past.duration),
                       past.seconds_per_step);
  }
}

Learned::Group& Learned::group(GroupIndex index) {
  const auto at = static_cast<std::size_t>(index);
  if (at >= groups_.size()) groups_.resize(at + 1);
  return groups_[at];
}

GroupStats& Learned::to_learn(GroupIndex index, const std::string& gpu_model) {
  auto& all = group(index).stats;
  const auto found = all.find(gpu_model);
  return found != all.end() ? found->second : all[gpu_model];
}

const GroupStats& Learned::stats(GroupIndex index, std::string_view gpu_model) const {
  const auto at = static_cast<std::size_t>(index);
  if (at >= groups_.size()) return nothing_known_;
  const auto found = groups_[at].stats.find(gpu_model);
  return found != groups_[at].stats.end() ? found->second : nothing_known_;
}

void Learned::host_used(GroupIndex index, std::int64_t bytes) {
  std::int64_t& peak = group(index).host_peak_bytes;
  peak = std::max(peak, bytes);
}

std::int64_t Learned::host_peak_bytes(GroupIndex index) const {
  const auto at = static_cast<std::size_t>(index);
  return at < groups_.size() ? groups_[at].host_peak_bytes : 0;
}

std::vector<AloneRate> Learned::alone_rates() const {
  std::map<std::string, AloneRate> by_model;
  for (const Group& group : groups_) {
    for (const auto& [model, stats] : group.stats) {
      const std::int64_t finished = stats.tasks_finished_here();
      if (model.empty() || finished == 0) continue;
      const GroupStats::Alone alone = stats.all_alone();
      const auto [found, first] = by_model.try_emplace(model);
      AloneRate& rate = found->second;
      rate.gpu_model = model;
      rate.tasks += alone.known + alone.assumed;
      rate.assumed_tasks += alone.assumed;
      rate.unmeasured_tasks += finished - alone.known - alone.assumed;
      rate.alone_attempts += stats.alone_attempts();
      rate.from_history = rate.from_history || alone.from_history > 0;
      if (alone.busy_ratio && (first || rate.busy_ratio))
        rate.busy_ratio = (rate.busy_ratio.value_or(0) * rate.alone_seconds + *alone.busy_ratio * alone.seconds) /
                          (rate.alone_seconds + alone.seconds);
      else
        rate.busy_ratio.reset();
      rate.alone_seconds += alone.seconds;
      rate.error_seconds += alone.error_seconds;
    }
  }
  std::vector<AloneRate> all;
  for (auto& [model, rate] : by_model) all.push_back(std::move(rate));
  return all;
}

std::vector<GroupHistory> Learned::histories() const {
  std::vector<GroupHistory> all;
  const auto nanos = [](std::optional<double> s) {
    return s ? std::optional(static_cast<Nanos>(*s * 1e9)) : std::nullopt;
  };
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (const auto& [model, stats] : groups_[i].stats) {
      GroupHistory past{.group = static_cast<GroupIndex>(i), .gpu_model = model};
      past.finished = stats.tasks_finished();
      if (stats.peak_bytes() > 0) past.peak_gpu_bytes = stats.peak_bytes();
      if (stats.util_known()) past.gpu_util_ratio = stats.util();
      if (stats.cores_known()) past.cores = stats.cores();
      past.startup = nanos(stats.startup_seconds());
      past.duration = nanos(stats.alone_duration_seconds());
      past.seconds_per_step = stats.seconds_per_step();
      all.push_back(std::move(past));
    }
  }
  return all;
}

}  // namespace headroom::scheduler
