// SPDX-License-Identifier: Apache-2.0
#include "tune/step_times.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/median.h"
#include "tune/gpu_share.h"

namespace headroom::tune {

namespace {

constexpr std::size_t kShares = 21;  // 0, 0.05, …, 1
constexpr int kRounds = 4;           // of fitting values and variances in turn
constexpr double kOutlier = 4;       // standard deviations; further off counts as this
constexpr double kLeastStep = 1e-6;  // seconds
// NVML's utilisation of jobs that were also measured together overstates their kernel time by up to 1 / 0.7.
constexpr double kLeastOfReading = 0.7;
constexpr double kWithoutSlicing = 4;  // log odds against less: kernels side by side need MPS

double first_step(const TimedTrial& trial, std::optional<double> startup) {
  return std::min(trial.begin + trial.startup.value_or(startup.value_or(0)), trial.end);
}

// How many trials compute, from each of the times on.
struct Crowd {
  std::vector<double> at;
  std::vector<std::int64_t> computing;
};

Crowd crowd_of(const std::vector<TimedTrial>& trials, std::optional<double> startup) {
  std::vector<std::pair<double, int>> events;
  for (const TimedTrial& trial : trials) {
    if (trial.reports == 0 && startup) continue;
    events.emplace_back(first_step(trial, startup), 1);
    events.emplace_back(trial.end, -1);
  }
  std::sort(events.begin(), events.end());
  Crowd crowd;
  std::int64_t now = 0;
  for (const auto& [at, by] : events) {
    now += by;
    if (!crowd.at.empty() && crowd.at.back() == at) {
      crowd.computing.back() = now;
    } else {
      crowd.at.push_back(at);
      crowd.computing.push_back(now);
    }
  }
  return crowd;
}

// Integral of 1 / slow-down from the first time on, at each time: what a trial gets done meanwhile.
class Progress {
 public:
  Progress(const Crowd& crowd, double contended) : crowd_(crowd) {
    double sum = 0;
    for (std::size_t i = 0; i < crowd.at.size(); ++i) {
      if (i > 0) sum += (crowd.at[i] - crowd.at[i - 1]) * speeds_.back();
      sums_.push_back(sum);
      speeds_.push_back(1 / gpu_slow_down(crowd.computing[i], contended));
    }
  }
  [[nodiscard]] double until(double at) const {
    const auto after = std::upper_bound(crowd_.at.begin(), crowd_.at.end(), at);
    if (after == crowd_.at.begin()) return 0;
    const auto i = static_cast<std::size_t>(after - crowd_.at.begin()) - 1;
    return sums_[i] + (at - crowd_.at[i]) * speeds_[i];
  }

 private:
  const Crowd& crowd_;
  std::vector<double> sums_, speeds_;
};

struct Sums {  // of weighted least squares for y = a + b x
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  void add(double weight, double at, double value) {
    w += weight;
    x += weight * at;
    y += weight * value;
    xx += weight * at * at;
    xy += weight * at * value;
  }
  [[nodiscard]] double determinant() const { return w * xx - x * x; }
};

double variance_of(const StepTimes& way, double x) {
  return std::max(way.startup_variance + x * x * way.step_variance, 1e-12);
}

struct Observation {
  double x = 0, y = 0;    // steps of the middle trial as if they were made alone, seconds
  bool measured = false;  // y is without the start-up
};

double off(const StepTimes& way, const Observation& seen) {
  return seen.y - (seen.measured ? 0 : way.startup) - seen.x * way.step;
}

void fit_values(StepTimes& way, bool with_startup, const std::vector<Observation>& seen) {
  Sums sums;
  for (const Observation& o : seen) {
    if (o.measured) {  // no start-up in it: moves the slope only
      sums.xx += o.x * o.x / variance_of(way, o.x);
      sums.xy += o.x * o.y / variance_of(way, o.x);
      continue;
    }
    const double deviation = std::abs(off(way, o)) / std::sqrt(variance_of(way, o.x));
    const double trust = way.step > 0 && deviation > kOutlier ? kOutlier / deviation : 1;
    sums.add(trust / variance_of(way, o.x), o.x, o.y);
  }
  const double determinant = sums.determinant();
  if (!with_startup || sums.w <= 0 || determinant <= 1e-9 * sums.w * sums.xx) {  // or all alike, or all measured
    way.step = sums.xx > 0 ? std::max(kLeastStep, (sums.xy - way.startup * sums.x) / sums.xx) : kLeastStep;
    return;
  }
  way.startup = std::max(0.0, (sums.y * sums.xx - sums.x * sums.xy) / determinant);
  way.step = std::max(kLeastStep, (sums.xy - way.startup * sums.x) / sums.xx);
  way.startup_error = std::sqrt(sums.xx / determinant);
}

// The squares of what is left, as a start-up's share and one that grows with the steps.
void fit_variances(StepTimes& way, const std::vector<Observation>& seen) {
  Sums sums;
  for (const Observation& o : seen) {
    const double variance = variance_of(way, o.x);
    const double square = std::min(off(way, o) * off(way, o), kOutlier * kOutlier * variance);
    if (!o.measured) sums.add(1 / (variance * variance), o.x * o.x, square);
  }
  const double determinant = sums.determinant();
  if (sums.w <= 0 || determinant <= 1e-9 * sums.w * sums.xx) return;
  const double constant = (sums.y * sums.xx - sums.x * sums.xy) / determinant;
  const double growing = (sums.w * sums.xy - sums.x * sums.y) / determinant;
  const double mean = sums.y / sums.w;
  way.startup_variance = growing < 0 ? mean : std::max(0.01 * mean, constant);
  way.step_variance = constant < 0 ? sums.xy / sums.xx : std::max(0.0, growing);
}

void start_variances(StepTimes& way, const std::vector<Observation>& seen) {
  std::vector<double> squares{0}, xs{1};
  for (const Observation& o : seen) {
    squares.push_back(off(way, o) * off(way, o));
    xs.push_back(o.x);
  }
  way.startup_variance = std::max(1e-6, median(squares));
  way.step_variance = way.startup_variance / std::max(1.0, median(xs) * median(xs));
}

double likelihood(const StepTimes& way, const std::vector<Observation>& seen) {
  double sum = 0;
  for (const Observation& o : seen) {
    const double variance = variance_of(way, o.x);
    sum -= 0.5 * (std::log(variance) + std::min(off(way, o) * off(way, o) / variance, kOutlier * kOutlier));
  }
  return sum;
}

StepTimes explain(const std::vector<TimedTrial>& trials, const Crowd& crowd, double contended,
                  std::optional<double> startup) {
  StepTimes way;
  way.contended = contended;
  way.startup = startup.value_or(0);
  const Progress progress(crowd, contended);
  std::vector<Observation> seen;
  for (const TimedTrial& trial : trials) {
    const double begin = first_step(trial, startup);
    const double alone = progress.until(trial.end) - progress.until(begin);
    way.crowding.push_back(alone > 0 ? (trial.end - begin) / alone : 1);
    if (trial.reports == 0) continue;
    const double x = trial.steps() * way.crowding.back();
    seen.push_back(
        {.x = x, .y = trial.end - (trial.startup ? begin : trial.begin), .measured = trial.startup.has_value()});
  }
  start_variances(way, seen);
  for (int round = 0; round < kRounds; ++round) {
    fit_values(way, startup.has_value(), seen);
    fit_variances(way, seen);
  }
  way.fits = likelihood(way, seen);
  return way;
}

}  // namespace

std::vector<StepTimes> step_times(const std::vector<TimedTrial>& trials, std::optional<double> kernel_share,
                                  std::optional<double> startup) {
  const Crowd crowd = crowd_of(trials, startup);
  std::vector<StepTimes> ways;
  for (std::size_t i = 0; i < kShares; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(kShares - 1);
    if (kernel_share && share > *kernel_share + 0.5 / static_cast<double>(kShares - 1)) break;
    ways.push_back(explain(trials, crowd, share, startup));
    if (kernel_share && share < kLeastOfReading * *kernel_share) ways.back().fits -= kWithoutSlicing;
  }
  return ways;
}

const StepTimes& draw(const std::vector<StepTimes>& ways, Random& random) {
  double best = ways.front().fits;
  for (const StepTimes& way : ways) best = std::max(best, way.fits);
  double total = 0;
  for (const StepTimes& way : ways) total += std::exp(way.fits - best);
  double left = random.uniform() * total;
  for (const StepTimes& way : ways) {
    left -= std::exp(way.fits - best);
    if (left < 0) return way;
  }
  return ways.back();
}

std::vector<double> computing_shares(const std::vector<TimedTrial>& trials, std::optional<double> startup) {
  const Crowd crowd = crowd_of(trials, startup);
  double begin = trials.front().begin, end = trials.front().end;
  for (const TimedTrial& trial : trials) {
    begin = std::min(begin, trial.begin);
    end = std::max(end, trial.end);
  }
  std::vector<double> shares{1};
  for (std::size_t i = 0; i + 1 < crowd.at.size() && end > begin; ++i) {
    const auto k = static_cast<std::size_t>(crowd.computing[i]);
    if (k >= shares.size()) shares.resize(k + 1, 0);
    const double share = (crowd.at[i + 1] - crowd.at[i]) / (end - begin);
    if (k > 0) shares[k] += share, shares[0] -= share;
  }
  return shares;
}

}  // namespace headroom::tune
