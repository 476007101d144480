// SPDX-License-Identifier: Apache-2.0
#include "tune/random_start.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"

namespace headroom::tune {

namespace {

// Of the call as it stands in the program; absent: no TPESampler ("TPE" for short), or a number that nobody can read.
std::optional<std::int64_t> startup_trials(std::string_view sampler) {
  constexpr std::string_view kFolder = "optuna.samplers.", kName = "TPE", kClass = "Sampler",
                             kArgument = "n_startup_trials";
  constexpr std::int64_t kDefault = 10;
  if (sampler.starts_with(kFolder)) sampler.remove_prefix(kFolder.size());
  if (!sampler.starts_with(kName)) return std::nullopt;
  sampler.remove_prefix(kName.size());
  if (sampler.starts_with(kClass)) sampler.remove_prefix(kClass.size());
  if (!sampler.empty() && sampler.front() != '(' && sampler.front() != ' ') return std::nullopt;
  const auto argument = sampler.find(kArgument);
  if (argument == std::string_view::npos) return kDefault;
  std::string_view rest = trim(sampler.substr(argument + kArgument.size()));
  if (!rest.starts_with('=')) return std::nullopt;
  rest.remove_prefix(1);
  const auto number = parse_number<std::int64_t>(trim(rest.substr(0, rest.find_first_of(",)"))));
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace

std::optional<RandomStart> random_start(std::string_view sampler, const Study& study,
                                        const std::optional<PrunerSettings>& pruner, const Timeline& timeline) {
  const auto needed = startup_trials(sampler);
  if (!needed || *needed == 0) return std::nullopt;
  RandomStart start{.needed = *needed,
                    .per_bracket = pruner && pruner->kind == PrunerKind::kHyperband && !pruner->patience};
  if (start.per_bracket) return start;
  std::vector<Nanos> seen;  // when a trial ended that counts
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const TrialState state = study.trials[i].state;
    if (timeline.spans[i].timed && (state == TrialState::kComplete || state == TrialState::kPruned))
      seen.push_back(timeline.spans[i].end);
  }
  start.over = static_cast<std::int64_t>(seen.size()) >= *needed;
  if (!start.over) return start;
  const auto last = seen.begin() + (*needed - 1);
  std::nth_element(seen.begin(), last, seen.end());
  start.trials = std::count_if(timeline.spans.begin(), timeline.spans.end(),
                               [&](const TrialSpan& span) { return span.timed && span.begin < *last; });
  return start;
}

}  // namespace headroom::tune
