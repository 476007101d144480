// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "base/time.h"

// What tasks took in earlier batches, per command and GPU model: which are long is worth knowing before they start.
// A small file of JSON lines that batches share; a damaged line is left out and counted, never an error.
namespace headroom::batch {

// Durations as a running mean and variance of their logarithms: durations spread by factors, not by seconds.
struct DurationStat {
  std::int64_t count = 0;
  double log_mean = 0;  // of seconds
  double log_variance = 0;
  bool operator==(const DurationStat&) const = default;
};
// The n-th duration counts 1/n, but never less than a tenth: what changed is believed after a few runs.
void update(DurationStat& stat, Nanos duration);

struct Expectation {
  Nanos expected = 0, low = 0, high = 0;  // an interval of four in five; wide after one run
  std::int64_t count = 0;                 // runs it rests on
  bool same_task = false;                 // false: of other tasks of the command
};
[[nodiscard]] std::optional<Expectation> expectation(const DurationStat& stat);

// Of a task's time, on the average of its life.
struct Shares {
  std::optional<double> gpu_util_ratio, cores;
};

// What one finished task showed, of itself alone (without those beside it). What is absent was not seen.
struct Observation {
  std::string command;    // TaskSpec::command_template
  std::string gpu_model;  // "": a task without a GPU
  std::string task;       // duration_key()
  Nanos duration = 0;
  bool alone = false;  // it had its GPUs to itself from its start to its end: `duration` is what it took
  std::optional<std::int64_t> peak_gpu_bytes;
  std::optional<double> gpu_util_ratio, cores, seconds_per_step;
  std::optional<Nanos> startup;
  Shares of_group_alone = {};  // by the tasks of its command that were alone in the same batch
};

// All tasks of a command on a GPU model.
struct CommandHistory {
  std::string command, gpu_model;
  DurationStat duration;
  std::optional<std::int64_t> peak_gpu_bytes;                                      // largest of all
  std::optional<double> gpu_util_ratio, cores, seconds_per_step, startup_seconds;  // running means
  std::int64_t last_seen_seconds = 0;                                              // Unix time
};

class History {
 public:
  // Of the text of a history file; `damaged` counts the lines left out.
  [[nodiscard]] static History parse(std::string_view text);
  // A file that is not there, or not readable, is an empty history.
  [[nodiscard]] static History load(const std::string& path);
  [[nodiscard]] std::int64_t damaged() const { return damaged_; }

  // How long the task took, or where it never ran, how long tasks of its command did.
  [[nodiscard]] std::optional<Expectation> expected(const std::string& command, const std::string& gpu_model,
                                                    const std::string& task) const;
  // How long this very task took when it had its GPUs to itself; files of earlier versions do not tell.
  [[nodiscard]] std::optional<Nanos> took_alone(const std::string& command, const std::string& gpu_model,
                                                const std::string& task) const;
  [[nodiscard]] const CommandHistory* find(const std::string& command, const std::string& gpu_model) const;
  [[nodiscard]] std::vector<CommandHistory> commands() const;  // latest first

  void add(const Observation& seen, std::int64_t now_seconds);
  // Adds what was observed since the last save to the file, which other batches may have written meanwhile.
  [[nodiscard]] Result<void> save(const std::string& path);
  [[nodiscard]] std::string text() const;  // the newest 2,000 commands and 50,000 tasks

 private:
  struct Task {
    DurationStat duration, alone;  // of all runs, and of those alone only
    std::int64_t last_seen_seconds = 0;
  };
  void apply(const Observation& seen, std::int64_t now_seconds);
  bool read_line(std::string_view line);

  std::map<std::pair<std::string, std::string>, CommandHistory> commands_;   // command, GPU model
  std::map<std::tuple<std::string, std::string, std::string>, Task> tasks_;  // and task
  std::vector<std::pair<Observation, std::int64_t>> unsaved_;
  std::int64_t damaged_ = 0;
};

}  // namespace headroom::batch
