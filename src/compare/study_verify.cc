// SPDX-License-Identifier: Apache-2.0
#include "compare/study_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/human.h"
#include "base/strings.h"
#include "compare/studies.h"

namespace headroom::compare {

namespace {

constexpr double kByLuck = 0.05;

// "warm workers,6 trials at once" and "warm workers, 6 trials at once" are one name.
std::string without_blanks(std::string_view text) {
  std::string name;
  for (const char c : text)
    if (c != ' ') name += c;
  return name;
}

std::string changes_of(const StudyReport& plan) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < plan.what_if.size(); ++i)
    names.push_back(fmt::format("{} ({})", i + 1, plan.what_if[i].change));
  return join(names, ", ");
}

bool apart(const Estimate& a, const Estimate& b) { return a.low > b.high || a.high < b.low; }
bool holds(const Estimate& range, double value) {
  constexpr double kRounding = 1e-9;
  return value >= range.low * (1 - kRounding) && value <= range.high * (1 + kRounding);
}

// Tenths of a trial are the last that mean something, and the last that are printed.
double to_tenths(double trials) { return std::round(trials * 10) / 10; }
Estimate to_tenths(const Estimate& range) {
  return {to_tenths(range.low), to_tenths(range.value), to_tenths(range.high)};
}

// It has to lie in what was predicted. Where the change is to move it, as the whole study and as many trials show,
// further is kept, too; and no trial is too short.
void judge_within(const Estimate& changed, const Estimate& as_it_is, VerifiedFigure& figure) {
  const bool at_once = figure.figure == StudyFigure::kAtOnce;
  const Estimate predicted = at_once ? to_tenths(*figure.predicted) : *figure.predicted,
                 measured = at_once ? to_tenths(*figure.measured) : *figure.measured;
  figure.wanted = apart(changed, as_it_is) && !(figure.as_it_is && holds(*figure.as_it_is, predicted.value));
  const bool further = figure.wanted && (changed.value < as_it_is.value ? measured.value < predicted.low
                                                                        : measured.value > predicted.high);
  const bool shorter = figure.figure == StudyFigure::kTrialLength && measured.value < predicted.high;
  if (further || shorter || holds(predicted, measured.value))
    figure.kept = true;
  else if (apart(measured, predicted))
    figure.kept = false;
  else
    figure.why = at_once ? "at most as many were open, and fewer on average" : "so few trials may as well be within it";
}

// More is better.
void judge_rate(VerifiedFigure& figure) {
  figure.wanted = true;
  if (figure.measured->value >= figure.predicted->low)
    figure.kept = true;
  else if (figure.measured->high < figure.predicted->low)
    figure.kept = false;
  else
    figure.why = "it is below, but so few trials may as well be within it";
}

// How many had ended at `seconds`, by the rate of those that were measured.
double ended_by(const FirstTrials& first, double seconds) { return first.trials_per_hour.value * seconds / 3600; }

VerifiedFigure time_to_best(const StudyReport& plan, const WhatIf& change, const MeasuredStudy& measured) {
  VerifiedFigure figure{.figure = StudyFigure::kTimeToBest, .wanted = change.helps};
  if (!(change.best_reached > 0)) {
    figure.why = "no replay reached the best value";
    return figure;
  }
  figure.predicted = change.time_to_best_seconds;
  if (measured.since > 0) {
    figure.why = "the study had its best value before";
    return figure;
  }
  if (plan.best.empty() || plan.directions.size() != 1) {
    figure.why = "the plan has no best value to reach";
    return figure;
  }
  const double target = plan.best.back().value, high = figure.predicted->high;
  if (const auto at = seconds_to(measured.report, target)) figure.measured = Estimate{*at, *at, *at};
  if (figure.measured && figure.measured->value <= high) {
    figure.kept = true;
    return figure;
  }
  std::int64_t before = 0;  // trials of the plan's study that the best value is the best of
  for (const StateFacts& facts : plan.states)
    if (facts.state == TrialState::kComplete || facts.state == TrialState::kPruned) before += facts.count;
  const double took = measured.first->trials_per_hour.value > 0
                          ? static_cast<double>(measured.ended) / measured.first->trials_per_hour.value * 3600
                          : 0;
  if (!figure.measured && took < high) {
    figure.why = fmt::format("no trial has had {:.6g} yet, and there is time left for it", target);
    return figure;
  }
  const double others = ended_by(*measured.first, high);
  const double luck = static_cast<double>(before) / (static_cast<double>(before) + others);
  if (luck <= kByLuck) {
    figure.kept = false;
    figure.why = fmt::format("{:.6g} was not reached in time, which has a chance of {} among as good trials", target,
                             human_percent(luck));
  } else {
    figure.why = fmt::format(
        "{:.6g} was not reached in time, but it was the best of {}: as good a study misses it as long with a chance of "
        "{}",
        target, count_of(before, "trial"), human_percent(luck));
  }
  return figure;
}

VerifiedFigure memory(const StudyReport& plan, const WhatIf& change, const MeasuredStudy& measured) {
  VerifiedFigure figure{.figure = StudyFigure::kMemory, .predicted = change.memory_at_once_bytes};
  if (!figure.predicted) {
    figure.why = "the plan knew of no trial's memory (--trial-memory, or a recording)";
    return figure;
  }
  const auto& now = plan.as_it_is->memory_at_once_bytes;
  figure.wanted = now && apart(*figure.predicted, *now);
  const auto& recording = measured.report.recording;
  if (!recording || !recording->memory_at_once_bytes) {
    figure.why = recording ? "the recording shows no memory of its trials" : "no recording: memory is not known";
    return figure;
  }
  const auto bytes = static_cast<double>(*recording->memory_at_once_bytes);
  figure.measured = Estimate{bytes, bytes, bytes};
  figure.kept = bytes <= figure.predicted->high;  // less is no broken promise
  return figure;
}

// In order of kStudyFigures. `before`: as `predicted`, of the study as it is.
std::vector<VerifiedFigure> figures_of(const StudyReport& plan, const WhatIf& change, const MeasuredStudy& measured,
                                       const FirstTrials& predicted, const std::optional<FirstTrials>& before) {
  const auto figure_of = [&](StudyFigure figure, Estimate FirstTrials::*member) {
    return VerifiedFigure{.figure = figure,
                          .as_it_is = before ? std::optional((*before).*member) : std::nullopt,
                          .predicted = predicted.*member,
                          .measured = (*measured.first).*member};
  };
  const auto within = [&](StudyFigure figure, Estimate FirstTrials::*first, Estimate WhatIf::*whole) {
    VerifiedFigure judged = figure_of(figure, first);
    judge_within(change.*whole, (*plan.as_it_is).*whole, judged);
    return judged;
  };
  VerifiedFigure rate = figure_of(StudyFigure::kTrialsPerHour, &FirstTrials::trials_per_hour);
  judge_rate(rate);
  return {rate,
          time_to_best(plan, change, measured),
          within(StudyFigure::kPruned, &FirstTrials::pruned_share, &WhatIf::pruned_share),
          within(StudyFigure::kTrialLength, &FirstTrials::trial_seconds, &WhatIf::trial_seconds),
          within(StudyFigure::kAtOnce, &FirstTrials::at_once, &WhatIf::at_once),
          memory(plan, change, measured)};
}

// The change's own pruner is what a new study has to have, where somebody tells it.
void add_pruner(const WhatIf& change, const MeasuredStudy& measured, std::vector<std::string>& differences) {
  if (measured.told && change.pruner && *measured.told != *change.pruner)
    differences.push_back("its pruner (--pruner) is not the one that the change leads to");
}

// How many more trials than predicted were open at once, as a factor, where that is far from one and no matter of the
// change.
std::optional<double> other_workers(const StudyReport& plan, const WhatIf& change, const FirstTrials& predicted,
                                    const FirstTrials& measured) {
  constexpr double kFar = 1.25;
  if (apart(change.at_once, plan.as_it_is->at_once) || predicted.at_once.value <= 0) return std::nullopt;
  const bool far =
      kFar * measured.at_once.high < predicted.at_once.low || measured.at_once.low > kFar * predicted.at_once.high;
  return far ? std::optional(measured.at_once.value / predicted.at_once.value) : std::nullopt;
}

// With fewer workers a rate that is not reached says nothing, and with more one that is.
void allow_for_workers(const FirstTrials& predicted, const FirstTrials& measured, double factor, StudyVerification& v) {
  if (factor < 1 ? v.kept == true : v.kept != true) return;
  v.kept.reset();
  v.why = fmt::format(
      "{:.1f} trials were open at once on average, and {:.1f} with as many workers as the plan's study had: "
      "run it with as many",
      measured.at_once.value, predicted.at_once.value);
}

// It is not what the study as it is would have.
bool tells(const VerifiedFigure& figure) {
  return figure.wanted && figure.measured && figure.as_it_is && !holds(*figure.as_it_is, figure.measured->value);
}

void conclude(StudyVerification& v) {
  std::vector<std::string> broken;
  for (const VerifiedFigure& figure : v.figures)
    if (figure.wanted && figure.kept && !*figure.kept) broken.emplace_back(info(figure.figure).label);
  const VerifiedFigure& rate = v.figures.front();
  if (!broken.empty()) {
    v.kept = false;
    v.why = fmt::format("what was measured is wholly outside of what was predicted ({})", join(broken, ", "));
  } else if (rate.kept && std::any_of(v.figures.begin(), v.figures.end(), tells)) {
    v.kept = true;
    v.why = "trials per hour reach what was predicted, and nothing that the change moves does not";
  } else if (rate.kept) {
    v.why =
        "trials per hour reach what was predicted, but so few cannot be told from the study as it is: more would "
        "tell";
  } else {
    v.why = "trials per hour are below what was predicted, but so few trials may as well be within it: more would tell";
  }
}

// Of those that count. What fails at once is tried more often in an hour, which is no gain.
FailedTrials failed_since(const MeasuredStudy& measured) {
  FailedTrials trials;
  for (const TrialBar& bar : measured.report.bars) {
    if (bar.trial < measured.since || !is_finished(bar.state)) continue;
    ++trials.ended;
    if (bar.state == TrialState::kFail) ++trials.failed;
  }
  return trials;
}

Estimate over(const Estimate& rate, double by) { return {rate.low / by, rate.value / by, rate.high / by}; }

}  // namespace

Result<WhatIf> applied_change(const StudyReport& plan, const std::vector<std::string>& said) {
  const std::string known = "--applied with its name or number: " + changes_of(plan);
  if (said.empty()) return fail(Errc::kInvalidInput, "which of the plan's changes was made?", known);
  const std::string name = join(said, ",");
  if (const auto number = parse_number<std::size_t>(name); number && *number >= 1 && *number <= plan.what_if.size())
    return plan.what_if[*number - 1];
  for (const WhatIf& row : plan.what_if)
    if (without_blanks(row.change) == without_blanks(name)) return row;
  return fail(Errc::kInvalidInput, fmt::format("--applied: the plan has no change '{}'", name), known);
}

bool is_plans_own(const StudyReport& plan, const StudyReport& now) {
  constexpr Nanos kZones = kSecond * 60 * 15;  // by which the zones of the world differ: one of both may be told
  return plan.name == now.name && now.trials >= plan.trials && plan.begin && now.begin &&
         (*plan.begin - *now.begin) % kZones == 0;
}

std::optional<FirstTrials> predicted_of(const StudyReport& plan, const WhatIf& change, std::int64_t ended,
                                        std::int64_t since) {
  if (ended < kFewestVerified) return std::nullopt;
  if (since > 0)
    return FirstTrials{.trials = ended,
                       .trials_per_hour = change.trials_per_hour,
                       .pruned_share = change.pruned_share,
                       .trial_seconds = change.trial_seconds,
                       .at_once = change.at_once};
  std::optional<FirstTrials> longest;
  for (const FirstTrials& first : change.first) {
    const auto& now = plan.as_it_is->first;
    const bool both = std::any_of(now.begin(), now.end(), [&](const auto& one) { return one.trials == first.trials; });
    if (both && first.trials <= ended && (!longest || first.trials > longest->trials)) longest = first;
  }
  return longest;
}

StudyVerification verify_study(const StudyReport& plan, const WhatIf& change, const MeasuredStudy& measured) {
  StudyVerification v{.study = measured.report.name,
                      .change = change.change,
                      .ended = measured.ended,
                      .since = measured.since,
                      .goes_on = measured.since > 0,
                      .plans_own = is_plans_own(plan, measured.report),
                      .differences = study_differences(plan, measured.report, "the plan's study", "the new one")};
  add_pruner(change, measured, v.differences);
  if (measured.ended >= kFewestVerified)
    if (auto failures = failures_differ(failed_since(measured), failed_trials(plan), "the new study", "the plan's"))
      v.differences.push_back(std::move(*failures));
  if (!v.differences.empty()) {
    v.why = join(v.differences, "; ");
    return v;
  }
  const auto predicted = predicted_of(plan, change, measured.ended, measured.since);
  if (!predicted || !measured.first) {
    v.why =
        measured.ended < kFewestVerified
            ? fmt::format(
                  "too few to say: {} ended before the last one began, and {} have to; go on with this study for {}",
                  count_of(measured.ended, "trial"), kFewestVerified,
                  count_of(kFewestVerified - measured.ended, "more trial"))
            : "the plan's study had too few trials to predict so many";
    return v;
  }
  const auto before = predicted_of(plan, *plan.as_it_is, predicted->trials, measured.since);
  v.used = predicted->trials;
  v.figures = figures_of(plan, change, measured, *predicted, before);
  conclude(v);
  if (const auto factor = other_workers(plan, change, *predicted, *measured.first))
    allow_for_workers(*predicted, *measured.first, *factor, v);
  if (before && before->trials_per_hour.value > 0) {
    v.predicted_gain = over(predicted->trials_per_hour, before->trials_per_hour.value);
    v.measured_gain = over(measured.first->trials_per_hour, before->trials_per_hour.value);
  }
  return v;
}

}  // namespace headroom::compare
