// SPDX-License-Identifier: Apache-2.0
#include "diagnose/pipeline.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace headroom::diagnose {

namespace {

using Stretch = std::pair<Nanos, Nanos>;

// Whatever became of its work.
bool is_own_kernel(const Slice& slice) { return is_busy(slice.account) && slice.account != Account::kForeign; }

// From the first kernel of process `pid` on the device to its last; empty where it ran none.
Stretch kernels_of(const Analysis& a, const ContextUse& use) {
  Stretch stretch{use.end, use.begin};
  for (const DeviceTime& time : a.devices) {
    if (time.source != use.device) continue;
    for (const Slice& slice : time.slices)
      if (is_own_kernel(slice) && slice.pid == use.pid && slice.end > use.begin && slice.begin < use.end) {
        stretch.first = std::min(stretch.first, slice.begin);
        stretch.second = std::max(stretch.second, slice.end);
      }
  }
  return stretch;
}

// How long the stretches last together, where they overlap counted once.
Nanos together(std::vector<Stretch> stretches, Nanos from) {
  std::sort(stretches.begin(), stretches.end());
  Nanos sum = 0, covered = from;
  for (const auto& [begin, end] : stretches) {
    sum += std::max<Nanos>(0, end - std::max(begin, covered));
    covered = std::max(covered, end);
  }
  return sum;
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
  Pipeline parts;
  parts.gpu_part = together(std::move(stretches), a.ledger.begin);
  parts.rest = span - parts.gpu_part;
  const double material = a.limits[Threshold::kMaterial] * static_cast<double>(span);
  if (parts.gpu_part == 0 || static_cast<double>(parts.rest) < material) return std::nullopt;
  std::vector<Stretch> kernels;
  for (const DeviceTime& time : a.devices)
    for (const Slice& slice : time.slices)
      if (is_own_kernel(slice)) kernels.emplace_back(slice.begin, slice.end);
  parts.kernels = together(std::move(kernels), a.ledger.begin);
  return parts;
}

}  // namespace headroom::diagnose
