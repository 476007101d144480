// SPDX-License-Identifier: Apache-2.0
#include "tune/failure_anomalies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/human.h"
#include "base/iso_time.h"
#include "tune/failures.h"
#include "tune/parameter_columns.h"

namespace headroom::tune {

namespace {

// The failed trials from the first that the group lists to the last, by their positions in the study.
std::vector<std::size_t> failed_between(const Study& study, const FailureGroup& group) {
  std::vector<std::size_t> failed;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const Trial& trial = study.trials[i];
    if (trial.state == TrialState::kFail && trial.number >= group.trials.front() && trial.number <= group.trials.back())
      failed.push_back(i);
  }
  return failed;
}

// "09:51:41", with its day where the study has several.
std::string moment(Nanos at, const Timeline& timeline) {
  const auto day = [](Nanos time) { return iso_time(time).substr(0, 10); };
  return day(timeline.begin) == day(timeline.end) ? clock_time(at) : day(at) + " " + clock_time(at);
}

// ", from 09:51:41 to 10:34:36 by the storage's clock"; "" where no trial has times.
std::string when(const std::vector<std::size_t>& trials, bool to_end, const Timeline& timeline) {
  Nanos from = std::numeric_limits<Nanos>::max(), to = 0;
  for (const std::size_t i : trials) {
    if (!timeline.spans[i].timed) continue;
    from = std::min(from, timeline.spans[i].begin);
    to = std::max(to, timeline.spans[i].end);
  }
  if (from > to) return "";
  return fmt::format(", from {} {} by the storage's clock", moment(from, timeline),
                     to_end ? "on" : "to " + moment(to, timeline));
}

// True if all of these trials have the value, and so few others that chance does not give it.
template <class Has>
bool shared(const Study& study, const std::vector<std::size_t>& trials, const Has& has) {
  constexpr double kChance = 0.01;
  if (!std::all_of(trials.begin(), trials.end(), has)) return false;
  double with = 0;
  for (std::size_t i = 0; i < study.trials.size(); ++i) with += has(i) ? 1 : 0;
  const auto count = static_cast<double>(trials.size()), others = static_cast<double>(study.trials.size()) - count;
  return others > 0 && std::pow((with - count) / others, count) <= kChance;
}

// A column by the study's trials; NaN where a trial has none.
std::vector<double> values_of(const Study& study, const ParameterColumn& column) {
  std::vector<double> values(study.trials.size(), std::numeric_limits<double>::quiet_NaN());
  for (const auto& [trial, value] : column.values) values[trial] = value;
  return values;
}

std::string value_words(const ParameterColumn& column, double value) {
  return fmt::format("{} = {}", column.name,
                     column.number ? fmt::format("{}", value) : column.words[static_cast<std::size_t>(value)]);
}

// "lr = 0.1, depth = 12": all parameters of these trials, where each has them all so and hardly another has; else "".
std::string same_parameters(const Study& study, const std::vector<std::size_t>& trials) {
  constexpr std::size_t kShown = 4;
  if (trials.size() < 2) return "";
  std::vector<bool> has_all(study.trials.size(), true);
  std::vector<std::string> words;
  bool any_number = false;  // of words one parameter has few: trials share it by chance
  for (const ParameterColumn& column : parameter_columns(study)) {
    const std::vector<double> values = values_of(study, column);
    const double value = values[trials.front()];
    any_number |= column.number;
    const bool none = std::isnan(value);
    if (!none) words.push_back(value_words(column, value));
    for (std::size_t i = 0; i < values.size(); ++i)
      if (none ? !std::isnan(values[i]) : values[i] != value) has_all[i] = false;
  }
  if (words.empty() || (words.size() == 1 && !any_number) ||
      !shared(study, trials, [&](std::size_t i) { return has_all[i]; }))
    return "";
  const std::size_t more = words.size() > kShown ? words.size() - kShown : 0;
  words.resize(words.size() - more);
  return fmt::format("{}{}", fmt::join(words, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

// Of trials that have all parameters the same: that, and what asks for these again and again.
std::string same_again(const Study& study, const std::vector<std::size_t>& trials, const std::string& parameters) {
  const auto all = [&](const auto& is_so) {
    return static_cast<std::size_t>(std::count_if(trials.begin(), trials.end(), is_so)) + 1 >= trials.size();
  };
  const bool enqueued = all([&](std::size_t i) { return study.trials[i].enqueued; });
  const bool retried = all([&](std::size_t i) { return study.trials[i].retry_of.has_value(); });
  return fmt::format(
      "all of them have the same parameters ({}), and hardly another has; {}", parameters,
      retried
          ? "each is a retry of the one before: set max_retry of RetryFailedTrialCallback lower, and see in the log "
            "of the first why it failed"
      : enqueued
          ? "enqueue_trial() asked for them: see in the log of the first why it failed before it is asked for again"
          : "what repeats them (enqueue_trial(), a retry, a sampler with a fixed seed) asks in vain: see in the "
            "log of the first why it failed");
}

// The worker or the parameters that all of them have; "": none.
std::string shared_by(const Study& study, const std::vector<std::size_t>& trials) {
  const auto worker = study.trials[trials.front()].worker;
  if (worker && shared(study, trials, [&](std::size_t i) { return study.trials[i].worker == worker; }))
    return "worker " + study.workers[*worker];
  std::vector<std::string> words;
  for (const ParameterColumn& column : parameter_columns(study)) {
    const std::vector<double> values = values_of(study, column);
    const double value = values[trials.front()];
    if (!std::isnan(value) && shared(study, trials, [&](std::size_t i) { return values[i] == value; }))
      words.push_back(value_words(column, value));
  }
  return fmt::format("{}", fmt::join(words, " and "));
}

// A sampler that leaves failed trials out goes on trying such regions.
void add_failing_regions(const Study& study, const StudyReport& report, std::vector<CostedAnomaly>& found) {
  constexpr double kNearlyAll = 0.8, kWorthIt = 0.02;  // of its trials, of worker time
  for (const FailureGroup& group : report.failures) {
    if (!group.region || static_cast<double>(group.failed) < kNearlyAll * static_cast<double>(group.of)) continue;
    const double share = report.worker_time.total > 0 ? group.worker_seconds / report.worker_time.total : 0;
    if (share < kWorthIt) continue;
    const std::vector<std::size_t> failed = failed_between(study, group);
    const std::string same = same_parameters(study, failed);
    found.push_back(
        {group.worker_seconds,
         {.kind = "failing_region",
          .text = fmt::format("{} of {} with {} failed: {} of worker time", group.failed, count_of(group.of, "trial"),
                              group.where, human_percent(share)),
          .next = !same.empty() ? same_again(study, failed, same)
                                : "leave that region out of the search space, or raise optuna.TrialPruned there before "
                                  "anything is loaded: TPE learns from pruned trials, not from failed ones",
          .trials = group.trials}});
  }
}

// Whatever they try: what they run on changed then.
void add_failing_since(const Study& study, const Timeline& timeline, const StudyReport& report,
                       std::vector<CostedAnomaly>& found) {
  const FailureGroup* group = failing_since(report.failures);
  if (!group) return;
  const std::vector<std::size_t> failed = failed_between(study, *group);
  const std::string same = same_parameters(study, failed);
  found.push_back(
      {group->worker_seconds,
       {.kind = "failing_since",
        .text = fmt::format("{} of {} {} failed{}{}", group->failed, count_of(group->of, "trial"), group->where,
                            same.empty() ? ", whatever the parameters" : "", when(failed, true, timeline)),
        .next = !same.empty() ? same_again(study, failed, same)
                              : "look at what changed then: free memory of the GPU and the host, the disk, another "
                                "user, the code; the logs of the first of them say most",
        .trials = group->trials}});
}

// Others succeeded before or after them, and between one such stretch and the next.
void add_failing_for_a_time(const Study& study, const Timeline& timeline, const StudyReport& report,
                            std::vector<CostedAnomaly>& found) {
  const std::vector<const FailureGroup*> groups = failing_for_a_time(report.failures);
  if (groups.empty()) return;
  CostedAnomaly anomaly{0, {.kind = "failing_for_a_time"}};
  std::vector<std::int64_t>& trials = anomaly.anomaly.trials;
  std::vector<std::size_t> all;
  std::vector<std::string> words;
  for (const FailureGroup* group : groups) {
    const std::vector<std::size_t> failed = failed_between(study, *group);
    words.push_back(fmt::format("{} of {} {} failed{}", group->failed, count_of(group->of, "trial"), group->where,
                                when(failed, false, timeline)));
    all.insert(all.end(), failed.begin(), failed.end());
    anomaly.worker_seconds += group->worker_seconds;
    trials.insert(trials.end(), group->trials.begin(), group->trials.end());
  }
  if (constexpr std::size_t kMost = 20; trials.size() > kMost)
    trials.erase(trials.begin() + static_cast<std::ptrdiff_t>(kMost) - 1, trials.end() - 1);
  const std::string same = same_parameters(study, all), all_have = shared_by(study, all);
  anomaly.anomaly.text = fmt::format("{}{}", fmt::join(words, ", and "),
                                     groups.size() == 1   ? ""
                                     : groups.size() == 2 ? ": it came twice"
                                                          : fmt::format(": it came {} times", groups.size()));
  anomaly.anomaly.next =
      !same.empty() ? same_again(study, all, same)
      : all_have.empty()
          ? "no parameter and no worker alone sets them apart: perhaps something else failed then, such as the "
            "disk, memory, another user's job or a driver; look at the logs of that time"
          : fmt::format("all of them have {}, which hardly another has; look at the logs of that time", all_have);
  found.push_back(std::move(anomaly));
}

// So does one of several workers, whatever it tries.
void add_failing_worker(const Study& study, const StudyReport& report, std::vector<CostedAnomaly>& found) {
  const FailureGroup* group = failing_worker(report.failures);
  if (!group) return;
  std::int64_t failed = -group->failed, of = -group->of;  // of all other trials
  for (const Trial& trial : study.trials)
    failed += trial.state == TrialState::kFail ? 1 : 0, of += is_finished(trial.state) ? 1 : 0;
  found.push_back({group->worker_seconds,
                   {.kind = "failing_worker",
                    .text = fmt::format("{} of {} {} failed, and {} of all {} others", group->failed,
                                        count_of(group->of, "trial"), group->where, failed, of),
                    .next = "look at where that worker runs: its GPU, its memory, its disk, its packages; the log of "
                            "the first of them says most",
                    .trials = group->trials}});
}

}  // namespace

void add_failures(const Study& study, const Timeline& timeline, const StudyReport& report,
                  std::vector<CostedAnomaly>& found) {
  add_failing_regions(study, report, found);
  add_failing_since(study, timeline, report, found);
  add_failing_for_a_time(study, timeline, report, found);
  add_failing_worker(study, report, found);
}

}  // namespace headroom::tune
