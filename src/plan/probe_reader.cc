// SPDX-License-Identifier: Apache-2.0
#include "plan/probe_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/strings.h"

namespace headroom::planning {

namespace {

using Json = nlohmann::json;

const char* const kAgain = "write it again: headroom probe … --json > probe.json";

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

// Absent where it is null or not there.
Result<std::optional<ProbedTime>> time_of(const Json& value, const char* key) {
  const auto found = value.find(key);
  if (found == value.end() || found->is_null()) return std::optional<ProbedTime>();
  if (found->is_object()) {
    const ProbedTime time{number_of(*found, "value"), number_of(*found, "low"), number_of(*found, "high")};
    if (time.low > 0 && time.low <= time.value && time.value <= time.high && std::isfinite(time.high))
      return std::optional(time);
  }
  return fail(Errc::kInvalidInput,
              fmt::format("{} of the value {} is no time with its interval", key, text_of(value, "value")), kAgain);
}

}  // namespace

Result<ProbeReport> read_probe(std::string_view text) {
  const Json json = parse_json<Json>(text);
  const std::string schema = json.is_object() ? text_of(json, "schema") : "";
  if (!schema.starts_with("headroom.probe/"))
    return fail(Errc::kInvalidInput, json.is_discarded() ? "it is no JSON" : "it is no answer of headroom probe",
                "headroom probe … --json > probe.json writes one");
  if (schema != "headroom.probe/1")
    return fail(Errc::kUnsupported, fmt::format("it is of a newer version ({})", schema),
                "use that version of headroom");
  ProbeReport probe;
  probe.parameter = text_of(json, "parameter");
  const std::string best = text_of(json, "best");
  if (const auto rounds = json.find("complete_rounds"); rounds != json.end() && rounds->is_number_integer())
    probe.complete = static_cast<int>(std::clamp<std::int64_t>(rounds->get<std::int64_t>(), 0, 1'000'000));
  if (const auto values = json.find("values"); values != json.end() && values->is_array())
    for (const Json& one : *values) {
      if (!one.is_object()) continue;
      ProbedValue value;
      value.value = text_of(one, "value");
      HR_TRY(value.level, time_of(one, "seconds"));
      HR_TRY(value.to_best, time_of(one, "to_best"));
      if (!best.empty() && value.value == best && value.level) probe.best = probe.values.size();
      probe.values.push_back(std::move(value));
    }
  if (!probe.best) return fail(Errc::kInvalidInput, "it measured none of the values", kAgain);
  if (const auto line = json.find("batch_line"); line != json.end() && line->is_object()) {
    const BatchLine read{number_of(*line, "fixed_seconds"), number_of(*line, "per_sample_seconds"), std::nullopt};
    if (std::isfinite(read.fixed_seconds) && std::isfinite(read.per_sample_seconds)) probe.line = read;
  }
  return probe;
}

}  // namespace headroom::planning
