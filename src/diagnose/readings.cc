// SPDX-License-Identifier: Apache-2.0
#include "diagnose/readings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/log_ends.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

bool still_computing(const Analysis& a) {
  if (std::any_of(a.gpus.begin(), a.gpus.end(), [](const GpuAnalysis& gpu) { return gpu.quiet_end.has_value(); }))
    return false;
  return std::any_of(a.devices.begin(), a.devices.end(), [&](const DeviceTime& device) {
    for (auto slice = device.slices.rbegin(); slice != device.slices.rend() && slice->end > a.late_from; ++slice)
      if (is_busy(slice->account)) return true;
    return false;
  });
}

bool in_a_phase(const Analysis& a, std::size_t device, const Slice& slice) {
  return slice.account == Account::kUnexplained && recurs(a, slice.phase) && !a.gpus[device].idle_peer &&
         during_work(a, device, slice);
}

double busy_share(const Analysis& a, std::size_t device) {
  Nanos busy = a.ledger.busy(device);
  for (const Slice& slice : a.devices[device].slices)
    if (is_busy(slice.account) && at_a_quiet_end(a, device, slice)) busy -= slice.end - slice.begin;
  return as_share(busy, end_of_work(a, {device}) - a.window.begin);
}

void say_error(double error, std::vector<std::string>& evidence) {
  constexpr double kShown = 0.005;
  if (error >= kShown)
    evidence.push_back(fmt::format("busy time may be off by {} of the time, a reading speaks for a part of it only",
                                   human_percent(error)));
}

std::vector<std::string> common_words(const Analysis& a) {
  std::vector<std::size_t> at_work;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (!a.gpus[device].idle_peer) at_work.push_back(device);
  if (!a.common_lows || at_work.size() < 2) return {};
  return {
      fmt::format("{} are low in the same readings ({} of {}): what they wait for they have in common, such as one "
                  "that all of them wait for, their loader, storage, or a checkpoint",
                  gpu_names(a, at_work), a.common_lows->shared, a.common_lows->low)};
}

namespace {

// "70 % to 92 %" of the time; "92 %" where they are alike.
std::string busy_shares(const Analysis& a, const std::vector<std::size_t>& devices) {
  constexpr double kAlike = 0.05, kPoint = 0.01;
  double least = 1, most = 0;
  for (const std::size_t device : devices) {
    const double share = busy_share(a, device);
    least = std::min(least, share), most = std::max(most, share);
  }
  if (most - least <= std::max(kPoint, kAlike * most)) return human_percent((least + most) / 2);
  return fmt::format("{} to {}", human_percent(least), human_percent(most));
}

// Those that were busy alike, the busiest first: GPUs of one job are.
std::vector<std::vector<std::size_t>> alike_groups(const Analysis& a, std::vector<std::size_t> devices) {
  constexpr double kAlike = 1.5;
  const auto busy = [&](std::size_t device) { return busy_share(a, device); };
  std::stable_sort(devices.begin(), devices.end(), [&](std::size_t x, std::size_t y) { return busy(x) > busy(y); });
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t device : devices) {
    if (groups.empty() || kAlike * busy(device) < busy(groups.back().front())) groups.emplace_back();
    groups.back().push_back(device);
  }
  return groups;
}

}  // namespace

std::string shares_apart(const Analysis& a, const std::vector<std::size_t>& apart) {
  constexpr double kOfTwoJobs = 2;
  std::vector<std::size_t> others;
  double most = 0, most_apart = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const bool is_apart = std::find(apart.begin(), apart.end(), device) != apart.end();
    if (!is_apart && !a.gpus[device].idle_peer) others.push_back(device);
    double& busiest = is_apart ? most_apart : most;
    busiest = std::max(busiest, busy_share(a, device));
  }
  std::vector<std::vector<std::size_t>> groups = alike_groups(a, apart);
  std::string text;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    std::sort(group->begin(), group->end());
    const std::string gpus = gpu_names(a, *group), shares = busy_shares(a, *group);
    text += text.empty()
                ? fmt::format("{} {} busy for {} of the time", gpus, group->size() == 1 ? "was" : "were", shares)
                : fmt::format(", {} for {}", gpus, shares);
    const Nanos until = end_of_work(a, *group);
    if (until < a.window.end) text += fmt::format(" until {}", a.when(until));
  }
  const bool differ = kOfTwoJobs * most_apart < most || groups.size() > 1;
  return text +
         fmt::format(", {} for {}{}", gpu_names(a, others), busy_shares(a, others),
                     differ ? fmt::format(": they differ, as {} jobs do", groups.size() > 1 ? "several" : "two") : "");
}

Claims gains_of_all_unseen(const Analysis& a, Finding& finding, std::string condition) {
  Claims all = claim(a, [&](std::size_t device, const Slice& slice) {
    const bool open = slice.account == Account::kUnexplained || slice.account == Account::kTeardown ||
                      (slice.account == Account::kUnobserved && !a.gpus[device].unreported);
    return open && !a.gpus[device].idle_peer && during_work(a, device, slice);
  });
  const Nanos unread = length_of(all, [](const ClaimedPiece& piece) { return piece.account == Account::kUnobserved; });
  if (a.material(unread))
    condition += fmt::format(", the {} that no reading covers taken as idle, too", human_duration(unread));
  std::swap(finding.claims, all);
  gains_by_removal(a, finding, condition + until_words(a));
  std::swap(finding.claims, all);
  return all;
}

void say_both_ways(const Analysis& a, const std::vector<std::size_t>& apart, const Claims& open, Finding& finding) {
  std::string own;
  for (std::vector<std::size_t>& devices : alike_groups(a, apart)) {
    const std::string factor = human_factor(removal_for(a, open, devices));
    std::sort(devices.begin(), devices.end());
    const bool one = devices.size() == 1;
    own += own.empty() ? fmt::format("if {} {} a job of {} own, at most {} for that", gpu_names(a, devices),
                                     one ? "has" : "have", one ? "its" : "their", factor)
                       : fmt::format(", {} for one on {}", factor, gpu_names(a, devices));
    if (end_of_work(a) == a.window.end) own += until_words(a, devices);
  }
  const std::string of_all = human_factor(finding.gain->high);
  finding.bound = fmt::format("{}; if one job uses all, at most {}, {}", own, of_all, finding.gain->condition);
  finding.gain->condition = fmt::format("if one job uses all, {}; {}", finding.gain->condition, own);
}

void say_by_job(const Analysis& a, const std::vector<std::vector<std::size_t>>& jobs, const Claims& open,
                Finding& finding) {
  std::vector<std::pair<double, std::string>> factors;
  for (const std::vector<std::size_t>& job : jobs)
    factors.emplace_back(removal_for(a, open, job),
                         gpu_names(a, job) + (end_of_work(a) == a.window.end ? until_words(a, job) : ""));
  std::stable_sort(factors.begin(), factors.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  std::string whose;
  for (const auto& [factor, gpus] : factors)
    whose += whose.empty() ? fmt::format("for the job on {}", gpus)
                           : fmt::format(", {} for that on {}", human_factor(factor), gpus);
  finding.gain->high = factors.front().first;
  finding.gain->condition = fmt::format("{}, {}", whose, finding.gain->condition);
  finding.bound = fmt::format("at most {} {}", human_factor(finding.gain->high), finding.gain->condition);
}

}  // namespace headroom::diagnose
