// SPDX-License-Identifier: Apache-2.0
#include "diagnose/restarts.h"

#include <algorithm>

namespace headroom::diagnose {

std::vector<const ContextUse*> in_turn(const Analysis& a) {
  std::vector<const ContextUse*> best;
  for (const DeviceTime& time : a.devices) {
    std::vector<const ContextUse*> uses, row;
    for (const ContextUse& use : a.job.uses)
      if (use.ours && use.device == time.source) uses.push_back(&use);
    std::sort(uses.begin(), uses.end(), [](const auto* x, const auto* y) { return x->end < y->end; });
    for (const ContextUse* use : uses)
      if (row.empty() || (use->pid != row.back()->pid && use->begin >= row.back()->end - a.job.listing_interval))
        row.push_back(use);
    if (row.size() > best.size()) best = std::move(row);
  }
  return best;
}

bool many_in_turn(const Analysis& a, const std::vector<const ContextUse*>& row) {
  return static_cast<double>(row.size()) >= a.limits[Threshold::kInTurn];
}

bool failed(const Analysis& a) {
  const bool by_somebody = a.signal().has_value();
  return !a.job.batch.present && a.window.end >= a.meta.end && a.meta.exit_code.value_or(0) > 0 && !by_somebody;
}

bool ran_out_again(const Analysis& a) {
  if (!a.out_of_memory) return false;
  return std::any_of(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
    return process.facts.in_job && process.facts.start > a.out_of_memory->first &&
           process.facts.start < a.out_of_memory->last;
  });
}

Claims tries_again(const Analysis& a) {
  if (a.job.batch.present || !failed(a) || !ran_out_again(a)) return {};
  return claim(a, [&](std::size_t, const Slice& slice) {
    return slice.account == Account::kStartup && slice.begin >= a.out_of_memory->first;
  });
}

}  // namespace headroom::diagnose
