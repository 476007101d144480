// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/analysis.h"
#include "analyze/ends.h"

// The stretches in which a device that is held has no kernel.
namespace headroom::diagnose {

inline bool between_kernels(const Slice& slice) {
  if (an_end_lies_in(slice)) return false;
  return slice.account == Account::kHostCode || slice.account == Account::kInput ||
         slice.account == Account::kUnexplained || slice.account == Account::kCheckpoint ||
         slice.account == Account::kPeers;
}

// Those of its slices for which this holds, joined where they touch.
template <class IsPause>
std::vector<Window> pauses_of(const DeviceTime& device, const IsPause& is_pause) {
  std::vector<Window> pauses;
  for (const Slice& slice : device.slices) {
    if (!is_pause(slice)) continue;
    if (!pauses.empty() && pauses.back().end == slice.begin)
      pauses.back().end = slice.end;
    else
      pauses.push_back({slice.begin, slice.end});
  }
  return pauses;
}

}  // namespace headroom::diagnose
