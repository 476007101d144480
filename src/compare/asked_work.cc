// SPDX-License-Identifier: Apache-2.0
#include "compare/asked_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/human.h"
#include "base/strings.h"

namespace headroom::compare {

namespace {

// More of these is more work and never less, whatever the program: trees, leaves, passes over the data, steps, trials.
// Others that hold such a word are none ("warmup_steps", "logging_steps", "steps_per_epoch", "max_depth"); "n_steps" is
// the length of a rollout in much code for reinforcement learning.
// clang-format off
constexpr std::array<std::string_view, 41> kWork{
    "boosting_rounds", "epochs", "iterations", "iters", "max_epochs", "max_iter", "max_iterations", "max_iters", "max_steps",
    "max_train_steps", "n_epochs", "n_estimators", "n_iter", "n_iterations", "n_iters", "n_rounds", "n_trees", "n_trials",
    "nb_epoch", "nb_epochs", "nrounds", "num_boost_round", "num_boosting_rounds", "num_epochs", "num_estimators",
    "num_iter", "num_iterations", "num_iters", "num_leaves", "num_round", "num_rounds", "num_steps", "num_train_epochs",
    "num_train_steps", "num_training_steps", "num_trees", "num_trials", "steps", "total_steps", "train_steps", "trees"};
// Anywhere in a name: what may end a run before it has done what was asked for.
constexpr std::array<std::string_view, 8> kStopsEarly{
    "early_stop", "earlystop", "patience", "stopping_rounds", "no_change", "od_wait", "od_type", "no_improvement"};
constexpr std::array<std::string_view, 8> kOff{"", "0", "-1", "no", "none", "null", "false", "off"};
// clang-format on
constexpr double kClearlyMore = 1.1;

template <std::size_t n>
bool is_one_of(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool may_stop_early(const Parameters& parameters) {
  return std::any_of(parameters.begin(), parameters.end(), [](const auto& parameter) {
    std::string name = lower(parameter.first);
    std::replace(name.begin(), name.end(), '-', '_');
    const bool stops = plain_name(name) == "tol" ||
                       std::any_of(kStopsEarly.begin(), kStopsEarly.end(),
                                   [&](std::string_view part) { return name.find(part) != std::string::npos; });
    return stops && !is_one_of(kOff, lower(parameter.second));
  });
}

bool may_stop_early(const std::vector<const Sample*>& runs) {
  return std::any_of(runs.begin(), runs.end(),
                     [](const Sample* run) { return may_stop_early(run->asked) || may_stop_early(run->resolved); });
}

// As the program settled on it, there by the last word of its name, too; else as it was asked for.
std::optional<double> value_of(const Sample& run, const std::string& name) {
  const auto find = [](const Parameters& parameters, const auto& wanted) {
    return std::find_if(parameters.begin(), parameters.end(), [&](const auto& one) { return wanted(one.first); });
  };
  const auto same = [&](const std::string& key) { return key == name; };
  auto found = find(run.resolved, same);
  if (found == run.resolved.end())
    found = find(run.resolved, [&](const std::string& key) { return plain_name(key) == plain_name(name); });
  if (found == run.resolved.end() && (found = find(run.asked, same)) == run.asked.end()) return std::nullopt;
  return parse_number<double>(found->second);
}

bool counts(const std::vector<const Sample*>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const Sample* run) { return run->steps || run->seen; });
}

struct More {
  std::string name;
  double a = 0, b = 0;
};
// One value in all runs of A, and one in all of B.
std::optional<More> more_of(const std::vector<SamplePair>& pairs, const std::string& name) {
  std::optional<More> more;
  for (const auto& [a, b] : pairs) {
    const auto of_a = value_of(*a, name), of_b = value_of(*b, name);
    if (!of_a || !of_b || !(*of_a > 0) || !(*of_b > 0)) return std::nullopt;
    if (more && (more->a != *of_a || more->b != *of_b)) return std::nullopt;
    more = More{name, *of_a, *of_b};
  }
  return more;
}

}  // namespace

std::optional<std::string> faster_with_more_asked(const Facts& f, const Ratio& ratio) {
  // How many ran at once may be all that differs between batches as wholes.
  if (f.together || (ratio.low <= 1 && ratio.high >= 1)) return std::nullopt;
  if (counts(f.matching.a) || counts(f.matching.b)) return std::nullopt;
  if (may_stop_early(f.matching.a) || may_stop_early(f.matching.b)) return std::nullopt;
  const bool b_faster = ratio.high < 1;
  const auto [faster, other] = b_faster ? std::pair("B", "A") : std::pair("A", "B");
  const auto pairs = pairs_that_tell(f.matching);
  std::vector<std::string> words;
  std::set<std::string> others;
  for (const ComparedParameter& parameter : f.parameters) {
    if (!is_one_of(kWork, plain_name(parameter.name))) {
      others.insert(parameter.name);
      continue;
    }
    const auto more = more_of(pairs, parameter.name);
    if (!more) return std::nullopt;
    const double factor = b_faster ? more->b / more->a : more->a / more->b;
    if (factor < 1) return std::nullopt;
    if (factor >= kClearlyMore)
      words.push_back(fmt::format("{} the {} ({:g} instead of {:g})", human_factor(factor), more->name,
                                  b_faster ? more->b : more->a, b_faster ? more->a : more->b));
  }
  if (words.empty()) return std::nullopt;
  return fmt::format(
      "{} was asked for {} and took {} of {}'s time{}; nothing counts what it really did: it may have "
      "stopped early, or done something else",
      faster, join(words, " and "), human_factor(b_faster ? ratio.value : 1 / ratio.value), other,
      others.empty() ? "" : fmt::format(" (what else differs may explain it: {})", some_of(others)));
}

}  // namespace headroom::compare
