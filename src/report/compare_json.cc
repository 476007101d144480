// SPDX-License-Identifier: Apache-2.0
#include "report/compare.h"
#include "report/json_values.h"
#include "report/requirements.h"

namespace headroom::report {

namespace {

Json side_json(const ComparedSide& side, bool comparable) {
  return {{"label", side.label},
          {"runs", side.runs},
          {"seconds", comparable ? Json(side.seconds) : Json(nullptr)},
          {"work", comparable ? optional_json(side.work) : Json(nullptr)},
          {"short_phases", side.short_phases}};
}

Json ratio_json(const Ratio& ratio, const std::string& unit) {
  return {{"value", ratio.value},
          {"low", ratio.low},
          {"high", ratio.high},
          {"of", "time per " + unit + ", B/A"},
          {"confidence", 0.95}};
}

Json parts_json(const std::vector<ComparedPart>& parts) {
  Json list = Json::array();
  for (const ComparedPart& part : parts)
    list.push_back({{"name", part.name}, {"a_seconds", part.a_seconds}, {"b_seconds", part.b_seconds}});
  return list;
}

}  // namespace

std::string to_json(const Comparison& c) {
  Json json{{"schema", "headroom.compare/1"}, {"comparable", c.comparable()}, {"differs", c.differs()}};
  json["reasons"] = Json::array();
  json["implausible"] = Json::array();
  for (const ComparedReason& reason : c.reasons) {
    json["reasons"].push_back({{"code", info(reason.reason).code}, {"refuses", reason.refuses}, {"text", reason.text}});
    if (reason.reason == CompareReason::kFasterWithMoreWork) json["implausible"].push_back(reason.text);
  }
  json["ratio"] = c.ratio ? ratio_json(*c.ratio, c.unit) : Json(nullptr);
  json["other"] = c.other ? ratio_json(c.other->ratio, c.other->unit) : Json(nullptr);
  json["unit"] = text_json(c.unit);
  json["pairs"] = c.pairs;
  json["method"] = text_json(c.method);
  json["a"] = side_json(c.a, c.comparable()), json["b"] = side_json(c.b, c.comparable());
  json["accounts"] = parts_json(c.accounts), json["phases"] = parts_json(c.phases);
  json["metrics"] = Json::array();
  for (const ComparedMetric& metric : c.metrics)
    json["metrics"].push_back({{"name", metric.name},
                               {"a", metric.a},
                               {"b", metric.b},
                               {"a_deviation", optional_json(metric.a_spread)},
                               {"b_deviation", optional_json(metric.b_spread)},
                               {"equal_work", metric.equal_work}});
  json["figures"] = figures_json(c.figures);
  json["memory"] = Json::array();
  for (const ComparedMemory& one : c.memory)
    json["memory"].push_back({{"code", info(one.fact).code}, {"text", one.text}});
  if (!c.requirements.empty()) json["requirements"] = requirements_json(c.requirements);
  json["parameters"] = Json::array();
  for (const ComparedParameter& parameter : c.parameters)
    json["parameters"].push_back({{"name", parameter.name},
                                  {"a", text_json(parameter.a)},
                                  {"b", text_json(parameter.b)},
                                  {"intended", parameter.intended}});
  json["artefacts"] = Json::array();
  for (const ComparedArtefact& artefact : c.artefacts)
    json["artefacts"].push_back(
        {{"name", artefact.name}, {"same", artefact.same}, {"difference", text_json(artefact.difference)}});
  json["valid_command"] = text_json(c.valid_command);
  json["valid_note"] = text_json(c.valid_note);
  return dump(json);
}

}  // namespace headroom::report
