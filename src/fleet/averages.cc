// SPDX-License-Identifier: Apache-2.0
#include "fleet/averages.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace headroom::fleet {

namespace {

void add_group(const AveragedGroup& more, AveragedGroup& sum) {
  sum.jobs += more.jobs;
  sum.held += more.held;
  sum.measured += more.measured;
  sum.utilised += more.utilised;
  sum.zero += more.zero;
  sum.low += more.low;
}

bool is_low(const AveragedJob& job) {
  return job.measured > 0 && static_cast<double>(job.utilised) <= kLowMean * static_cast<double>(job.measured);
}

// What has most time without kernels first; of equals what was held longer, then by name.
template <class T>
bool before(const T& x, const T& y, const std::string& of_x, const std::string& of_y) {
  return std::tuple(y.without_kernels(), y.held, of_x) < std::tuple(x.without_kernels(), x.held, of_y);
}

}  // namespace

void AverageSum::add(const AveragedJob& job) {
  add_group({.jobs = 1,
             .held = job.held,
             .measured = job.measured,
             .utilised = job.utilised,
             .zero = job.zero,
             .low = is_low(job) ? job.held : 0},
            groups_[job.names[static_cast<std::size_t>(by_)]]);
  const auto place = std::upper_bound(look_at_.begin(), look_at_.end(), job,
                                      [](const auto& x, const auto& y) { return before(x, y, x.id, y.id); });
  if (place == look_at_.end() && look_at_.size() >= most_jobs_) return;
  look_at_.insert(place, job);
  if (look_at_.size() > most_jobs_) look_at_.pop_back();
}

FleetAverages AverageSum::take(AveragedCounts counts) {
  FleetAverages all;
  for (auto& [name, group] : groups_) {
    group.name = name;
    add_group(group, all.total);
    all.groups.push_back(group);
  }
  std::sort(all.groups.begin(), all.groups.end(),
            [](const auto& x, const auto& y) { return before(x, y, x.name, y.name); });
  all.not_listed = all.groups.size() - std::min(most_groups_, all.groups.size());
  for (std::size_t i = all.groups.size() - all.not_listed; i < all.groups.size(); ++i)
    add_group(all.groups[i], all.others);
  all.groups.resize(all.groups.size() - all.not_listed);
  counts.jobs = all.total.jobs;
  all.counts = std::move(counts);
  all.look_at = std::move(look_at_);
  return all;
}

}  // namespace headroom::fleet
