// SPDX-License-Identifier: Apache-2.0
#include "probe/batch_line.h"

#include <algorithm>
#include <cmath>

#include "base/distributions.h"

namespace headroom::probe {

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
