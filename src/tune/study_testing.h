// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/study_report.h"

// Studies for tests: trials put in by hand, or a whole one run by workers on a clock of its own.
namespace headroom::tune::testing {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr Nanos kEpoch = 1'795'000'000 * kSecond;  // 2026-11-18, as both clocks have it
inline Nanos at(double second) { return kEpoch + static_cast<Nanos>(second * 1e9); }

class StudyBuilder {
 public:
  explicit StudyBuilder(std::vector<Direction> directions = {Direction::kMinimize}) {
    study.name = "made up";
    study.directions = std::move(directions);
  }
  std::uint32_t number(const std::string& name, ParameterKind kind = ParameterKind::kFloat) {
    study.spaces.push_back({.name = name, .kind = kind, .low = 0, .high = 1});
    return static_cast<std::uint32_t>(study.spaces.size()) - 1;
  }
  std::uint32_t category(const std::string& name, std::vector<std::string> choices) {
    study.spaces.push_back({.name = name, .kind = ParameterKind::kCategorical, .choices = std::move(choices)});
    return static_cast<std::uint32_t>(study.spaces.size()) - 1;
  }
  // A trial in seconds since kEpoch; `end` below 0: it has none.
  Trial& add(TrialState state, double begin, double end, int reports = 0,
             std::initializer_list<ParameterValue> parameters = {}) {
    Trial trial{.number = static_cast<std::int64_t>(study.trials.size()), .state = state};
    if (begin >= 0) trial.start = at(begin);
    if (end >= 0) trial.complete = at(end);
    trial.first_report = study.reports.size();
    trial.reports = static_cast<std::size_t>(reports);
    for (int step = 1; step <= reports; ++step) study.reports.push_back({step, 1.0 / step});
    trial.first_parameter = study.parameters.size();
    trial.parameters = parameters.size();
    study.parameters.insert(study.parameters.end(), parameters);
    if (state == TrialState::kComplete) trial.values.assign(study.directions.size(), 1.0);
    study.trials.push_back(trial);
    return study.trials.back();
  }

  Study study;
};

// What a made-up study is made of, in seconds.
struct Recipe {
  int trials = 200, workers = 4, longest = 60;
  double startup_low = 30, startup_high = 60, between = 0.1, step = 2;
  double by_layers = 0;      // a step of the largest takes so much more, x
  double failing = 0.05;     // share of trials that fail in their start-up
  double completing = 0.06;  // share of trials that nothing stops
  unsigned seed = 1;
};

struct Made {
  Study study;
  double startup_mean = 0;    // of all trials
  double computing_mean = 0;  // trials past their start-up, over time
  double end = 0;
};

// Steps stop early mostly, as under a pruner; "layers" from 1 to 8 decides a step's time, "lr" nothing.
inline Made make(const Recipe& recipe) {
  std::mt19937_64 random(recipe.seed);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  StudyBuilder builder;
  const auto layers_space = builder.number("layers", ParameterKind::kInt), lr = builder.number("lr");
  std::vector<double> free(static_cast<std::size_t>(recipe.workers), 0.0);
  for (double& one : free) one = uniform();
  Made made;
  double computing = 0;
  for (int i = 0; i < recipe.trials; ++i) {
    const auto worker = std::min_element(free.begin(), free.end());
    const double layers = 1 + std::floor(8 * uniform());
    const double startup = recipe.startup_low + (recipe.startup_high - recipe.startup_low) * uniform();
    made.startup_mean += startup / recipe.trials;
    const bool fails = uniform() < recipe.failing, completes = uniform() < recipe.completing;
    const int steps = fails ? 0 : completes ? recipe.longest : 4 + static_cast<int>(14 * uniform());
    const double step = recipe.step * (1 + recipe.by_layers * (layers - 1) / 7);
    const double end = *worker + startup + step * steps;
    computing += step * steps;
    builder.add(fails       ? TrialState::kFail
                : completes ? TrialState::kComplete
                            : TrialState::kPruned,
                *worker, end, steps, {{layers_space, layers}, {lr, uniform()}});
    made.end = std::max(made.end, end);
    *worker = end + recipe.between;
  }
  made.computing_mean = computing / (made.end - seconds(*builder.study.trials[0].start - kEpoch));
  made.study = std::move(builder.study);
  return made;
}

// What a report says of a kind; nullptr: nothing.
inline const StudyAnomaly* anomaly(const StudyReport& report, std::string_view kind) {
  for (const StudyAnomaly& one : report.anomalies)
    if (one.kind == kind) return &one;
  return nullptr;
}

// Every second of the workers is in one account, none in two.
inline void expect_conserved(const StudyReport& report) {
  const WorkerTime& time = report.worker_time;
  EXPECT_DOUBLE_EQ(time.total, time.useful + time.discarded + time.failed + time.startup + time.running + time.between);
  for (const double part : {time.useful, time.discarded, time.failed, time.startup, time.running, time.between})
    EXPECT_GE(part, 0);
  if (!report.begin) return;
  const double whole = seconds(*report.end - *report.begin) - report.paused_seconds;
  double left = 0;  // worker-seconds of those that had left; at most
  const auto& fewer = report.parallelism.fewer;
  for (std::size_t i = 1; i < fewer.size(); ++i)
    left += static_cast<double>(fewer[i - 1].second - fewer[i].second) *
            (seconds(*report.end - *report.begin) - fewer[i].first);
  EXPECT_GE(time.total, static_cast<double>(report.parallelism.workers) * whole * (1 - 1e-9) - left - 1e-6);
  EXPECT_NEAR(time.total - time.between, report.parallelism.alive_mean * whole, 1e-6 * (1 + time.total));
}

}  // namespace headroom::tune::testing
