// SPDX-License-Identifier: Apache-2.0
#include "batch/process_trees.h"

#include <algorithm>

namespace headroom::batch {

namespace {
constexpr Nanos kForgetProcess = 15 * kSecond;  // rows of quiet processes come every 8 s at the latest
constexpr Nanos kAskAgain = 5 * kSecond;        // whose a process is that was nobody's
}  // namespace

std::optional<AttemptId> ProcessTrees::attempt_of(std::int64_t pid, Nanos now) {
  if (const auto started = executor_.started_as(pid)) return started;
  Process& process = processes_[pid];
  if (process.attempt && book_.under_way(*process.attempt) != nullptr) return process.attempt;
  if (process.asked != 0 && now - process.asked < kAskAgain) return std::nullopt;
  process.asked = now;
  process.attempt = executor_.owner_of(pid);
  if (process.attempt) process.ours = now;
  if (process.ours && now - *process.ours > kForgetProcess) process.ours.reset();
  if (process.attempt && book_.under_way(*process.attempt) == nullptr) process.attempt.reset();
  return process.attempt;
}

void ProcessTrees::look(const Snapshot& now) {
  for (const ProcessSnapshot& seen : now.processes) {
    const auto attempt = attempt_of(seen.pid, now.at);
    Process& process = processes_[seen.pid];
    if (attempt) process.attempt = attempt, process.ours = now.at;
    process.looked = now.at;
    process.cpu = std::max(process.cpu, seen.cpu_time.value_or(0));
    process.core_wait = std::max(process.core_wait, seen.core_wait.value_or(0));
    process.rss = seen.rss_bytes.value_or(0);
    process.io = std::max(process.io, seen.io_bytes.value_or(0));
  }
  std::erase_if(processes_, [&](const auto& entry) {
    return now.at - std::max(entry.second.looked, entry.second.asked) > kForgetProcess;
  });
  add_up();
}

void ProcessTrees::ended(std::int64_t pid, Nanos at) {
  Process& process = processes_[pid];
  process.ours = at;
  process.asked = std::max(process.asked, at);
}

bool ProcessTrees::is_ours(std::int64_t pid) const {
  const auto found = processes_.find(pid);
  return (found != processes_.end() && found->second.ours) || executor_.started_as(pid);
}

void ProcessTrees::add_up() {
  use_.clear();
  for (const auto& [pid, process] : processes_) {
    if (!process.attempt || process.looked == 0) continue;
    Use& use = use_[*process.attempt];
    use.processes += 1;
    use.cpu += process.cpu, use.core_wait += process.core_wait, use.rss += process.rss, use.io += process.io;
  }
}

ProcessTrees::Use ProcessTrees::use_of(AttemptId attempt) const {
  const auto found = use_.find(attempt);
  return found == use_.end() ? Use{} : found->second;
}

}  // namespace headroom::batch
