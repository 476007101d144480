// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_processes.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom {

namespace {

constexpr std::size_t kFirstEntries = 64, kMaxEntries = 8192;
constexpr Nanos kComputePeriod = kSecond, kOtherPeriod = 10 * kSecond, kDearPeriod = 60 * kSecond;
constexpr Nanos kDear = 2 * kMillisecond;  // one list took 4.5 ms on one driver, holding its lock

std::size_t at_least(std::size_t wanted, std::size_t now) {
  return std::min(kMaxEntries, std::max(wanted + wanted / 2, 2 * now));
}

}  // namespace

std::optional<Nanos> ProcessDirectory::start_of(std::int64_t pid, RecordingSink& sink) {
  auto found = known_.find(pid);
  if (found == known_.end()) {
    found = known_.emplace(pid, Known{}).first;
    if (const auto process = describe_ ? describe_(pid) : std::nullopt) {
      found->second.start = process->start;
      Source source{SourceKind::kProcess, fmt::format("{}/{}", pid, process->start), kNoSource, to_attrs(*process)};
      // Whether it belongs to the job is for the host's reader to say; "no" here must not undo its "yes".
      if (!process->in_job) source.attrs.erase("in_job");
      sink.add_source(source);
    }
  }
  found->second.round = round_;
  return found->second.start;
}

void ProcessDirectory::end_round() {
  std::erase_if(known_, [&](const auto& entry) { return entry.second.round != round_; });
  ++round_;
}

GpuProcesses::GpuProcesses(const NvmlApi& api, bool scrambled, bool mig) : util_off_(mig) {
  const auto newest = [&](ListV3 v3, ListV3 v2) { return v3 != nullptr && !scrambled ? v3 : v2; };
  lists_.push_back({ContextKind::kMps, {kOtherPeriod}, newest(api.mps_processes, api.mps_processes_v2), nullptr});
  lists_.push_back({ContextKind::kCompute,
                    {kComputePeriod},
                    newest(api.compute_processes, api.compute_processes_v2),
                    api.compute_processes_v1});
  lists_.push_back({ContextKind::kGraphics,
                    {kOtherPeriod, kSecond},
                    newest(api.graphics_processes, api.graphics_processes_v2),
                    api.graphics_processes_v1});
  buffer_.resize(kFirstEntries);
  buffer_v1_.resize(kFirstEntries);
  util_buffer_.resize(2 * kFirstEntries);
}

void GpuProcesses::ask_all() {
  for (auto& list : lists_) list.due.next.reset();
  util_due_.next.reset();
}

// The list may grow between two calls, so the buffer has room to spare and one more try.
nvml::Return GpuProcesses::fetch(const Look& look, List& list) {
  nvml::Return code = nvml::kFunctionNotFound;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const bool v1 = list.newer == nullptr;
    auto count = static_cast<unsigned>(v1 ? buffer_v1_.size() : buffer_.size());
    code = v1 ? list.oldest(look.handle, &count, buffer_v1_.data()) : list.newer(look.handle, &count, buffer_.data());
    if (code == nvml::kInsufficientSize) {
      buffer_.resize(at_least(count, buffer_.size()));
      buffer_v1_.resize(buffer_.size());
      continue;
    }
    list.entries.clear();
    if (code != nvml::kSuccess) break;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, buffer_.size()); ++i) {
      if (v1)
        list.entries.push_back({buffer_v1_[i].pid, buffer_v1_[i].used_gpu_memory});
      else
        list.entries.push_back({buffer_[i].pid, buffer_[i].used_gpu_memory});
    }
    break;
  }
  return code;
}

void GpuProcesses::read_list(const Look& look, List& list) {
  list.fresh = list.due.take(look.at);
  if (!list.fresh || list.off) return;
  if (list.newer == nullptr && list.oldest == nullptr) {
    list.code = nvml::kFunctionNotFound;
    list.off = true;
    return;
  }
  const Nanos before = monotonic_now();
  list.code = fetch(look, list);
  if (list.code != nvml::kSuccess) list.entries.clear();
  if (absent_for(list.code) == Absent::kNotSupported) list.off = true;
  const bool dear = monotonic_now() - before > kDear;
  if (list.kind == ContextKind::kCompute) return;
  // Clients of MPS come and go like other compute processes; the other lists hardly ever change.
  const bool clients = list.kind == ContextKind::kMps && !list.entries.empty();
  list.due.period = dear ? kDearPeriod : clients ? kComputePeriod : kOtherPeriod;
}

GpuProcesses::Context* GpuProcesses::find(unsigned pid) {
  const auto found = std::find_if(contexts_.begin(), contexts_.end(), [&](const auto& c) { return c.pid == pid; });
  return found == contexts_.end() ? nullptr : &*found;
}

// One context per process: the kind by precedence, the memory of the list that gives the kind (a process has several
// entries where it uses several instances of a GPU).
void GpuProcesses::merge() {
  for (auto& context : contexts_) {
    context.merged = false;
    context.seen = false;
    context.used = false;
    context.stamp = 0;
  }
  std::erase_if(contexts_, [&](const Context& context) {
    return std::none_of(lists_.begin(), lists_.end(), [&](const List& list) {
      return std::any_of(list.entries.begin(), list.entries.end(),
                         [&](const Entry& e) { return e.pid == context.pid; });
    });
  });
  for (const auto& list : lists_) {
    for (const auto& entry : list.entries) {
      Context* context = find(entry.pid);
      if (context == nullptr) context = &contexts_.emplace_back(Context{entry.pid, list.kind});
      context->seen = context->seen || list.fresh;
      if (!context->merged) {
        if (context->kind != list.kind) context->source = kNoSource;  // announce the new kind
        context->merged = true;
        context->kind = list.kind;
        context->memory = entry.memory;
      } else if (context->kind == list.kind && entry.memory != nvml::kMemoryNotAvailable &&
                 context->memory != nvml::kMemoryNotAvailable) {
        context->memory += entry.memory;
      }
    }
  }
}

// The driver answers with a row per process that used the GPU since the stamp; rows of processes that are gone and
// senseless figures are known to come along.
void GpuProcesses::read_utilization(const Look& look) {
  util_fresh_ = util_due_.take(look.at);
  if (!util_fresh_) return;
  if (look.api.process_utilization == nullptr || util_off_) {
    util_absent_ = Absent::kNotSupported;
    return;
  }
  if (contexts_.empty()) return;
  const auto now = static_cast<unsigned long long>((look.at - look.clock_offset) / kMicrosecond);
  // Without a stamp of its own the driver averages over a long time; a stamp in the future (a clock step) gets nothing.
  if (util_last_ == 0 || util_last_ > now) util_last_ = now - static_cast<unsigned long long>(kSecond / kMicrosecond);
  auto count = static_cast<unsigned>(util_buffer_.size());
  auto code = look.api.process_utilization(look.handle, util_buffer_.data(), &count, util_last_);
  if (code == nvml::kInsufficientSize && util_buffer_.size() < kMaxEntries) {
    util_buffer_.resize(at_least(count, util_buffer_.size()));
    count = static_cast<unsigned>(util_buffer_.size());
    code = look.api.process_utilization(look.handle, util_buffer_.data(), &count, util_last_);
  }
  util_absent_ = code == nvml::kSuccess ? Absent::kNoData : absent_for(code);
  if (code != nvml::kSuccess) {
    util_off_ = util_absent_ == Absent::kNotSupported;
    return;
  }
  const auto latest = now + static_cast<unsigned long long>(kFuture / kMicrosecond);
  const auto since = util_last_;
  for (const auto& sample : std::span(util_buffer_).first(std::min<std::size_t>(count, util_buffer_.size()))) {
    if (sample.time_stamp <= since || sample.time_stamp > latest) continue;
    util_last_ = std::max(util_last_, sample.time_stamp);
    Context* const context = find(sample.pid);
    if (context == nullptr || sample.time_stamp < context->stamp) continue;
    context->used = true;
    context->stamp = sample.time_stamp;
    context->sm = sample.sm_util;
    context->memory_util = sample.mem_util;
  }
}

void GpuProcesses::add_rows(const Look& look, const std::string& uuid, SourceId gpu, ProcessDirectory& directory) {
  for (auto& context : contexts_) {
    const auto start = directory.start_of(context.pid, look.sink);
    if (!context.seen) continue;
    if (context.source == kNoSource || start != context.start) {
      context.start = start;
      const GpuContext facts{context.pid, context.kind, start};
      context.source =
          look.sink.add_source({SourceKind::kGpuProcess, fmt::format("{}/{}/{}", uuid, context.pid, start.value_or(0)),
                                gpu, to_attrs(facts)});
    }
    row_.clear();
    if (context.memory == nvml::kMemoryNotAvailable)
      row_.absent(Metric::kProcessGpuMemory, Absent::kNotSupported);
    else if (context.memory > (1ULL << 50U))
      row_.absent(Metric::kProcessGpuMemory, Absent::kGarbage);
    else
      row_.put(Metric::kProcessGpuMemory, static_cast<std::int64_t>(context.memory));
    if (util_fresh_ && context.used) {
      put_percent(row_, Metric::kProcessSmUtil, context.sm);
      put_percent(row_, Metric::kProcessMemoryUtil, context.memory_util);
    } else if (util_fresh_) {
      row_.absent(Metric::kProcessSmUtil, util_absent_);
      row_.absent(Metric::kProcessMemoryUtil, util_absent_);
    }
    look.sink.add_row(context.source, look.at, row_.cells());
  }
}

void GpuProcesses::put_counts(Row& row) const {
  const auto count = [&](bool graphics) {
    return std::count_if(contexts_.begin(), contexts_.end(),
                         [&](const Context& c) { return (c.kind == ContextKind::kGraphics) == graphics; });
  };
  for (const auto& list : lists_) {
    if (!list.fresh || list.kind == ContextKind::kMps) continue;
    const bool graphics = list.kind == ContextKind::kGraphics;
    const Metric metric = graphics ? Metric::kGraphicsProcesses : Metric::kComputeProcesses;
    if (list.code == nvml::kSuccess)
      row.put(metric, count(graphics));
    else
      row.failed(metric, list.code);
  }
}

Owners GpuProcesses::seen() const {
  if (const auto code = lists_[kComputeList].code; code != nvml::kSuccess)
    return absent_for(code) == Absent::kNotSupported ? Owners::kUnlisted : Owners::kNotRead;
  Owners seen = Owners::kNobody;
  for (const auto& context : contexts_) {
    if (context.kind == ContextKind::kGraphics) continue;
    if (context.start) return Owners::kSomebody;
    seen = Owners::kStrangers;
  }
  return seen;
}

bool GpuProcesses::read(const Look& look, const std::string& uuid, SourceId gpu, ProcessDirectory& directory,
                        Row& row) {
  for (auto& list : lists_) read_list(look, list);
  if (std::none_of(lists_.begin(), lists_.end(), [](const List& list) { return list.fresh; })) return false;
  merge();
  util_fresh_ = false;
  if (lists_[kComputeList].fresh) read_utilization(look);
  put_counts(row);
  add_rows(look, uuid, gpu, directory);
  return true;
}

}  // namespace headroom
