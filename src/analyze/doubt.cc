// SPDX-License-Identifier: Apache-2.0
#include "analyze/doubt.h"

#include <algorithm>
#include <utility>

#include "model/losses.h"

namespace headroom {

namespace {

// Whether rows of `source` say something about the device: its own, those of a process that holds it, and whatever is
// about the job or the machine as a whole.
bool concerns(const Recording& recording, SourceId source, SourceId device) {
  if (source == kNoSource || source == device) return true;
  const Source& of = recording.sources[static_cast<std::size_t>(source)];
  switch (of.kind) {
    case SourceKind::kGpu:
      return false;
    case SourceKind::kGpuUtilRing:
    case SourceKind::kGpuPowerRing:
    case SourceKind::kGpuProcess:
    case SourceKind::kGpuWork:
      return of.parent == device || of.key == recording.sources[static_cast<std::size_t>(device)].key;
    default:
      return true;
  }
}

Confidence lower(Confidence confidence) {
  return confidence == Confidence::kHigh ? Confidence::kMedium : Confidence::kLow;
}

}  // namespace

Claims doubtful_time(const Recording& recording, const std::vector<DeviceTime>& devices) {
  Claims doubtful;
  for (std::size_t device = 0; device < devices.size(); ++device) {
    std::vector<std::pair<Nanos, Nanos>> pieces;
    for (const Loss& loss : recording.losses) {
      if (loss.count <= 0 || loss.severity < Severity::kDataLoss || !touches_slices(loss)) continue;
      for (const LossPlace& place : loss.places)
        if (place.end > place.begin && concerns(recording, place.source, devices[device].source))
          pieces.emplace_back(place.begin, place.end);
    }
    std::sort(pieces.begin(), pieces.end());
    for (const auto& [begin, end] : pieces) {
      if (!doubtful.empty() && doubtful.back().device == device && doubtful.back().end >= begin)
        doubtful.back().end = std::max(doubtful.back().end, end);
      else
        doubtful.push_back({device, begin, end, Account::kUnexplained, -1});
    }
  }
  return doubtful;
}

void lower_confidence(std::vector<DeviceTime>& devices, const Claims& doubtful) {
  for (std::size_t device = 0; device < devices.size(); ++device) {
    auto doubt = std::find_if(doubtful.begin(), doubtful.end(), [&](const auto& d) { return d.device == device; });
    if (doubt == doubtful.end()) continue;
    std::vector<Slice> cut;
    for (Slice slice : devices[device].slices) {
      while (slice.begin < slice.end) {
        while (doubt != doubtful.end() && doubt->device == device && doubt->end <= slice.begin) ++doubt;
        Slice part = slice;
        const bool any = doubt != doubtful.end() && doubt->device == device && doubt->begin < slice.end;
        if (any && doubt->begin > slice.begin) {
          part.end = doubt->begin;
        } else if (any) {
          part.end = std::min(slice.end, doubt->end);
          if (part.account != Account::kUnobserved) part.confidence = lower(part.confidence);
        }
        cut.push_back(part);
        slice.begin = part.end;
      }
    }
    devices[device].slices = std::move(cut);
  }
}

}  // namespace headroom
