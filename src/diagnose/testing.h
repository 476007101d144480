// SPDX-License-Identifier: Apache-2.0
// What tests ask of an explanation.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/testing.h"
#include "model/explanation.h"

namespace headroom {

// The first finding that names this cause and no other.
inline const Finding* find_single(const Explanation& e, Cause cause) {
  const auto found =
      std::find_if(e.findings.begin(), e.findings.end(), [&](const Finding& f) { return f.cause == cause; });
  return found == e.findings.end() ? nullptr : &*found;
}

// Alone or among others.
inline bool names(const Finding& finding, Cause cause) {
  return finding.cause == cause ||
         std::find(finding.candidates.begin(), finding.candidates.end(), cause) != finding.candidates.end();
}

// The first finding that names this cause, alone or among others.
inline const Finding* find(const Explanation& e, Cause cause) {
  const auto found =
      std::find_if(e.findings.begin(), e.findings.end(), [&](const Finding& f) { return names(f, cause); });
  return found == e.findings.end() ? nullptr : &*found;
}

// Of a check that there is.
inline const HealthCheck& check(const Explanation& e, std::string_view name) {
  return *std::find_if(e.health.begin(), e.health.end(), [&](const auto& c) { return c.check == name; });
}

// A log without any process: only the readings of one GPU, tier N.
inline Recording log_of(double length, double interval, const std::function<double(double)>& util) {
  testing::RecordingBuilder builder(length, interval);
  Device device;
  device.uuid = "GPU-0";
  const SourceId id = builder.sink().add_source({SourceKind::kGpu, "GPU-0", kNoSource, to_attrs(device)});
  builder.meta().origin = "import:dmon";
  builder.meta().tiers = "N";
  for (double t = interval; t <= length + 1e-9; t += interval)
    builder.sink().add_row(id, testing::RecordingBuilder::at(t),
                           std::array{testing::cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util(t)))});
  return builder.build();
}

// Sets a metric of a source's rows by its time in seconds.
inline Recording with(Recording recording, SourceKind kind, std::size_t nth, Metric metric,
                      const std::function<double(double)>& value) {
  const auto id = static_cast<std::size_t>(recording.all(kind)[nth]);
  Track& track = recording.tracks[id];
  Column column{metric, {}, {}};
  for (const Nanos at : track.at) column.values.push_back(from_unit(metric, value(seconds(at - recording.meta.start))));
  std::erase_if(track.columns, [&](const Column& old) { return old.metric == metric; });
  track.columns.push_back(std::move(column));
  return recording;
}

using Frames = std::vector<std::string>;
inline const Frames kKernels{"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"};
inline const Frames kReceives{"train (/u/train.py:1)", "exchange (/u/train.py:7)",
                              "Connection.recv (/usr/lib/python3.11/multiprocessing/connection.py:1)"};

}  // namespace headroom
