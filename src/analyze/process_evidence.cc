// SPDX-License-Identifier: Apache-2.0
#include "analyze/process_evidence.h"

#include <algorithm>

#include "analyze/idle_cause.h"

namespace headroom {

std::optional<HostClaim> ProcessCounters::claim(const IdleStretch& stretch) const {
  const HostView& host = stretch.use.host;
  if (stretch.part != UsePart::kBetween || !host.owner || host.owner->empty()) return std::nullopt;
  const Nanos at = stretch.begin + (stretch.end - stretch.begin + 1) / 2;
  const Activity* owner = activity_at(*host.owner, at);
  if (!owner) return HostClaim{Account::kUnexplained, Confidence::kLow, "P"};
  HelperWork helpers;
  for (const std::vector<Activity>* list : host.helpers) {
    const Activity* activity = activity_at(*list, at);
    if (!activity) continue;
    helpers.cpu += std::max(activity->cpu, activity->main_cpu.value_or(0));  // process times count in ticks of 10 ms
    helpers.read_bytes_per_second += activity->read_bytes_per_second;
  }
  const IdleCause cause = idle_cause(*owner, helpers, stretch.device.share(owner->begin, owner->end), limits_);
  return HostClaim{cause.account, cause.confidence, "P"};
}

void ProcessCounters::cut(const Use& use, std::vector<Nanos>& cuts) const {
  if (!use.host.owner) return;
  for (const Activity& activity : *use.host.owner) cuts.push_back(activity.end);
}

const Activity* activity_at(const std::vector<Activity>& list, Nanos at) {
  const auto next =
      std::upper_bound(list.begin(), list.end(), at, [](Nanos instant, const Activity& a) { return instant <= a.end; });
  if (next == list.end() || at < next->begin) return nullptr;
  return &*next;
}

}  // namespace headroom
