// SPDX-License-Identifier: Apache-2.0
#include "analyze/call_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace headroom {

namespace {

// A call that gives work to a device takes 5 us: one that takes so long loads or compiles something first.
constexpr Nanos kLongLaunch = kMillisecond;

// "cuModuleLoadData", "cudaHostAlloc", "hipModuleLoad": a call of CUDA or HIP, and no operator.
bool is_call(std::string_view name) {
  for (const std::string_view prefix : {"cuda", "cu", "hip"})
    if (name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] >= 'A' &&
        name[prefix.size()] <= 'Z')
      return true;
  return false;
}

// Joins a share to the one before that says the same.
void put(std::vector<HostShare>& shares, Nanos length, const HostClaim& claim) {
  if (length <= 0) return;
  if (!shares.empty() && shares.back().claim.account == claim.account && shares.back().claim.where == claim.where)
    shares.back().length += length;
  else
    shares.push_back({length, claim});
}

// PyTorch names what its loader does so: "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"; TensorFlow's
// tf.data "IteratorGetNext" and, of its stages, "Iterator::Prefetch".
bool loads(std::string_view op) {
  return op.starts_with("enumerate(DataLoader)") || op.find("IteratorGetNext") != std::string_view::npos ||
         op.starts_with("Iterator::") || op.starts_with("OptionalGetNext") || op.starts_with("OneShotIterator");
}

// Names of operators and calls have no lines.
std::vector<stacks::Frame> frames_of(const std::vector<std::string_view>& names) {
  std::vector<stacks::Frame> frames;
  for (const std::string_view name : names) frames.push_back(stacks::frame_of(name));
  if (std::any_of(frames.begin(), frames.end(), [](const auto& frame) { return frame.line == 0; })) frames.clear();
  return frames;
}

// Names of functions that hold the whole program, or its loop: all that it does is within them.
bool is_whole_program(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords{"main", "train", "fit", "run", "loop", "epoch"};
  return name == "<module>" ||
         std::any_of(kWords.begin(), kWords.end(), [&](auto word) { return name.find(word) != name.npos; });
}

// What a library's function is called within: it is none that a program calls by its name.
bool only_wraps(const stacks::Frame& frame) {
  const std::string_view name = stacks::short_name(frame);
  return frame.file.find("torch/utils/data/") != std::string_view::npos || name.starts_with("_") ||
         name.starts_with("wrap") || name.starts_with("inner") || name == "decorate_context" || name.starts_with("<");
}

// The function of a library that the user's own code has called, where that code is the whole program; else "".
std::string library_call(const std::vector<stacks::Frame>& frames) {
  std::size_t own = frames.size();
  while (own > 0 && stacks::is_library(frames[own - 1])) --own;
  if (own == 0 || own == frames.size() || !is_whole_program(stacks::short_name(frames[own - 1]))) return "";
  std::size_t called = own;
  while (called < frames.size() && only_wraps(frames[called])) ++called;
  return stacks::words(frames[called < frames.size() ? called : own]);
}

// Their innermost function, as the families tell what it is. No CUDA call is open: it neither synchronises nor copies.
std::optional<stacks::StackKind> kind_of(const std::vector<std::string_view>& names, const stacks::Families& families) {
  const std::vector<stacks::Frame> frames = frames_of(names);
  if (frames.empty()) return std::nullopt;
  stacks::StackKind kind = families.kind_of(frames);
  if (only_waits(kind.family) || kind.family == stacks::Family::kImport || kind.family == stacks::Family::kLoaderWait)
    return kind;
  if (const std::string called = library_call(frames); !called.empty())
    kind.where = fmt::format("{}, called from {}", called, kind.where);
  return kind;
}

}  // namespace

TracedCode traced_code(const Recording& recording, const stacks::Families& families) {
  TracedCode code;
  if (recording.all(SourceKind::kCallThread).empty()) return code;
  std::vector<std::string_view> names;
  for (const auto& list : recording.lists) {
    names.clear();
    for (const TextId id : list) names.push_back(recording.texts[id]);
    code.loader |= std::any_of(names.begin(), names.end(), [](std::string_view name) {
      return loads(name) || name.find("torch/utils/data/dataloader.py") != name.npos;
    });
    const auto kind = kind_of(names, families);
    if (kind && kind->family != stacks::Family::kNone) code.families.try_emplace(kind->where, kind->family);
  }
  return code;
}

ProfiledCalls::Call ProfiledCalls::call_of(const std::vector<std::string_view>& names,
                                           const stacks::Families& families) {
  Call call;
  if (names.empty()) return call;
  if (const auto python = kind_of(names, families)) {
    const Account account = stacks::info(python->family).account;
    const bool told = account != Account::kUnexplained && account != Account::kSync && account != Account::kTransfer;
    call.account = told ? account : Account::kHostCode;
    call.in_python = call.account == Account::kHostCode && python->busy != stacks::Busy::kLaunches;
    call.where = python->where;
    return call;
  }
  call.account = Account::kHostCode;
  for (const std::string_view name : names) {
    if (loads(name)) call.account = Account::kInput, call.loads = true;
    if (waits_for_device(name)) call.account = Account::kSync, call.where = name;
    if (allocates(name)) call.where = name;  // whichever operator asked for it
    if (call.where.empty()) call.where = name;
  }
  if (call.account == Account::kSync && names.size() > 1 && call.where == names.back())
    call.where = fmt::format("{} in {}", names.back(), names.front());  // which of the job's operators waits
  call.launches = launches_work(names.back());
  if ((call.launches || is_call(names.back())) && names.size() > 1 && call.where == names.front())
    call.where_long = fmt::format("{} in {}", names.back(), call.where);
  return call;
}

ProfiledCalls::ProfiledCalls(const Recording& recording, const stacks::Families& families) {
  for (const SourceId gpu : recording.all(SourceKind::kGpu))
    if (auto stretches = work_stretches(recording, gpu); !stretches.empty()) devices_[gpu] = std::move(stretches);
  if (devices_.empty()) return;
  std::vector<std::string_view> names;
  for (const auto& list : recording.lists) {
    names.clear();
    for (const TextId id : list) names.push_back(recording.texts[id]);
    calls_.push_back(call_of(names, families));
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
  if (std::any_of(rows.begin(), rows.end(), [&](const ListRow& row) { return call_of(row).loads; }))
    process.loaders.push_back(&rows);
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

// A trace without launches tells nothing but that a thread asked for input.
void ProfiledCalls::input_alone(const Process& process, Nanos begin, Nanos end, std::vector<HostShare>& shares) const {
  while (begin < end) {
    const Call* input = nullptr;
    Nanos stop = end;
    for (const auto* rows : process.loaders) {
      const auto row =
          std::upper_bound(rows->begin(), rows->end(), begin, [](Nanos at, const ListRow& r) { return at < r.at; });
      if (row != rows->end()) stop = std::min(stop, row->at);
      if (row != rows->begin() && call_of(*std::prev(row)).loads) input = &call_of(*std::prev(row));
    }
    put(shares, stop - begin,
        input ? HostClaim{Account::kInput, Confidence::kMedium, "C", input->where}
              : HostClaim{Account::kUnexplained, Confidence::kLow, "C", {}});
    begin = stop;
  }
}

// Nothing ran on the device and nothing was launched to it.
void ProfiledCalls::host(const Process& process, Nanos begin, Nanos end, std::vector<HostShare>& shares) const {
  if (process.launches.empty()) return input_alone(process, begin, end, shares);
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
      static const Call kNothing;
      const Call& now = row == rows.begin() ? kNothing : call_of(*std::prev(row));
      const Nanos until = row == rows.end() ? stop : std::min(stop, row->at);
      const bool is_long = row != rows.begin() && row != rows.end() && row->at - std::prev(row)->at >= kLongLaunch &&
                           !now.where_long.empty();
      const Confidence sure = now.account == Account::kUnexplained ? Confidence::kLow : Confidence::kHigh;
      put(shares, until - begin,
          {now.account, sure, now.in_python ? Tiers("CY") : Tiers("C"), is_long ? now.where_long : now.where});
      begin = until;
      if (row != rows.end()) ++row;
    }
  }
}

}  // namespace headroom
