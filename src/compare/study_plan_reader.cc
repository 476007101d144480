// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/strings.h"
#include "compare/study_verify.h"

namespace headroom::compare {

namespace {

using StudyJson = nlohmann::json;

constexpr const char* kAgain = "write it again: headroom study STORAGE -o plan.json";

const StudyJson& member(const StudyJson& object, const char* key) {
  static const StudyJson kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_at(const StudyJson& object, const char* key) {
  const StudyJson& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

std::optional<double> number_at(const StudyJson& object, const char* key) {
  const StudyJson& value = member(object, key);
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> integer_at(const StudyJson& object, const char* key) {
  const StudyJson& value = member(object, key);
  return value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

bool yes_at(const StudyJson& object, const char* key) {
  const StudyJson& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

std::optional<Estimate> estimate_at(const StudyJson& object, const char* key) {
  const StudyJson& value = member(object, key);
  const auto low = number_at(value, "low"), middle = number_at(value, "estimate"), high = number_at(value, "high");
  if (!low || !middle || !high || *low > *high) return std::nullopt;
  return Estimate{.low = *low, .value = *middle, .high = *high};
}

Result<FirstTrials> first_of(const StudyJson& json, const std::string& change) {
  const auto trials = integer_at(json, "trials");
  const auto rate = estimate_at(json, "trials_per_hour"), pruned = estimate_at(json, "pruned_ratio"),
             length = estimate_at(json, "trial_seconds"), at_once = estimate_at(json, "trials_at_once");
  if (!trials || *trials <= 0 || !rate || !pruned || !length || !at_once)
    return fail(Errc::kInvalidInput, fmt::format("what it predicts of the first trials of '{}' is no range", change),
                kAgain);
  return FirstTrials{.trials = *trials,
                     .trials_per_hour = *rate,
                     .pruned_share = *pruned,
                     .trial_seconds = *length,
                     .at_once = *at_once};
}

std::optional<PrunerSettings> pruner_of(const StudyJson& json) {
  constexpr std::array kNames{"none", "median", "percentile", "successive_halving", "hyperband", "threshold"};
  const auto kind = std::find(kNames.begin(), kNames.end(), text_at(json, "kind"));
  if (kind == kNames.end()) return std::nullopt;
  PrunerSettings s{.kind = static_cast<PrunerKind>(kind - kNames.begin())};
  s.patience = integer_at(json, "patience"), s.min_delta = number_at(json, "min_delta").value_or(s.min_delta);
  s.min_resource = integer_at(json, "min_resource"), s.max_resource = integer_at(json, "max_resource");
  for (const auto& [key, to] :
       {std::pair("reduction_factor", &s.reduction_factor),
        std::pair("min_early_stopping_rate", &s.min_early_stopping_rate),
        std::pair("bootstrap_count", &s.bootstrap_count), std::pair("n_startup_trials", &s.n_startup_trials),
        std::pair("n_min_trials", &s.n_min_trials), std::pair("n_warmup_steps", &s.n_warmup_steps),
        std::pair("interval_steps", &s.interval_steps)})
    *to = integer_at(json, key).value_or(*to);
  s.percentile = number_at(json, "percentile").value_or(s.percentile);
  s.lower = number_at(json, "lower"), s.upper = number_at(json, "upper");
  return s;
}

Result<WhatIf> what_if_of(const StudyJson& json) {
  WhatIf row{.change = text_at(json, "change")};
  if (row.change.empty()) return fail(Errc::kInvalidInput, "a change of its what-if has no name", kAgain);
  const auto pruned = estimate_at(json, "pruned_ratio"), length = estimate_at(json, "trial_seconds"),
             at_once = estimate_at(json, "trials_at_once");
  const auto rate = number_at(json, "trials_per_hour"), low = number_at(json, "trials_per_hour_low"),
             high = number_at(json, "trials_per_hour_high");
  if (!pruned || !length || !at_once || !rate || !low || !high || !member(json, "first").is_array())
    return fail(Errc::kInvalidInput, fmt::format("it does not say what it predicts of '{}'", row.change), kAgain);
  row.trials_per_hour = {.low = *low, .value = *rate, .high = *high};
  row.pruned_share = *pruned, row.trial_seconds = *length, row.at_once = *at_once;
  row.memory_at_once_bytes = estimate_at(json, "memory_at_once_bytes");
  row.best_reached = number_at(json, "best_reached_ratio").value_or(0);
  if (const auto best = estimate_at(json, "time_to_best_seconds"))
    row.time_to_best_seconds = *best;
  else
    row.best_reached = 0;
  row.helps = yes_at(json, "helps");
  row.pruner = pruner_of(member(json, "pruner"));
  for (const StudyJson& one : member(json, "first")) {
    HR_TRY(FirstTrials first, first_of(one, row.change));
    row.first.push_back(first);
  }
  return row;
}

StudyParameter parameter_of(const StudyJson& json) {
  StudyParameter parameter{.space = {.name = text_at(json, "name")}, .trials = integer_at(json, "trials").value_or(0)};
  ParameterSpace& space = parameter.space;
  const std::string kind = text_at(json, "kind");
  space.kind = kind == "categorical" ? ParameterKind::kCategorical
               : kind == "int"       ? ParameterKind::kInt
                                     : ParameterKind::kFloat;
  space.low = number_at(json, "low").value_or(0), space.high = number_at(json, "high").value_or(0);
  space.step = number_at(json, "step");
  space.log = yes_at(json, "log");
  if (const StudyJson& choices = member(json, "choices"); choices.is_array())
    for (const StudyJson& choice : choices)
      if (choice.is_string()) space.choices.push_back(choice.get<std::string>());
  return parameter;
}

Result<StudyReport> study_of(const StudyJson& json) {
  StudyReport study;
  study.name = text_at(json, "name"), study.storage = text_at(json, "storage");
  study.trials = integer_at(json, "trials").value_or(0);
  study.begin = integer_at(json, "begin_ns");
  for (const StudyJson& direction : member(json, "directions"))
    if (direction.is_string())
      if (const auto known = direction_of(direction.get<std::string>())) study.directions.push_back(*known);
  for (std::size_t i = 0; i < kTrialStates; ++i) {
    const auto state = static_cast<TrialState>(i);
    study.states.push_back(
        {.state = state,
         .count = integer_at(member(json, "states"), std::string(trial_state_name(state)).c_str()).value_or(0)});
  }
  for (const StudyJson& parameter : member(json, "parameters")) study.parameters.push_back(parameter_of(parameter));
  if (const auto value = number_at(member(json, "best"), "value")) study.best.push_back({.value = *value});
  const StudyJson& changes = member(json, "what_if");
  if (!changes.is_array() || changes.empty() || !member(json, "as_it_is").is_object()) {
    const std::string why = text_at(member(json, "calibration"), "why");
    return fail(Errc::kInvalidInput,
                fmt::format("it has no what-if of study {}{}", study.name, why.empty() ? "" : ": " + why), kAgain);
  }
  HR_TRY(study.as_it_is, what_if_of(member(json, "as_it_is")));
  for (const StudyJson& change : changes) {
    HR_TRY(WhatIf row, what_if_of(change));
    study.what_if.push_back(std::move(row));
  }
  return study;
}

std::string schema_of(const StudyJson& json) { return text_at(json, "schema"); }

}  // namespace

bool is_study_plan(std::string_view text) {
  return schema_of(parse_json<StudyJson>(text)).starts_with("headroom.study/");
}

Result<StudyReport> read_study_plan(std::string_view text) {
  const StudyJson json = parse_json<StudyJson>(text);
  if (schema_of(json) != "headroom.study/1")
    return fail(Errc::kUnsupported, fmt::format("it is of a newer version ({})", schema_of(json)),
                "use that version of headroom");
  const StudyJson& studies = member(json, "studies");
  if (!studies.is_array() || studies.empty()) return fail(Errc::kInvalidInput, "it has no study in it", kAgain);
  if (studies.size() == 1) return study_of(studies.front());
  std::vector<std::string> names;
  for (const StudyJson& study : studies) names.push_back(text_at(study, "name"));
  return fail(Errc::kInvalidInput,
              fmt::format("it has {} studies, and a plan is of one: {}", names.size(), join(names, ", ")),
              "write one of them: headroom study STORAGE --study NAME -o plan.json");
}

}  // namespace headroom::compare
