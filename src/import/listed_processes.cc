// SPDX-License-Identifier: Apache-2.0
#include "import/listed_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "import/log_builder.h"

namespace headroom {

void ListedProcesses::user(std::string_view gpu, std::string_view who) {
  constexpr std::size_t kMost = 16, kLongest = 64;
  auto users = users_.find(gpu);
  if (users == users_.end() && users_.size() < LogBuilder::kMostGpus)
    users = users_.emplace(gpu, std::set<std::string>()).first;
  if (who.empty() || users == users_.end() || users->second.size() >= kMost) return;
  std::string user(who.substr(0, kLongest));
  std::replace_if(
      user.begin(), user.end(), [](char c) { return c == ':' || c == ','; }, ' ');
  users->second.insert(std::move(user));
}

void ListedProcesses::answer(const std::string& gpu, std::vector<std::string> names, std::string_view time) {
  if (last_.size() >= LogBuilder::kMostGpus && !last_.contains(gpu)) return;
  Last& last = last_[gpu];
  last.now = std::move(names);
  if (last.now.empty()) return;
  last.before = last.now;
  last.time = time;
}

void ListedProcesses::tell(Attrs& extra) const {
  constexpr std::size_t kNamed = 4;
  for (const auto& [gpu, users] : users_)
    if (!users.empty()) extra["users." + gpu] = fmt::format("{}", fmt::join(users, ","));
  for (const auto& [gpu, last] : last_) {
    if (last.before.empty()) continue;
    std::vector<std::string> named = last.before;
    const std::size_t all = named.size();
    named.resize(std::min(kNamed, all));
    const std::string words = join(named, ", ") + (all > kNamed ? fmt::format(" and {} others", all - kNamed) : "");
    if (!last.now.empty())
      extra["listed." + gpu] = words;
    else
      extra["gone." + gpu] = last.time.empty() ? words : fmt::format("{}, listed last at {}", words, last.time);
  }
}

}  // namespace headroom
