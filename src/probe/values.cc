// SPDX-License-Identifier: Apache-2.0
#include "probe/values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/distributions.h"
#include "base/median.h"

namespace headroom::probe {

namespace {

constexpr double kOutside = 0.05;  // of the intervals

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Logarithms of the times, of the values that have runs, over the rounds that all of them have.
struct Table {
  std::vector<std::size_t> values;        // positions in the report
  std::vector<std::vector<double>> logs;  // by value, then round
  [[nodiscard]] std::size_t rounds() const { return logs.empty() ? 0 : logs.front().size(); }
};

const ProbedRun* run_of(const ProbeReport& report, std::size_t value, int round) {
  const auto found = std::find_if(report.runs.begin(), report.runs.end(), [&](const ProbedRun& run) {
    return run.value == value && run.round == round && run.work > 0 && run.seconds > 0;
  });
  return found == report.runs.end() ? nullptr : &*found;
}

Table table_of(const ProbeReport& report) {
  Table table;
  int last = -1;
  for (const ProbedRun& run : report.runs) last = std::max(last, run.round);
  for (std::size_t value = 0; value < report.values.size(); ++value)
    if (report.values[value].failed.empty() && report.values[value].seconds_per_unit) table.values.push_back(value);
  table.logs.resize(table.values.size());
  for (int round = 0; round <= last; ++round) {
    std::vector<const ProbedRun*> runs;
    for (const std::size_t value : table.values) runs.push_back(run_of(report, value, round));
    if (std::find(runs.begin(), runs.end(), nullptr) != runs.end()) continue;
    for (std::size_t i = 0; i < runs.size(); ++i) table.logs[i].push_back(std::log(runs[i]->seconds / runs[i]->work));
  }
  return table;
}

std::optional<Noise> noise_of(const Table& table) {
  const std::size_t values = table.values.size(), rounds = table.rounds();
  if (values < 2 || rounds < 2) return std::nullopt;
  std::vector<double> of_value, of_round(rounds);
  for (const auto& logs : table.logs) of_value.push_back(mean(logs));
  for (std::size_t round = 0; round < rounds; ++round)
    for (const auto& logs : table.logs) of_round[round] += logs[round] / static_cast<double>(values);
  const double all = mean(of_value);
  double squares = 0;
  for (std::size_t value = 0; value < values; ++value)
    for (std::size_t round = 0; round < rounds; ++round) {
      const double rest = table.logs[value][round] - of_value[value] - of_round[round] + all;
      squares += rest * rest;
    }
  const auto degrees = static_cast<int>((values - 1) * (rounds - 1));
  return Noise{.deviation = std::sqrt(squares / degrees), .degrees = degrees, .rounds = static_cast<int>(rounds)};
}

ProbedTime interval(double log, double half) { return {std::exp(log), std::exp(log - half), std::exp(log + half)}; }

void sum_up(ProbeReport& report) {
  for (std::size_t i = 0; i < report.values.size(); ++i) {
    ProbedValue& value = report.values[i];
    std::vector<double> times, busy;
    for (const ProbedRun& run : report.runs) {
      if (run.value != i || !(run.work > 0)) continue;
      value.runs += 1;
      value.work += run.work;
      times.push_back(run.seconds / run.work);
      if (run.busy_ratio) busy.push_back(*run.busy_ratio);
    }
    if (!times.empty()) value.seconds_per_unit = median(times);
    if (!busy.empty()) value.busy_ratio = mean(busy);
  }
}

}  // namespace

std::optional<Noise> noise_of(const ProbeReport& report) { return noise_of(table_of(report)); }

void evaluate(ProbeReport& report) {
  sum_up(report);
  const Table table = table_of(report);
  report.complete = static_cast<int>(table.rounds());
  const auto noise = noise_of(table);
  if (!noise) return;
  const double root = std::sqrt(static_cast<double>(noise->rounds));
  const double of_level = student_t(noise->degrees, kOutside) * noise->deviation / root;
  const auto others = static_cast<double>(table.values.size() - 1);
  const double of_ratio = student_t(noise->degrees, kOutside / others) * noise->deviation * std::sqrt(2.0) / root;
  std::vector<std::size_t> order(table.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return mean(table.logs[a]) < mean(table.logs[b]); });
  const double fastest = mean(table.logs[order[0]]);
  for (std::size_t i = 0; i < order.size(); ++i) {
    ProbedValue& value = report.values[table.values[order[i]]];
    const double log = mean(table.logs[order[i]]);
    value.level = interval(log, of_level);
    if (i > 0) value.to_best = interval(log - fastest, of_ratio);
  }
  report.best = table.values[order[0]];
  report.runner_up = table.values[order[1]];
}

namespace {

// How much further a median of few runs lies from the truth than their mean (normal noise, many runs).
constexpr double kMedian = 1.2533;

struct Sums {
  double n = 0, batch = 0, step = 0, spread = 0, together = 0;  // means, and sums of products around them
};

Sums sums_of(std::span<const SizeTime> times) {
  Sums sums{.n = static_cast<double>(times.size())};
  for (const SizeTime& one : times) sums.batch += one.batch / sums.n, sums.step += one.step_seconds / sums.n;
  for (const SizeTime& one : times) {
    const double off = one.batch - sums.batch;
    sums.spread += off * off;
    sums.together += off * (one.step_seconds - sums.step);
  }
  return sums;
}

double at(const BatchLine& line, double batch) { return line.fixed_seconds + line.per_sample_seconds * batch; }

// Standard deviation of the line at `batch`: a weighted sum of the medians, each with its noise.
double deviation_at(std::span<const SizeTime> times, double batch, const Noise& noise) {
  const Sums sums = sums_of(times);
  double squares = 0;
  for (const SizeTime& one : times) {
    const double weight = 1 / sums.n + (batch - sums.batch) * (one.batch - sums.batch) / sums.spread;
    const double own = one.step_seconds * noise.deviation * kMedian / std::sqrt(static_cast<double>(noise.rounds));
    squares += weight * weight * own * own;
  }
  return std::sqrt(squares);
}

double deviation_of_misfit(std::span<const SizeTime> times, const BatchLine& line) {
  if (times.size() < 3) return 0;
  double squares = 0;
  for (const SizeTime& one : times) squares += std::pow(one.step_seconds - at(line, one.batch), 2);
  return std::sqrt(squares / static_cast<double>(times.size() - 2));
}

}  // namespace

std::optional<BatchLine> fit_line(std::span<const SizeTime> times) {
  const Sums sums = sums_of(times);
  if (times.size() < 2 || !(sums.spread > 0)) return std::nullopt;
  BatchLine line{.per_sample_seconds = sums.together / sums.spread};
  line.fixed_seconds = sums.step - line.per_sample_seconds * sums.batch;
  if (times.size() > 2) {
    line.misfit = 0;
    for (const SizeTime& one : times)
      line.misfit = std::max(*line.misfit, std::abs(one.step_seconds - at(line, one.batch)) / one.step_seconds);
  }
  return line;
}

std::optional<LargerBatch> larger_batch(std::span<const SizeTime> times, double from, double to,
                                        std::optional<double> busy_ratio, const std::optional<Noise>& noise) {
  const auto line = fit_line(times);
  const auto now = std::find_if(times.begin(), times.end(), [&](const SizeTime& one) { return one.batch == from; });
  if (!line || now == times.end() || !(to > from)) return std::nullopt;
  double half = 0;
  if (noise) {
    const double misfit = deviation_of_misfit(times, *line), own = deviation_at(times, to, *noise);
    half = student_t(noise->degrees, 0.05) * std::sqrt(own * own + misfit * misfit);
  }
  // A step with more in it takes no less, whatever noise makes of the line.
  const double least = now->step_seconds, value = std::max(least, at(*line, to));
  LargerBatch larger{.from = from, .to = to};
  larger.step_seconds = {value, std::max(least, value - half), value + half};
  const double sizes = to / from;
  const double busy = busy_ratio && *busy_ratio > 0 ? std::max(1.0, 1 / *busy_ratio) : sizes;
  const auto bound = [&](double step) { return std::max(1.0, std::min({sizes * least / step, busy, sizes})); };
  larger.speedup = {bound(value), bound(larger.step_seconds.high), bound(larger.step_seconds.low)};
  const double by_line = sizes * least / value;
  larger.bound = by_line <= std::min(busy, sizes) ? "line" : busy < sizes ? "busy" : "sizes";
  return larger;
}

}  // namespace headroom::probe
