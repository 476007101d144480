// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "model/entities.h"
#include "model/recording.h"

namespace headroom::testing {

// A recording of [0, length) as a profiler makes it: what the device was at, and what thread 1 of process 7 was at.
struct Profile {
  using Rows = std::vector<std::pair<Nanos, std::vector<std::string>>>;  // at, in microseconds
  Rows device, thread = {}, second_thread = {}, second_device = {};
  std::int32_t kernels = 0;  // that begin in each row with a kernel
  Nanos length = 100;        // microseconds
  Attrs launched_by = {};    // the first device's copies, by the operator

  [[nodiscard]] Recording build() const {
    MemorySink sink;
    RecordingMeta meta;
    meta.origin = "import:kineto";
    meta.tiers = "C";
    meta.end = length * kMicrosecond;
    sink.set_meta(meta);
    Process process;
    process.pid = 7;
    process.in_job = true;
    const SourceId owner = sink.add_source({SourceKind::kProcess, "7/0", kNoSource, to_attrs(process)});
    add_device(sink, "gpu0", device, launched_by);
    if (!second_device.empty()) add_device(sink, "gpu1", second_device, {});
    put(sink, sink.add_source({SourceKind::kCallThread, "7/0/1", owner, {}}), thread);
    put(sink, sink.add_source({SourceKind::kCallThread, "7/0/2", owner, {}}), second_thread);
    return sink.take();
  }

 private:
  void add_device(MemorySink& sink, const std::string& uuid, const Rows& rows, const Attrs& attrs) const {
    Device facts;
    facts.uuid = uuid;
    facts.index = uuid.back() - '0';
    const SourceId gpu = sink.add_source({SourceKind::kGpu, uuid, kNoSource, to_attrs(facts)});
    const SourceId context = sink.add_source(
        {SourceKind::kGpuProcess, uuid + "/7/0", gpu, to_attrs(GpuContext{7, ContextKind::kCompute, Nanos{0}})});
    sink.add_row(context, 0, {});
    sink.add_row(context, length * kMicrosecond, {});
    put(sink, sink.add_source({SourceKind::kGpuWork, uuid, gpu, attrs}), rows, kernels);
  }
  static void put(MemorySink& sink, SourceId source, const Rows& rows, std::int32_t value = 0) {
    for (const auto& [at, names] : rows) {
      std::vector<TextId> texts;
      for (const std::string& name : names) texts.push_back(sink.intern(name));
      sink.add_list_row(source, {at * kMicrosecond, sink.intern_list(texts), names.empty() ? 0 : value});
    }
  }
};

// Ranks that count their steps: how long each step of each took, in milliseconds.
inline Recording ranks(const std::vector<std::vector<double>>& steps) {
  MemorySink sink;
  RecordingMeta meta;
  meta.origin = "import:step-times";
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    const std::string name = std::to_string(rank);
    const SourceId source =
        sink.add_source({SourceKind::kMarks, "worker/" + name, kNoSource, {{"via", "table"}, {"worker", name}}});
    Nanos at = 0;
    std::int64_t done = 0;
    sink.add_row(source, at, std::vector{Cell{Metric::kSteps, 0, std::nullopt}});
    for (const double step : steps[rank]) {
      at += static_cast<Nanos>(step * 1e6);
      sink.add_row(source, at, std::vector{Cell{Metric::kSteps, ++done, std::nullopt}});
    }
    meta.end = std::max(meta.end, at);
  }
  sink.set_meta(meta);
  return sink.take();
}

}  // namespace headroom::testing
