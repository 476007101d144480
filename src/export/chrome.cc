// SPDX-License-Identifier: Apache-2.0
#include "export/chrome.h"

#include <nlohmann/json.hpp>

#include "export/jsonl.h"
#include "model/entities.h"

namespace headroom {

namespace {

using Json = nlohmann::ordered_json;

// Trace "processes": the job's processes, events, then the GPUs from 10 on.
constexpr int kHostGroup = 1, kEventGroup = 2, kFirstGpuGroup = 10;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

class TraceWriter {
 public:
  TraceWriter(const Recording& recording, const Output& output) : recording_(recording), out_(output) {}

  Result<void> write() {
    out_.text() = "{\"displayTimeUnit\":\"ms\",\"otherData\":" + dump({{"writer", recording_.meta.writer}}) +
                  ",\"traceEvents\":[\n";
    HR_TRYV(name_group(kHostGroup, "processes"));
    HR_TRYV(name_group(kEventGroup, "events"));
    for (std::size_t i = 0; i < recording_.sources.size(); ++i) HR_TRYV(write_source(i));
    for (const auto& event : recording_.events) HR_TRYV(write_event(event));
    out_.text() += "\n]}\n";
    return out_.flush();
  }

 private:
  [[nodiscard]] std::string micros(Nanos at) const { return decimal(at - recording_.meta.start, 3); }

  Result<void> put(std::string_view entry) {
    if (!first_) out_.text() += ",\n";
    first_ = false;
    out_.text() += entry;
    return out_.line_done();
  }
  Result<void> name_group(int group, const std::string& name) {
    return put(dump({{"ph", "M"}, {"name", "process_name"}, {"pid", group}, {"args", {{"name", name}}}}));
  }
  [[nodiscard]] int gpu_group(SourceId gpu) const { return kFirstGpuGroup + static_cast<int>(gpu); }

  Result<void> write_source(std::size_t id) {
    const Source& source = recording_.sources[id];
    const auto self = static_cast<SourceId>(id);
    switch (source.kind) {
      case SourceKind::kGpu: {
        const Device device = device_of(source);
        HR_TRYV(name_group(gpu_group(self), fmt::format("GPU {} {}", device.index, device.name)));
        return write_counters(id, gpu_group(self), "");
      }
      case SourceKind::kGpuUtilRing:
      case SourceKind::kGpuPowerRing:
        return source.parent == kNoSource ? Result<void>()
                                          : write_counters(id, gpu_group(source.parent), " (driver's samples)");
      case SourceKind::kGpuProcess:
        return source.parent == kNoSource ? Result<void>() : write_context(id);
      case SourceKind::kProcess:
        return write_process(id);
      case SourceKind::kHost:
      case SourceKind::kCgroup:
      case SourceKind::kRecorder:
        return write_counters(id, kHostGroup, "");
    }
    return {};
  }

  Result<void> write_counters(std::size_t id, int group, std::string_view suffix) {
    const Track& track = recording_.tracks[id];
    for (const Column& column : track.columns) {
      const MetricInfo& metric = info(column.metric);
      if (metric.kind != MetricKind::kGauge) continue;
      for (std::size_t row = 0; row < track.at.size(); ++row) {
        if (!column.has(row)) continue;
        HR_TRYV(put(fmt::format(R"({{"ph":"C","name":"{}{}","pid":{},"ts":{},"args":{{"value":{}}}}})", metric.name,
                                suffix, group, micros(track.at[row]), decimal(column.values[row], metric.exp10))));
      }
    }
    return {};
  }

  // A slice: its times are written as exact decimals, which JSON numbers built from doubles would not be.
  Result<void> put_slice(const std::string& name, int group, std::int64_t thread, Nanos begin, Nanos end,
                         const Json& args) {
    return put(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{}}})", dump(name), group,
                           thread, micros(begin), decimal(end - begin, 3), dump(args)));
  }

  Result<void> write_context(std::size_t id) {
    const Track& track = recording_.tracks[id];
    if (track.at.empty()) return {};
    const GpuContext context = context_of(recording_.sources[id]);
    return put_slice(fmt::format("pid {} ({})", context.pid, context_kind_name(context.kind)),
                     gpu_group(recording_.sources[id].parent), context.pid, track.at.front(), track.at.back(),
                     Json::object());
  }

  Result<void> write_process(std::size_t id) {
    const Process process = process_of(recording_.sources[id]);
    const Track& track = recording_.tracks[id];
    Nanos begin = process.start, end = process.end.value_or(recording_.meta.end);
    if (begin == 0) begin = track.at.empty() ? recording_.meta.start : track.at.front();
    if (end < begin) end = begin;
    Json args{{"pid", process.pid}, {"command", process.cmdline}};
    if (process.exit_code) args["exit_code"] = *process.exit_code;
    return put_slice(process.comm.empty() ? fmt::format("pid {}", process.pid) : process.comm, kHostGroup, process.pid,
                     begin, end, args);
  }

  Result<void> write_event(const Event& event) {
    Json args = Json::object();
    for (const auto& [name, value] : event.attrs) args[name] = value;
    if (event.end) return put_slice(event.kind, kEventGroup, 0, event.at, *event.end, args);
    return put(fmt::format(R"({{"ph":"i","s":"g","name":{},"pid":{},"tid":0,"ts":{},"args":{}}})", dump(event.kind),
                           kEventGroup, micros(event.at), dump(args)));
  }

  const Recording& recording_;
  BlockOutput out_;
  bool first_ = true;
};

}  // namespace

Result<void> write_chrome_trace(const Recording& recording, const Output& output) {
  return TraceWriter(recording, output).write();
}

}  // namespace headroom
