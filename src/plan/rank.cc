// SPDX-License-Identifier: Apache-2.0
#include "plan/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/human.h"
#include "model/cores.h"
#include "plan/measured.h"
#include "plan/named_code.h"

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

constexpr double kOfTheLeast = 0.75;  // a promise that is not kept costs more than one that was too small

// The share of the time that a gain saves, as it is expected.
double expected(const Gain& gain) { return kOfTheLeast * (1 - 1 / gain.low) + (1 - kOfTheLeast) * (1 - 1 / gain.high); }

bool is_observation(const Candidate& one) { return !one.option.cause && !one.change.finding; }

bool is_of(const Candidate& one, std::initializer_list<Cause> causes) {
  return std::any_of(causes.begin(), causes.end(), [&](Cause cause) { return one.option.cause == cause; });
}

// Whether its cause is told, while no gain bounds what the finding costs: a hang, a GPU that is held, a failed run.
bool is_told(const Candidate& one) {
  return one.option.finding && one.option.cause && one.option.candidates.empty() && !one.option.promises;
}

double expected_saving(const Candidate& one) {
  return one.option.promises ? one.probability * expected(one.option.gain) : 0;
}

// What the changes for one finding are worth together, whichever of its causes it is. What is told counts as a gain of
// which nothing is promised.
double worth(const Candidate& one) {
  if (one.option.promises) return one.surely * expected(one.option.gain);
  return is_told(one) ? one.surely * (1 - kOfTheLeast) * one.cost : 0;
}

// The changes for one finding.
struct Group {
  double worth = 0, cost = 0;
  bool start = true;     // all of them are for time before the first kernel
  bool by_cost = false;  // told, or work that went to the wrong GPU: no speed compares with it
};

// By finding. What costs more than a start-up is worth no less, nor than what is worth nearly the same; what is ranked
// by its cost, no less than all that costs less.
std::map<std::size_t, Group> groups_of(const std::vector<Candidate>& candidates) {
  std::map<std::size_t, Group> groups;
  for (const Candidate& one : candidates) {
    if (!one.option.finding || is_observation(one)) continue;
    Group& group = groups[*one.option.finding];
    group.worth = std::max(group.worth, worth(one));
    group.cost = one.cost;
    group.start &= is_of(one, {Cause::kStartupLoad, Cause::kCompileWarmup, Cause::kEnvironmentInstall});
    group.by_cost |= is_told(one) || (one.option.candidates.empty() && is_of(one, {Cause::kWrongGpuAssignment}));
  }
  constexpr double kNearly = 0.75;  // of what the other is worth, by judgement
  std::map<std::size_t, Group> lifted = groups;
  for (auto& [finding, group] : lifted)
    for (const auto& [other, cheaper] : groups)
      if (!group.start && cheaper.cost < group.cost &&
          (cheaper.start || group.by_cost || group.worth >= kNearly * cheaper.worth))
        group.worth = std::max(group.worth, cheaper.worth);
  return lifted;
}

double score(const Candidate& one) {
  return expected_saving(one) - kRisk[static_cast<std::size_t>(one.option.safety)] -
         kEffort[static_cast<std::size_t>(one.effort)];
}

// Whether it is against the likeliest cause of a set, or is what stacks name, whichever cause that has.
bool is_of_the_likeliest(const Candidate& one) {
  return one.option.id == kNamedCode ||
         (!one.option.candidates.empty() && one.option.cause == one.option.candidates.front());
}

double most_saved(const Candidate& one) { return one.option.promises ? 1 - 1 / one.option.gain.high : 0; }

// The best of the changes that one look chooses: those for the causes of a set that the same look tells.
struct Look {
  bool promises = false;   // one of them promises something
  bool likeliest = false;  // one is of the likeliest cause, and saves nearly as much as those for the others
  double score = 0;
  [[nodiscard]] auto order() const { return std::tuple(!promises, !likeliest, -score); }
};
using Looks = std::map<std::pair<std::optional<std::size_t>, std::string>, Look>;
Looks best_by_look(const std::vector<Candidate>& candidates) {
  constexpr double kNearly = 0.5;  // of what the best of the others saves, by judgement
  std::map<std::optional<std::size_t>, double> saved;
  for (const Candidate& one : candidates)
    saved[one.option.finding] = std::max(saved[one.option.finding], most_saved(one));
  Looks looks;
  for (const Candidate& one : candidates) {
    const bool by_far = one.option.likeliest.has_value();
    const bool near = most_saved(one) >= kNearly * saved[one.option.finding];
    const Look mine{one.option.promises, is_of_the_likeliest(one) && one.option.promises && (by_far || near),
                    score(one)};
    const auto [look, fresh] = looks.try_emplace({one.option.finding, one.look}, mine);
    if (fresh) continue;
    look->second.likeliest |= mine.likeliest;
    if (std::pair(mine.promises, mine.score) > std::pair(look->second.promises, look->second.score))
      look->second.promises = mine.promises, look->second.score = mine.score;
  }
  return looks;
}

// The most: all changes, simulated. The least: of what each one saves of what those before it leave, what is promised;
// those that promise most go first, as what another saves of the same time is saved all the same.
Gain gain_of(const StepModel& model, std::vector<const Candidate*> chosen) {
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const Candidate* x, const Candidate* y) { return x->least > y->least; });
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

// Why the simulation lets go less than the words of the finding are about, where it does.
std::string what_stays(const StepModel& model, const Candidate& one, const Gain& gain) {
  if (!one.change.finding || one.measured) return "";
  const Mechanism mechanism = one.change.mechanism;
  const auto differs = [&](const StepModel& other, Change change) {
    return human_factor(factor(model.seconds, simulate(other, std::array{change}))) != human_factor(gain.high);
  };
  if (Change gone = one.change; mechanism == Mechanism::kOverlaps) {
    gone.mechanism = Mechanism::kRemoves;
    if (differs(model, gone)) return "; beside the rest of the time, for as long as that lasts";
  }
  StepModel without_loader = model;
  without_loader.workers = 0;
  const std::string words = what_loads_takes(model.workers, loading_time(model, std::array{one.change}));
  const bool told = one.option.gain.more.find(words) != std::string::npos;  // by its finding
  return mechanism == Mechanism::kLoads || told || !differs(without_loader, one.change) ? "" : words;
}

// Whether it is worth naming beside the other: half of what another change takes away altogether is no more.
bool saves_more(const Gain& gain, const Gain& than) { return 1 / than.high - 1 / gain.high >= kLeastSaved; }

// Whether both are for the same set of causes, of which one is the case.
bool alternatives(const Candidate& x, const Candidate& y) {
  return !x.option.candidates.empty() && !y.option.candidates.empty() && x.option.finding == y.option.finding;
}

// Of each set of causes only the change that gains most: one of them is the case.
Gain gain_with_one_of_each_set(const StepModel& model, std::vector<const Candidate*> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Candidate* x, const Candidate* y) { return x->option.gain.high > y->option.gain.high; });
  std::vector<const Candidate*> chosen;
  for (const Candidate* one : changes)
    if (std::none_of(chosen.begin(), chosen.end(), [&](const Candidate* other) { return alternatives(*one, *other); }))
      chosen.push_back(one);
  return gain_of(model, chosen);
}

}  // namespace

void give_gains(const StepModel& model, std::vector<Candidate>& candidates) {
  for (Candidate& one : candidates) {
    if (!one.option.promises) continue;
    if (one.measured) fit(model, *one.measured, one);
    const Gain gain = gain_of(model, {&one});
    one.option.gain.low = gain.low;
    one.option.gain.high = gain.high;
    one.option.gain.more += what_stays(model, one, gain);
  }
  std::erase_if(candidates, [](const Candidate& one) {
    return one.option.promises && !one.asked && 1 - 1 / one.option.gain.high < kLeastSaved;
  });
}

void rank(std::vector<Candidate>& candidates) {
  const std::map<std::size_t, Group> groups = groups_of(candidates);
  const Looks looks = best_by_look(candidates);
  const auto place = [&](const Candidate& one) {
    const bool of_one = one.option.finding && !is_observation(one);
    const Group group = of_one ? groups.at(*one.option.finding) : Group{.worth = worth(one)};
    return std::tuple(!one.asked, is_observation(one), -group.worth, -group.cost, one.option.finding,
                      looks.at({one.option.finding, one.look}).order(), std::string_view(one.look),
                      !one.option.promises, -score(one));
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& x, const Candidate& y) { return place(x) < place(y); });
  const auto first =
      std::find_if(candidates.begin(), candidates.end(), [](const auto& one) { return !is_observation(one); });
  const auto observation = std::find_if(candidates.begin(), candidates.end(), is_observation);
  if (observation == candidates.end()) return;
  const bool of_a_set =
      first == candidates.end() || !first->option.candidates.empty() || (!first->option.promises && !is_told(*first));
  // Where the time goes is known of code that stacks name, whichever cause it has: that comes first.
  const bool named = first != candidates.end() && first->option.id == kNamedCode;
  if (of_a_set) std::rotate(named ? first + 1 : candidates.begin(), observation, observation + 1);
}

std::vector<OptionsTogether> together(const StepModel& model, const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> chosen;
  std::vector<OptionsTogether> steps;
  Gain before;
  for (const Candidate& one : candidates) {
    const auto excludes = [&](const Candidate* other) { return alternatives(one, *other); };
    if (!one.option.promises || std::any_of(chosen.begin(), chosen.end(), excludes)) continue;
    chosen.push_back(&one);
    OptionsTogether step{.gain = gain_of(model, chosen)};
    if (!saves_more(step.gain, before)) {
      chosen.pop_back();
      continue;
    }
    before = step.gain;
    for (const Candidate* each : chosen) step.options.push_back(each->option.id);
    step.gain.condition = "simulated one after the other, each on what those before it leave";
    steps.push_back(std::move(step));
  }
  return steps;
}

Gain gain_of_all(const StepModel& model, const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> all;
  for (const Candidate& one : candidates)
    if (one.option.promises) all.push_back(&one);
  return gain_with_one_of_each_set(model, std::move(all));
}

Gain gain_of_asked(const StepModel& model, const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> asked;
  for (const Candidate& one : candidates)
    if (one.option.promises && one.asked) asked.push_back(&one);
  return gain_with_one_of_each_set(model, std::move(asked));
}

std::string what_flips(const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> changes;
  for (const Candidate& one : candidates)
    if ((one.option.promises && !is_observation(one)) || is_told(one)) changes.push_back(&one);
  if (changes.size() < 2 || changes[0]->flipped.empty()) return "";
  return changes[0]->flipped;
}

}  // namespace headroom::planning
