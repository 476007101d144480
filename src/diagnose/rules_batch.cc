// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/human.h"
#include "base/median.h"
#include "diagnose/batch_times.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

namespace {

const std::string& task_name(const Analysis& a, const TaskAttempt& attempt) {
  return a.job.batch.tasks[static_cast<std::size_t>(attempt.task)];
}

Finding batch_finding(Cause cause, std::string title, Claims claims) {
  Finding finding;
  finding.cause = cause;
  finding.title = std::move(title);
  finding.claims = std::move(claims);
  finding.confidence = Confidence::kHigh;
  finding.tiers = "NPS";
  return finding;
}

// The attempts that ended last, and how they compare with the others.
std::vector<std::string> last_tasks(const Analysis& a, const Tail& tail) {
  std::vector<const TaskAttempt*> last;
  std::vector<Nanos> durations;
  for (const TaskAttempt& attempt : a.job.batch.attempts) {
    if (attempt.devices.empty()) continue;
    if (attempt.counted()) durations.push_back(attempt.end - attempt.begin);
    if (attempt.end > tail.begin) last.push_back(&attempt);
  }
  std::stable_sort(last.begin(), last.end(), [](const auto* x, const auto* y) { return x->end > y->end; });
  std::vector<std::string> lines;
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, last.size()); ++i)
    lines.push_back(fmt::format("task {} ran for {} and ended at {}", task_name(a, *last[i]),
                                human_duration(last[i]->end - last[i]->begin), a.when(last[i]->end)));
  if (last.size() > kShown) lines.push_back(fmt::format("and {} more", count_of(last.size() - kShown, "task")));
  if (durations.size() >= 3) {
    lines.push_back(fmt::format("half of all tasks took {} or less", human_duration(median(durations))));
  }
  return lines;
}

bool one_task(const Analysis& a) {
  const auto& attempts = a.job.batch.attempts;
  return std::all_of(attempts.begin(), attempts.end(),
                     [&](const TaskAttempt& attempt) { return attempt.task == attempts.front().task; });
}

// Time at equal work if all GPUs ended together; never less than the longest task takes.
std::string balanced_bound(const Analysis& a, const Tail& tail) {
  Nanos begin = tail.end, longest = 0;  // of the window
  for (const TaskAttempt& attempt : a.job.batch.attempts) {
    if (attempt.devices.empty()) continue;
    begin = std::min(begin, std::max(attempt.begin, a.window.begin));
    longest = std::max(longest, attempt.end - attempt.begin);  // whatever came of it: order makes none shorter
  }
  const Nanos now = tail.end - begin, even = now - length(tail.lost) / static_cast<Nanos>(a.devices.size());
  const Nanos best = std::max(even, longest);
  if (best >= now)
    return fmt::format("none by order alone: the longest task took {} by itself", human_duration(longest));
  return fmt::format(
      "{} at most ({} instead of {}), if the tasks take as long as now and can be arranged so that all "
      "GPUs end together{}",
      human_factor(static_cast<double>(now) / static_cast<double>(best)), human_duration(best), human_duration(now),
      best == longest ? "; the longest task allows no less" : "");
}

}  // namespace

std::vector<Finding> tail_imbalance(const Analysis& a) {
  if (!a.job.batch.present || a.devices.size() < 2) return {};
  const auto tail = tail_of(a);
  if (!tail || !a.material(length(tail->lost))) return {};
  Finding finding =
      batch_finding(Cause::kTailImbalance, "The last tasks ran while other GPUs had nothing left to do", tail->lost);
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (tail->free_from[device] < tail->end)
      finding.evidence.push_back(fmt::format("{} had no task from {} on; the last one elsewhere ended {} later",
                                             a.device_name(device), a.when(tail->free_from[device]),
                                             human_duration(tail->end - tail->free_from[device])));
  for (auto& line : last_tasks(a, *tail)) finding.evidence.push_back(std::move(line));
  finding.told_apart_from = {"waiting tasks: nothing was queued any more"};
  finding.would_overturn =
      "start the longest tasks first: if the tail stays, one task alone is longer than an even share";
  finding.advice =
      "run it again: the durations are kept, and the next batch of this command starts the longest first; until then "
      "give the longest a higher priority, or split it. No help where durations change from run to run";
  if (one_task(a)) {
    finding.title = "The only task ran while other GPUs had nothing to do";
    finding.would_overturn = "the driver's process list: if the task is on the other GPUs as well, this is wrong";
    finding.advice = "split it, give it more GPUs at once if it can use them, or run other tasks beside it";
  }
  finding.bound = balanced_bound(a, *tail);
  return only(std::move(finding));
}

namespace {

// What the recording knows about why a GPU stayed free for so long.
std::string reason_of(const Analysis& a, const ClaimedPiece& wait) {
  const SourceId gpu = a.devices[wait.device].source;
  for (const LostDevice& lost : a.lost)
    if (lost.source == gpu && lost.at < wait.end) return fmt::format("the driver lost this GPU at {}", a.when(lost.at));
  const auto next = std::find_if(a.job.batch.attempts.begin(), a.job.batch.attempts.end(), [&](const auto& attempt) {
    return attempt.begin >= wait.end - kMillisecond &&
           std::find(attempt.devices.begin(), attempt.devices.end(), gpu) != attempt.devices.end();
  });
  if (next == a.job.batch.attempts.end()) return "it was given no task any more";
  if (next->devices.size() > 1)
    return fmt::format("the next task there, {}, needs {} GPUs at once", task_name(a, *next), next->devices.size());
  return fmt::format("the next task there was {}", task_name(a, *next));
}

}  // namespace

std::vector<Finding> tasks_waited(const Analysis& a) {
  constexpr std::size_t kShown = 3;
  const Nanos short_gap = a.limits.time(Threshold::kShortGap);
  Claims waits = claim_accounts(a, {Account::kTaskWaiting});
  const Nanos cost = length(waits);
  if (!a.job.batch.present || !a.material(cost)) return {};
  Finding finding = batch_finding(Cause::kTaskWaiting, "GPUs stood free while tasks waited", waits);
  std::stable_sort(waits.begin(), waits.end(),
                   [](const auto& x, const auto& y) { return x.end - x.begin > y.end - y.begin; });
  Nanos gaps = 0;
  std::size_t short_ones = 0;
  for (const ClaimedPiece& wait : waits)
    if (wait.end - wait.begin < short_gap) gaps += wait.end - wait.begin, ++short_ones;
  for (std::size_t i = 0; i < std::min(kShown, waits.size() - short_ones); ++i)
    finding.evidence.push_back(fmt::format("{} stood free for {} from {} on: {}", a.device_name(waits[i].device),
                                           human_duration(waits[i].end - waits[i].begin), a.when(waits[i].begin),
                                           reason_of(a, waits[i])));
  if (short_ones > 0)
    finding.evidence.push_back(fmt::format("{} between tasks, {} together, {} each on average",
                                           count_of(short_ones, "short gap"), human_duration(gaps),
                                           human_duration(gaps / static_cast<Nanos>(short_ones))));
  finding.told_apart_from = {"nothing to do: a task that wants a GPU was ready all that time"};
  finding.would_overturn =
      "the limits of the waiting tasks (max_running, memory, cores): if they are meant, nothing is lost";
  if (static_cast<double>(gaps) >= a.limits[Threshold::kMajority] * static_cast<double>(cost))
    finding.advice = "fewer and longer tasks: each start costs the launcher and the system some milliseconds";
  else
    finding.advice =
        "headroom batch status says what the first task in the queue waits for: memory, cores, a group's limit or "
        "more GPUs at once; say smaller needs where they are guesses";
  gains_by_removal(a, finding, "if every GPU got its next task at once");
  return only(std::move(finding));
}

namespace {

struct Discarded {
  Claims claims;
  Nanos kernels = 0, held = 0;  // device time
  std::map<AttemptOutcome, std::size_t> outcomes;
  std::size_t under_way = 0, all = 0, attempts = 0;
  Nanos out_of_memory = 0;              // of kernels and held
  std::map<std::int32_t, Nanos> tasks;  // device time by task
};

bool out_of_memory(const TaskAttempt& attempt) {
  return attempt.outcome == AttemptOutcome::kGpuOutOfMemory || attempt.outcome == AttemptOutcome::kHostOutOfMemory;
}

Discarded discarded_of(const Analysis& a) {
  Discarded sum;
  for (const TaskAttempt& attempt : a.job.batch.attempts) {
    if (attempt.devices.empty() || attempt.running) continue;
    ++sum.attempts;
    if (attempt.counted()) continue;
    ++sum.all;
    if (attempt.outcome)
      ++sum.outcomes[*attempt.outcome];
    else
      ++sum.under_way;
  }
  const auto thrown_away = [&](const Slice& slice) {
    if (slice.task < 0 || slice.account == Account::kUnobserved) return false;
    return slice.account == Account::kDiscarded || (!is_busy(slice.account) && a.held_for_nothing(slice));
  };
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    claim_on(a, device, thrown_away, sum.claims);
    for (const Slice& slice : a.devices[device].slices) {
      if (!thrown_away(slice)) continue;
      const Nanos part = slice.end - slice.begin;
      const TaskAttempt* attempt = a.attempt_at(slice.task, slice.begin + part / 2);
      (slice.account == Account::kDiscarded ? sum.kernels : sum.held) += part;
      sum.tasks[slice.task] += part;
      if (attempt && out_of_memory(*attempt)) sum.out_of_memory += part;
    }
  }
  return sum;
}

std::string outcomes_words(const Discarded& d) {
  std::vector<std::string> words;
  for (const auto& [outcome, count] : d.outcomes) words.push_back(fmt::format("{} {}", count, info(outcome).label));
  if (d.under_way > 0) words.push_back(fmt::format("{} under way when the recording ended", d.under_way));
  return fmt::format("{} of {} on a GPU did not succeed: {}", d.all, count_of(d.attempts, "attempt"),
                     fmt::join(words, ", "));
}

std::string largest_part(const Analysis& a, const Discarded& d, const std::pair<const std::int32_t, Nanos>& task) {
  const std::string& name = a.job.batch.tasks[static_cast<std::size_t>(task.first)];
  if (d.tasks.size() == 1) return fmt::format("all of this was of task {}", name);
  return fmt::format("the largest part, {} of {}, was of task {}", human_duration(task.second),
                     human_duration(d.kernels + d.held), name);
}

std::string discarded_advice(const Discarded& d, bool memory, double majority) {
  if (memory)
    return "say the need in the task file (gpu_memory), so that the first attempt already gets the room; or a smaller "
           "batch";
  const std::size_t stopped =
      d.under_way +
      (d.outcomes.contains(AttemptOutcome::kInterrupted) ? d.outcomes.at(AttemptOutcome::kInterrupted) : 0);
  if (static_cast<double>(stopped) > majority * static_cast<double>(d.all))
    return "let tasks write checkpoints and go on from them: stopping then costs little";
  return "headroom batch show --failed has the reasons; checks of arguments and data before the first step fail "
         "sooner";
}

}  // namespace

std::vector<Finding> discarded_work(const Analysis& a) {
  if (!a.job.batch.present) return {};
  const Discarded d = discarded_of(a);
  const double cost = static_cast<double>(length(d.claims));
  if (!a.material(length(d.claims))) return {};
  const bool memory = static_cast<double>(d.out_of_memory) >= a.limits[Threshold::kMajority] * cost;
  Finding finding = batch_finding(memory ? Cause::kOomRestartLoop : Cause::kWastedTrials,
                                  memory ? "Tasks ran out of memory, and their work was thrown away"
                                         : "Work of tasks that did not succeed was thrown away",
                                  d.claims);
  finding.evidence = {outcomes_words(d), fmt::format("their kernels ran for {}; they held GPUs without a kernel for {}",
                                                     human_duration(d.kernels), human_duration(d.held))};
  const auto most = std::max_element(d.tasks.begin(), d.tasks.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  if (most != d.tasks.end()) finding.evidence.push_back(largest_part(a, d, *most));
  finding.told_apart_from = {"slow work: it is the outcome of these attempts that makes it lost, not their speed"};
  finding.would_overturn = "whether later attempts went on from what these had written: then part of it counted";
  finding.advice = discarded_advice(d, memory, a.limits[Threshold::kMajority]);
  gains_by_removal(a, finding, "without it, all else alike");
  if (!finding.gain) finding.bound = "none: nothing ran beside it that could have been done sooner";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
