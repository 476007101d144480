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

struct Launch {
  Nanos at = 0;
  std::string_view op;  // "": the call is in none
};

// Calls that copy, in order of time, of all threads.
std::vector<Launch> copy_launches(const Recording& recording) {
  std::vector<Launch> launches;
  for (const SourceId thread : recording.all(SourceKind::kCallThread))
    for (const ListRow& row : recording.tracks[static_cast<std::size_t>(thread)].lists) {
      if (row.list >= recording.lists.size() || recording.lists[row.list].empty()) continue;
      const auto& list = recording.lists[row.list];
      if (recording.texts[list.back()].find("Memcpy") == std::string_view::npos) continue;
      launches.push_back({row.at, list.size() > 1 ? std::string_view(recording.texts[list.front()]) : ""});
    }
  std::stable_sort(launches.begin(), launches.end(), [](const Launch& x, const Launch& y) { return x.at < y.at; });
  return launches;
}

// The n-th copy is the n-th call's, where there are as many; else the one's that came last before it.
std::map<GpuWork, std::string> copied_by(const Recording& recording, const std::vector<WorkStretch>& stretches) {
  struct Copy {
    GpuWork what{};
    Nanos begin = 0, length = 0;
  };
  std::vector<Copy> copies;
  for (const GpuWork what : {GpuWork::kCopyToDevice, GpuWork::kPageableToDevice, GpuWork::kCopyToHost,
                             GpuWork::kPageableToHost, GpuWork::kCopyOnDevice, GpuWork::kCopyToPeer})
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      if (!stretches[i].has(what)) continue;
      if (i > 0 && stretches[i - 1].has(what))
        copies.back().length += stretches[i].end - stretches[i].begin;
      else
        copies.push_back({what, stretches[i].begin, stretches[i].end - stretches[i].begin});
    }
  std::stable_sort(copies.begin(), copies.end(), [](const Copy& x, const Copy& y) { return x.begin < y.begin; });
  const std::vector<Launch> launches = copy_launches(recording);
  std::map<GpuWork, std::map<std::string_view, Nanos>> time;
  std::map<GpuWork, Nanos> all;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    all[copies[i].what] += copies[i].length;
    const auto after = std::upper_bound(launches.begin(), launches.end(), copies[i].begin,
                                        [](Nanos at, const Launch& launch) { return at < launch.at; });
    const Launch* launch = launches.size() == copies.size() ? &launches[i]
                           : after == launches.begin()      ? nullptr
                                                            : &*(after - 1);
    if (launch && !launch->op.empty()) time[copies[i].what][launch->op] += copies[i].length;
  }
  std::map<GpuWork, std::string> by;
  for (const auto& [what, ops] : time)
    for (const auto& [op, ns] : ops)
      if (2 * ns > all[what]) by[what] = op;
  return by;
}

}  // namespace

std::optional<DeviceProfile> device_profile(const Recording& recording, SourceId gpu, Nanos begin, Nanos end) {
  const std::vector<WorkStretch> stretches = work_stretches(recording, gpu);
  if (stretches.empty()) return std::nullopt;
  DeviceProfile profile;
  profile.copied_by = copied_by(recording, stretches);
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
