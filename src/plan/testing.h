// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <functional>
#include <string_view>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "plan/plan.h"

// Explanations of which plans are made.
namespace headroom::testing {

// Of a Python program, unless it is said to be another one.
inline Explanation explained(Recording recording) {
  if (recording.meta.command.empty()) recording.meta.command = {"python3", "train.py"};
  return explain(recording);
}

inline const Option* option(const Plan& plan, std::string_view id) {
  for (const Option& one : plan.options)
    if (one.id == id) return &one;
  return nullptr;
}

// A log of one GPU: readings and nothing of processes.
inline Recording readings(double length, const std::function<double(double)>& util, double memory = 1e9) {
  MemorySink sink;
  Device device;
  device.uuid = "GPU-0";
  device.memory_total_bytes = std::int64_t{48} << 30;
  const SourceId id = sink.add_source({SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)});
  for (double t = 1; t <= length; t += 1)
    sink.add_row(id, RecordingBuilder::at(t),
                 std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util(t))),
                            cell(Metric::kMemoryUsed, static_cast<std::int64_t>(memory))});
  RecordingMeta meta;
  meta.start = RecordingBuilder::at(0);
  meta.end = RecordingBuilder::at(length);
  meta.interval = kSecond;
  meta.origin = "import:dmon";
  meta.tiers = "N";
  sink.set_meta(meta);
  return sink.take();
}

// One GPU, busy for `busy` of each second, and a job whose two loader workers run for the rest of the time.
inline Recording loader_bound(double busy, int cores, double cores_used, int workers = 2, double each = 0.95) {
  RecordingBuilder recording(100, 0.5);
  recording.gpu(0, [=](double t) { return t < 1 ? 0.0 : busy; });
  recording.machine(cores, cores_used);
  recording.process(100, 1, 0, 100, 0.02);
  for (int i = 0; i < workers; ++i) recording.process(101 + i, 100, 0.5, 100, each);
  recording.context(100, 0, 0.5, 100, busy);
  return recording.build();
}

// A job whose stacks are at one place while its GPU waits, on what nobody knows.
inline Explanation sleeping_in(double share) {
  Explanation e = explained(RecordingBuilder(10, 0.5).gpu(0, [](double) { return 0.3; }).build());
  e.meta.tiers = "NPY";
  e.findings.resize(1);
  Finding& finding = e.findings[0];
  finding.cause.reset();
  finding.candidates = {Cause::kLoggingUpload, Cause::kSlowStorage};
  finding.gain = Gain{1, 2, "if none of it kept the GPU waiting"};
  finding.advice = "make that code cheaper";
  e.ledger.places = {"send (train.py)", "other (train.py)"};
  const auto piece = [](double begin, double end, std::int32_t where) {
    return ClaimedPiece{.device = 0,
                        .begin = RecordingBuilder::at(begin),
                        .end = RecordingBuilder::at(end),
                        .account = Account::kHostCode,
                        .where = where};
  };
  finding.claims = {piece(1, 1 + 5 * share, 0), piece(1 + 5 * share, 6, 1)};
  finding.code = 0;
  return e;
}

}  // namespace headroom::testing
