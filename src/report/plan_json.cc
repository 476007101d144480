// SPDX-License-Identifier: Apache-2.0
#include "report/json_values.h"
#include "report/plan.h"

namespace headroom::report {

namespace {

Json gain_json(const Gain& gain) {
  return {{"low", gain.low}, {"high", gain.high}, {"of", "time at equal work"}, {"if", gain.condition}};
}

Json option_json(const Option& option) {
  Json candidates = Json::array();
  for (const Cause cause : option.candidates) candidates.push_back(info(cause).id);
  return {{"id", option.id},
          {"finding", option.finding ? Json(*option.finding + 1) : Json(nullptr)},
          {"cause", option.cause ? Json(info(*option.cause).id) : Json(nullptr)},
          {"candidates", candidates},
          {"title", option.title},
          {"gain", option.promises ? gain_json(option.gain) : Json(nullptr)},
          {"why_no_gain", option.promises ? Json(nullptr) : Json(option.gain.condition)},
          {"safety", info(option.safety).name},
          {"why_safe", option.why_safe},
          {"effort", option.effort},
          {"apply", option.apply},
          {"verify", option.verify},
          {"undo", option.undo},
          {"setting", optional_json(option.setting)},
          {"outcomes", option.outcomes}};
}

}  // namespace

std::string to_json(const Plan& plan) {
  Json options = Json::array(), after = Json::array(), projections = Json::array();
  for (const Option& option : plan.options) options.push_back(option_json(option));
  for (const OptionsTogether& step : plan.after)
    after.push_back({{"options", step.options}, {"gain", gain_json(step.gain)}});
  for (const Projection& p : plan.projections)
    projections.push_back(
        {{"what", p.what}, {"low_seconds", p.low_seconds}, {"high_seconds", p.high_seconds}, {"if", p.condition}});
  return dump({{"schema", "headroom.plan/1"},
               {"recording",
                {{"path", plan.recording},
                 {"id", plan.recording_id},
                 {"start_ns", plan.start},
                 {"command", plan.command},
                 {"directory", plan.directory},
                 {"seconds", plan.seconds},
                 {"steps", optional_json(plan.work)},
                 {"goes_on", plan.goes_on},
                 {"ended_badly", text_json(plan.ended_badly)}}},
               {"nothing", text_json(plan.nothing)},
               {"options", options},
               {"after", after},
               {"flips", text_json(plan.flips)},
               {"projections", projections}});
}

}  // namespace headroom::report
