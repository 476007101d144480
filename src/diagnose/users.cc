// SPDX-License-Identifier: Apache-2.0
#include "diagnose/users.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "base/visible.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// "alice python", of each device; none of one that nobody is named on.
std::vector<std::vector<std::string>> users_of_devices(const Analysis& a) {
  std::vector<std::vector<std::string>> all(a.devices.size());
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto named = a.meta.extra.find(fmt::format("users.{}", a.devices[device].device.index));
    if (named == a.meta.extra.end()) continue;
    for (const std::string_view user : split(named->second, ',')) all[device].emplace_back(visible(trim(user)));
  }
  return all;
}

bool share_one(const std::vector<std::string>& x, const std::vector<std::string>& y) {
  return std::any_of(x.begin(), x.end(),
                     [&](const std::string& user) { return std::find(y.begin(), y.end(), user) != y.end(); });
}

}  // namespace

std::string users_words(const Analysis& a) {
  std::map<std::string, std::vector<std::size_t>> devices;  // by who is on them
  const auto users = users_of_devices(a);
  for (std::size_t device = 0; device < users.size(); ++device)
    if (!users[device].empty()) devices[join(users[device], " and ")].push_back(device);
  std::vector<std::string> parts;
  for (const auto& [who, where] : devices) parts.push_back(fmt::format("{} on {}", who, gpu_names(a, where)));
  return join(parts, "; ");
}

std::string named_processes(const Analysis& a) {
  for (const char* key : {"named_processes", "processes"})
    if (const auto named = a.meta.extra.find(key); named != a.meta.extra.end()) return visible(named->second);
  return "";
}

LastListed last_listed(const Analysis& a, std::size_t device) {
  if (a.window.end < a.meta.end) return {};
  const auto told = [&](const char* key) {
    const auto found = a.meta.extra.find(fmt::format("{}.{}", key, a.devices[device].device.index));
    return found == a.meta.extra.end() ? "" : visible(found->second);
  };
  return {told("listed"), told("gone")};
}

bool has_users(const Analysis& a, std::size_t device) { return !users_of_devices(a)[device].empty(); }

std::vector<std::vector<std::size_t>> jobs_by_users(const Analysis& a) {
  const auto users = users_of_devices(a);
  std::vector<std::vector<std::size_t>> jobs;
  for (std::size_t device = 0; device < users.size(); ++device) {
    if (a.ledger.busy(device) == 0) continue;
    if (users[device].empty()) return {};
    std::vector<std::size_t> own{device};
    std::erase_if(jobs, [&](const std::vector<std::size_t>& job) {
      const bool same = std::any_of(job.begin(), job.end(),
                                    [&](std::size_t other) { return share_one(users[device], users[other]); });
      if (same) own.insert(own.end(), job.begin(), job.end());
      return same;
    });
    std::sort(own.begin(), own.end());
    jobs.push_back(std::move(own));
  }
  return jobs.size() > 1 ? jobs : std::vector<std::vector<std::size_t>>{};
}

}  // namespace headroom::diagnose
