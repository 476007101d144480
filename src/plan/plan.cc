// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/candidates.h"
#include "plan/projections.h"
#include "plan/rank.h"
#include "plan/step_model.h"

namespace headroom {

namespace {

// Of one job; what became of tasks is said where their batch is.
std::string ended_badly(const Explanation& e) {
  if (e.batch) return "";
  for (const HealthCheck& check : e.health)
    if (check.check == "ended_well" && check.good == Answer::kNo) return check.evidence;
  return "";
}

// Why there is no change to advise.
std::string why_nothing(const Explanation& e) {
  for (const Finding& finding : e.findings)
    if (finding.cause == Cause::kHealthy)
      return fmt::format("Healthy: no change is worth its risk ({})", finding.evidence.front());
  if (e.ledger.budget() == 0) return "No GPU was recorded: nothing to plan for";
  if (e.too_few)
    return "It was looked at too seldom, or for too short a time, to plan from it: log for minutes, once a second, or "
           "record the job itself (headroom run -- CMD)";
  const bool any = std::any_of(e.findings.begin(), e.findings.end(), [](const Finding& f) { return f.cost() > 0; });
  if (!any && !ended_badly(e).empty())
    return "What the job computed before it failed may be lost; beside that no loss is large enough to be worth a "
           "change";
  if (!any) return "No loss is large enough to be worth a change";
  return "Nothing that was found has a change against it that this recording bounds";
}

}  // namespace

namespace {

// Whether a frame is a call of a function in this file: an import runs its module and the bodies of its classes.
bool calls_into(std::string_view frame, std::string_view file) {
  const std::string_view name = frame.substr(0, frame.find(' '));
  const bool body = name.starts_with('<') ||
                    (!name.empty() && name[0] >= 'A' && name[0] <= 'Z' && name.find('.') == std::string_view::npos);
  return !body && frame.find(file) != std::string_view::npos;
}

}  // namespace

Loader loader_of(const Recording& recording) {
  if (recording.meta.tiers.find('Y') == std::string::npos) return Loader::kUnknown;
  const auto in_frames = [&](std::string_view file) {
    return std::any_of(recording.texts.begin(), recording.texts.end(),
                       [&](const std::string& text) { return calls_into(text, file); });
  };
  if (in_frames("torch/utils/data/")) return Loader::kDataLoader;
  return in_frames("multiprocessing/pool.py") ? Loader::kPool : Loader::kOther;
}

Plan plan(const Explanation& e, const PlanRequest& request) {
  Plan plan;
  plan.recording = e.path;
  plan.recording_id = e.meta.id;
  plan.command = e.meta.command;
  plan.directory = e.meta.cwd;
  plan.start = e.meta.start_realtime;
  plan.seconds = seconds(planning::time_of_job(e));
  plan.goes_on = goes_on(e.meta);
  plan.ended_badly = ended_badly(e);
  if (e.work) plan.work = e.work->steps;
  const planning::StepModel model = planning::step_model(e);
  auto candidates = planning::candidates(e, model, request);
  planning::give_gains(model, candidates);
  planning::rank(candidates);
  plan.after = planning::together(model, candidates);
  plan.flips = planning::what_flips(candidates);
  const bool asked = request.batch || request.workers || request.tasks;
  const Gain all = planning::gain_of_all(model, candidates);
  plan.projections = planning::projections(e, request, {asked ? planning::gain_of_asked(model, candidates) : all, all});
  for (planning::Candidate& one : candidates) plan.options.push_back(std::move(one.option));
  const bool any = std::any_of(plan.options.begin(), plan.options.end(), [](const Option& option) {
    return option.promises ? option.gain.high > 1 : option.cause.has_value();
  });
  if (!any) plan.nothing = why_nothing(e);
  return plan;
}

}  // namespace headroom
