// SPDX-License-Identifier: Apache-2.0
#include "tune/duplicates.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <unordered_map>

#include "base/fnv.h"

namespace headroom::tune {

namespace {

// Spreads every bit of its argument over all of the result (the finisher of SplitMix64, Steele et al. 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::uint64_t value_hash(const ParameterSpace& space, double value) {
  const bool category =
      space.kind == ParameterKind::kCategorical && value >= 0 && value < static_cast<double>(space.choices.size());
  if (category) return fnv1a(space.choices[static_cast<std::size_t>(value)]);
  return std::bit_cast<std::uint64_t>(value);
}

}  // namespace

std::vector<RepeatedTrial> repeated_trials(const Study& study) {
  std::vector<std::uint64_t> names;
  for (const ParameterSpace& space : study.spaces) names.push_back(fnv1a(space.name));
  struct Seen {
    std::size_t first = 0;
    bool only_failed = false;
  };
  std::unordered_map<std::uint64_t, Seen> seen;  // by parameters
  std::vector<RepeatedTrial> repeated;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    if (trial.parameters == 0 || trial.state == TrialState::kWaiting) continue;
    std::uint64_t sum = 0;  // in any order
    for (const ParameterValue& parameter : parameters_of(study, trial))
      if (parameter.space < names.size())
        sum += mixed(names[parameter.space] + mixed(value_hash(study.spaces[parameter.space], parameter.value)));
    const bool failed = trial.state == TrialState::kFail;
    const auto [before, is_new] = seen.try_emplace(sum, Seen{i, failed});
    if (!is_new && !trial.enqueued && !trial.retry_of)
      repeated.push_back({i, before->second.first, before->second.only_failed});
    before->second.only_failed = before->second.only_failed && failed;
  }
  return repeated;
}

bool in_the_same_order(const std::vector<RepeatedTrial>& repeated) {
  // Trials; how far they move where workers take turns; of so many values they seldom come near to such an order.
  constexpr std::size_t kEnough = 6, kNear = 3, kManyValues = 16;
  constexpr double kMost = 0.8;
  if (repeated.size() < kEnough) return false;
  std::size_t one_by_one = 0, nearly = 0;
  std::set<std::size_t> values{repeated.front().of};
  for (std::size_t k = 1; k < repeated.size(); ++k) {
    const RepeatedTrial &before = repeated[k - 1], &now = repeated[k];
    values.insert(now.of);
    const bool follows = now.trial - before.trial <= kNear;
    one_by_one += follows && now.of > before.of && now.of - before.of <= kNear;
    nearly += follows && std::max(now.of, before.of) - std::min(now.of, before.of) <= kNear;
  }
  const double most = kMost * static_cast<double>(repeated.size() - 1);
  return static_cast<double>(one_by_one) >= most ||
         (values.size() >= kManyValues && static_cast<double>(nearly) >= most);
}

}  // namespace headroom::tune
