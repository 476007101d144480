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
  constexpr int kSignals = 128;  // and above: somebody ended it
  const int code = a.meta.exit_code.value_or(0);
  return !a.job.batch.present && a.window.end >= a.meta.end && code > 0 && code < kSignals;
}

}  // namespace headroom::diagnose
