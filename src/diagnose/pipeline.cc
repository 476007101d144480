// SPDX-License-Identifier: Apache-2.0
#include "diagnose/pipeline.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace headroom::diagnose {

namespace {

using Stretch = std::pair<Nanos, Nanos>;

// From the first kernel of process `pid` on the device to its last; empty where it ran none.
Stretch kernels_of(const Analysis& a, const ContextUse& use) {
  Stretch stretch{use.end, use.begin};
  for (const DeviceTime& time : a.devices) {
    if (time.source != use.device) continue;
    for (const Slice& slice : time.slices)
      if (slice.account == Account::kUseful && slice.pid == use.pid && slice.end > use.begin && slice.begin < use.end) {
        stretch.first = std::min(stretch.first, slice.begin);
        stretch.second = std::max(stretch.second, slice.end);
      }
  }
  return stretch;
}

}  // namespace

std::optional<Pipeline> pipeline(const Analysis& a) {
  const Nanos span = a.ledger.span();
  if (!a.job.has_job || span <= 0) return std::nullopt;
  const double longest = a.limits[Threshold::kPipelineLife] * static_cast<double>(span);
  std::vector<Stretch> stretches;
  for (const ContextUse& use : a.job.uses) {
    if (!use.ours) continue;
    Stretch stretch =
        static_cast<double>(use.end - use.begin) <= longest ? Stretch{use.begin, use.end} : kernels_of(a, use);
    stretch.first = std::max(stretch.first, a.ledger.begin);
    stretch.second = std::min(stretch.second, a.ledger.end);
    if (stretch.second > stretch.first) stretches.push_back(stretch);
  }
  std::sort(stretches.begin(), stretches.end());
  Pipeline parts;
  Nanos covered = a.ledger.begin;
  for (const auto& [begin, end] : stretches) {
    parts.gpu_part += std::max<Nanos>(0, end - std::max(begin, covered));
    covered = std::max(covered, end);
  }
  parts.rest = span - parts.gpu_part;
  const double material = a.limits[Threshold::kMaterial] * static_cast<double>(span);
  if (parts.gpu_part == 0 || static_cast<double>(parts.rest) < material) return std::nullopt;
  return parts;
}

}  // namespace headroom::diagnose
