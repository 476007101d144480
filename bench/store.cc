// SPDX-License-Identifier: Apache-2.0
// SYNTHETIC data of 8 GPUs x 20 metrics at 1 Hz, on disk and back:
//   bench_store recording FOLDER HOURS ROUNDS   bytes per value; decode and explain against SELECT avg(...): JSON
//   bench_store csv FILE HOURS                  the same as a log of nvidia-smi with 22 columns
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/row_tables.h"
#include "diagnose/explain.h"
#include "record/reader.h"
#include "record/writer.h"

namespace headroom::bench {

namespace {

constexpr int kGpus = 8;
constexpr Nanos kStart = 1'000 * kSecond;  // of the machine's clock
constexpr Nanos kStartRealtime = 1'762'300'800 * kSecond;

[[noreturn]] void give_up(const Error& error) {
  fmt::print(stderr, "bench_store: {}\n", error.what);
  std::exit(1);
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void write_recording(const std::string& path, const SyntheticBox& box) {
  auto writer = Writer::create(path, {.when_full = WriterOptions::WhenFull::kWait});
  if (!writer) give_up(writer.error());
  RecordingSink& sink = **writer;
  const auto seconds = static_cast<Nanos>(box[0].size());
  sink.set_meta({.id = "0123456789abcdef",
                 .origin = "record",
                 .writer = "bench_store (synthetic)",
                 .tiers = "N",
                 .start = kStart,
                 .end = kStart + seconds * kSecond,
                 .start_realtime = kStartRealtime,
                 .interval = kSecond});
  std::vector<SourceId> ids;
  for (int gpu = 0; gpu < kGpus; ++gpu)
    ids.push_back(sink.add_source({.kind = SourceKind::kGpu,
                                   .key = fmt::format("GPU-00000000-0000-0000-0000-{:012}", gpu),
                                   .attrs = {{"index", std::to_string(gpu)},
                                             {"name", "synthetic"},
                                             {"power_limit_watts", "400"},
                                             {"memory_total_bytes", "85899345920"}}}));
  std::array<Cell, kSyntheticMetrics.size()> cells;
  for (std::size_t second = 0; second < box[0].size(); ++second) {
    for (std::size_t gpu = 0; gpu < box.size(); ++gpu) {
      const SyntheticRow& row = box[gpu][second];
      for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = {kSyntheticMetrics[i], row.values[i], std::nullopt};
      sink.add_row(ids[gpu], kStart + row.at_ns, cells);
    }
  }
  if (const auto closed = (*writer)->close(); !closed) give_up(closed.error());
}

Recording read(const std::string& path, const ReadOptions& options = {}) {
  auto recording = read_recording(path, options);
  if (!recording) give_up(recording.error());
  return std::move(*recording);
}

// Both ways must have seen the same values, or the comparison is void.
void check_same(const Recording& recording, const std::vector<double>& means) {
  for (std::size_t gpu = 0; gpu < kGpus; ++gpu) {
    for (std::size_t metric = 0; metric < kSyntheticMetrics.size(); ++metric) {
      const Column* column = recording.tracks[gpu].find(kSyntheticMetrics[metric]);
      if (column == nullptr) give_up({.what = "the recording lacks a metric"});
      double sum = 0;
      for (const std::int64_t value : column->values) sum += static_cast<double>(value);
      const double mean = sum / static_cast<double>(column->values.size());
      const double other = means.at(gpu * kSyntheticMetrics.size() + metric);
      if (std::abs(mean - other) > 1e-6 * std::abs(mean) + 1e-6) give_up({.what = "the means differ"});
    }
  }
}

int recording(const std::string& folder, double hours, int rounds) {
  const SyntheticBox box = synthetic_box(kGpus, static_cast<std::int64_t>(hours * 3600));
  const std::string path = folder + "/synthetic.hrec";
  nlohmann::json answer;
  answer["write_s"] = seconds_of([&] { write_recording(path, box); });
  const std::string wide_path = folder + "/rows.sqlite", tall_path = folder + "/values.sqlite";
  const RowTable wide(wide_path, Layout::kRowPerInstant, box);
  const RowTable tall(tall_path, Layout::kRowPerValue, box);
  const double values = static_cast<double>(box[0].size() * box.size() * kSyntheticMetrics.size());
  answer["values"] = values;
  answer["hrec_bytes_per_value"] = static_cast<double>(std::filesystem::file_size(path)) / values;
  answer["rows_bytes_per_value"] = static_cast<double>(std::filesystem::file_size(wide_path)) / values;
  answer["tall_bytes_per_value"] = static_cast<double>(std::filesystem::file_size(tall_path)) / values;
  const Recording decoded = read(path);
  check_same(decoded, wide.means());
  check_same(decoded, tall.means());
  for (int round = 0; round < rounds; ++round) {
    std::unique_ptr<Recording> again;
    const double decode = seconds_of([&] { again = std::make_unique<Recording>(read(path)); });
    again.reset();
    const double explained = seconds_of([&] {  // as `headroom why` does it
      const Recording wanted = read(path, {.leave_out = metrics_not_explained()});
      if (explain(wanted).ledger.entries.empty()) give_up({.what = "the ledger is empty"});
    });
    answer["rounds"].push_back({{"decode_s", decode},
                                {"explained_s", explained},
                                {"rows_s", seconds_of([&] { (void)wide.means(); })},
                                {"tall_s", seconds_of([&] { (void)tall.means(); })}});
  }
  fmt::print("{}\n", answer.dump());
  return 0;
}

int csv(const std::string& path, double hours) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) give_up({.what = path + ": cannot be written"});
  fmt::print(file,
             "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
             "memory.total [MiB], power.draw [W], power.limit [W], temperature.gpu, temperature.memory, "
             "clocks.current.sm [MHz], clocks.current.memory [MHz], pstate, fan.speed [%], "
             "clocks_event_reasons.active, pcie.link.gen.current, pcie.link.width.current, utilization.encoder [%], "
             "utilization.decoder [%], memory.reserved [MiB], ecc.errors.uncorrected.volatile.total\n");
  const auto seconds = static_cast<std::int64_t>(hours * 3600);
  std::vector<SyntheticGpu> gpus;
  for (int gpu = 0; gpu < kGpus; ++gpu) gpus.emplace_back(gpu);
  for (std::int64_t second = 0; second < seconds; ++second) {
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      const SyntheticRow row = gpus[static_cast<std::size_t>(gpu)].next();
      const auto& v = row.values;
      const std::int64_t day = second % 86'400;
      fmt::print(file,
                 "2025/11/{:02} {:02}:{:02}:{:02}.{:03}, {}, A100-80, {}, {}, {}, 81920, {}.{:02}, "
                 "400.00, {}, {}, {}, {}, P{}, {}, 0x{:016X}, {}, 16, 0, 0, 524, 0\n",
                 5 + second / 86'400, day / 3600, day / 60 % 60, day % 60, 120 + gpu, gpu, v[0] / 100, v[1] / 100,
                 v[2] >> 20, v[3] / 1000, v[3] / 10 % 100, v[5], v[5] + 8, v[6], v[7], v[8], v[10],
                 static_cast<std::uint64_t>(v[9]), v[19]);
    }
  }
  return std::fclose(file) == 0 ? 0 : 1;
}

}  // namespace

}  // namespace headroom::bench

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "recording" && argc == 5)
    return headroom::bench::recording(argv[2], std::atof(argv[3]), std::atoi(argv[4]));
  if (mode == "csv" && argc == 4) return headroom::bench::csv(argv[2], std::atof(argv[3]));
  std::fputs("usage: bench_store recording FOLDER HOURS ROUNDS | csv FILE HOURS\n", stderr);
  return 2;
}
