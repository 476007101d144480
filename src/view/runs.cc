// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analyze/attempts.h"
#include "view/parts.h"

namespace headroom::view {

Ending Run::ending() const {
  if (running) return Ending::kRunning;
  return outcome == AttemptOutcome::kSucceeded ? Ending::kSucceeded : Ending::kOtherwise;
}

std::vector<Run> runs_of(const Recording& recording, const Ledger& ledger, const std::vector<SourceId>& gpus) {
  std::vector<Run> runs;
  const BatchView batch = batch_view(recording);
  for (const TaskAttempt& attempt : batch.attempts) {
    if (attempt.begin >= ledger.end || attempt.end <= ledger.begin) continue;
    Run run;
    run.task = batch.tasks[static_cast<std::size_t>(attempt.task)];
    run.attempt = attempt.id;
    run.pid = attempt.pid;
    run.begin = attempt.begin;
    if (attempt.outcome) run.end = attempt.end;
    run.outcome = attempt.outcome;
    run.reason = attempt.reason;
    run.running = attempt.running;
    run.peak_gpu_bytes = attempt.peak_gpu_bytes;
    for (const SourceId device : attempt.devices)
      if (const auto known = std::find(gpus.begin(), gpus.end(), device); known != gpus.end())
        run.gpus.push_back(static_cast<std::size_t>(known - gpus.begin()));
    runs.push_back(std::move(run));
  }
  return runs;
}

namespace {

constexpr std::size_t kMostLanes = 64;

class Lanes {
 public:
  explicit Lanes(Nanos least) : least_(least) {}

  // False: all lanes are taken.
  bool add(Bar bar) {
    for (std::size_t lane = 0; lane < kMostLanes; ++lane) {
      if (lane == lanes_.size()) lanes_.emplace_back();
      std::vector<Bar>& bars = lanes_[lane];
      if (!bars.empty() && bars.back().end > bar.begin) continue;
      bar.lane = lane;
      if (!bars.empty() && joins(bars.back(), bar)) {
        bars.back().end = bar.end;
        ++bars.back().count;
      } else {
        bars.push_back(bar);
      }
      return true;
    }
    return false;
  }

  void put(Gpu& gpu) {
    gpu.lanes = lanes_.size();
    gpu.bars.clear();
    for (const std::vector<Bar>& bars : lanes_) gpu.bars.insert(gpu.bars.end(), bars.begin(), bars.end());
  }

 private:
  [[nodiscard]] bool joins(const Bar& last, const Bar& bar) const {
    const auto is_short = [&](const Bar& one) { return one.count > 1 || one.end - one.begin < least_; };
    return last.ending == bar.ending && is_short(last) && is_short(bar) && bar.begin - last.end < least_;
  }

  Nanos least_;
  std::vector<std::vector<Bar>> lanes_;
};

void add_bars_of(const View& view, std::size_t position, Nanos least, Gpu& gpu) {
  Lanes lanes(least);
  gpu.runs_left_out = 0;
  for (std::size_t i = 0; i < view.runs.size(); ++i) {
    const Run& run = view.runs[i];
    if (std::find(run.gpus.begin(), run.gpus.end(), position) == run.gpus.end()) continue;
    Bar bar;
    bar.begin = std::max(view.begin, run.begin);
    bar.end = std::min(view.end, run.end.value_or(view.end));
    bar.run = i;
    bar.ending = run.ending();
    if (!lanes.add(bar)) ++gpu.runs_left_out;
  }
  lanes.put(gpu);
}

}  // namespace

void add_bars(View& view, Nanos least, std::size_t most) {
  for (;; least *= 2) {
    std::size_t bars = 0;
    for (std::size_t position = 0; position < view.gpus.size(); ++position) {
      add_bars_of(view, position, least, view.gpus[position]);
      bars += view.gpus[position].bars.size();
    }
    if (bars <= most || least <= 0 || least > view.end - view.begin) return;
  }
}

}  // namespace headroom::view
