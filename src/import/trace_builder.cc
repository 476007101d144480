// SPDX-License-Identifier: Apache-2.0
#include "import/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/fnv.h"
#include "model/bounds.h"

namespace headroom {

namespace {

// A shorter call that neither launches nor waits is part of the operator around it.
constexpr Nanos kLongCall = 20 * kMicrosecond;

// Within each other; more is a damaged trace.
constexpr std::size_t kDeepestAnnotation = 16, kDeepestFunction = 256;

}  // namespace

void TraceBuilder::seen(Nanos begin, Nanos end) {
  first_ = std::min(first_, begin);
  last_ = std::max(last_, end);
}

TextId TraceBuilder::number_of(std::string_view name) {
  const TextId number = names_.text(name);
  return number == kNoText ? 0 : number;
}

void TraceBuilder::work(int device, GpuWork what, Nanos begin, Nanos end, Correlation correlation) {
  seen(begin, end);
  works_[device].push_back({begin, end, correlation, what});
}

void TraceBuilder::call(const Thread& thread, std::string_view call, Nanos begin, Nanos end, Correlation correlation) {
  seen(begin, end);
  calls_ = true;
  const bool launches = launches_work(call);
  if (launches && correlation != 0) launches_.push_back({correlation, end, thread.pid});
  if (launches && correlation != 0 && call.find("Memcpy") != std::string_view::npos)
    copies_.push_back({correlation, thread, begin});
  const bool telling = launches || waits_for_device(call) || allocates(call) || end - begin >= kLongCall;
  add(threads_[thread], {begin, end, number_of(call), telling ? 1 : 0});
}

void TraceBuilder::op(const Thread& thread, std::string_view name, Nanos begin, Nanos end) {
  operators_ = true;
  seen(begin, end);
  add(threads_[thread], {begin, end, number_of(name), 0});
}

// It lasts as long as the profiler looked, where it began before or went on: that is no time of the trace's.
void TraceBuilder::function(const Thread& thread, std::string_view frame, Nanos begin, Nanos end) {
  threads_[thread].functions.push_back({begin, end, number_of(frame)});
}

void TraceBuilder::annotation(const Thread& thread, std::string_view name, Nanos begin, Nanos end) {
  seen(begin, end);
  threads_[thread].annotations.push_back({begin, end, number_of(name)});
}

void TraceBuilder::step(const Thread& thread, Nanos begin, Nanos end) {
  threads_[thread].steps.emplace_back(begin, end);
}

void TraceBuilder::add(ThreadCalls& thread, const NamedInterval& interval) {
  NamedInterval& last = thread.last[static_cast<std::size_t>(interval.depth)];
  if (interval.begin >= last.begin && interval.end <= last.end) return;
  last = interval;
  thread.intervals.push_back(interval);
  if (thread.intervals.size() < thread.tidy_at) return;
  tidy(thread);
  thread.tidy_at = std::max<std::size_t>(4096, thread.intervals.size() / 2 * 3);
}

// Leaves the outermost operators and the outermost calls, in order of begin, calls after operators.
void TraceBuilder::tidy(ThreadCalls& thread) {
  auto& all = thread.intervals;
  std::sort(all.begin(), all.end(), [](const NamedInterval& a, const NamedInterval& b) {
    return std::tuple(a.depth, a.begin, -a.end) < std::tuple(b.depth, b.begin, -b.end);
  });
  std::array<Nanos, 2> covered{INT64_MIN, INT64_MIN};
  std::erase_if(all, [&](const NamedInterval& one) {
    Nanos& end = covered[static_cast<std::size_t>(one.depth)];
    if (one.end <= end) return true;
    end = one.end;
    return false;
  });
}

const TraceBuilder::Launch* TraceBuilder::launch_of(const Work& work) const {
  if (work.correlation == 0) return nullptr;
  const auto found = std::lower_bound(launches_.begin(), launches_.end(), Launch{work.correlation});
  return found == launches_.end() || found->correlation != work.correlation ? nullptr : &*found;
}

TextId TraceBuilder::operator_at(const CopyLaunch& launch) const {
  const auto thread = threads_.find(launch.thread);
  if (thread == threads_.end()) return 0;
  const auto& all = thread->second.intervals;  // tidy: operators first, in order of their begins
  const auto calls =
      std::partition_point(all.begin(), all.end(), [](const NamedInterval& one) { return one.depth == 0; });
  const auto after = std::upper_bound(all.begin(), calls, launch.at,
                                      [](Nanos at, const NamedInterval& one) { return at < one.begin; });
  if (after == all.begin() || (after - 1)->end <= launch.at) return 0;
  return (after - 1)->name;
}

Attrs TraceBuilder::copied_by(const std::vector<Work>& works) const {
  std::map<GpuWork, std::map<TextId, Nanos>> time;
  std::map<GpuWork, Nanos> all;
  for (const Work& work : works) {
    if (info(work.what).kernel || work.what == GpuWork::kMemset) continue;
    all[work.what] += work.end - work.begin;
    const auto launch = std::lower_bound(copies_.begin(), copies_.end(), CopyLaunch{work.correlation, {}, 0});
    if (work.correlation == 0 || launch == copies_.end() || launch->correlation != work.correlation) continue;
    if (const TextId op = operator_at(*launch); op != 0) time[work.what][op] += work.end - work.begin;
  }
  Attrs by;
  for (const auto& [what, ops] : time)
    for (const auto& [op, ns] : ops)
      if (2 * ns > all[what]) by[std::string(info(what).name)] = names_.text_of(op);
  return by;
}

// Whose work it is where no call says it: that of the process of which most was seen.
std::int64_t TraceBuilder::main_process() const {
  std::map<std::int64_t, std::size_t> seen;
  for (const auto& [key, thread] : threads_)
    seen[key.pid] += thread.intervals.size() + thread.annotations.size() + thread.functions.size();
  const auto most =
      std::max_element(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == seen.end() ? 0 : most->first;
}

RecordingMeta TraceBuilder::make_meta(Nanos shift, bool annotated) const {
  RecordingMeta meta;
  std::uint64_t hash = fnv1a(name_);  // over name and times: the same trace gets the same id
  for (const auto& [device, works] : works_)
    for (const Work& work : works) hash = fnv1a(static_cast<std::uint64_t>(work.begin ^ (work.end << 1)), hash);
  meta.id = fmt::format("{:016x}", hash);
  meta.origin = fmt::format("import:{}", format_);
  meta.writer = "headroom " HEADROOM_VERSION;
  meta.host = host;
  meta.tiers = annotated ? "XC" : "C";
  const std::string why = fmt::format("a trace of {} does not have it", tool_);
  const bool functions = std::any_of(threads_.begin(), threads_.end(),
                                     [](const auto& thread) { return !thread.second.functions.empty(); });
  for (const char tier : {'N', 'P', 'L', 'Y'})
    if (tier != 'Y' || !functions) meta.missing_tiers.push_back({tier, why});
  if (!annotated)
    meta.missing_tiers.push_back({'X', other_annotations ? "the trace's annotations are of a kind that is not read"
                                                         : "the trace holds no annotation"});
  meta.start = first_ + shift;
  meta.end = last_ + shift;
  meta.start_realtime = meta.start;
  meta.extra = extra_;
  if (!operators_) meta.extra["operators"] = "not traced";
  if (!calls_) meta.extra.try_emplace("calls", "not traced");
  meta.extra["source_file"] = name_;
  return meta;
}

SourceId TraceBuilder::process(MemorySink& sink, std::int64_t pid) {
  Process facts;
  facts.pid = pid;
  facts.in_job = true;
  if (const auto name = process_names_.find(pid); name != process_names_.end()) facts.comm = name->second;
  return sink.add_source({SourceKind::kProcess, fmt::format("{}/0", pid), kNoSource, to_attrs(facts)});
}

void TraceBuilder::add_device(MemorySink& sink, int index, Nanos shift, const RecordingMeta& meta) {
  Device facts = devices_[index];
  facts.index = index;
  facts.given = true;
  if (facts.uuid.empty()) facts.uuid = fmt::format("gpu{}", index);
  const SourceId gpu = sink.add_source({SourceKind::kGpu, facts.uuid, kNoSource, to_attrs(facts)});
  std::map<std::int64_t, bool> owners;
  for (const Work& work : works_[index])
    if (const Launch* launch = launch_of(work)) owners[launch->pid] = true;
  if (owners.empty()) owners[main_process()] = true;
  for (const auto& [pid, owns] : owners) {
    if (pid == 0) continue;
    process(sink, pid);
    const SourceId context = sink.add_source({SourceKind::kGpuProcess, fmt::format("{}/{}/0", facts.uuid, pid), gpu,
                                              to_attrs(GpuContext{pid, ContextKind::kCompute, Nanos{0}})});
    sink.add_row(context, meta.start, {});
    sink.add_row(context, meta.end, {});
  }
  const SourceId source = sink.add_source({SourceKind::kGpuWork, facts.uuid, gpu, copied_by(works_[index])});
  add_work(sink, source, std::exchange(works_[index], {}), shift, meta.start);
}

void TraceBuilder::add_work(MemorySink& sink, SourceId source, std::vector<Work> works, Nanos shift,
                            Nanos start) const {
  std::vector<std::pair<Nanos, Nanos>> queued;
  for (const Work& work : works)
    if (const Launch* launch = launch_of(work); launch && launch->end < work.begin)
      queued.emplace_back(launch->end, work.begin);
  std::sort(queued.begin(), queued.end());
  std::sort(works.begin(), works.end(), [](const Work& a, const Work& b) { return a.begin < b.begin; });
  WorkRows rows(sink, source, start);
  auto waiting = queued.begin();
  const auto wait_until = [&](Nanos at) {
    for (; waiting != queued.end() && waiting->first < at; ++waiting)
      rows.add({waiting->first + shift, waiting->second + shift, GpuWork::kQueued});
  };
  for (const Work& work : works) {
    wait_until(work.begin);
    rows.add({work.begin + shift, work.end + shift, work.what});
  }
  rows.finish();
}

void TraceBuilder::add_thread(MemorySink& sink, const Thread& key, ThreadCalls& thread, Nanos shift,
                              std::string_view via) {
  const SourceId parent = process(sink, key.pid);
  const Attrs attrs{{"pid", fmt::format("{}", key.pid)}, {"tid", fmt::format("{}", key.tid)}};
  const std::string place = fmt::format("{}/0/{}", key.pid, key.tid);
  const auto moved = [&](std::vector<NamedInterval>& list) {
    for (NamedInterval& one : list) one.begin += shift, one.end += shift;
    return std::exchange(list, {});
  };
  tidy(thread);
  std::erase_if(thread.functions, [&](NamedInterval& one) {
    one.begin = std::max(one.begin, first_), one.end = std::min(one.end, last_);
    return one.begin >= one.end;
  });
  thread.intervals.insert(thread.intervals.end(), thread.functions.begin(), thread.functions.end());
  if (!thread.intervals.empty())
    write_nested(moved(thread.intervals), kDeepestFunction, Times::kNotCounted, names_, sink,
                 sink.add_source({SourceKind::kCallThread, place, parent, attrs}));
  if (thread.annotations.empty() && thread.steps.empty()) return;
  Attrs said = attrs;
  said["via"] = via;
  const SourceId marks = sink.add_source({SourceKind::kMarks, fmt::format("{}/{}", place, via), parent, said});
  write_nested(moved(thread.annotations), kDeepestAnnotation, Times::kCounted, names_, sink, marks);
  std::sort(thread.steps.begin(), thread.steps.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::int64_t done = 0;
  for (const auto& [begin, end] : thread.steps) {
    if (done == 0) sink.add_row(marks, begin + shift, std::array{Cell{Metric::kSteps, 0, std::nullopt}});
    sink.add_row(marks, end + shift, std::array{Cell{Metric::kSteps, ++done, std::nullopt}});
  }
}

Result<Recording> TraceBuilder::finish(Nanos realtime_of_zero, std::string_view via) {
  if (works_.empty())
    return fail(Errc::kInvalidInput, fmt::format("{}: no kernel and no copy of a GPU is in this trace", name_),
                "profile the GPU, too: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]), or nsys "
                "profile --trace=cuda");
  if (last_ <= first_) return fail(Errc::kInvalidInput, fmt::format("{}: the trace lasts no time", name_));
  std::sort(launches_.begin(), launches_.end());
  std::sort(copies_.begin(), copies_.end());
  for (auto& [key, thread] : threads_) tidy(thread);
  const bool annotated = std::any_of(threads_.begin(), threads_.end(),
                                     [](const auto& thread) { return !thread.second.annotations.empty(); });
  MemorySink sink;
  const RecordingMeta meta = make_meta(realtime_of_zero, annotated);
  sink.set_meta(meta);
  for (auto& [index, works] : works_) add_device(sink, index, realtime_of_zero, meta);
  launches_ = {};
  for (auto& [key, thread] : threads_) add_thread(sink, key, thread, realtime_of_zero, via);
  for (const Loss& loss : losses_.all()) sink.add_loss(loss);
  Recording recording = sink.take();
  keep_in_bounds(recording);
  return recording;
}

}  // namespace headroom
