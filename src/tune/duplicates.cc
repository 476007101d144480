// SPDX-License-Identifier: Apache-2.0
#include "tune/duplicates.h"

#include <bit>
#include <cstdint>
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
  std::unordered_map<std::uint64_t, bool> only_failed;  // by parameters that were seen
  std::vector<RepeatedTrial> repeated;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    if (trial.parameters == 0 || trial.state == TrialState::kWaiting) continue;
    std::uint64_t sum = 0;  // in any order
    for (const ParameterValue& parameter : parameters_of(study, trial))
      if (parameter.space < names.size())
        sum += mixed(names[parameter.space] + mixed(value_hash(study.spaces[parameter.space], parameter.value)));
    const bool failed = trial.state == TrialState::kFail;
    const auto [before, is_new] = only_failed.try_emplace(sum, failed);
    if (!is_new && !trial.enqueued && !trial.retry_of) repeated.push_back({i, before->second});
    before->second = before->second && failed;
  }
  return repeated;
}

}  // namespace headroom::tune
