// SPDX-License-Identifier: Apache-2.0
// Random recordings for property tests of the pure half; not part of the program.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "analyze/testing.h"

namespace headroom::testing {

// Two GPUs under a batch: tasks of all lengths, seen or not, failing or not, one after another and side by side.
inline Recording random_batch(std::mt19937& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  const double length = 20 + 40 * unit(random);
  RecordingBuilder builder(length, 0.5 + unit(random));
  builder.gpu(0, [&](double) { return std::floor(unit(random) * 101) / 100; });
  builder.gpu(1, [&](double) { return unit(random) < 0.5 ? 0.0 : unit(random); });
  std::int64_t pid = 100;
  for (double at = unit(random); at < length; at += 4 * unit(random) * unit(random), ++pid) {
    const double to = std::min(length, at + 15 * unit(random) * unit(random));
    std::vector<int> gpus{static_cast<int>(random() % 2)};
    if (unit(random) < 0.1) gpus = {0, 1};
    if (unit(random) < 0.1) gpus.clear();
    const char* outcome = unit(random) < 0.2 ? "failed" : unit(random) < 0.1 ? "" : "succeeded";
    const std::string name = "task" + std::to_string(random() % 20);
    const std::int64_t id = unit(random) < 0.1 ? pid - 1 : pid;  // a reused process id
    if (unit(random) < 0.6 && id == pid) {
      builder.task(name, id, gpus, at, to, unit(random), outcome);
      if (unit(random) < 0.3) builder.process(10'000 + pid, id, at, to, 1.0).context(10'000 + pid, 0, at, to);
    } else {
      builder.attempt(name, id, gpus, at, to, outcome);
    }
    if (unit(random) < 0.5) builder.queue(at + unit(random), static_cast<int>(random() % 2));
  }
  if (unit(random) < 0.3) builder.process(9000, 1, 0, length, 0.5, false).context(9000, 1, 0, length);
  return builder.build();
}

// Two GPUs, a few processes of all kinds, random utilisation, gaps and lost readings.
inline Recording random_recording(std::mt19937& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  const double length = 20 + 40 * unit(random);
  RecordingBuilder builder(length, 0.5 + unit(random));
  builder.gpu(0, [&](double) { return std::floor(unit(random) * 101) / 100; });
  builder.gpu(1, [&](double) { return unit(random) < 0.5 ? 0.0 : unit(random); });
  std::int64_t pid = 100;
  for (int i = 0; i < 4; ++i, ++pid) {
    const double from = unit(random) * length, to = from + unit(random) * (length - from);
    builder.process(pid, i == 0 ? 1 : 100, from, to, unit(random), unit(random) < 0.8);
    if (unit(random) < 0.8) builder.context(pid, static_cast<int>(random() % 2), from + 1, to, unit(random));
  }
  Recording recording = builder.build();
  for (Track& track : recording.tracks)  // lose readings at random
    for (Column& column : track.columns)
      if (column.metric == Metric::kGpuUtil && unit(random) < 0.7) {
        column.absent.assign(column.values.size(), 0);
        for (auto& absent : column.absent)
          if (unit(random) < 0.2) absent = static_cast<std::uint8_t>(Absent::kDeviceLost);
      }
  return recording;
}

inline Recording random_recording_or_batch(std::mt19937& random) {
  return random() % 2 == 0 ? random_batch(random) : random_recording(random);
}

}  // namespace headroom::testing
