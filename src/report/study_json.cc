// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "report/json_values.h"
#include "report/study.h"

namespace headroom::report {

namespace {

// JSON has no infinities and no NaN: those are null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

// 0..1: sums of shares end a little beyond.
Json ratio(double value) { return number(std::clamp(value, 0.0, 1.0)); }

Json ratio(const std::optional<double>& value) { return value ? ratio(*value) : Json(nullptr); }

Json quantiles_json(const Quantiles& q) {
  if (q.count == 0) return nullptr;
  return {{"count", q.count},     {"min", number(q.min)}, {"p10", number(q.p10)},
          {"p50", number(q.p50)}, {"p90", number(q.p90)}, {"max", number(q.max)}};
}

Json estimate_json(const std::optional<Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"estimate", number(estimate->value)}, {"low", number(estimate->low)}, {"high", number(estimate->high)}};
}

template <class Of>
Json by_state(const StudyReport& report, Of of) {
  Json object = Json::object();
  for (std::size_t i = 0; i < kTrialStates; ++i) {
    const auto state = static_cast<TrialState>(i);
    const auto facts = std::find_if(report.states.begin(), report.states.end(),
                                    [&](const StateFacts& one) { return one.state == state; });
    object[std::string(trial_state_name(state))] =
        of(facts != report.states.end() ? *facts : StateFacts{.state = state});
  }
  return object;
}

Json counts_json(const std::array<double, kTrialStates>& counts) {
  Json object = Json::object();
  for (std::size_t i = 0; i < counts.size(); ++i)
    object[std::string(trial_state_name(static_cast<TrialState>(i)))] = number(counts[i]);
  return object;
}

Json clock_json(const StudyClock& clock) {
  return {{"offset_ns", clock.offset}, {"known", clock.known}, {"how", clock.how}};
}

Json inferred_json(const Inferred& inferred) {
  return {{"text", inferred.text}, {"told", inferred.told}, {"evidence", text_json(inferred.evidence)}};
}

Json startup_json(const StartupFacts& startup) {
  Json json = estimate_json(startup.inside_seconds);
  if (json.is_null()) json = {{"estimate", nullptr}, {"low", nullptr}, {"high", nullptr}};
  const std::string unknown = startup.inside_seconds || startup.method.empty() ? "" : "unknown: ";
  const std::string more = startup.borne_out.empty() ? "" : "; " + startup.borne_out;
  json["method"] = text_json(unknown + startup.method + more);
  return json;
}

Json step_json(const StepTimeFacts& step) {
  return {{"seconds", estimate_json(step.seconds)},
          {"parameter", text_json(step.parameter)},
          {"explained_ratio", step.parameter.empty() ? Json(nullptr) : ratio(step.explained)},
          {"direction", text_json(step.direction)}};
}

Json parallelism_json(const ParallelismFacts& p) {
  Json open = Json::array();
  for (const auto& [since_begin, count] : p.open) open.push_back({{"since_begin_ns", since_begin}, {"running", count}});
  Json fewer = Json::array();
  for (const auto& [since_begin, count] : p.fewer)
    fewer.push_back({{"since_begin_seconds", number(since_begin)}, {"workers", count}});
  return {{"running_mean", number(p.open_mean)},
          {"alive_mean", number(p.alive_mean)},
          {"computing_mean", number(p.computing_mean)},
          {"any_computing_ratio", ratio(p.any_computing)},
          {"running_max", p.open_max},
          {"workers", p.workers},
          {"workers_told", p.workers_told},
          {"workers_since", std::move(fewer)},
          {"parallel_since", p.since ? Json{{"trial", p.since->trial},
                                            {"since_begin_seconds", number(p.since->seconds)},
                                            {"running_max", p.since->most}}
                                     : Json(nullptr)},
          {"over_time", std::move(open)}};
}

Json worker_json(const WorkerTime& time) {
  return {{"total", number(time.total)},     {"useful", number(time.useful)}, {"discarded", number(time.discarded)},
          {"startup", number(time.startup)}, {"failed", number(time.failed)}, {"running", number(time.running)},
          {"idle", number(time.between)}};
}

Json best_json(const BestPoint& best) {
  return {{"value", number(best.value)},
          {"trial", best.trial},
          {"trials_finished", best.trials_finished},
          {"at_seconds", number(best.seconds)},
          {"worked_seconds", number(best.worked_seconds)}};
}

Json pruner_settings_json(const PrunerSettings& s) {
  constexpr std::array kNames{"none", "median", "percentile", "successive_halving", "hyperband", "threshold"};
  return {{"kind", kNames.at(static_cast<std::size_t>(s.kind))},
          {"patience", optional_json(s.patience)},
          {"min_delta", number(s.min_delta)},
          {"min_resource", optional_json(s.min_resource)},
          {"max_resource", optional_json(s.max_resource)},
          {"reduction_factor", s.reduction_factor},
          {"min_early_stopping_rate", s.min_early_stopping_rate},
          {"bootstrap_count", s.bootstrap_count},
          {"percentile", number(s.percentile)},
          {"n_startup_trials", s.n_startup_trials},
          {"n_min_trials", s.n_min_trials},
          {"n_warmup_steps", s.n_warmup_steps},
          {"interval_steps", s.interval_steps},
          {"lower", number(s.lower)},
          {"upper", number(s.upper)}};
}

template <class List, class Of>
Json list_json(const List& all, Of of) {
  Json list = Json::array();
  for (const auto& one : all) list.push_back(of(one));
  return list;
}

Json first_json(const FirstTrials& first) {
  return {{"trials", first.trials},
          {"trials_per_hour", estimate_json(first.trials_per_hour)},
          {"pruned_ratio", estimate_json(first.pruned_share)},
          {"trial_seconds", estimate_json(first.trial_seconds)},
          {"trials_at_once", estimate_json(first.at_once)}};
}

Json what_if_json(const WhatIf& row) {
  const bool reached = row.best_reached > 0;
  return {{"change", row.change},
          {"how", row.how},
          {"trials_per_hour", number(row.trials_per_hour.value)},
          {"trials_per_hour_low", number(row.trials_per_hour.low)},
          {"trials_per_hour_high", number(row.trials_per_hour.high)},
          {"utilisation", ratio(row.utilisation.value)},
          {"utilisation_low", ratio(row.utilisation.low)},
          {"utilisation_high", ratio(row.utilisation.high)},
          {"time_to_best_ratio", reached ? number(row.time_to_best_ratio.value) : Json(nullptr)},
          {"low", reached ? number(row.time_to_best_ratio.low) : Json(nullptr)},
          {"high", reached ? number(row.time_to_best_ratio.high) : Json(nullptr)},
          {"best_reached_ratio", ratio(row.best_reached)},
          {"time_to_best_seconds", reached ? estimate_json(row.time_to_best_seconds) : Json(nullptr)},
          {"pruned_ratio", estimate_json(row.pruned_share)},
          {"trial_seconds", estimate_json(row.trial_seconds)},
          {"trials_at_once", estimate_json(row.at_once)},
          {"first", list_json(row.first, first_json)},
          {"gpu_hours", number(row.gpu_hours)},
          {"memory_bytes", optional_json(row.memory_bytes)},
          {"memory_at_once_bytes", estimate_json(row.memory_at_once_bytes)},
          {"pruner", row.pruner ? pruner_settings_json(*row.pruner) : Json(nullptr)},
          {"cores", number(row.cores)},
          {"states", counts_json(row.states)},
          {"safety", info(row.safety).name},
          {"why_safety", row.why},
          {"fits", row.fits},
          {"helps", row.helps}};
}

Json calibration_json(const Calibration& c) {
  return {{"good", c.good},
          {"why", text_json(c.why)},
          {"replays", c.replays},
          {"observed", counts_json(c.observed)},
          {"replayed", counts_json(c.replayed)},
          {"observed_seconds", number(c.observed_seconds)},
          {"replayed_seconds", estimate_json(c.replayed_seconds)}};
}

Json recording_json(const StudyRecording& r) {
  return {{"path", r.path},
          {"covered_ratio", ratio(r.covered)},
          {"gpu_busy_ratio", ratio(r.gpu_busy)},
          {"discarded_gpu_ns", optional_json(r.gpu_discarded)},
          {"memory_per_trial_bytes", optional_json(r.memory_per_trial_bytes)},
          {"memory_at_once_bytes", optional_json(r.memory_at_once_bytes)},
          {"trials_matched", r.trials_matched},
          {"shared", r.shared}};
}

Json random_start_json(const RandomStart& start) {
  return {{"needed", start.needed},
          {"per_bracket", start.per_bracket},
          {"trials", start.over ? Json(start.trials) : Json(nullptr)}};
}

Json parameter_json(const StudyParameter& parameter) {
  constexpr std::array kKinds{"float", "int", "categorical"};
  const ParameterSpace& space = parameter.space;
  const bool categorical = space.kind == ParameterKind::kCategorical;
  return {{"name", space.name},
          {"kind", kKinds.at(static_cast<std::size_t>(space.kind))},
          {"low", categorical ? Json(nullptr) : number(space.low)},
          {"high", categorical ? Json(nullptr) : number(space.high)},
          {"step", number(space.step)},
          {"log", space.log},
          {"choices", space.choices},
          {"trials", parameter.trials}};
}

Json failures_json(const FailureGroup& f) {
  return {{"where", f.where},
          {"failed", f.failed},
          {"of", f.of},
          {"before_first_step", f.before_first_step},
          {"said_out_of_memory", f.said_out_of_memory},
          {"memory_full", f.memory_full},
          {"trials", f.trials}};
}

Json bar_json(const TrialBar& bar) {
  return {{"trial", bar.trial},
          {"state", trial_state_name(bar.state)},
          {"lane", bar.lane},
          {"begin_seconds", number(bar.begin)},
          {"first_step_seconds", number(bar.first_step)},
          {"end_seconds", number(bar.end)},
          {"dead", bar.dead}};
}

Json study_json(const StudyReport& report) {
  Json json{{"name", report.name},
            {"storage", report.storage},
            {"engine", report.engine},
            {"directions", list_json(report.directions, [](Direction d) { return direction_name(d); })},
            {"trials", report.trials},
            {"running_now", report.live},
            {"begin_ns", optional_json(report.begin)},
            {"end_ns", optional_json(report.end)},
            {"clock", clock_json(report.clock)}};
  json["states"] = by_state(report, [](const StateFacts& f) { return Json(f.count); });
  json["duration_seconds"] = by_state(report, [](const StateFacts& f) { return quantiles_json(f.duration_seconds); });
  json["steps"] = by_state(report, [](const StateFacts& f) { return quantiles_json(f.steps); });
  json["state_worker_seconds"] = by_state(report, [](const StateFacts& f) { return number(f.worker_seconds); });
  json["gpu_ns"] = by_state(report, [](const StateFacts& f) { return optional_json(f.gpu); });
  json["pruner"] = inferred_json(report.pruner);
  json["pruner"]["settings"] = report.pruner_settings ? pruner_settings_json(*report.pruner_settings) : Json(nullptr);
  json["sampler"] = inferred_json(report.sampler);
  json["random_start"] = report.random_start ? random_start_json(*report.random_start) : Json(nullptr);
  json["parameters"] = list_json(report.parameters, parameter_json);
  json["startup_seconds"] = startup_json(report.startup);
  json["startup_between_seconds"] = estimate_json(report.startup.between_seconds);
  json["startup_share"] = ratio(report.startup.share);
  json["step_time"] = step_json(report.step_time);
  json["parallelism"] = parallelism_json(report.parallelism);
  json["paused_seconds"] = number(report.paused_seconds);
  json["worker_seconds"] = worker_json(report.worker_time);
  json["failures"] = list_json(report.failures, failures_json);
  json["rungs"] = list_json(report.rungs, [](const RungFacts& r) {
    return Json{
        {"bracket", r.bracket}, {"rung", r.rung}, {"step", r.step}, {"reached", r.reached}, {"promoted", r.promoted}};
  });
  json["best"] = report.best.empty() ? Json(nullptr) : best_json(report.best.back());
  json["best_over_time"] = list_json(report.best, best_json);
  json["pareto"] = report.pareto;
  json["anomalies"] = list_json(report.anomalies, [](const StudyAnomaly& a) {
    return Json{{"kind", a.kind}, {"text", a.text}, {"next", text_json(a.next)}, {"trials", a.trials}};
  });
  json["calibration"] = calibration_json(report.calibration);
  json["as_it_is"] = report.as_it_is ? what_if_json(*report.as_it_is) : Json(nullptr);
  json["utilisation_of"] = report.utilisation_of_gpu       ? "kernels"
                           : report.startup.inside_seconds ? "trials_past_start_up"
                                                           : "trials_open";
  json["what_if"] = list_json(report.what_if, what_if_json);
  json["assumptions"] = report.assumptions;
  json["recording"] = report.recording ? recording_json(*report.recording) : Json(nullptr);
  json["left_out"] = report.left_out;
  json["timeline"] = list_json(report.bars, bar_json);
  return json;
}

}  // namespace

std::string to_json(const std::vector<StudyReport>& studies) {
  return dump({{"schema", "headroom.study/1"}, {"studies", list_json(studies, study_json)}}, 1);
}

}  // namespace headroom::report
