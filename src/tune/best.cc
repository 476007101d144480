// SPDX-License-Identifier: Apache-2.0
#include "tune/best.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace headroom::tune {

namespace {

constexpr std::size_t kComparisons = 300'000'000;  // half a second

// Smaller is better.
double loss(double value, Direction direction) { return direction == Direction::kMaximize ? -value : value; }

struct Point {
  std::vector<double> losses;
  std::int64_t trial = 0;
};

bool no_worse(const Point& a, const Point& b) {
  for (std::size_t i = 0; i < a.losses.size(); ++i)
    if (a.losses[i] > b.losses[i]) return false;
  return true;
}

}  // namespace

bool counts_for_best(const Study& study, const Trial& trial) {
  if (trial.state != TrialState::kComplete || trial.values.size() != study.directions.size()) return false;
  const auto is_nan = [](double value) { return std::isnan(value); };
  const auto broken = [](double constraint) { return !(constraint <= 0); };
  return std::none_of(trial.values.begin(), trial.values.end(), is_nan) &&
         std::none_of(trial.constraints.begin(), trial.constraints.end(), broken);
}

std::vector<BestPoint> best_over_time(const Study& study, const Timeline& timeline) {
  if (study.directions.size() != 1 || study.directions[0] == Direction::kNotSet) return {};
  std::vector<std::tuple<Nanos, std::int64_t, std::size_t>> ends;  // when, number, index
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    // What has no times is counted, after all that have some.
    const Nanos end = timeline.spans[i].timed ? timeline.spans[i].end : std::numeric_limits<Nanos>::max();
    if (is_finished(study.trials[i].state)) ends.emplace_back(end, study.trials[i].number, i);
  }
  std::sort(ends.begin(), ends.end());
  std::vector<BestPoint> best;
  double least = std::numeric_limits<double>::infinity();
  std::int64_t finished = 0;
  for (const auto& [end, number, i] : ends) {
    ++finished;
    const Trial& trial = study.trials[i];
    if (!counts_for_best(study, trial)) continue;
    const double mine = loss(trial.values[0], study.directions[0]);
    if (mine >= least) continue;
    least = mine;
    const Nanos at = timeline.spans[i].timed ? end : timeline.end;
    best.push_back({.trial = number,
                    .trials_finished = finished,
                    .seconds = seconds(at - timeline.begin),
                    .worked_seconds = seconds(at - timeline.begin - timeline.paused(timeline.begin, at)),
                    .value = trial.values[0]});
  }
  return best;
}

std::optional<std::vector<std::int64_t>> pareto_front(const Study& study) {
  std::vector<std::int64_t> numbers;
  if (study.directions.size() < 2) return numbers;
  if (std::find(study.directions.begin(), study.directions.end(), Direction::kNotSet) != study.directions.end())
    return std::nullopt;
  std::vector<Point> points;
  for (const Trial& trial : study.trials) {
    if (!counts_for_best(study, trial)) continue;
    Point point{.trial = trial.number};
    for (std::size_t k = 0; k < trial.values.size(); ++k)
      point.losses.push_back(loss(trial.values[k], study.directions[k]));
    points.push_back(std::move(point));
  }
  // What dominates a point comes before it, so that only the front so far can.
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.losses < b.losses; });
  std::vector<const Point*> front;
  std::size_t comparisons = 0;
  for (const Point& point : points) {
    bool dominated = false;
    for (std::size_t k = front.size(); k-- > 0 && !dominated;)
      dominated = no_worse(*front[k], point) && front[k]->losses != point.losses;
    comparisons += front.size();
    if (comparisons > kComparisons) return std::nullopt;
    if (!dominated) front.push_back(&point);
  }
  for (const Point* point : front) numbers.push_back(point->trial);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace headroom::tune
