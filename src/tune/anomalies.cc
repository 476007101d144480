// SPDX-License-Identifier: Apache-2.0
#include "tune/anomalies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/median.h"
#include "tune/duplicates.h"
#include "tune/failure_anomalies.h"
#include "tune/slow_trials.h"
#include "tune/stood_still.h"
#include "tune/study_clock.h"
#include "tune/workers.h"

namespace headroom::tune {

namespace {

constexpr std::size_t kListed = 20;

// "trial 7", "trials 7, 8 and 9", "trials 7, 8, 9 and 4 more"
std::string names(const std::vector<std::int64_t>& trials) {
  constexpr std::size_t kShown = 5;
  const std::size_t shown = trials.size() > kShown ? kShown - 1 : trials.size();
  std::string text = trials.size() == 1 ? "trial " : "trials ";
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == trials.size() ? " and " : ", ";
    text += std::to_string(trials[i]);
  }
  if (shown < trials.size()) text += fmt::format(" and {} more", trials.size() - shown);
  return text;
}

std::vector<std::int64_t> listed(std::vector<std::int64_t> trials) {
  if (trials.size() > kListed) trials.resize(kListed);
  return trials;
}

std::string is_or_are(const std::vector<std::int64_t>& trials) { return trials.size() == 1 ? "is" : "are"; }

struct Group {
  std::vector<std::int64_t> trials;
  double worker_seconds = 0;
  template <class Test>
  void collect(const Study& study, const Timeline& timeline, const Test& test) {
    for (std::size_t i = 0; i < study.trials.size(); ++i) {
      if (!test(study.trials[i], timeline.spans[i])) continue;
      trials.push_back(study.trials[i].number);
      if (timeline.spans[i].timed) worker_seconds += seconds(timeline.spans[i].duration());
    }
  }
};

// `silence`: since its last sign of life.
std::string evidence(DeadBy by, const Timeline& timeline, const ParallelismFacts& parallelism, std::size_t running,
                     Nanos silence) {
  const auto longest = to_nanos(timeline.longest);
  switch (by) {
    case DeadBy::kProcess:
      return "the recording saw its process end";
    case DeadBy::kHeartbeat:
      return "its heartbeat has stopped";
    case DeadBy::kAge:
      return fmt::format("silent for {} times as long as the longest trial took ({})",
                         human_figure(seconds(silence) / std::max(1e-9, timeline.longest), 2), human_duration(longest));
    case DeadBy::kReplaced:
      return fmt::format(
          "more trials are open than the {} that {}, younger ones began after it, nothing was heard of it for longer "
          "than "
          "any trial took that ended, and {}",
          count_of(parallelism.workers, "worker"), parallelism.workers_told ? "there are" : "seem to be there",
          running > 1 ? fmt::format("of {} that are RUNNING it is among the oldest", running) : "it alone is RUNNING");
    case DeadBy::kLeftBehind:
      return "its worker has begun another one since, and runs one at a time";
    case DeadBy::kNone:
      break;
  }
  return "";
}

void add_dead(const Study& study, const Timeline& timeline, const ParallelismFacts& parallelism,
              std::vector<CostedAnomaly>& found) {
  Group alive;
  alive.collect(study, timeline, [](const Trial& trial, const TrialSpan& span) {
    return trial.state == TrialState::kRunning && (span.dead == DeadBy::kNone || span.dead == DeadBy::kReplaced);
  });
  for (const DeadBy by : {DeadBy::kProcess, DeadBy::kHeartbeat, DeadBy::kAge, DeadBy::kReplaced, DeadBy::kLeftBehind}) {
    Group group;
    group.collect(study, timeline, [&](const Trial&, const TrialSpan& span) { return span.dead == by; });
    if (group.trials.empty()) continue;
    const std::string each = group.trials.size() == 1 ? ": " : "; of each: ";
    Nanos silence = timeline.end - timeline.begin;
    for (const TrialSpan& span : timeline.spans)
      if (span.dead == by) silence = std::min(silence, timeline.end - span.last_sign);
    found.push_back({group.worker_seconds,
                     {.kind = "dead_trial",
                      .text = fmt::format("{} {} RUNNING in the storage and {}dead{}{}", names(group.trials),
                                          is_or_are(group.trials), by == DeadBy::kAge ? "probably " : "", each,
                                          evidence(by, timeline, parallelism, alive.trials.size(), silence)),
                      .next = fmt::format(
                          "study.tell({}, state=optuna.trial.TrialState.FAIL) ends {}, if no process of it is left; "
                          "until then samplers that count running trials keep away from its parameters",
                          group.trials.front(), group.trials.size() == 1 ? "it" : "the first"),
                      .trials = listed(group.trials)}});
  }
}

void add_open_at_end(const Study& study, const Timeline& timeline, std::vector<CostedAnomaly>& found) {
  if (!timeline.stopped) return;
  Group group;
  group.collect(study, timeline, [](const Trial& trial, const TrialSpan& span) {
    return span.timed && trial.state == TrialState::kRunning && span.dead == DeadBy::kNone;
  });
  if (group.trials.empty()) return;
  found.push_back({group.worker_seconds,
                   {.kind = "open_at_end",
                    .text = fmt::format("{} {} RUNNING at the last sign of the study's life, which is {}{} old",
                                        names(group.trials), group.trials.size() == 1 ? "was" : "were",
                                        timeline.clock.known ? "" : "at least ", human_duration(timeline.silence)),
                    .next = "a copy of a storage stays as it is; if this is the study's own, its workers were stopped",
                    .trials = listed(group.trials)}});
}

// How many workers there were then, by what is known of those that left.
std::int64_t workers_at(const ParallelismFacts& parallelism, double since_begin) {
  std::int64_t there = parallelism.workers;
  for (const auto& [from, count] : parallelism.fewer)
    if (from <= since_begin) there = std::max(parallelism.workers, count);
  return there;
}

// Beside those that are told to be dead, and workers that have left since.
void add_too_many_open(const Study& study, const Timeline& timeline, const ParallelismFacts& parallelism,
                       std::vector<CostedAnomaly>& found) {
  const OpenCurve curve = open_curve(timeline.spans, From::kBegin, Until::kAliveUntil);
  Nanos held = 0, first = 0;
  std::int64_t most = 0;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    if (curve[i].second <= workers_at(parallelism, seconds(curve[i].first - timeline.begin))) continue;
    if (held == 0) first = curve[i].first;
    held += curve[i + 1].first - curve[i].first;
    most = std::max(most, curve[i].second);
  }
  // One worker's end and the next one's begin can overlap by their clocks.
  if (parallelism.workers <= 0 || held < std::max(kSecond, (timeline.end - timeline.begin) / 100)) return;
  const std::string workers = parallelism.workers_told
                                  ? fmt::format("{} {} told", count_of(parallelism.workers, "worker"),
                                                parallelism.workers == 1 ? "was" : "were")
                                  : fmt::format("mostly it is {}", parallelism.workers);
  bool running = false;  // whether one is open that is not told to be dead
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    running |= study.trials[i].state == TrialState::kRunning && timeline.spans[i].dead == DeadBy::kNone;
  found.push_back({seconds(held),
                   {.kind = "more_open_than_workers",
                    .text = fmt::format("up to {} trials are open at once, and {}: for {} in all, from {} on by the "
                                        "storage's clock",
                                        most, workers, human_duration(held), clock_time(first)),
                    .next = running ? "one that is RUNNING may be dead, or more workers were started"
                                    : "more workers were there at times, or one had died and was marked later"}});
}

void add_slow(const Study& study, const Timeline& timeline, const StepModel& model, std::vector<CostedAnomaly>& found) {
  const std::vector<SlowTrial> slow = slow_trials(study, timeline, model);
  if (slow.empty()) return;
  double cost = 0;
  std::vector<std::int64_t> trials;
  for (const SlowTrial& one : slow) {
    cost += one.seconds - one.expected;
    trials.push_back(study.trials[one.trial].number);
  }
  const Trial& worst = study.trials[slow[0].trial];
  const TrialSpan& span = timeline.spans[slow[0].trial];
  const auto text = [](double value) { return human_duration(to_nanos(value)); };
  const std::string usual = model.line
                                ? fmt::format("for its {}", count_of(static_cast<std::int64_t>(worst.reports), "step"))
                                : fmt::format("for a {} one", trial_state_name(worst.state));
  const std::string all = slow.size() == 1 ? "" : fmt::format("{} took far longer than is usual; ", names(trials));
  found.push_back(
      {cost,
       {.kind = "slow_trial",
        .text = fmt::format("{}trial {} ({}) took {}, where {} is usual {}", all, worst.number,
                            trial_state_name(worst.state), text(slow[0].seconds), text(slow[0].expected), usual),
        .next = fmt::format("look at what its worker did from {} to {} by the storage's clock", clock_time(span.begin),
                            clock_time(span.end)),
        .trials = listed(trials)}});
}

// Whether the study had a pause between the first of these and what it repeats, as there is between two sessions.
bool after_a_pause(const Timeline& timeline, const std::vector<RepeatedTrial>& repeated) {
  const RepeatedTrial& first = *std::min_element(repeated.begin(), repeated.end(), [&](const auto& a, const auto& b) {
    return timeline.spans[a.trial].begin < timeline.spans[b.trial].begin;
  });
  const Nanos from = timeline.spans[first.of].begin, until = timeline.spans[first.trial].begin;
  std::vector<const TrialSpan*> order;
  for (const TrialSpan& span : timeline.spans)
    if (span.timed) order.push_back(&span);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->begin < b->begin; });
  std::vector<double> pauses;
  double longest = 0;  // in that time
  Nanos open_until = 0;
  for (const TrialSpan* span : order) {
    if (open_until > 0) pauses.push_back(std::max(0.0, seconds(span->begin - open_until)));
    if (open_until > 0 && span->begin > from && span->begin <= until) longest = std::max(longest, pauses.back());
    open_until = std::max(open_until, span->alive_until);
  }
  return !pauses.empty() && longest > std::max(1.0, kPause * median(std::move(pauses)));
}

// Why trials have the parameters of earlier ones, and what to do.
std::string after_repeats(const Timeline& timeline, const std::vector<RepeatedTrial>& repeated) {
  bool beside = false;  // one began while the one that it repeats was open
  for (const RepeatedTrial& one : repeated) {
    const TrialSpan &span = timeline.spans[one.trial], &first = timeline.spans[one.of];
    beside |= span.timed && first.timed && span.begin < first.alive_until;
  }
  const std::string known = "return the known value where study.get_trials() has the same parameters";
  if (in_the_same_order(repeated)) {
    if (beside)
      return "they come in the order of those: samplers of several workers were given the same seed; give each "
             "another, or none";
    if (after_a_pause(timeline, repeated))
      return "they come in the order of those: the sampler of a later session was given the seed of an earlier one; "
             "give each session another, or none";
    return "they come in the order of those, and no pause was before them: the same list, or a sampler of the same "
           "seed, was gone through again; do so once, or " +
           known;
  }
  return beside ? known + "; constant_liar=True keeps parallel trials apart" : known;
}

// Those whose value is known from an earlier trial, or those of parameters that had only failed.
void add_duplicates(const Study& study, const Timeline& timeline, const WorkerTime& time, bool after_failures,
                    std::vector<CostedAnomaly>& found) {
  Group group;
  std::vector<RepeatedTrial> repeated = repeated_trials(study);
  std::erase_if(repeated, [&](const RepeatedTrial& one) { return one.after_failures != after_failures; });
  for (const auto& [i, of, failed_before] : repeated) {
    group.trials.push_back(study.trials[i].number);
    if (timeline.spans[i].timed)
      group.worker_seconds += seconds(timeline.spans[i].alive_until - timeline.spans[i].begin);
  }
  if (group.trials.empty()) return;
  const std::string share =
      time.total > 0 ? fmt::format(", {} of it", human_percent(group.worker_seconds / time.total)) : "";
  found.push_back(
      {group.worker_seconds,
       {.kind = "duplicates",
        .text = fmt::format(
            "{} {} {}, without being enqueued or a retry: {} of worker time{}", count_of(group.trials.size(), "trial"),
            group.trials.size() == 1 ? "repeats" : "repeat",
            after_failures ? "parameters with which all earlier trials failed" : "the parameters of an earlier trial",
            human_duration(to_nanos(group.worker_seconds)), share),
        .next = after_failures ? "mend what failed, or raise optuna.TrialPruned for parameters that study.get_trials() "
                                 "has as failed"
                               : after_repeats(timeline, repeated),
        .trials = listed(group.trials)}});
}

void add_non_finite(const Study& study, const Timeline& timeline, std::vector<CostedAnomaly>& found) {
  const auto is_not_finite = [](double value) { return !std::isfinite(value); };
  Group reports, values;
  std::int64_t nan = 0, infinite = 0;
  reports.collect(study, timeline, [&](const Trial& trial, const TrialSpan&) {
    bool any = false;
    for (const StepReport& report : reports_of(study, trial)) {
      if (std::isfinite(report.value)) continue;
      ++(std::isnan(report.value) ? nan : infinite);
      any = true;
    }
    return any;
  });
  values.collect(study, timeline, [&](const Trial& trial, const TrialSpan&) {
    return trial.state == TrialState::kComplete && std::any_of(trial.values.begin(), trial.values.end(), is_not_finite);
  });
  if (!reports.trials.empty())
    found.push_back(
        {reports.worker_seconds,
         {.kind = "non_finite_reports",
          .text = fmt::format("{} reported {} NaN and {} infinite values", names(reports.trials), nan, infinite),
          .next = "where training cannot come back from that, raise optuna.TrialPruned at once",
          .trials = listed(reports.trials)}});
  if (!values.trials.empty())
    found.push_back({values.worker_seconds,
                     {.kind = "non_finite_values",
                      .text = fmt::format("{} {} COMPLETE with a value that is not finite", names(values.trials),
                                          is_or_are(values.trials)),
                      .next = study.storage == "sqlite"
                                  ? "study.best_trial of Optuna 3.1 on SQLite can take an infinity for the best value"
                                  : "",
                      .trials = listed(values.trials)}});
}

template <class Test>
void add_simple(const Study& study, const Timeline& timeline, std::string_view kind, std::string_view what,
                std::string_view next, std::vector<CostedAnomaly>& found, const Test& test) {
  Group group;
  group.collect(study, timeline, test);
  if (group.trials.empty()) return;
  found.push_back({group.worker_seconds,
                   {.kind = std::string(kind),
                    .text = fmt::format("{} {} {}", names(group.trials), is_or_are(group.trials), what),
                    .next = std::string(next),
                    .trials = listed(group.trials)}});
}

void add_odd(const Study& study, const Timeline& timeline, Nanos now, std::vector<CostedAnomaly>& found) {
  const bool some_have_parameters =
      std::any_of(study.trials.begin(), study.trials.end(), [](const Trial& trial) { return trial.parameters > 0; });
  add_simple(study, timeline, "no_parameters", "finished without a parameter, which others have", "", found,
             [&](const Trial& trial, const TrialSpan&) {
               return some_have_parameters && is_finished(trial.state) && trial.parameters == 0;
             });
  add_simple(study, timeline, "pruned_without_reports", "PRUNED without a report: no pruner decided that",
             "the program raised TrialPruned by itself", found, [](const Trial& trial, const TrialSpan&) {
               return trial.state == TrialState::kPruned && trial.reports == 0;
             });
  add_simple(study, timeline, "time_backwards", "finished before the begin: left out of all times",
             "clocks of workers differ, or one was set back", found, [](const Trial& trial, const TrialSpan&) {
               const auto start = sane(trial.start), complete = sane(trial.complete);
               return start && complete && *complete < *start;
             });
  add_simple(study, timeline, "no_times", "finished without a begin or an end: left out of all times", "", found,
             [](const Trial& trial, const TrialSpan&) {
               return is_finished(trial.state) && (!sane(trial.start) || !sane(trial.complete));
             });
  const Nanos offset = timeline.clock.offset;
  add_simple(study, timeline, "in_the_future", "in the future by this machine's clock",
             "--tz says of which time zone the storage's times are", found, [&](const Trial& trial, const TrialSpan&) {
               const auto start = sane(trial.start), complete = sane(trial.complete);
               const Nanos latest = std::max(start.value_or(0), complete.value_or(0));
               return now > 0 && latest > 0 && latest + offset > now + 60 * kSecond;
             });
}

}  // namespace

std::vector<StudyAnomaly> anomalies(const Study& study, const StudyOptions& options, const Timeline& timeline,
                                    const StudyReport& report, const StepModel& model) {
  std::vector<CostedAnomaly> found;
  add_dead(study, timeline, report.parallelism, found);
  add_open_at_end(study, timeline, found);
  add_too_many_open(study, timeline, report.parallelism, found);
  add_slow(study, timeline, model, found);
  add_failures(study, timeline, report, found);
  if (auto still = stood_still(timeline))
    found.push_back({still->seconds * static_cast<double>(report.parallelism.workers), std::move(still->anomaly)});
  for (const bool after_failures : {false, true})
    add_duplicates(study, timeline, report.worker_time, after_failures, found);
  add_non_finite(study, timeline, found);
  add_odd(study, timeline, options.now, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const CostedAnomaly& a, const CostedAnomaly& b) { return a.worker_seconds > b.worker_seconds; });
  std::vector<StudyAnomaly> result;
  for (CostedAnomaly& one : found) result.push_back(std::move(one.anomaly));
  return result;
}

}  // namespace headroom::tune
