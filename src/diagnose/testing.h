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
#include "model/named_causes.h"

namespace headroom {

// The first finding that names this cause and no other.
inline const Finding* find_single(const Explanation& e, Cause cause) {
  const auto found =
      std::find_if(e.findings.begin(), e.findings.end(), [&](const Finding& f) { return f.cause == cause; });
  return found == e.findings.end() ? nullptr : &*found;
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
  for (int i = 1; i * interval <= length + 1e-9; ++i) {
    const double t = i * interval;
    builder.sink().add_row(id, testing::RecordingBuilder::at(t),
                           std::array{testing::cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util(t)))});
  }
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

inline std::string everything(const Explanation& e) {
  std::string text = e.headline;
  for (const Finding& finding : e.findings) {
    text += "\n" + finding.title + "\n" + finding.bound + "\n" + finding.advice;
    for (const auto* list : {&finding.evidence, &finding.told_apart_from})
      for (const std::string& line : *list) text += "\n" + line;
  }
  for (const HealthCheck& one : e.health) text += "\n" + one.evidence;
  return text;
}

// What a log says of one GPU per second.
struct LogRow {
  std::optional<double> util = std::nullopt, memory_util = std::nullopt, watts = std::nullopt, memory = std::nullopt;
  Absent why = Absent::kNotSupported;
  std::optional<double> sm_active = std::nullopt, dram_active = std::nullopt, engine_active = std::nullopt;
};

inline Recording log_of_gpus(const std::vector<std::function<LogRow(double)>>& gpus, double length) {
  testing::RecordingBuilder builder(length);
  builder.meta().origin = "import:nvidia-smi";
  builder.meta().tiers = "N";
  int index = 0;
  for (const auto& gpu : gpus) {
    Device device;
    device.index = index;
    device.uuid = "GPU-" + std::to_string(index++);
    device.memory_total_bytes = std::int64_t{48} << 30;
    const SourceId id = builder.sink().add_source({SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)});
    for (int t = 1; t <= length; ++t) {
      const LogRow row = gpu(t);
      const auto read = [&](Metric metric, const std::optional<double>& value) -> Cell {
        if (value) return testing::cell(metric, from_unit(metric, *value));
        return {metric, 0, row.why};
      };
      builder.sink().add_row(
          id, testing::RecordingBuilder::at(t),
          std::array{read(Metric::kGpuUtil, row.util), read(Metric::kMemoryUtil, row.memory_util),
                     read(Metric::kPower, row.watts), read(Metric::kMemoryUsed, row.memory),
                     read(Metric::kSmActive, row.sm_active), read(Metric::kDramActive, row.dram_active),
                     read(Metric::kGraphicsActive, row.engine_active)});
    }
  }
  return builder.build();
}

inline LogRow working(double util) { return {util, 0.4, 350, 12e9}; }

}  // namespace headroom
