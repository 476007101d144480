// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/json_values.h"
#include "report/plan.h"
#include "report/words.h"

namespace headroom::report {

namespace {

Json gain_json(const Gain& gain) {
  return {{"low", gain.low}, {"high", gain.high}, {"of", "time at equal work"}, {"if", gain.words()}};
}

// "task_file.gpu_memory=3.5GiB", "batch_size=32:128"
Json setting_json(const Option& option) {
  if (option.task_file) return fmt::format("task_file.{}={}", option.task_file->first, option.task_file->second);
  if (option.batch_sizes)
    return fmt::format("batch_size={:g}:{:g}", option.batch_sizes->first, option.batch_sizes->second);
  return nullptr;
}

Json option_json(const Option& option) {
  Json candidates = Json::array();
  for (const Cause cause : option.candidates) candidates.push_back(info(cause).id);
  return {{"id", option.id},
          {"finding", option.finding ? Json(*option.finding + 1) : Json(nullptr)},
          {"cause", option.cause ? Json(info(*option.cause).id) : Json(nullptr)},
          {"candidates", candidates},
          {"likeliest", option.likeliest ? Json(info(*option.likeliest).id) : Json(nullptr)},
          {"title", option.title},
          {"gain", option.promises ? gain_json(option.gain) : Json(nullptr)},
          {"why_no_gain", option.promises ? Json(nullptr) : Json(condition_words(option))},
          {"safety", info(option.safety).name},
          {"why_safe", option.why_safe},
          {"effort", option.effort},
          {"apply", option.apply},
          {"verify", option.verify},
          {"undo", option.undo},
          {"setting", setting_json(option)},
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
