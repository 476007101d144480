// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/human.h"
#include "base/iso_time.h"
#include "base/strings.h"
#include "report/palette.h"
#include "report/study_text.h"

namespace headroom::report {

namespace {

const StateFacts* facts_of(const StudyReport& report, TrialState state) {
  for (const StateFacts& facts : report.states)
    if (facts.state == state) return &facts;
  return nullptr;
}

std::string worker_hours(double seconds) {
  if (seconds >= 3600) return fmt::format("{:.1f} worker-hours", seconds / 3600);
  if (seconds >= 60) return fmt::format("{:.1f} worker-minutes", seconds / 60);
  return fmt::format("{:.1f} worker-seconds", seconds);
}

std::string direction_word(const StudyReport& report) {
  if (report.directions.empty() || report.directions.front() == Direction::kNotSet) return "";
  return report.directions.front() == Direction::kMinimize ? ", minimised" : ", maximised";
}

std::string startup_words(const StudyReport& report, Facts which) {
  const StartupFacts& startup = report.startup;
  std::string method = startup.method;
  if (which == Facts::kAll && !startup.borne_out.empty()) method += "; " + startup.borne_out;
  if (!startup.inside_seconds) {  // the method says why
    const std::string between =
        startup.between_seconds ? fmt::format("; {} between trials", duration_words(*startup.between_seconds)) : "";
    return method.empty() && between.empty() ? "" : fmt::format("within trials not known ({}){}.", method, between);
  }
  std::vector<std::string> parts;
  if (startup.inside_seconds) parts.push_back(fmt::format("{} in each trial", duration_words(*startup.inside_seconds)));
  if (startup.between_seconds)
    parts.push_back(fmt::format("{} between trials", duration_words(*startup.between_seconds)));
  return join(parts, ", ") + (method.empty() ? "." : fmt::format(" ({}).", method));
}

std::string step_words(const StudyReport& report) {
  const StepTimeFacts& step = report.step_time;
  if (!step.seconds) return step.direction.empty() ? "" : step.direction + ".";
  const std::string text = duration_words(*step.seconds);
  if (step.parameter.empty()) return text + (step.direction.empty() ? "." : " " + step.direction + ".");
  return fmt::format("{}, {} (explains {} of its variation).", text,
                     step.direction.empty() ? "another with each " + step.parameter : step.direction,
                     human_percent(step.explained));
}

std::string lasted_words(const StudyReport& report) {
  std::vector<std::string> parts;
  constexpr std::array<std::pair<TrialState, std::string_view>, 3> kShown{
      {{TrialState::kComplete, "complete"}, {TrialState::kPruned, "pruned"}, {TrialState::kFail, "failed"}}};
  for (const auto& [state, word] : kShown)
    if (const StateFacts* facts = facts_of(report, state); facts != nullptr && facts->duration_seconds.count > 0)
      parts.push_back(fmt::format("{} {}", duration_words(facts->duration_seconds.p50), word));
  return parts.empty() ? "" : join(parts, ", ") + " (medians).";
}

// "2 workers", "4 workers for the first 2:10, 3 until 5:00, then 2"
std::string workers_words(const ParallelismFacts& p) {
  constexpr std::size_t kMostSteps = 4;
  if (p.fewer.size() < 2) return count_of(p.workers, "worker");
  std::string text = count_of(p.fewer.front().second, "worker");
  if (p.fewer.size() > kMostSteps)
    return text + fmt::format(" for the first {}, and fewer and fewer to {} after {}", duration_words(p.fewer[1].first),
                              human_count(p.fewer.back().second), duration_words(p.fewer.back().first));
  for (std::size_t i = 1; i < p.fewer.size(); ++i)
    text += i == 1 ? fmt::format(" for the first {}", duration_words(p.fewer[i].first))
                   : fmt::format(", {} until {}", human_count(p.fewer[i - 1].second), duration_words(p.fewer[i].first));
  return text + fmt::format(", then {}", human_count(p.fewer.back().second));
}

std::string parallel_words(const StudyReport& report, Facts which) {
  const ParallelismFacts& p = report.parallelism;
  if (p.open_max == 0) return "";
  std::string text = fmt::format("{:.1f} trials open on average", p.alive_mean);
  if (p.open_mean - p.alive_mean >= 0.05)
    text += fmt::format(", {:.1f} with {}", p.open_mean, dead_trials(report) == 1 ? "the dead one" : "dead ones");
  text += fmt::format(" ({} at most)", human_count(p.open_max));
  if (p.computing_mean) text += fmt::format(", {:.1f} past start-up", *p.computing_mean);
  if (p.any_computing) text += fmt::format(", at least one for {} of the time", human_percent(*p.any_computing));
  text += p.workers_told && p.fewer.size() >= 2
              ? fmt::format("; {}, as told; by their trials {}.", count_of(p.workers, "worker"), workers_words(p))
              : fmt::format("; {}, {}.", workers_words(p), p.workers_told ? "as told" : "as inferred");
  if (p.since && p.since->from_first)
    text += which == Facts::kFew          ? ""
            : p.since->early >= p.workers ? fmt::format(" {} at once from the first on.", human_count(p.since->early))
                                          : " Several at once from the first on.";
  else if (p.since)
    text += fmt::format(" One trial at a time until trial {} began, after {}; then up to {} at once.", p.since->trial,
                        duration_words(p.since->seconds), human_count(p.since->most));
  return text;
}

// Why, as far as a recording tells.
std::string memory_words(const FailureGroup& group) {
  std::vector<std::string> parts;
  if (group.said_out_of_memory > 0)
    parts.push_back(fmt::format("out of GPU memory by the output: {}{} of these",
                                group.said_out_of_memory + group.memory_full < group.failed ? "at least " : "",
                                human_count(group.said_out_of_memory)));
  if (group.memory_full > 0)
    parts.push_back(fmt::format("the GPU's memory was full as {} of these ended", human_count(group.memory_full)));
  return parts.empty() ? "" : ", " + join(parts, ", ");
}

std::string failure_words(const StudyReport& report, std::size_t most, Facts which) {
  std::vector<std::string> parts;
  for (const FailureGroup& group : report.failures) {
    if (parts.size() == most) break;
    parts.push_back(fmt::format("{}: {} of {}{}{}", group.where, human_count(group.failed), count_of(group.of, "trial"),
                                group.before_first_step ? ", before the first step" : "", memory_words(group)));
    if (which != Facts::kFew && !group.trials.empty()) parts.back() += fmt::format(" ({})", trial_words(group.trials));
  }
  std::string text = join(parts, "; ");
  if (report.failures.size() > most)
    text += fmt::format("; {} more with --full", count_of(report.failures.size() - most, "group"));
  return text.empty() ? "" : text + ".";
}

std::string recording_words(const StudyReport& report) {
  if (!report.recording) return "";
  const StudyRecording& r = *report.recording;
  std::vector<std::string> parts;
  if (r.gpu_busy)
    parts.push_back(fmt::format("a kernel ran for {} of the study's recorded time", human_percent(*r.gpu_busy)));
  const StateFacts *pruned = facts_of(report, TrialState::kPruned), *failed = facts_of(report, TrialState::kFail);
  const std::string_view which = failed == nullptr || failed->count == 0   ? "were pruned"
                                 : pruned == nullptr || pruned->count == 0 ? "failed"
                                                                           : "were pruned or failed";
  if (r.gpu_discarded)
    parts.push_back(fmt::format("about {} of kernels were for trials that {}, if all that ran at once had equal shares",
                                human_duration(*r.gpu_discarded), which));
  else if (r.trials_matched > 0 && r.gpu_busy && report.worker_time.discarded + report.worker_time.failed > 0)
    parts.push_back(
        fmt::format("whether kernels ran for trials that {} is not known: they are too short for the readings", which));
  if (r.memory_per_trial_bytes)
    parts.push_back(fmt::format("a trial held at most {}", human_bytes(*r.memory_per_trial_bytes)));
  parts.push_back(fmt::format("the recording covers {} of the study, and {} of its trials were found in it",
                              human_percent(r.covered), human_count(r.trials_matched)));
  return join(parts, "; ") + ".";
}

// "From 2026-11-20 10:40:34 to 10:44:00 UTC."
std::string when(const StudyReport& report) {
  const std::string first = iso_time(*report.begin).substr(0, 10), last = iso_time(*report.end).substr(0, 10);
  return fmt::format("From {} {} to {}{} UTC.", first, clock_time(*report.begin), first == last ? "" : last + " ",
                     clock_time(*report.end));
}

// A clause as a sentence; what begins with code keeps its first letter.
std::string sentence(std::string text) {
  const auto word = text.substr(0, text.find_first_of(" :,"));
  if (!word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text.empty() || text.ends_with('.') ? text : text + ".";
}

// What the sampler's first trials are, and what the best value among them is worth.
std::string random_start_words(const StudyReport& report) {
  if (!report.random_start) return "";
  const RandomStart& start = *report.random_start;
  const std::string needed = count_of(start.needed, "trial");
  if (start.per_bracket)
    return fmt::format(
        " In each bracket of Hyperband it draws at random until {} have completed or were pruned: up to then a value "
        "is no better than random search finds it.",
        needed);
  const auto& since = report.parallelism.since;
  return fmt::format(
      " It draws at random until {} have completed or were pruned, {}: the best value up to then is that of a random "
      "search.{}",
      needed, start.over ? fmt::format("here its first {}", human_count(start.trials)) : "which is not yet so here",
      since && since->from_first ? " No trial waited for these: several were open from the first on." : "");
}

std::string pruner_words(const Inferred& inferred) {
  if (inferred.text.empty()) return "";
  if (inferred.told) return inferred.text + ", as told.";
  if (inferred.evidence.empty()) return inferred.text + ".";
  return fmt::format("{}: {}.", inferred.text, inferred.evidence);
}

}  // namespace

// "Of 5.4 worker-hours, 12 % trained trials that completed, 39 % …": they add up to 100 %.
std::string worker_sentence(const StudyReport& report) {
  const WorkerTime& time = report.worker_time;
  if (!(time.total > 0) || !std::isfinite(time.total)) return "";
  const std::array<std::string_view, 6> words{
      "trained trials that completed",
      "trials that were pruned",
      "was start-up",
      dead_trials(report) > 0 ? "went into failed and dead trials" : "went into failed trials",
      report.live ? "trains trials that still run" : "went into trials that were open at the end",
      "went by without a trial"};
  const auto shares = percents({time.useful, time.discarded, time.startup, time.failed, time.running, time.between});
  std::string text;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    const bool verb_is_missing = i == 1 && shares[0] == 0;
    text += fmt::format(", {} % {}{}", shares[i], verb_is_missing ? "trained " : "", words[i]);
  }
  return fmt::format("Of {}{}.", worker_hours(time.total), text);
}

std::string best_sentence(const StudyReport& report) {
  if (report.directions.size() > 1)
    return report.pareto.empty()
               ? fmt::format("It has {} objectives, and no trial has completed yet.", report.directions.size())
               : fmt::format("Of {} objectives: no trial is better in all than any of {} ({}).",
                             report.directions.size(), count_of(report.pareto.size(), "trial"),
                             trial_words(report.pareto));
  if (report.best.empty()) return "No trial has completed with a value: there is no best one.";
  const BestPoint& best = report.best.back();
  return fmt::format("Best value {:.6g}{}: {}, after {}{} and {}.", best.value, direction_word(report),
                     trial_words({best.trial}), duration_words(best.worked_seconds),
                     best.worked_seconds < best.seconds ? " without the pauses" : "",
                     count_of(best.trials_finished, "trial"));
}

std::string study_answer(const StudyReport& report, const TextOptions& options) {
  std::string text = bold(wrap(states_words(report) + ".", options.width, "", ""), options);
  text += wrap(worker_sentence(report), options.width, "", "");
  if (report.trials > 0) text += wrap(best_sentence(report), options.width, "", "");
  return text + "\n";
}

std::vector<Point> study_facts(const StudyReport& report, Facts which) {
  constexpr std::size_t kGroups = 2;
  std::vector<Point> points;
  if (report.trials == 0) return points;
  const auto add = [&](std::string_view label, std::string words) {
    if (!words.empty()) points.push_back({std::string(label), std::move(words)});
  };
  add("Start-up", startup_words(report, which));
  add("Step", step_words(report));
  if (which != Facts::kFew) add("Lasted", lasted_words(report));
  add("At once", parallel_words(report, which));
  add("Failed", failure_words(report, which == Facts::kAll ? 10'000 : kGroups, which));
  add("GPU", recording_words(report));
  if (which != Facts::kFew) add("Pruner", pruner_words(report.pruner));
  if (which == Facts::kAll || (report.random_start && which != Facts::kFew))
    add("Sampler", pruner_words(report.sampler) + random_start_words(report));
  return points;
}

std::string study_facts_text(const StudyReport& report, const TextOptions& options, Facts which) {
  std::string text;
  for (const Point& point : study_facts(report, options.full ? Facts::kAll : which))
    text += labelled_words(point.label, point.text, options);
  return text.empty() ? text : text + "\n";
}

std::string anomaly_words(const StudyAnomaly& anomaly) {
  return sentence(anomaly.text) + (anomaly.next.empty() ? "" : " " + sentence(anomaly.next));
}

std::string study_anomalies(const StudyReport& report, const TextOptions& options, std::size_t most) {
  std::string text;
  const std::size_t shown = std::min(most, report.anomalies.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const StudyAnomaly& anomaly = report.anomalies[i];
    text += warning("!", options) + wrap(anomaly_words(anomaly), options.width - 1, " ", "  ");
  }
  if (shown < report.anomalies.size()) text += fmt::format("  {} more with --full\n", report.anomalies.size() - shown);
  return text.empty() ? text : text + "\n";
}

std::vector<Point> study_sources(const StudyReport& report, Facts which) {
  std::vector<Point> points;
  if (report.begin && report.end) {
    const Nanos east = -report.clock.offset;  // of the storage's zone
    const Nanos size = east < 0 ? -east : east;
    const std::string zone = east == 0 ? "UTC"
                                       : fmt::format("UTC{}{:02}:{:02}", east < 0 ? '-' : '+', size / (3600 * kSecond),
                                                     size / (60 * kSecond) % 60);
    std::string times = fmt::format("the storage's are {} ({}).", zone, report.clock.how);
    if (!report.clock.known)
      times = fmt::format("the storage's are taken for {} ({}; --tz tells it); lengths of time hold in any case.", zone,
                          report.clock.how.empty() ? "nothing here tells their zone" : report.clock.how);
    if (which == Facts::kAll) times += " " + when(report);
    points.push_back({"Times", std::move(times)});
  }
  if (which == Facts::kAll)
    points.push_back(
        {"Read from", report.name.empty() ? report.engine : fmt::format("study {}; {}.", report.name, report.engine)});
  if (report.left_out > 0)
    points.push_back({"Left out", fmt::format("{} of the storage that {} no sense.", count_of(report.left_out, "row"),
                                              report.left_out == 1 ? "makes" : "make")});
  return points;
}

std::string study_source(const StudyReport& report, const TextOptions& options) {
  std::string text;
  for (const Point& point : study_sources(report, options.full ? Facts::kAll : Facts::kUsual))
    text += wrap(point.text, options.width, point.label + ": ", "  ");
  return text;
}

}  // namespace headroom::report
