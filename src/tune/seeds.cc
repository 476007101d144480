// SPDX-License-Identifier: Apache-2.0
#include "tune/seeds.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace headroom::tune {

namespace {

// A seed's orders begin a quarter of the study apart, so that its best trial is near the begin of one at most.
constexpr std::size_t kOrders = 4;
constexpr double kAbsent = 0.368;  // 1/e: the chance that a trial is not among as many drawn anew

// The trials in another order. Where in a study its best trial comes is luck for the most part: the order begins at any
// of them and goes round. Which of the trials that were open together came first is luck too: each moves by up to a
// round of the workers. What came long after what stays that way, as a sampler that learns would have it.
std::vector<ReplayTrial> in_other_order(const std::vector<ReplayTrial>& trials, std::size_t first, std::int64_t workers,
                                        Random& random) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    order.emplace_back(static_cast<double>(i) + random.uniform(0, static_cast<double>(workers)),
                       (first + i) % trials.size());
  }
  std::sort(order.begin(), order.end());
  std::vector<ReplayTrial> made;
  made.reserve(trials.size());
  for (const auto& [place, i] : order) made.push_back(trials[i]);
  return made;
}

// The value to reach is the best that the study as it is reaches in this order. Which of its good trials a study
// happened to try is luck as well: with its trials drawn anew the best is among them with a chance of 1 - 1/e, else the
// second best would have been the best, and so on. Better values are taken away: a change earns nothing by them.
void set_target(Order& order, const ReplayOutcome& as_it_is, Direction direction, Random& random) {
  struct Reached {
    double value = 0, at = 0;  // the value falls as it gets better
    std::size_t trial = 0;
    auto operator<=>(const Reached&) const = default;
  };
  const double sign = direction == Direction::kMaximize ? -1 : 1;
  std::vector<Reached> reached;
  for (std::size_t i = 0; i < order.trials.size(); ++i) {
    const ReplayEnd& end = as_it_is.ends[i];
    if (order.trials[i].value && end.state == TrialState::kComplete)
      reached.push_back({.value = sign * *order.trials[i].value, .at = end.at, .trial = i});
  }
  if (reached.empty()) return;
  std::sort(reached.begin(), reached.end());
  std::size_t rank = 0;
  while (rank + 1 < reached.size() && random.uniform() < kAbsent) ++rank;
  order.target = sign * reached[rank].value;
  order.best_at = reached[rank].at;
  for (ReplayTrial& trial : order.trials) {
    if (trial.value && sign * *trial.value < reached[rank].value) trial.value.reset();
  }
  // Equal values that came earlier, too: else the study as it is would reach the target before `best_at`.
  for (std::size_t i = 0; i < rank; ++i) order.trials[reached[i].trial].value.reset();
}

}  // namespace

Seed draw_seed(const StudyModel& model, const Change& as_it_is, std::int64_t seed, std::int64_t seeds) {
  Seed made{.world = draw_world(model, static_cast<std::uint64_t>(seed)), .orders = {}};
  Random random(static_cast<std::uint64_t>(seed) + (1ULL << 32));
  const std::size_t trials = model.observed.size();
  const double place = (static_cast<double>(seed) + random.uniform()) / static_cast<double>(seeds);  // spread evenly
  const auto first = static_cast<std::size_t>(place * static_cast<double>(trials));
  for (std::size_t o = 0; o < kOrders; ++o) {
    Order order{.trials = in_other_order(made.world.trials, first + o * trials / kOrders, model.workers, random)};
    set_target(order, replay(model, made.world, order, as_it_is), model.direction, random);
    if (order.best_at > 0) made.orders.push_back(std::move(order));
  }
  return made;
}

ReplayOutcome replay(const StudyModel& model, const World& world, const Order& order, const Change& change) {
  ReplayMachine machine = world.machine;
  const auto cores_each = [&](std::int64_t loaders) { return 1 + static_cast<double>(loaders) * world.loader_cores; };
  machine.step_cores = cores_each(change.loader_workers);
  // What the cores did to the study as it is lies in its durations already.
  if (model.cores) {
    machine.cores = std::max(*model.cores, static_cast<double>(model.workers) * cores_each(model.loader_workers));
  }
  ReplaySettings settings = change.settings;
  if (change.warm) {
    settings.warm_startup = world.warm_startup;
    settings.between = std::min(settings.between, world.warm_startup);
  }
  return replay(order.trials, machine, settings, model.direction, model.name, order.target);
}

}  // namespace headroom::tune
