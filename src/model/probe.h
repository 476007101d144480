// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The answer of `headroom probe`: how long a unit of work takes with each value of a parameter, and what follows for
// values that were not run. Mirrors the schema headroom.probe/1 (docs/schemas/probe-1.json).
namespace headroom {

// Seconds, or a factor of them, with its interval: 95 % of such hold the truth.
struct ProbedTime {
  double value = 0, low = 0, high = 0;
  bool operator==(const ProbedTime&) const = default;
};

// One run of one value: the part of it that counts.
struct ProbedRun {
  std::size_t value = 0;  // position in ProbeReport::values
  int round = 0;          // from 0
  double seconds = 0;
  double work = 0;                   // in the report's unit
  std::optional<double> busy_ratio;  // of its GPUs, meanwhile
  std::string recording;
  bool operator==(const ProbedRun&) const = default;
};

struct ProbedValue {
  std::string value;
  std::int64_t runs = 0;
  double work = 0;                         // over its runs
  std::optional<double> seconds_per_unit;  // median of its runs; absent where none ended
  std::optional<ProbedTime> level;         // of the same, interval by the rounds that all values have
  std::optional<ProbedTime> to_best;       // its time over that of the fastest; absent for the fastest
  std::optional<double> busy_ratio;        // mean over its runs
  std::string failed;                      // why it has no (further) figure; "": it has all of them
  bool operator==(const ProbedValue&) const = default;
};

// t(b) = fixed + per_sample * b: what a step takes with a batch of b samples.
struct BatchLine {
  double fixed_seconds = 0, per_sample_seconds = 0;
  std::optional<double> misfit;  // of more than two sizes: the farthest from the line, as a share of its time
  bool operator==(const BatchLine&) const = default;
};

// What a batch that was not run may gain.
struct LargerBatch {
  double from = 0, to = 0;  // samples
  ProbedTime step_seconds;  // by the line
  ProbedTime speedup;       // of the time per sample, at most: min(line, 1/busy, to/from), not below 1
  std::string bound;        // which of them it is, in the middle: "line", "busy", "sizes"
  bool operator==(const LargerBatch&) const = default;
};

struct ProbeReport {
  std::string parameter, command;
  std::string unit;  // that the times are of: "step", "sample", "run"
  int rounds = 0;    // asked for
  int complete = 0;  // of them: every value that did not fail has a run
  std::vector<ProbedValue> values;
  std::vector<ProbedRun> runs;           // in the order in which they ran
  std::optional<std::size_t> best;       // the fastest; position in `values`
  std::optional<std::size_t> runner_up;  // the next, among those with an interval
  std::optional<BatchLine> line;         // of a batch size
  std::vector<LargerBatch> larger;
  std::string stopped;  // why it ended before all was run, in words; "": it did not
  std::string resume;   // the command that goes on
  std::string folder;

  // The fastest is faster than the next by more than the noise.
  [[nodiscard]] bool decided() const {
    return runner_up && values[*runner_up].to_best && values[*runner_up].to_best->low > 1;
  }
  bool operator==(const ProbeReport&) const = default;
};

}  // namespace headroom
