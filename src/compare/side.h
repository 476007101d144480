// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/figure.h"

// One side of a comparison, as plain values: from a recording, from a batch's journal, or from the repeats of `ab`.
namespace headroom::compare {

using Parameters = std::vector<std::pair<std::string, std::string>>;
using Figures = std::vector<std::pair<std::string, double>>;
// To the figure of that name.
inline void add(Figures& figures, const std::string& name, double value) {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const auto& one) { return one.first == name; });
  if (found != figures.end())
    found->second += value;
  else
    figures.emplace_back(name, value);
}

// A value of a metric, and how much was done by then, where it was counted.
struct MetricPoint {
  std::string name;
  double value = 0;
  std::optional<double> steps, seen;
};

// One run: a whole recording, an attempt at a batch's task, a repeat of `ab`.
struct Sample {
  std::string task;                   // what ran: samples of both sides with the same text ran the same task
  double begin = 0, end = 0;          // Unix seconds; on a clock that both sides share
  std::optional<double> steps, seen;  // steps done, and samples (images, rows) seen, where it counts them
  bool steps_of_lines = false;        // lines of its output counted them: at least so many were done
  std::string outcome = "succeeded";  // or how it ended instead: "failed", "timed_out", …
  std::string why;                    // it ended so, where a batch says so
  std::vector<std::string> gpus;      // that a batch gave it: UUIDs, or "GPU 0" where they are known by number
  Parameters asked, resolved;         // as the command says, and as the program settled on
  std::optional<Parameters>
      variables;                       // of its environment (model/job_variables.h), but for placement; absent: unknown
  Figures metrics;                     // that it printed: a loss, an accuracy; the last values
  std::vector<MetricPoint> points;     // all values, in order of time, where they were recorded
  bool unseen = false;                 // a task that had a GPU and that nobody saw there
  std::optional<std::int64_t> repeat;  // which pair it belongs to, where who ran it made pairs

  [[nodiscard]] double seconds() const { return end - begin; }
};

// Between two counts of one run: the time, and the steps and samples done in it. In order of time, without gaps.
struct Stretch {
  double seconds = 0, steps = 0;
  std::optional<double> seen;
};

struct Hardware {
  std::vector<std::string> gpus, uuids;  // models and UUIDs of those that were used; empty: not known
  std::string driver;                    // "": not known
  std::optional<double> cores;           // that it might use
};

struct BatchTask {
  std::string key;   // as Sample::task
  std::string name;  // as its batch calls it
};

// The request of the last run of a batch, so that it can be repeated.
struct BatchAsked {
  std::string words;        // after "headroom batch", as a shell takes them: without folder, GPUs, chosen tasks, "-"
  std::string folder;       // that it was given in, absolute
  bool from_stdin = false;  // its tasks came from there
  bool all_of_it = true;    // no tasks were chosen by --only
  std::vector<BatchTask> tasks;  // that it named
};

struct Side {
  std::string label;         // as a person named it
  std::string command;       // of one of its runs, as a shell takes it; "": not known
  std::string folder;        // that it ran in, absolute; "": not known
  std::string virtual_gpus;  // the command that makes those it ran on, "headroom sim …"; "": real ones, or not known
  std::optional<BatchAsked> batch;
  std::vector<Sample> samples;  // all that ran, not only what the other side ran, too
  std::vector<Stretch> steps;   // of one run, where its steps are counted
  Hardware hardware;
  std::optional<double> others;           // share of the GPUs' time in which kernels of others ran
  std::optional<std::int64_t> processes;  // of the job that held one GPU at once, at the most
  std::optional<double> others_bytes;     // of GPU memory that a process of others held, at the most
  std::string throttled;                  // the evidence that the GPU's clocks were lowered; "": none seen
  std::optional<double> bytes_read;       // fetched from storage
  Figures accounts, phases;               // of the ledger: device-seconds over all samples
  std::int64_t short_phases = 0;          // that have no time of their own there
  std::vector<Figure> figures;            // of each run (compare/requirements.h)
};

}  // namespace headroom::compare
