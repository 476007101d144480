// SPDX-License-Identifier: Apache-2.0
// Random recordings for property tests of the pure half; not part of the program.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "analyze/testing.h"

namespace headroom::testing {

inline double unit(std::mt19937& random) { return std::uniform_real_distribution<double>(0, 1)(random); }

inline void add_random_gpus(RecordingBuilder& builder, std::mt19937& random) {
  builder.gpu(0, [&](double) { return std::floor(unit(random) * 101) / 100; });
  builder.gpu(1, [&](double) { return unit(random) < 0.5 ? 0.0 : unit(random); });
}

inline void add_random_task(RecordingBuilder& builder, std::mt19937& random, std::int64_t pid, double at,
                            double length) {
  const double to = std::min(length, at + 15 * unit(random) * unit(random));
  std::vector<int> gpus{static_cast<int>(random() % 2)};
  if (unit(random) < 0.1) gpus = {0, 1};
  if (unit(random) < 0.1) gpus.clear();
  const char* outcome = unit(random) < 0.2 ? "failed" : unit(random) < 0.1 ? "" : "succeeded";
  const std::string name = "task" + std::to_string(random() % 20);
  const std::int64_t id = unit(random) < 0.1 ? pid - 1 : pid;  // a reused process id
  if (unit(random) < 0.6 && id == pid) {
    builder.task({name, id, gpus, at, to, unit(random), outcome});
    if (unit(random) < 0.3) builder.process(10'000 + pid, id, at, to, 1.0).context(10'000 + pid, 0, at, to);
  } else {
    builder.attempt({name, id, gpus, at, to, outcome});
  }
  if (unit(random) < 0.5) builder.queue(at + unit(random), static_cast<int>(random() % 2));
}

// Two GPUs under a batch: tasks of all lengths, seen or not, failing or not, one after another and side by side.
inline Recording random_batch(std::mt19937& random) {
  const double length = 20 + 40 * unit(random);
  RecordingBuilder builder(length, 0.5 + unit(random));
  add_random_gpus(builder, random);
  std::int64_t pid = 100;
  double at = unit(random);
  while (at < length) {
    add_random_task(builder, random, pid++, at, length);
    at += 4 * unit(random) * unit(random);
  }
  if (unit(random) < 0.3) builder.process({9000, 1, 0, length, 0.5, false}).context(9000, 1, 0, length);
  return builder.build();
}

inline std::vector<std::string> random_stack(std::mt19937& random) {
  const std::vector<std::string> frames{"train (/u/train.py:1)",
                                        "validate (/u/train.py:9)",
                                        "Net.forward (/u/net.py:2)",
                                        "fetch (/x/site-packages/torch/utils/data/_utils/fetch.py:1)",
                                        "save (/x/site-packages/torch/serialization.py:1)",
                                        "synchronize (/x/site-packages/torch/cuda/__init__.py:1)",
                                        "wait (/usr/lib/python3.11/threading.py:1)",
                                        "_find_and_load (<frozen importlib._bootstrap>:1)"};
  std::vector<std::string> stack;
  for (auto n = random() % 4; n > 0; --n) stack.push_back(frames[random() % frames.size()]);
  return stack;
}

inline void lose_random_readings(Recording& recording, std::mt19937& random) {
  for (Track& track : recording.tracks)
    for (Column& column : track.columns)
      if (column.metric == Metric::kGpuUtil && unit(random) < 0.7) {
        column.absent.assign(column.values.size(), 0);
        for (auto& absent : column.absent)
          if (unit(random) < 0.2) absent = static_cast<std::uint8_t>(Absent::kDeviceLost);
      }
}

// Two GPUs, a few processes of all kinds, random utilisation, gaps and lost readings.
inline Recording random_recording(std::mt19937& random) {
  const double length = 20 + 40 * unit(random);
  RecordingBuilder builder(length, 0.5 + unit(random));
  add_random_gpus(builder, random);
  std::int64_t pid = 100;
  for (int i = 0; i < 4; ++i, ++pid) {
    const double from = unit(random) * length, to = from + unit(random) * (length - from);
    builder.process({pid, i == 0 ? 1 : 100, from, to, unit(random), unit(random) < 0.8});
    if (unit(random) < 0.8) builder.context(pid, static_cast<int>(random() % 2), from + 1, to, unit(random));
    double at = from;
    while (at < to && i % 2 == 0) {
      builder.stacks(pid, at, at + unit(random), random_stack(random), static_cast<int>(random() % 3));
      at += 4 * unit(random);
    }
  }
  Recording recording = builder.build();
  lose_random_readings(recording, random);
  return recording;
}

// The same on a machine that says less: no utilisation of a GPU, no process that can be found, a failed job, a log.
inline Recording random_machine(std::mt19937& random) {
  Recording recording = random_recording(random);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  if (one_in(3)) recording.meta.exit_code = static_cast<int>(random() % 3);
  if (one_in(4)) {  // MIG
    Track& track = recording.tracks[static_cast<std::size_t>(recording.all(SourceKind::kGpu)[random() % 2])];
    for (Column& column : track.columns)
      if (column.metric == Metric::kGpuUtil)
        column.absent.assign(column.values.size(), static_cast<std::uint8_t>(Absent::kNotSupported));
  }
  if (one_in(4))  // another pid namespace
    for (const SourceId id : recording.all(SourceKind::kGpuProcess))
      recording.sources[static_cast<std::size_t>(id)].attrs["pid"] = std::to_string(70'000 + id);
  if (one_in(4)) {  // a log of nvidia-smi
    recording.meta.origin = "import:nvidia-smi";
    for (std::size_t i = 0; i < recording.sources.size(); ++i) {
      Source& source = recording.sources[i];
      if (source.kind == SourceKind::kProcess) source.attrs["in_job"] = "false";
      if (source.kind == SourceKind::kProcess || source.kind == SourceKind::kGpuProcess) recording.tracks[i] = Track{};
      std::erase_if(recording.tracks[i].columns, [](const Column& c) { return c.metric == Metric::kComputeProcesses; });
    }
  }
  return recording;
}

inline Recording random_recording_or_batch(std::mt19937& random) {
  return random() % 2 == 0 ? random_batch(random) : random_recording(random);
}

}  // namespace headroom::testing
