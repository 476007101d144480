// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

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
  if (durations.size() >= 3)
    lines.push_back(fmt::format("the median task took {}", human_duration(median(std::move(durations)))));
  return lines;
}

bool one_task(const Analysis& a) {
  const auto& attempts = a.job.batch.attempts;
  return std::all_of(attempts.begin(), attempts.end(),
                     [&](const TaskAttempt& attempt) { return attempt.task == attempts.front().task; });
}

// Time at equal work if all GPUs ended together; never less than the longest task takes. No gain where no order helps.
void balanced_bound(const Analysis& a, const Tail& tail, Finding& finding) {
  Nanos begin = tail.end, longest = 0;  // of the window
  for (const TaskAttempt& attempt : a.job.batch.attempts) {
    if (attempt.devices.empty()) continue;
    begin = std::min(begin, std::max(attempt.begin, a.window.begin));
    longest = std::max(longest, attempt.end - attempt.begin);  // whatever came of it: order makes none shorter
  }
  const Nanos now = tail.end - begin, even = now - length(tail.lost) / static_cast<Nanos>(a.devices.size());
  const Nanos best = std::max(even, longest);
  if (best >= now) {
    finding.bound = fmt::format("none by order alone: the longest task took {} by itself", human_duration(longest));
    return;
  }
  const double high = static_cast<double>(now) / static_cast<double>(best);
  finding.gain =
      Gain{1.0, high,
           best == longest ? "if the tasks take as long as now and the longest one starts first: it allows no less"
                           : "if the tasks take as long as now and can be arranged so that all GPUs end together"};
  finding.bound = fmt::format("{} at most ({} instead of {}), {}", human_factor(high), human_duration(best),
                              human_duration(now), finding.gain->condition);
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
  finding.advice =
      "start the longest first: a later batch of these tasks does so by itself, since durations are kept (--fresh runs "
      "all of them again); else give it a higher priority, or split it. No help where durations change from run to run";
  if (one_task(a)) {
    finding.title = "The only task ran while other GPUs had nothing to do";
    finding.would_overturn = "the driver's process list: if the task is on the other GPUs as well, this is wrong";
    finding.advice = "split it, give it more GPUs at once if it can use them, or run other tasks beside it";
  }
  balanced_bound(a, *tail, finding);
  if (!finding.gain && !one_task(a)) finding.advice = "split the longest task, or run other work beside it";
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

// A GPU on which a task has failed gets the next one once a reading shows that the driver has not lost it.
bool follows_a_failure(const Analysis& a, const ClaimedPiece& wait) {
  const SourceId gpu = a.devices[wait.device].source;
  return std::any_of(a.job.batch.attempts.begin(), a.job.batch.attempts.end(), [&](const TaskAttempt& attempt) {
    return attempt.outcome == AttemptOutcome::kFailed && std::abs(attempt.end - wait.begin) <= kMillisecond &&
           std::find(attempt.devices.begin(), attempt.devices.end(), gpu) != attempt.devices.end();
  });
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
  Nanos gaps = 0, after_failures = 0;
  std::size_t short_ones = 0;
  for (const ClaimedPiece& wait : waits) {
    if (wait.end - wait.begin >= short_gap) continue;
    gaps += wait.end - wait.begin, ++short_ones;
    if (follows_a_failure(a, wait)) after_failures += wait.end - wait.begin;
  }
  for (std::size_t i = 0; i < std::min(kShown, waits.size() - short_ones); ++i)
    finding.evidence.push_back(fmt::format("{} stood free for {} from {} on: {}", a.device_name(waits[i].device),
                                           human_duration(waits[i].end - waits[i].begin), a.when(waits[i].begin),
                                           reason_of(a, waits[i])));
  if (short_ones > 0)
    finding.evidence.push_back(fmt::format("{} between tasks, {} together, {} each on average",
                                           count_of(short_ones, "short gap"), human_duration(gaps),
                                           human_duration(gaps / static_cast<Nanos>(short_ones))));
  finding.told_apart_from = {"nothing to do: a task that wants a GPU was ready all that time"};
  if (after_failures > 0)
    finding.evidence.push_back(
        fmt::format("{} of that after tasks that failed: the next one waits for a reading, which "
                    "shows whether the driver has lost that GPU",
                    human_duration(after_failures)));
  const double most = a.limits[Threshold::kMajority] * static_cast<double>(cost);
  if (static_cast<double>(after_failures) >= most)
    finding.advice = "see why these tasks failed: headroom batch show --failed";
  else if (static_cast<double>(gaps) >= most)
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
  Claims may_be_theirs;         // kernels booked to others
  std::size_t unlisted = 0;     // attempts of whose time these are
  Nanos kernels = 0, held = 0;  // device time
  std::map<AttemptOutcome, std::size_t> outcomes;
  std::size_t under_way = 0, all = 0, attempts = 0;
  Nanos out_of_memory = 0;              // of kernels and held
  std::map<std::int32_t, Nanos> tasks;  // device time by task
};

bool out_of_memory(const TaskAttempt& attempt) {
  return attempt.outcome == AttemptOutcome::kGpuOutOfMemory || attempt.outcome == AttemptOutcome::kHostOutOfMemory;
}

// Attempts in vain that no list of the driver's named, and whose tasks were not looked for in vain.
std::vector<std::size_t> unlisted_attempts(const Analysis& a) {
  std::set<std::int32_t> never;  // tasks that were looked for in vain
  for (const DeviceTime& device : a.devices)
    for (const Slice& slice : device.slices)
      if (slice.account == Account::kNotUsed && slice.task >= 0) never.insert(slice.task);
  const auto& attempts = a.job.batch.attempts;
  std::vector<bool> listed(attempts.size(), false);
  for (const ContextUse& use : a.job.uses)
    if (use.attempt >= 0) listed[static_cast<std::size_t>(use.attempt)] = true;
  std::vector<std::size_t> unlisted;
  for (std::size_t i = 0; i < attempts.size(); ++i)
    if (attempts[i].in_vain() && !listed[i] && !never.contains(attempts[i].task)) unlisted.push_back(i);
  return unlisted;
}

// Kernels of others while such an attempt had the same GPU, and may have run some of them.
void add_unlisted(const Analysis& a, Discarded& sum) {
  const std::vector<std::size_t> unlisted = unlisted_attempts(a);
  Claims times;
  std::set<std::size_t> found;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (const std::size_t i : unlisted) {  // in order of begin
      const TaskAttempt& attempt = a.job.batch.attempts[i];
      const auto& given = attempt.devices;
      if (std::find(given.begin(), given.end(), a.devices[device].source) == given.end()) continue;
      found.insert(i);
      if (!times.empty() && times.back().device == device && attempt.begin <= times.back().end)
        times.back().end = std::max(times.back().end, attempt.end);
      else
        times.push_back({device, attempt.begin, attempt.end, Account::kUseful, -1});
    }
  sum.unlisted = found.size();
  sum.may_be_theirs = common(claim_accounts(a, {Account::kUseful, Account::kUnderWay}), times);
}

void count_outcomes(const Analysis& a, Discarded& sum) {
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
}

bool thrown_away(const Analysis& a, const Slice& slice) {
  if (slice.task < 0 || slice.account == Account::kUnobserved) return false;
  return slice.account == Account::kDiscarded || (!is_busy(slice.account) && a.held_for_nothing(slice));
}

Discarded discarded_of(const Analysis& a) {
  Discarded sum;
  add_unlisted(a, sum);
  count_outcomes(a, sum);
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    claim_on(
        a, device, [&](const Slice& slice) { return thrown_away(a, slice); }, sum.claims);
    for (const Slice& slice : a.devices[device].slices) {
      if (!thrown_away(a, slice)) continue;
      const Nanos part = slice.end - slice.begin;
      const TaskAttempt* attempt = a.attempt_at(slice.task, slice.begin + part / 2);
      (slice.account == Account::kDiscarded ? sum.kernels : sum.held) += part;
      sum.tasks[slice.task] += part;
      if (attempt && out_of_memory(*attempt)) sum.out_of_memory += part;
    }
  }
  return sum;
}

bool only_out_of_memory(const Discarded& d) {
  return d.under_way == 0 && std::all_of(d.outcomes.begin(), d.outcomes.end(), [](const auto& one) {
           return one.first == AttemptOutcome::kGpuOutOfMemory || one.first == AttemptOutcome::kHostOutOfMemory;
         });
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
  const std::string part = human_duration(task.second), all = human_duration(d.kernels + d.held);
  if (part == all) return fmt::format("nearly all of this was of task {}", name);
  return fmt::format("the largest part, {} of {}, was of task {}", part, all, name);
}

std::string discarded_advice(const Analysis& a, const Discarded& d, bool memory, double majority) {
  if (const auto times = batch_times(a); memory && times && times->too_large)
    return "a smaller batch for the task that ran out of memory alone on its GPU, or a GPU with more: no other place "
           "in "
           "the batch gives it more room";
  if (memory)
    return "say the need in the task file (gpu_memory), so that the first attempt already gets the room; or a smaller "
           "batch";
  const std::size_t stopped =
      d.under_way +
      (d.outcomes.contains(AttemptOutcome::kInterrupted) ? d.outcomes.at(AttemptOutcome::kInterrupted) : 0);
  if (static_cast<double>(stopped) > majority * static_cast<double>(d.all))
    return "let tasks write checkpoints and go on from them: stopping then costs little";
  return "headroom batch show TASK has the reasons; checks of arguments and data before the first step fail "
         "sooner";
}

// All time of GPUs while they had an attempt in vain of a task that succeeded later, until that task ran again: others
// may have waited for its place, for one on a GPU alone, or for the pause before it.
Claims while_in_vain(const Analysis& a) {
  const auto& attempts = a.job.batch.attempts;
  std::set<std::int32_t> succeeded;
  for (const TaskAttempt& attempt : attempts)
    if (attempt.counted()) succeeded.insert(attempt.task);
  Claims with_them;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Claims all, times;
    claim_on(
        a, device, [](const Slice& slice) { return slice.account != Account::kUnobserved; }, all);
    for (std::size_t i = 0; i < attempts.size(); ++i) {  // in order of begin
      const auto& given = attempts[i].devices;
      if (!attempts[i].in_vain() || !succeeded.contains(attempts[i].task) ||
          std::find(given.begin(), given.end(), a.devices[device].source) == given.end())
        continue;
      const auto again = std::find_if(attempts.begin() + static_cast<std::ptrdiff_t>(i) + 1, attempts.end(),
                                      [&](const TaskAttempt& next) { return next.task == attempts[i].task; });
      const Nanos end = again == attempts.end() ? attempts[i].end : again->begin;
      if (!times.empty() && attempts[i].begin <= times.back().end)
        times.back().end = std::max(times.back().end, end);
      else
        times.push_back({device, attempts[i].begin, end, Account::kUseful, -1});
    }
    const Claims here = common(all, times);
    with_them.insert(with_them.end(), here.begin(), here.end());
  }
  return with_them;
}

std::string thrown_away(const Analysis& a, const Discarded& d) {
  std::set<std::int32_t> ended;
  bool succeeded = false;
  for (const TaskAttempt& attempt : a.job.batch.attempts) {
    succeeded |= attempt.counted();
    if (attempt.in_vain()) ended.insert(attempt.task);
  }
  if (succeeded || d.under_way > 0 || ended.size() < 2) return "Work of tasks that did not succeed was thrown away";
  return fmt::format("None of the {} tasks that ended has succeeded, and their work was thrown away", ended.size());
}

}  // namespace

std::vector<Finding> discarded_work(const Analysis& a) {
  if (!a.job.batch.present) return {};
  const Discarded d = discarded_of(a);
  const double cost = static_cast<double>(length(d.claims));
  if (!a.material(length(d.claims))) return {};
  const bool memory = static_cast<double>(d.out_of_memory) >= a.limits[Threshold::kMajority] * cost;
  Finding finding = batch_finding(memory ? Cause::kOomRestartLoop : Cause::kWastedTrials,
                                  !memory                 ? thrown_away(a, d)
                                  : only_out_of_memory(d) ? "Tasks ran out of memory, and their work was thrown away"
                                                          : "Work was thrown away, most of it of tasks that ran out of "
                                                            "memory",
                                  d.claims);
  const bool unsure = a.material(length(d.may_be_theirs));
  finding.evidence = {outcomes_words(d), fmt::format("{} ran for {}; for {} a GPU was theirs alone, and ran no kernel",
                                                     unsure ? "what is booked as their kernels" : "their kernels",
                                                     human_duration(d.kernels), human_duration(d.held))};
  const auto most = std::max_element(d.tasks.begin(), d.tasks.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  if (most != d.tasks.end()) finding.evidence.push_back(largest_part(a, d, *most));
  finding.told_apart_from = {"slow work: it is the outcome of these attempts that makes it lost, not their speed"};
  finding.advice = discarded_advice(a, d, memory, a.limits[Threshold::kMajority]);
  if (unsure)
    finding.evidence.push_back(fmt::format(
        "no list of the driver named {} of them: {} of kernels booked to tasks beside {} may be of these as well",
        d.unlisted, human_duration(length(d.may_be_theirs)), d.unlisted == 1 ? "it" : "them"));
  // What succeeds in the end takes as long as it takes: of a task that never did there is no equal work without it.
  Claims own = std::exchange(finding.claims, while_in_vain(a));
  if (!finding.claims.empty())
    gains_by_removal(a, finding,
                     "if tasks that succeeded later had done so at once, and what ran beside them could run at other "
                     "times");
  finding.claims = std::move(own);
  if (!finding.gain) finding.bound = "none at equal work: made right, these tasks take as long, or longer";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
