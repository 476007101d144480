// SPDX-License-Identifier: Apache-2.0
#include "compare/plan_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/strings.h"

namespace headroom::compare {

namespace {

using PlanJson = nlohmann::json;

std::string word_of(const PlanJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_of(const PlanJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

const PlanJson& list_of(const PlanJson& object, const char* key) {
  static const PlanJson kNone = PlanJson::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
}

std::optional<Cause> cause_of(const std::string& id) {
  for (const CauseInfo& cause : all_causes())
    if (cause.id == id) return cause.cause;
  return std::nullopt;
}

// Factors of time: {"gain": {"low": 1.1, "high": 1.4}}.
Result<Gain> gain_of(const PlanJson& object, const std::string& of) {
  const auto gain = object.find("gain");
  if (gain != object.end() && gain->is_object()) {
    const auto low = number_of(*gain, "low"), high = number_of(*gain, "high");
    if (low && high && *low > 0 && *high >= *low) return Gain{.low = *low, .high = *high};
  }
  return fail(Errc::kInvalidInput, fmt::format("the gain of {} is no interval of factors", of),
              "write the plan again: headroom plan REC --json > plan.json");
}

// "batch_size=32:128"
std::optional<std::pair<double, double>> batch_of(std::string_view setting) {
  constexpr std::string_view kSizes = "batch_size=";
  const auto colon = setting.find(':');
  if (!setting.starts_with(kSizes) || colon == std::string_view::npos) return std::nullopt;
  const auto from = parse_number<double>(setting.substr(kSizes.size(), colon - kSizes.size())),
             to = parse_number<double>(setting.substr(colon + 1));
  if (!from || !to || !(*from > 0) || !(*to > 0) || !std::isfinite(*from) || !std::isfinite(*to)) return std::nullopt;
  return std::pair(*from, *to);
}

Safety safety_of(const std::string& name) {
  for (const SafetyInfo& safety : kSafeties)
    if (safety.name == name) return safety.id;
  return Safety::kSafe;
}

Result<Option> option_of(const PlanJson& json, std::size_t number) {
  Option option;
  if (json.is_object()) option.id = word_of(json, "id");
  if (option.id.empty())
    return fail(Errc::kInvalidInput, fmt::format("option {} has no id", number),
                "write the plan again: headroom plan REC --json > plan.json");
  const auto gain = json.find("gain");
  option.promises = gain != json.end() && !gain->is_null();
  if (option.promises) {
    HR_TRY(option.gain, gain_of(json, "option " + option.id));
  }
  option.title = word_of(json, "title"), option.safety = safety_of(word_of(json, "safety"));
  option.cause = cause_of(word_of(json, "cause"));
  option.batch_sizes = batch_of(word_of(json, "setting"));
  return option;
}

}  // namespace

Result<Plan> read_plan(std::string_view text) {
  const PlanJson json = parse_json<PlanJson>(text);
  const std::string schema = json.is_object() ? word_of(json, "schema") : "";
  if (!schema.starts_with("headroom.plan/"))
    return fail(Errc::kInvalidInput, json.is_discarded() ? "it is no JSON" : "it is no answer of headroom plan",
                "headroom plan REC --json > plan.json writes one");
  if (schema != "headroom.plan/1")
    return fail(Errc::kUnsupported, fmt::format("it is of a newer version ({})", schema),
                "use that version of headroom");
  Plan plan;
  plan.recording = word_of(json, "recording");
  if (const auto recording = json.find("recording"); recording != json.end() && recording->is_object())
    plan.recording = word_of(*recording, "path");
  std::size_t number = 0;
  for (const PlanJson& option : list_of(json, "options")) {
    HR_TRY(Option planned, option_of(option, ++number));
    plan.options.push_back(std::move(planned));
  }
  for (const PlanJson& together : list_of(json, "after")) {
    if (!together.is_object()) continue;
    OptionsTogether planned;
    for (const PlanJson& id : list_of(together, "options"))
      if (id.is_string()) planned.options.push_back(id.get<std::string>());
    auto gain = gain_of(together, "a combination");
    if (!gain) continue;  // it is only needed where it was applied
    planned.gain = std::move(*gain);
    std::sort(planned.options.begin(), planned.options.end());
    plan.after.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace headroom::compare
