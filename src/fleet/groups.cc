// SPDX-License-Identifier: Apache-2.0
#include "fleet/groups.h"

#include <algorithm>
#include <map>
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

// Most time without kernels first; then the longer held, then by name.
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

namespace {

void add_times(const AccountTimes& more, AccountTimes& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

// A finding's own title where one says it for all; else what the cause is called.
void add_loss(const FleetLoss& more, std::vector<FleetLoss>& losses) {
  const auto same =
      std::find_if(losses.begin(), losses.end(), [&](const auto& loss) { return loss.cause == more.cause; });
  if (same == losses.end()) {
    losses.push_back(more);
    return;
  }
  if (same->title != more.title) same->title = more.cause ? std::string(info(*more.cause).words) : "several causes";
  same->cost += more.cost;
  same->at_most += more.at_most;
  same->jobs += more.jobs;
}

// A job counts once per cause, however many of its findings name it.
std::vector<FleetLoss> by_cause(const std::vector<FleetLoss>& losses) {
  std::vector<FleetLoss> merged;
  for (const FleetLoss& loss : losses) add_loss(loss, merged);
  for (FleetLoss& loss : merged) loss.jobs = 1;
  return merged;
}

void sort_losses(std::vector<FleetLoss>& losses) {
  std::stable_sort(losses.begin(), losses.end(), [](const FleetLoss& x, const FleetLoss& y) {
    return std::tuple(x.cause.has_value(), x.at_most, x.cost) > std::tuple(y.cause.has_value(), y.at_most, y.cost);
  });
}

// A job's or a group's.
template <class T>
void add_sums(const T& more, FleetGroup& group) {
  add_times(more.accounts, group.accounts);
  group.back_low += more.back_low;
  group.back_high += more.back_high;
  group.undecided += more.undecided;
}

void add_job(const FleetJob& job, FleetGroup& group) {
  ++group.jobs;
  add_sums(job, group);
  for (const FleetLoss& loss : by_cause(job.losses)) add_loss(loss, group.losses);
  if (group.look_at.empty()) group.look_at = job.path;  // the first one has most
}

void add_group(const FleetGroup& more, FleetGroup& sum) {
  sum.jobs += more.jobs;
  add_sums(more, sum);
}

template <class T>
auto order_of(const T& one) {
  return std::tuple(one.back_high, one.back_low, one.held());
}

}  // namespace

void sum_up(std::size_t most, Fleet& fleet) {
  const auto name_of = [&](const FleetJob& job) { return job.names[static_cast<std::size_t>(fleet.by)]; };
  std::stable_sort(fleet.jobs.begin(), fleet.jobs.end(), [](const FleetJob& x, const FleetJob& y) {
    return std::tuple(order_of(y), x.path) < std::tuple(order_of(x), y.path);
  });
  std::map<std::string, FleetGroup> groups;
  fleet.total = {};
  for (const FleetJob& job : fleet.jobs) {
    add_job(job, groups[name_of(job)]);
    add_job(job, fleet.total);
  }
  sort_losses(fleet.total.losses);
  fleet.groups.clear();
  for (auto& [name, group] : groups) {
    group.name = name;
    sort_losses(group.losses);
    fleet.groups.push_back(std::move(group));
  }
  std::stable_sort(fleet.groups.begin(), fleet.groups.end(),
                   [](const FleetGroup& x, const FleetGroup& y) { return order_of(x) > order_of(y); });
  fleet.others = {};
  fleet.not_listed = fleet.groups.size() - std::min(most, fleet.groups.size());
  for (std::size_t i = fleet.groups.size() - fleet.not_listed; i < fleet.groups.size(); ++i)
    add_group(fleet.groups[i], fleet.others);
  fleet.groups.resize(fleet.groups.size() - fleet.not_listed);
}

}  // namespace headroom::fleet
