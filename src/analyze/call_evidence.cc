// SPDX-License-Identifier: Apache-2.0
#include "analyze/call_evidence.h"

#include <algorithm>

namespace headroom {

namespace {

// Joins a share to the one before that says the same.
void put(std::vector<HostShare>& shares, Nanos length, const HostClaim& claim) {
  if (length <= 0) return;
  if (!shares.empty() && shares.back().claim.account == claim.account && shares.back().claim.where == claim.where)
    shares.back().length += length;
  else
    shares.push_back({length, claim});
}

// PyTorch names what its loader does so: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__".
bool loads(std::string_view op) { return op.starts_with("enumerate(DataLoader)"); }

}  // namespace

ProfiledCalls::ProfiledCalls(const Recording& recording) {
  for (const SourceId gpu : recording.all(SourceKind::kGpu))
    if (auto stretches = work_stretches(recording, gpu); !stretches.empty()) devices_[gpu] = std::move(stretches);
  if (devices_.empty()) return;
  for (const auto& list : recording.lists) {
    Call call{list.empty() ? State::kNothing : State::kAtWork};
    for (const TextId id : list) {
      const std::string_view name = recording.texts[id];
      if (loads(name)) call.state = State::kLoads;
      if (waits_for_device(name)) call.state = State::kWaits, call.where = name;
      if (allocates(name)) call.where = name;  // whichever operator asked for it
      if (call.where.empty()) call.where = name;
    }
    call.launches = !list.empty() && launches_work(recording.texts[list.back()]);
    calls_.push_back(call);
  }
  for (const SourceId source : recording.all(SourceKind::kCallThread)) add_thread(recording, source);
  for (auto& [id, process] : processes_)
    std::stable_sort(process.launches.begin(), process.launches.end(),
                     [](const Launch& a, const Launch& b) { return a.begin < b.begin; });
}

void ProfiledCalls::add_thread(const Recording& recording, SourceId source) {
  const SourceId parent = recording.sources[static_cast<std::size_t>(source)].parent;
  if (parent == kNoSource) return;
  Process& process = processes_[parent];
  const std::vector<ListRow>& rows = recording.tracks[static_cast<std::size_t>(source)].lists;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (call_of(rows[i]).launches)
      process.launches.push_back(
          {rows[i].at, i + 1 < rows.size() ? rows[i + 1].at : recording.meta.end, process.threads.size()});
  process.threads.push_back(&rows);
}

void ProfiledCalls::claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const {
  const auto device = devices_.find(stretch.use.context.device);
  if (device == devices_.end()) return;
  const auto process = stretch.use.context.process ? processes_.find(*stretch.use.context.process) : processes_.end();
  const auto& works = device->second;
  auto work = std::upper_bound(works.begin(), works.end(), stretch.begin,
                               [](Nanos at, const WorkStretch& w) { return at < w.end; });
  Nanos at = stretch.begin;
  if (work == works.end() || work->begin > at) return;  // before the profiler looked
  for (; work != works.end() && at < stretch.end; ++work) {
    const Nanos end = std::min(work->end, stretch.end);
    if (work->has(GpuWork::kQueued)) {
      put(parts, end - at, {Account::kUnexplained, Confidence::kLow, "C", kNotBegun});
    } else if (work->works != 0) {
      GpuWork what = GpuWork::kMemset;
      for (const GpuWorkInfo& one : kGpuWorks)
        if (work->has(one.id)) what = std::min(what, one.id);
      put(parts, end - at, {Account::kTransfer, Confidence::kHigh, "C", info(what).name});
    } else if (process == processes_.end()) {
      put(parts, end - at, {Account::kUnexplained, Confidence::kLow, "C", {}});
    } else {
      host(process->second, at, end, parts);
    }
    at = end;
  }
}

// Nothing ran on the device and nothing was launched to it.
void ProfiledCalls::host(const Process& process, Nanos begin, Nanos end, std::vector<HostShare>& shares) const {
  if (process.launches.empty()) return put(shares, end - begin, {Account::kUnexplained, Confidence::kLow, "C", {}});
  while (begin < end) {
    const auto next = std::upper_bound(process.launches.begin(), process.launches.end(), begin,
                                       [](Nanos at, const Launch& launch) { return at < launch.begin; });
    // The one that is under way, else the next, else, at the end, the thread of the last.
    const bool under_way = next != process.launches.begin() && std::prev(next)->end > begin;
    const auto launch = under_way || next == process.launches.end() ? next - 1 : next;
    Nanos stop = end;
    if (under_way)
      stop = std::min(end, launch->end);
    else if (next != process.launches.end())
      stop = std::min(end, next->begin);
    const auto& rows = *process.threads[launch->thread];
    auto row = std::upper_bound(rows.begin(), rows.end(), begin, [](Nanos at, const ListRow& r) { return at < r.at; });
    while (begin < stop) {
      const Call now = row == rows.begin() ? Call{} : call_of(*std::prev(row));
      const Nanos until = row == rows.end() ? stop : std::min(stop, row->at);
      HostClaim claim{Account::kHostCode, Confidence::kHigh, "C", now.where};
      if (now.state == State::kWaits) claim.account = Account::kSync;
      if (now.state == State::kLoads) claim.account = Account::kInput;
      if (now.state == State::kNothing) claim = {Account::kUnexplained, Confidence::kLow, "C", {}};
      put(shares, until - begin, claim);
      begin = until;
      if (row != rows.end()) ++row;
    }
  }
}

}  // namespace headroom
