// SPDX-License-Identifier: Apache-2.0
#include "diagnose/unseen.h"

#include <algorithm>

namespace headroom::diagnose {

Window unread_around(const Analysis& a, const LostDevice& lost) {
  const auto known = std::find_if(a.devices.begin(), a.devices.end(),
                                  [&](const DeviceTime& time) { return time.source == lost.source; });
  if (known == a.devices.end()) return {};
  Window unread = a.window;
  for (const Slice& slice : known->slices) {
    if (slice.account == Account::kUnobserved) continue;
    if (slice.begin >= lost.at) return {unread.begin, slice.begin};
    unread.begin = slice.end;
  }
  return unread;
}

Claims unread_by_loss(const Analysis& a, const LostDevice& lost) {
  const Window unread = unread_around(a, lost);
  return claim(a, [&](std::size_t device, const Slice& slice) {
    return a.devices[device].source == lost.source && slice.account == Account::kUnobserved &&
           slice.begin >= unread.begin && slice.end <= unread.end;
  });
}

Nanos unseen_at_end(const Analysis& a) {
  Nanos unseen = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.unreported[device]) continue;
    Nanos from = a.window.end;
    const auto& slices = a.devices[device].slices;
    for (auto last = slices.rbegin(); last != slices.rend() && last->account == Account::kUnobserved; ++last)
      from = last->begin;
    unseen += a.window.end - from;
  }
  return unseen;
}

bool may_have_missed_kernels(const Analysis& a) {
  const Nanos unseen = unseen_at_end(a);
  return a.material(unseen) || (unseen > 0 && !a.lost.empty());
}

}  // namespace headroom::diagnose
