// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu_works.h"

#include <algorithm>
#include <string_view>

namespace headroom {

std::vector<WorkStretch> work_stretches(const Recording& recording, SourceId gpu) {
  std::vector<WorkStretch> stretches;
  const auto source = recording.find(SourceKind::kGpuWork, recording.sources[static_cast<std::size_t>(gpu)].key);
  if (!source) return stretches;
  std::vector<std::uint32_t> works;  // by list
  for (const auto& list : recording.lists) {
    works.push_back(0);
    for (const TextId text : list)
      if (const auto work = gpu_work_of(recording.texts[text])) works.back() |= 1U << static_cast<std::uint32_t>(*work);
  }
  const auto& meta = recording.meta;
  const std::vector<ListRow>& rows = recording.tracks[static_cast<std::size_t>(*source)].lists;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Nanos begin = std::max(rows[i].at, stretches.empty() ? meta.start : stretches.back().end);
    const Nanos end = std::min(i + 1 < rows.size() ? rows[i + 1].at : meta.end, meta.end);
    if (end > begin && rows[i].list < works.size())
      stretches.push_back({begin, end, works[rows[i].list], rows[i].value});
  }
  return stretches;
}

namespace {

// As the trace's importer found it, in the attributes of the work's source.
std::map<GpuWork, std::string> copied_by(const Recording& recording, SourceId gpu) {
  std::map<GpuWork, std::string> by;
  const auto source = recording.find(SourceKind::kGpuWork, recording.sources[static_cast<std::size_t>(gpu)].key);
  if (!source) return by;
  for (const auto& [name, op] : recording.sources[static_cast<std::size_t>(*source)].attrs)
    if (const auto work = gpu_work_of(name)) by[*work] = op;
  return by;
}

}  // namespace

std::optional<DeviceProfile> device_profile(const Recording& recording, SourceId gpu, Nanos begin, Nanos end) {
  const std::vector<WorkStretch> stretches = work_stretches(recording, gpu);
  if (stretches.empty()) return std::nullopt;
  DeviceProfile profile;
  profile.copied_by = copied_by(recording, gpu);
  for (const WorkStretch& stretch : stretches) {
    const Nanos from = std::max(begin, stretch.begin), to = std::min(end, stretch.end);
    if (to <= from) continue;
    if (stretch.begin >= begin) profile.kernels += stretch.kernels;
    if (stretch.busy()) profile.kernel_time += to - from;
    if (!stretch.has(GpuWork::kCommunication) || stretch.has(GpuWork::kKernel)) continue;
    if (!profile.exposed.empty() && profile.exposed.back().second == from)
      profile.exposed.back().second = to;
    else
      profile.exposed.emplace_back(from, to);
  }
  return profile;
}

}  // namespace headroom
