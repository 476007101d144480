// SPDX-License-Identifier: Apache-2.0
// SYNTHETIC data of 8 GPUs x 20 metrics at 1 Hz, on disk and back:
//   bench_store recording FOLDER HOURS ROUNDS   bytes per value; decode and explain against SELECT avg(...): JSON
//   bench_store day FILE HOURS STACKS           such a recording, with so many Python stacks a second of each job
//   bench_store csv FILE HOURS COLUMNS          the same as a log of nvidia-smi with 22 columns, or with 5
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
#include "bench/synthetic_recording.h"
#include "diagnose/explain.h"

namespace headroom::bench {

namespace {

constexpr int kGpus = 8;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

// As `headroom why` does it: what is needed of the file, then the whole explanation.
Explanation explained(const std::string& path) {
  Explanation answer = explain(read(path, {.leave_out = metrics_not_explained()}));
  if (answer.ledger.entries.empty()) give_up({.what = "the ledger is empty"});
  return answer;
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
    const double explanation = seconds_of([&] { (void)explained(path); });
    answer["rounds"].push_back({{"decode_s", decode},
                                {"explained_s", explanation},
                                {"rows_s", seconds_of([&] { (void)wide.means(); })},
                                {"tall_s", seconds_of([&] { (void)tall.means(); })}});
  }
  fmt::print("{}\n", answer.dump());
  return 0;
}

int day(const std::string& path, double hours, int stacks) {
  write_recording(path, synthetic_box(kGpus, static_cast<std::int64_t>(hours * 3600)), stacks);
  return 0;
}

// One recording for each node, as a job on all of them leaves them in a folder.
int nodes(const std::string& folder, int count, double hours, int stacks) {
  for (int node = 0; node < count; ++node)
    write_recording(fmt::format("{}/node{:02}.hrec", folder, node),
                    synthetic_box(kGpus, static_cast<std::int64_t>(hours * 3600), node * kGpus), stacks, node);
  return 0;
}

// "2025/11/05 00:00:00.120, 0": rounds of whole seconds, the GPUs of one a millisecond apart.
std::string stamp_and_index(std::int64_t second, int gpu) {
  constexpr std::chrono::sys_days kFirst = std::chrono::year{2025} / 11 / 5;
  const std::chrono::year_month_day date(kFirst + std::chrono::days(second / 86'400));
  const std::int64_t day = second % 86'400;
  return fmt::format("{}/{:02}/{:02} {:02}:{:02}:{:02}.{:03}, {}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), day / 3600, day / 60 % 60,
                     day % 60, 120 + gpu, gpu);
}

int csv(const std::string& path, double hours, bool all_columns) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) give_up({.what = path + ": cannot be written"});
  fmt::print(file, "{}\n",
             all_columns ? "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
                           "memory.total [MiB], power.draw [W], power.limit [W], temperature.gpu, temperature.memory, "
                           "clocks.current.sm [MHz], clocks.current.memory [MHz], pstate, fan.speed [%], "
                           "clocks_event_reasons.active, pcie.link.gen.current, pcie.link.width.current, "
                           "utilization.encoder [%], utilization.decoder [%], memory.reserved [MiB], "
                           "ecc.errors.uncorrected.volatile.total"
                         : "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]");
  const auto seconds = static_cast<std::int64_t>(hours * 3600);
  std::vector<SyntheticGpu> gpus;
  for (int gpu = 0; gpu < kGpus; ++gpu) gpus.emplace_back(gpu);
  for (std::int64_t second = 0; second < seconds; ++second) {
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      const SyntheticRow row = gpus[static_cast<std::size_t>(gpu)].next();
      const auto& v = row.values;
      const std::string begin = stamp_and_index(second, gpu);
      if (all_columns)
        fmt::print(file,
                   "{}, A100-80, {}, {}, {}, 81920, {}.{:02}, 400.00, {}, {}, {}, {}, P{}, {}, 0x{:016X}, {}, 16, 0, "
                   "0, 524, 0\n",
                   begin, v[0] / 100, v[1] / 100, v[2] >> 20, v[3] / 1000, v[3] / 10 % 100, v[5], v[5] + 8, v[6], v[7],
                   v[8], v[10], static_cast<std::uint64_t>(v[9]), v[19]);
      else
        fmt::print(file, "{}, {} %, {} MiB, {}.{:02} W\n", begin, v[0] / 100, v[2] >> 20, v[3] / 1000, v[3] / 10 % 100);
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
  if (mode == "day" && argc == 5) return headroom::bench::day(argv[2], std::atof(argv[3]), std::atoi(argv[4]));
  if (mode == "nodes" && argc == 6)
    return headroom::bench::nodes(argv[2], std::atoi(argv[3]), std::atof(argv[4]), std::atoi(argv[5]));
  const std::string columns = argc == 5 ? argv[4] : "";
  if (mode == "csv" && (columns == "22" || columns == "5"))
    return headroom::bench::csv(argv[2], std::atof(argv[3]), columns == "22");
  std::fputs(
      "usage: bench_store recording FOLDER HOURS ROUNDS | day FILE HOURS STACKS_PER_SECOND | csv FILE HOURS 22|5 | "
      "nodes FOLDER NODES HOURS STACKS_PER_SECOND\n",
      stderr);
  return 2;
}
