// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/batch.h"
#include "model/explanation.h"
#include "model/recording.h"
#include "view/strip.h"

// What can be drawn of a recording, for the report, the terminal and the web page alike: values over time in as many
// bins as there is room for, next to the Explanation, which holds the words. A live view is a recording that has not
// ended: a view ends with the last reading, and what has no end there (tasks, processes) has none here.
namespace headroom::view {

struct Options {
  std::size_t bins = 480;         // of the strips; at least 1
  std::size_t series_bins = 240;  // of the readings; at least 1
  std::size_t most_processes = 50;
  std::size_t most_bars = 2000;  // boxes of runs on all GPUs: more share a box where there are more
};

// What was read in a bin. Nothing where `samples` is 0.
struct Range {
  float low = 0, high = 0;
  std::uint32_t samples = 0;
  bool operator==(const Range&) const = default;
};

// One metric of one GPU over the view, in the metric's unit. Bins are those of the strip's rule (bin_edge()). A bin
// keeps the lowest and the highest reading in it: a peak of one reading survives. A reading also speaks for the time
// since the one before it, so that bins finer than the readings are not empty; for three intervals at most. Readings
// that the statistics leave out (ExcludedReading) are left out here, too.
struct Series {
  Metric metric{};
  std::optional<double> whole;  // what 100 % is: 1 of a ratio, the memory installed, the power limit; else not known
  std::vector<Range> bins;
  std::optional<double> last;  // the last reading of the view
};

// One thing that comes and goes (a phase, what a finding claims) on one GPU.
struct Marks {
  std::size_t index = 0;  // into Explanation::phases or Explanation::findings
  Nanos ns = 0;           // all of its time
  std::vector<Span> spans;
};

enum class Ending : std::uint8_t { kRunning, kSucceeded, kOtherwise };  // kOtherwise: also where nobody saw it

// Runs of tasks on a GPU, as boxes of a Gantt chart. Those of one lane do not overlap.
struct Bar {
  Nanos begin = 0, end = 0;  // within the view
  std::size_t lane = 0;
  std::size_t run = 0;    // index into View::runs: the first of `count`
  std::size_t count = 1;  // short neighbours that ended alike are one box
  Ending ending = Ending::kRunning;
  bool operator==(const Bar&) const = default;
};

struct Gpu {
  std::vector<Share> ledger;  // sums to the view's span; in the order of accounts
  Strip strip;
  std::vector<Series> series;                      // utilisation, memory, power, temperature, as far as they were read
  std::optional<double> sm_clock_mhz, fan;         // the last reading of the view; fan: 1 is its maximum
  std::optional<double> pcie_sent, pcie_received;  // bytes a second: a reading, or what came between the last two
  std::vector<Marks> phases, findings;             // the longest first
  std::vector<Bar> bars;                           // by lane, then in order of time
  std::size_t lanes = 0;
  std::size_t runs_left_out = 0;  // that found no lane: more than 64 ran at once
};

// One run of one task of a batch, within the view.
struct Run {
  std::string task;
  AttemptId attempt = 0;
  std::int64_t pid = 0;                   // of its first process
  Nanos begin = 0;                        // may lie before the view
  std::optional<Nanos> end;               // absent: it runs, or nobody saw its end; may lie after the view
  std::optional<AttemptOutcome> outcome;  // likewise
  std::string reason;                     // why it ended so, in words; "" where that is not known, or it succeeded
  std::vector<std::size_t> gpus;          // positions in View::gpus
  std::optional<std::int64_t> peak_gpu_bytes;
  bool running = false;  // under way, as far as is known

  [[nodiscard]] Ending ending() const;
};

struct Process {
  std::int64_t pid = 0;
  std::string name, command;  // secrets are hidden
  bool in_job = false;
  std::optional<std::int64_t> rank;  // of one on a GPU: its number in a distributed job
  Nanos begin = 0;
  std::optional<Nanos> end;               // absent: it lives, or nobody saw its end
  std::optional<double> cores;            // mean within the view
  std::optional<double> cores_now;        // between its last two readings
  std::optional<std::int64_t> rss_bytes;  // last
  std::optional<WaitChannel> waits_in;    // of its main thread, as last seen
  struct OnGpu {
    std::size_t gpu = 0;  // position in View::gpus
    std::optional<std::int64_t> memory_bytes, peak_memory_bytes;
    std::optional<double> sm_util;  // the last reading of the share of time in which its kernels ran
    bool graphics = false;          // its context draws, and computes nothing
  };
  std::vector<OnGpu> gpus;
  std::optional<Account> account;       // of its GPU's last slice that is its time
  std::int32_t phase = -1, where = -1;  // likewise: Explanation::phases, Ledger::places
};

struct View {
  Nanos begin = 0, end = 0;        // on the recording's clock: the span of the ledger
  bool goes_on = false;            // more will come after `end`
  std::vector<Share> ledger;       // of all GPUs
  std::vector<Gpu> gpus;           // by position in Ledger::devices
  std::vector<Run> runs;           // of a batch, in order of begin
  std::vector<Process> processes;  // those on a GPU first, then by CPU time
  std::size_t processes_left_out = 0;
};

// Pure: the same view for the same recording. `explanation` is explain()'s answer for the same recording; its window is
// the view's. The cost grows with the slices, readings and runs once, not with the bins.
[[nodiscard]] View view_of(const Recording& recording, const Explanation& explanation, const Options& options = {});

}  // namespace headroom::view
