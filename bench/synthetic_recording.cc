// SPDX-License-Identifier: Apache-2.0
#include "bench/synthetic_recording.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/entities.h"
#include "record/writer.h"

namespace headroom::bench {

namespace {

constexpr Nanos kStart = 1'000 * kSecond;  // of the machine's clock
constexpr Nanos kStartRealtime = 1'762'300'800 * kSecond;

// The one process of a GPU, and what its main thread is at.
class SyntheticJob {
 public:
  SyntheticJob(RecordingSink& sink, int gpu, SourceId device, int stacks_per_second)
      : sink_(sink), rate_(stacks_per_second), random_(static_cast<std::uint64_t>(gpu) + 100) {
    const std::int64_t pid = 1000 + gpu;
    Process facts;
    facts.pid = pid;
    facts.ppid = 1;
    facts.start = kStart;
    facts.comm = "python3";
    facts.in_job = true;
    process_ = sink.add_source({SourceKind::kProcess, fmt::format("{}/{}", pid, kStart), kNoSource, to_attrs(facts)});
    context_ = sink.add_source({SourceKind::kGpuProcess, fmt::format("{}/{}/{}", gpu, pid, kStart), device,
                                to_attrs(GpuContext{pid, ContextKind::kCompute, kStart})});
    thread_ = sink.add_source({SourceKind::kPythonThread,
                               fmt::format("{}/{}/{}", pid, kStart, pid),
                               process_,
                               {{"main", "true"}, {"pid", std::to_string(pid)}, {"tid", std::to_string(pid)}}});
    for (int i = 0; i < kTraining; ++i)
      training_.push_back(list({"<module> (train.py:1)", "main (train.py:40)", "train_one_epoch (train.py:88)",
                                fmt::format("forward (layers/block{}.py:{})", i / 4, 10 + i),
                                "_call_impl (torch/nn/modules/module.py:1500)"}));
    waiting_ = list({"<module> (train.py:1)", "main (train.py:40)", "train_one_epoch (train.py:88)",
                     "__next__ (torch/utils/data/dataloader.py:620)", "_get_data (torch/utils/data/dataloader.py:1130)",
                     "wait (multiprocessing/connection.py:900)"});
    for (int i = 0; i < kPause; ++i)
      pause_.push_back(
          list({"<module> (train.py:1)", "main (train.py:40)", fmt::format("confusion (metrics.py:{})", 20 + 7 * i)}));
  }

  void second(Nanos at, bool busy) {
    cpu_ += busy ? 600 * kMillisecond : 990 * kMillisecond;
    sink_.add_row(process_, at,
                  std::vector<Cell>{{Metric::kCpuUser, cpu_, std::nullopt},
                                    {Metric::kCpuSystem, 0, std::nullopt},
                                    {Metric::kMainCpu, cpu_, std::nullopt},
                                    {Metric::kProcessState, 'R', std::nullopt}});
    sink_.add_row(context_, at, std::vector<Cell>{{Metric::kProcessGpuMemory, std::int64_t{30} << 30, std::nullopt}});
    for (int i = 1; i <= rate_; ++i) {
      const auto draw = random_();
      const ListId list = !busy            ? pause_[draw % pause_.size()]
                          : draw % 16 == 0 ? waiting_
                                           : training_[draw / 16 % training_.size()];
      sink_.add_list_row(thread_, {.at = at - kSecond + i * kSecond / rate_, .list = list, .value = 1});
    }
  }

 private:
  static constexpr int kTraining = 40, kPause = 8;

  ListId list(const std::vector<std::string>& frames) {
    std::vector<TextId> texts;
    for (const std::string& frame : frames) texts.push_back(sink_.intern(frame));
    return sink_.intern_list(texts);
  }

  RecordingSink& sink_;
  int rate_;
  std::mt19937_64 random_;
  SourceId process_ = kNoSource, context_ = kNoSource, thread_ = kNoSource;
  std::vector<ListId> training_, pause_;
  ListId waiting_ = kNoList;
  Nanos cpu_ = 0;
};

}  // namespace

void give_up(const Error& error) {
  fmt::print(stderr, "bench_store: {}\n", error.what);
  std::exit(1);
}

void write_recording(const std::string& path, const SyntheticBox& box, int stacks_per_second, int node) {
  auto writer = Writer::create(path, {.when_full = WriterOptions::WhenFull::kWait});
  if (!writer) give_up(writer.error());
  RecordingSink& sink = **writer;
  const auto seconds = static_cast<Nanos>(box[0].size());
  const bool stacks = stacks_per_second > 0;
  sink.set_meta({.id = fmt::format("{:016x}", 0x0123456789abcdef + node),
                 .origin = stacks ? "run" : "record",
                 .writer = "bench_store (synthetic)",
                 .host = fmt::format("node{:02}", node),
                 .boot_id = fmt::format("boot{:02}", node),
                 .stop_reason = "job_ended",
                 .command = {"python3", "train.py"},
                 .tiers = stacks ? "NPY" : "N",
                 .start = kStart,
                 .end = kStart + seconds * kSecond,
                 .start_realtime = kStartRealtime,
                 .interval = kSecond});
  std::vector<SourceId> ids;
  std::vector<SyntheticJob> jobs;
  for (int gpu = 0; gpu < static_cast<int>(box.size()); ++gpu) {
    ids.push_back(sink.add_source({.kind = SourceKind::kGpu,
                                   .key = fmt::format("GPU-00000000-0000-0000-{:04}-{:012}", node, gpu),
                                   .attrs = {{"index", std::to_string(gpu)},
                                             {"name", "synthetic"},
                                             {"power_limit_watts", "400"},
                                             {"memory_total_bytes", "85899345920"}}}));
    if (stacks) jobs.emplace_back(sink, gpu, ids.back(), stacks_per_second);
  }
  std::array<Cell, kSyntheticMetrics.size()> cells;
  for (std::size_t second = 0; second < box[0].size(); ++second) {
    for (std::size_t gpu = 0; gpu < box.size(); ++gpu) {
      const SyntheticRow& row = box[gpu][second];
      for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = {kSyntheticMetrics[i], row.values[i], std::nullopt};
      sink.add_row(ids[gpu], kStart + row.at_ns, cells);
      if (stacks) jobs[gpu].second(kStart + static_cast<Nanos>(second + 1) * kSecond, row.values[0] > 0);
    }
  }
  if (const auto closed = (*writer)->close(); !closed) give_up(closed.error());
}

Recording read(const std::string& path, const ReadOptions& options) {
  auto recording = read_recording(path, options);
  if (!recording) give_up(recording.error());
  return std::move(*recording);
}

}  // namespace headroom::bench
