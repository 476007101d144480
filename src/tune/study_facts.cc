// SPDX-License-Identifier: Apache-2.0
#include "tune/study_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "tune/anomalies.h"
#include "tune/best.h"
#include "tune/failures.h"
#include "tune/liveness.h"
#include "tune/parameter_columns.h"
#include "tune/pruner_guess.h"
#include "tune/pruner_text.h"
#include "tune/quantiles.h"
#include "tune/random_start.h"
#include "tune/rungs.h"
#include "tune/startup.h"
#include "tune/step_time.h"
#include "tune/worker_time.h"

namespace headroom::tune {

namespace {

std::string engine(const Study& study) {
  std::string text = study.storage == "sqlite"       ? "SQLite"
                     : study.storage == "postgresql" ? "PostgreSQL"
                     : study.storage == "journal"    ? "journal"
                                                     : study.storage;
  if (!study.schema.empty()) text += ", schema " + study.schema;
  if (!study.library_version.empty()) text += ", Optuna " + study.library_version;
  return text;
}

std::vector<StateFacts> states(const Study& study, const StudyOptions& options, const Timeline& timeline) {
  std::array<StateFacts, kTrialStates> facts;
  std::array<std::vector<double>, kTrialStates> durations, steps;
  std::array<bool, kTrialStates> computed{};
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    const TrialSpan& span = timeline.spans[i];
    const auto state = static_cast<std::size_t>(trial.state);
    ++facts[state].count;
    steps[state].push_back(static_cast<double>(trial.reports));
    if (span.timed) facts[state].worker_seconds += seconds(span.alive_until - span.begin);
    if (span.timed && is_finished(trial.state)) durations[state].push_back(seconds(span.duration()));
    const auto measured = options.measured.find(trial.number);
    if (measured == options.measured.end() || !measured->second.gpu) continue;
    facts[state].gpu = facts[state].gpu.value_or(0) + *measured->second.gpu;
    computed[state] |= measured->second.computed;
  }
  for (std::size_t state = 0; state < kTrialStates; ++state) {
    facts[state].state = static_cast<TrialState>(state);
    facts[state].duration_seconds = quantiles(std::move(durations[state]));
    facts[state].steps = quantiles(std::move(steps[state]));
    if (facts[state].gpu > 0 && !computed[state]) facts[state].gpu.reset();  // whose they were readings do not tell
  }
  return {facts.begin(), facts.end()};
}

std::vector<TrialBar> bars(const Study& study, const Timeline& timeline) {
  std::vector<TrialBar> bars;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const TrialSpan& span = timeline.spans[i];
    if (!span.timed) continue;
    bars.push_back({.trial = study.trials[i].number,
                    .state = study.trials[i].state,
                    .lane = span.lane,
                    .begin = seconds(span.begin - timeline.begin),
                    .first_step = seconds(span.first_step - timeline.begin),
                    .end = seconds(span.alive_until - timeline.begin),
                    .dead = span.dead != DeadBy::kNone});
  }
  return bars;
}

void add_pruner(const Study& study, const StudyOptions& options, StudyReport& report) {
  if (options.pruner) {
    report.pruner = {.text = pruner_text(*options.pruner), .told = true};
    report.pruner_settings = options.pruner;
    return;
  }
  PrunerGuess guess = guess_pruner(study);
  report.pruner = std::move(guess.said);
  report.pruner_settings = guess.settings;
}

void add_sampler(const StudyOptions& options, StudyReport& report) {
  report.sampler = {.text = options.sampler, .told = true};
  if (options.sampler.empty())
    report.sampler = {.text = "unknown", .evidence = "a storage does not keep it, and --sampler does not tell it"};
}

std::vector<StudyParameter> parameters(const Study& study) {
  std::vector<StudyParameter> found;
  for (const ParameterSpace& space : study.spaces) found.push_back({.space = space});
  for (const ParameterValue& value : study.parameters) ++found[value.space].trials;
  std::erase_if(found, [](const StudyParameter& one) { return one.trials == 0; });
  return found;
}

// Start-up inside trials and time of steps: each is needed for the other, so that they are found in turns.
StepModel add_steps(const Study& study, const StudyOptions& options, const std::vector<ParameterColumn>& columns,
                    StudyReport& report, Timeline& timeline) {
  constexpr int kTurns = 2;
  StepModel model = step_model(study, columns, timeline);
  for (int turn = 1;; ++turn) {
    report.startup = startup_inside(study, options, model, timeline);
    place_first_steps(study, options, report.startup, timeline);
    report.step_time = step_time(study, columns, model, timeline);
    const auto column = std::find_if(columns.begin(), columns.end(), [&](const ParameterColumn& one) {
      return one.name == report.step_time.parameter;
    });
    if (!model.line || column == columns.end() || turn == kTurns) return model;
    StepModel better = step_model_by(*column, study, timeline);
    if (!better.line) return model;
    model = std::move(better);
  }
}

// Workers, dead trials that the number of workers shows, and a worker for each trial.
void place(const Study& study, const StudyOptions& options, const StepModel& model, StudyReport& report,
           Timeline& timeline) {
  settle(study, options, model, timeline);
  find_left_behind(study, timeline);
  const Told told = options.workers ? Told::kYes : Told::kNo;
  const std::int64_t workers = options.workers.value_or(infer_workers(study, timeline));
  find_replaced(study, workers, told, timeline);
  place_first_steps(study, options, report.startup, timeline);
  place_lanes(study, timeline);
  timeline.stood_still = standstills(study, timeline);
  report.paused_seconds = seconds(timeline.paused(timeline.begin, timeline.end));
  report.parallelism = parallelism(timeline, workers, told, report.startup.inside_seconds.has_value());
  report.parallelism.since = parallel_since(study, timeline);
  const OpenCurve fewer = fewer_workers(timeline);
  for (const auto& [at, there] : fewer) report.parallelism.fewer.emplace_back(seconds(at - timeline.begin), there);
  report.worker_time = worker_time(study, timeline, workers, gone_workers(timeline));
  add_between(timeline, report.worker_time, report.startup);
}

void add_pareto(const Study& study, StudyReport& report) {
  if (auto front = pareto_front(study)) {
    report.pareto = std::move(*front);
    return;
  }
  const bool unset =
      std::find(study.directions.begin(), study.directions.end(), Direction::kNotSet) != study.directions.end();
  report.anomalies.push_back({.kind = "no_pareto_front",
                              .text = unset ? "an objective has no direction: no trial can be better than another"
                                            : "too many trials may be on the Pareto front to find it in short time"});
}

// Kernel time of trials that were pruned or failed; absent: it is not known of all of them.
std::optional<Nanos> discarded(const StudyReport& report) {
  std::optional<Nanos> sum;
  for (const TrialState state : {TrialState::kPruned, TrialState::kFail}) {
    const StateFacts& facts = report.states[static_cast<std::size_t>(state)];
    if (facts.count == 0) continue;
    if (!facts.gpu) return std::nullopt;
    sum = sum.value_or(0) + *facts.gpu;
  }
  return sum;
}

void add_recording(const Study& study, const StudyOptions& options, StudyReport& report) {
  report.recording = options.recording;
  if (!report.recording) return;
  if (!report.recording->gpu_discarded) report.recording->gpu_discarded = discarded(report);
  if (report.recording->trials_matched > 0) return;
  for (const Trial& trial : study.trials)
    report.recording->trials_matched += static_cast<std::int64_t>(options.measured.count(trial.number));
}

}  // namespace

StudyReport study_facts(const Study& study, const StudyOptions& options) {
  StudyReport report{.name = study.name,
                     .storage = options.storage,
                     .engine = engine(study),
                     .directions = study.directions,
                     .trials = static_cast<std::int64_t>(study.trials.size()),
                     .left_out = study.left_out};
  add_pruner(study, options, report);
  add_sampler(options, report);
  Timeline time = timeline(study, options);
  report.clock = time.clock;
  report.parameters = parameters(study);
  const std::vector<ParameterColumn> columns = parameter_columns(study);
  const StepModel model = add_steps(study, options, columns, report, time);
  report.step_time.relative = model.relative;
  place(study, options, model, report, time);
  if (time.any) {
    report.begin = time.begin + time.clock.offset;
    report.end = time.end + time.clock.offset;
  }
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    report.live |= !time.stopped && time.spans[i].timed && study.trials[i].state == TrialState::kRunning &&
                   time.spans[i].dead == DeadBy::kNone;
  report.states = states(study, options, time);
  report.random_start = random_start(options.sampler, study, report.pruner_settings, time);
  report.rungs = rung_facts(study, report.pruner_settings);
  report.best = best_over_time(study, time);
  report.failures = failure_groups(study, columns, options.measured);
  report.anomalies = anomalies(study, options, time, report, model);
  add_pareto(study, report);
  report.bars = bars(study, time);
  add_recording(study, options, report);
  return report;
}

}  // namespace headroom::tune
