// SPDX-License-Identifier: Apache-2.0
#include "tune/first_trials.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tune/quantiles.h"
#include "tune/standstill.h"

namespace headroom::tune {

namespace {

constexpr double kNormal = 1.645;  // 90 %, two-sided
constexpr double kOfTen = 1.833;   // Student's t likewise, of ten values; of more it is up to a tenth less

// Where the rate lies, as it hangs on how long trials take: logarithm's standard error of their mean length.
Estimate rate_range(double rate, const std::vector<double>& lengths) {
  const auto n = static_cast<double>(lengths.size());
  double mean = 0, squares = 0;
  for (const double length : lengths) mean += length / n;
  for (const double length : lengths) squares += (length - mean) * (length - mean);
  if (n < 2 || mean <= 0) return {.low = 0, .value = rate, .high = std::numeric_limits<double>::infinity()};
  const double factor = std::exp(kOfTen * std::sqrt(squares / (n - 1) / n) / mean);
  return {.low = rate / factor, .value = rate, .high = rate * factor};
}

Estimate wilson(std::int64_t some, std::int64_t all) {
  const auto n = static_cast<double>(all);
  const double share = static_cast<double>(some) / n, square = kNormal * kNormal;
  const double centre = (share + square / (2 * n)) / (1 + square / n);
  const double half = kNormal / (1 + square / n) * std::sqrt(share * (1 - share) / n + square / (4 * n * n));
  return {.low = std::clamp(centre - half, 0.0, share), .value = share, .high = std::clamp(centre + half, share, 1.0)};
}

bool counted(const TrialBar& bar, std::int64_t since) { return is_finished(bar.state) && bar.trial >= since; }

std::vector<TrialTimes> times_of(const Study& study, const StudyReport& report, std::int64_t since) {
  std::vector<TimedTrial> timed;
  for (const TrialBar& bar : report.bars) {
    const auto trial = std::lower_bound(study.trials.begin(), study.trials.end(), bar.trial,
                                        [](const Trial& one, std::int64_t number) { return one.number < number; });
    timed.push_back({.begin = bar.begin,
                     .end = bar.end,
                     .reports = trial == study.trials.end() ? 0 : trial->reports,
                     .startup = std::nullopt});
  }
  const std::vector<Standstill> stills = standstills(timed);
  std::vector<TrialTimes> times;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const TrialBar& bar = report.bars[i];
    times.push_back({.begin = without(stills, timed[i].begin),
                     .end = without(stills, timed[i].end),
                     .ended = counted(bar, since),
                     .pruned = bar.state == TrialState::kPruned,
                     .counts = bar.trial >= since});
  }
  return times;
}

}  // namespace

std::vector<FirstFigures> first_trials(const std::vector<TrialTimes>& trials, const std::vector<std::size_t>& counts) {
  std::vector<const TrialTimes*> ended;
  double begin = std::numeric_limits<double>::infinity();
  for (const TrialTimes& trial : trials) {
    if (!trial.counts) continue;
    begin = std::min(begin, trial.begin);
    if (trial.ended) ended.push_back(&trial);
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const TrialTimes* a, const TrialTimes* b) { return a->end < b->end; });
  std::vector<FirstFigures> figures;
  FirstFigures so_far;
  for (const std::size_t count : counts) {
    if (count == 0 || count > ended.size()) break;
    for (std::size_t i = so_far.lengths.size(); i < count; ++i) {
      so_far.lengths.push_back(ended[i]->end - ended[i]->begin);
      so_far.pruned += ended[i]->pruned ? 1 : 0;
    }
    so_far.trials = static_cast<std::int64_t>(count);
    so_far.until = ended[count - 1]->end;
    const double took = so_far.until - begin;
    double open = 0;
    for (const TrialTimes& trial : trials)
      open += std::max(0.0, std::min(trial.end, so_far.until) - std::max(trial.begin, begin));
    so_far.trials_per_hour = took > 0 ? static_cast<double>(count) / took * 3600 : 0;
    so_far.at_once = took > 0 ? open / took : 0;
    figures.push_back(so_far);
  }
  return figures;
}

Together most_together(const std::vector<TrialTimes>& trials, double until) {
  std::vector<std::pair<double, std::pair<int, double>>> events;  // ends before begins
  for (const TrialTimes& trial : trials) {
    if (trial.begin >= until) continue;
    events.push_back({trial.begin, {1, trial.memory}});
    events.push_back({trial.end, {-1, -trial.memory}});
  }
  std::sort(events.begin(), events.end());
  Together now, most;
  for (const auto& [at, change] : events) {
    now.trials += change.first;
    now.memory += change.second;
    most.trials = std::max(most.trials, now.trials);
    most.memory = std::max(most.memory, now.memory);
  }
  return most;
}

std::int64_t ended_since(const StudyReport& report, std::int64_t since) {
  double last = 0;  // begin
  for (const TrialBar& bar : report.bars)
    if (bar.trial >= since) last = std::max(last, bar.begin);
  return std::count_if(report.bars.begin(), report.bars.end(),
                       [&](const TrialBar& bar) { return counted(bar, since) && bar.end <= last; });
}

std::optional<FirstTrials> measured_first(const Study& study, const StudyReport& report, std::int64_t since,
                                          std::int64_t count) {
  const std::vector<TrialTimes> times = times_of(study, report, since);
  const auto found = first_trials(times, {static_cast<std::size_t>(std::max<std::int64_t>(0, count))});
  if (found.empty()) return std::nullopt;
  const FirstFigures& first = found.front();
  std::vector<TrialTimes> theirs = times;
  std::erase_if(theirs, [](const TrialTimes& trial) { return !trial.counts; });
  const auto most = static_cast<double>(most_together(theirs, first.until).trials);
  return FirstTrials{.trials = first.trials,
                     .trials_per_hour = rate_range(first.trials_per_hour, first.lengths),
                     .pruned_share = wilson(first.pruned, first.trials),
                     .trial_seconds = middle(first.lengths),
                     .at_once = {.low = first.at_once, .value = first.at_once, .high = std::max(first.at_once, most)}};
}

}  // namespace headroom::tune
