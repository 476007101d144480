// SPDX-License-Identifier: Apache-2.0
#include "host/discovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "host/proc_parse.h"

namespace headroom::host {

namespace {
// Up to here trying every number (about 2 us for one that is not in use) beats listing all of /proc.
constexpr std::int64_t kProbeLimit = 32;
}  // namespace

bool handed_out_between(std::int64_t pid, std::int64_t after, std::int64_t newest) {
  if (after <= newest) return pid > after && pid <= newest;
  return pid > after || pid <= newest;  // the numbers wrapped
}

std::span<const Candidate> Discovery::fresh(ProcDir& proc) {
  found_.clear();
  for (const std::int64_t pid : again_) probe(proc, pid);
  again_.clear();
  const auto text = proc.read_kept(loadavg_, "loadavg");
  const auto load = text ? parse_loadavg(*text) : std::nullopt;
  const auto newest = load ? load->last_pid : std::nullopt;
  const auto seen = newest ? seen_ : std::nullopt;
  if (newest && seen == newest) return found_;
  seen_ = newest;
  if (seen && *seen < *newest && *newest - *seen <= kProbeLimit) {
    for (std::int64_t pid = *seen + 1; pid <= *newest; ++pid) probe(proc, pid);
    return found_;
  }
  const auto pids = proc.list_numbers(".");
  if (!pids) return found_;
  for (const std::int64_t pid : *pids)
    if (!seen || handed_out_between(pid, *seen, *newest)) probe(proc, pid);
  return found_;
}

void Discovery::look_again_at(std::int64_t pid) {
  if (std::find(again_.begin(), again_.end(), pid) == again_.end()) again_.push_back(pid);
}

void Discovery::rewind_to(std::int64_t pid) {
  if (!seen_ || pid <= *seen_) seen_ = pid - 1;
}

void Discovery::probe(ProcDir& proc, std::int64_t pid) {
  std::array<char, 40> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "{}/stat", pid);
  const auto text = proc.read(path.data());
  const auto stat = text ? parse_pid_stat(*text) : std::nullopt;
  if (!stat || stat->kernel_thread() || stat->state == 'X') return;
  found_.push_back(
      {pid, stat->ppid, stat->session, stat->start_ticks, stat->user_ticks + stat->system_ticks, stat->state == 'Z'});
}

}  // namespace headroom::host
