// SPDX-License-Identifier: Apache-2.0
#include "plan/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/human.h"
#include "plan/measured.h"

namespace headroom::planning {

namespace {

// What a risk or an effort weighs against a share of the time. Judgement: a risky change should save 5 % of the time
// more than a safe one to stand before it, a redesign 5 % more than an argument.
constexpr std::array kRisk{0.0, 0.01, 0.05};
constexpr std::array kEffort{0.0, 0.01, 0.05};
constexpr double kLeastSaved = 0.01;  // of the time: less is no change worth making

double factor(double all, double left) {
  constexpr double kRounding = 1e-9;
  return left > 0 && all / left > 1 + kRounding ? all / left : 1.0;
}

// The share of the time that a gain saves, as it is expected.
double expected(const Gain& gain) {
  constexpr double kOfTheLeast = 0.75;  // a promise that is not kept costs more than one that was too small
  return kOfTheLeast * (1 - 1 / gain.low) + (1 - kOfTheLeast) * (1 - 1 / gain.high);
}

double expected_saving(const Candidate& one) {
  return one.option.promises ? one.probability * expected(one.option.gain) : 0;
}

// What the changes for one finding are worth together, whichever of its causes it is.
double worth(const Candidate& one) { return one.option.promises ? one.surely * expected(one.option.gain) : 0; }

double score(const Candidate& one) {
  return expected_saving(one) - kRisk[static_cast<std::size_t>(one.option.safety)] -
         kEffort[static_cast<std::size_t>(one.effort)];
}

bool is_observation(const Candidate& one) { return !one.option.cause && !one.change.finding; }

// The most: all changes, simulated. The least: of what each one saves of what those before it leave, what is promised.
Gain gain_of(const StepModel& model, const std::vector<const Candidate*>& chosen) {
  std::vector<Change> changes;
  double left = model.seconds, promised = model.seconds;
  for (const Candidate* one : chosen) {
    changes.push_back(one->change);
    const double now = simulate(model, changes);
    promised -= one->least * std::min(left - now, one->seen.value_or(left - now));
    left = now;
  }
  Gain gain;
  gain.high = factor(model.seconds, left);
  gain.low = factor(model.seconds, promised);
  for (const Candidate* one : chosen)  // what one promises alone, it promises among others
    if (one->option.promises) gain.low = std::max(gain.low, one->option.gain.low);
  gain.low = std::min(gain.low, gain.high);
  return gain;
}

}  // namespace

void give_gains(const StepModel& model, std::vector<Candidate>& candidates) {
  for (Candidate& one : candidates) {
    if (!one.option.promises) continue;
    if (one.measured) fit(model, *one.measured, one);
    const Gain gain = gain_of(model, {&one});
    one.option.gain.low = gain.low;
    one.option.gain.high = gain.high;
  }
  std::erase_if(candidates, [](const Candidate& one) {
    return one.option.promises && !one.asked && 1 - 1 / one.option.gain.high < kLeastSaved;
  });
}

void rank(std::vector<Candidate>& candidates) {
  std::map<std::size_t, double> of_finding;
  for (const Candidate& one : candidates)
    if (one.option.finding) of_finding[*one.option.finding] = std::max(of_finding[*one.option.finding], worth(one));
  const auto of_group = [&](const Candidate& one) {
    return one.option.finding ? of_finding.at(*one.option.finding) : worth(one);
  };
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Candidate& x, const Candidate& y) {
    if (x.asked != y.asked) return x.asked;
    if (x.option.promises != y.option.promises) return x.option.promises;
    return std::tuple(-of_group(x), x.option.finding, -score(x)) <
           std::tuple(-of_group(y), y.option.finding, -score(y));
  });
  const auto first =
      std::find_if(candidates.begin(), candidates.end(), [](const auto& one) { return !is_observation(one); });
  const auto observation = std::find_if(candidates.begin(), candidates.end(), is_observation);
  if (observation == candidates.end()) return;
  const bool of_a_set = first == candidates.end() || !first->option.candidates.empty() || !first->option.promises;
  if (of_a_set) std::rotate(candidates.begin(), observation, observation + 1);
}

std::vector<OptionsTogether> together(const StepModel& model, const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> left, chosen;
  for (const Candidate& one : candidates)
    if (one.option.promises) left.push_back(&one);
  std::vector<OptionsTogether> steps;
  const auto keep = [&] {
    OptionsTogether step;
    for (const Candidate* one : chosen) step.options.push_back(one->option.id);
    step.gain = gain_of(model, chosen);
    step.gain.condition = "simulated one after the other, each on what those before it leave";
    steps.push_back(std::move(step));
  };
  constexpr std::size_t kMost = 3;
  while (!left.empty() && chosen.size() < kMost) {
    const double now = expected(gain_of(model, chosen));
    auto best = left.end();
    double saved_by_best = kLeastSaved;
    for (auto one = left.begin(); one != left.end(); ++one) {
      chosen.push_back(*one);
      const double saved = (expected(gain_of(model, chosen)) - now) * (*one)->probability;
      chosen.pop_back();
      if (saved <= saved_by_best) continue;
      saved_by_best = saved;
      best = one;
    }
    if (best == left.end()) break;
    chosen.push_back(*best);
    left.erase(best);
    keep();
  }
  if (steps.empty()) return steps;
  const std::size_t before = chosen.size();
  for (const Candidate* one : left) {  // another change for what these save already adds nothing to them
    const double now = gain_of(model, chosen).high;
    chosen.push_back(one);
    if (gain_of(model, chosen).high < now * (1 + kLeastSaved)) chosen.pop_back();
  }
  if (chosen.size() > before) keep();
  return steps;
}

Gain gain_of_all(const StepModel& model, const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> all;
  for (const Candidate& one : candidates)
    if (one.option.promises) all.push_back(&one);
  return gain_of(model, all);
}

Gain gain_of_asked(const StepModel& model, const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> asked;
  for (const Candidate& one : candidates)
    if (one.option.promises && one.asked) asked.push_back(&one);
  return gain_of(model, asked);
}

std::string what_flips(const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> changes;
  for (const Candidate& one : candidates)
    if (one.option.promises && !is_observation(one)) changes.push_back(&one);
  if (changes.size() < 2 || changes[0]->flipped.empty()) return "";
  return changes[0]->flipped;
}

}  // namespace headroom::planning
