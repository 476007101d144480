// SPDX-License-Identifier: Apache-2.0
// Prints what read_storage() made of a storage as JSON, for tests that compare it with what Optuna itself reads:
// storage_dump NAME [STUDY]. Numbers that JSON does not have are the texts "nan", "inf" and "-inf".
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "storage/storage.h"

namespace headroom {

namespace {

using Json = nlohmann::json;

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

template <class T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json trial_json(const Study& study, const Trial& trial) {
  Json json{{"number", trial.number},
            {"state", trial_state_name(trial.state)},
            {"start", optional(trial.start)},
            {"complete", optional(trial.complete)},
            {"heartbeat", optional(trial.heartbeat)},
            {"retry_of", optional(trial.retry_of)},
            {"enqueued", trial.enqueued},
            {"worker", trial.worker ? Json(study.workers.at(*trial.worker)) : Json()},
            {"values", Json::array()},
            {"reports", Json::array()},
            {"constraints", Json::array()},
            {"rungs", Json::object()},
            {"parameters", Json::object()}};
  for (const double value : trial.values) json["values"].push_back(number(value));
  for (const double value : trial.constraints) json["constraints"].push_back(number(value));
  for (const StepReport& report : reports_of(study, trial))
    json["reports"].push_back(Json::array({report.step, number(report.value)}));
  for (const auto& [rung, value] : trial.rungs) json["rungs"][std::to_string(rung)] = number(value);
  for (const ParameterValue& parameter : parameters_of(study, trial)) {
    const ParameterSpace& space = study.spaces.at(parameter.space);
    const bool category = space.kind == ParameterKind::kCategorical;
    json["parameters"][space.name] = {
        {"value",
         category ? Json(space.choices.at(static_cast<std::size_t>(parameter.value))) : number(parameter.value)},
        {"kind", category                            ? "categorical"
                 : space.kind == ParameterKind::kInt ? "int"
                                                     : "float"},
        {"low", space.low},
        {"high", space.high},
        {"log", space.log},
        {"step", optional(space.step)},
        {"choices", space.choices}};
  }
  return json;
}

Json study_json(const Study& study) {
  Json json{{"name", study.name},          {"storage", study.storage},
            {"schema", study.schema},      {"library_version", study.library_version},
            {"left_out", study.left_out},  {"metric_names", study.metric_names},
            {"workers", study.workers},    {"written", optional(study.written)},
            {"directions", Json::array()}, {"trials", Json::array()}};
  for (const Direction direction : study.directions) json["directions"].push_back(direction_name(direction));
  for (const Trial& trial : study.trials) json["trials"].push_back(trial_json(study, trial));
  return json;
}

int dump(int count, char** arguments) {
  if (count < 2) return std::fprintf(stderr, "usage: %s NAME [STUDY]\n", arguments[0]), 2;
  StorageRequest request{.name = arguments[1]};
  if (count > 2) request.study = arguments[2];
  const auto content = read_storage(request);
  if (!content) {
    std::fprintf(stderr, "%s\n%s\n", content.error().what.c_str(), content.error().hint.c_str());
    return 1;
  }
  Json json{{"engine", content->engine}, {"studies", Json::array()}};
  for (const Study& study : content->studies) json["studies"].push_back(study_json(study));
  std::puts(json.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  return 0;
}

}  // namespace

}  // namespace headroom

int main(int count, char** arguments) { return headroom::dump(count, arguments); }
