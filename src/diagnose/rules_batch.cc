// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/human.h"
#include "diagnose/batch_times.h"
#include "model/events.h"

namespace headroom::diagnose {

namespace {

const std::string& task_name(const Case& c, const TaskAttempt& attempt) {
  return c.job.batch.tasks[static_cast<std::size_t>(attempt.task)];
}

Finding batch_finding(Cause cause, std::string title, Nanos cost) {
  Finding finding;
  finding.cause = cause;
  finding.title = std::move(title);
  finding.cost = cost;
  finding.confidence = Confidence::kHigh;
  finding.tier = "NPS";
  return finding;
}

std::string count_of(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", human_count(static_cast<std::int64_t>(count)), noun, count == 1 ? "" : "s");
}

// The attempts that ended last, and how they compare with the others.
std::vector<std::string> last_tasks(const Case& c, const Tail& tail) {
  std::vector<const TaskAttempt*> last;
  std::vector<Nanos> durations;
  for (const TaskAttempt& attempt : c.job.batch.attempts) {
    if (attempt.devices.empty()) continue;
    if (attempt.counted()) durations.push_back(attempt.end - attempt.begin);
    if (attempt.end > tail.begin) last.push_back(&attempt);
  }
  std::stable_sort(last.begin(), last.end(), [](const auto* a, const auto* b) { return a->end > b->end; });
  std::vector<std::string> lines;
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, last.size()); ++i)
    lines.push_back(fmt::format("task {} ran for {} and ended at {}", task_name(c, *last[i]),
                                human_duration(last[i]->end - last[i]->begin), c.when(last[i]->end)));
  if (last.size() > kShown) lines.push_back(fmt::format("and {} more", count_of(last.size() - kShown, "task")));
  if (durations.size() >= 3) {
    const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
    std::nth_element(durations.begin(), middle, durations.end());
    lines.push_back(fmt::format("half of all tasks took {} or less", human_duration(*middle)));
  }
  return lines;
}

// Time at equal work if all GPUs ended together; never less than the longest task takes.
std::string balanced_bound(const Case& c, const Tail& tail) {
  Nanos begin = tail.end, longest = 0;
  for (const TaskAttempt& attempt : c.job.batch.attempts) {
    if (attempt.devices.empty()) continue;
    begin = std::min(begin, attempt.begin);
    if (attempt.counted()) longest = std::max(longest, attempt.end - attempt.begin);
  }
  const Nanos now = tail.end - begin, even = now - tail.lost / static_cast<Nanos>(c.times.size());
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

std::vector<Finding> tail_imbalance(const Case& c) {
  if (!c.job.batch.present || c.times.size() < 2) return {};
  const auto tail = tail_of(c);
  if (!tail || c.share(tail->lost) < kMaterial) return {};
  Finding finding =
      batch_finding(Cause::kTailImbalance, "The last tasks ran while other GPUs had nothing left to do", tail->lost);
  for (std::size_t device = 0; device < c.times.size(); ++device)
    if (tail->free_from[device] < tail->end)
      finding.evidence.push_back(fmt::format("{} had no task from {} on; the last one elsewhere ended {} later",
                                             c.device_name(device), c.when(tail->free_from[device]),
                                             human_duration(tail->end - tail->free_from[device])));
  for (auto& line : last_tasks(c, *tail)) finding.evidence.push_back(std::move(line));
  finding.told_apart_from = {"waiting tasks: nothing was queued any more"};
  finding.would_overturn =
      "the same tail when the longest tasks start first: then one task alone is longer than an even share";
  finding.advice =
      "run it again: the durations are kept, and the next batch of this command starts the longest first; until then "
      "give the longest a higher priority, or split it. No help where durations change from run to run";
  finding.bound = balanced_bound(c, *tail);
  return {finding};
}

namespace {

// One stretch in which a GPU stood free beside waiting tasks.
struct Wait {
  std::size_t device = 0;
  Nanos begin = 0, end = 0;
};

std::vector<Wait> waits_of(const Case& c) {
  std::vector<Wait> waits;
  for (std::size_t device = 0; device < c.times.size(); ++device)
    for (const Slice& slice : c.times[device].slices) {
      if (slice.account != Account::kTaskWaiting || part_of(c, slice) == 0) continue;
      if (!waits.empty() && waits.back().device == device && waits.back().end == slice.begin)
        waits.back().end = slice.end;
      else
        waits.push_back({device, slice.begin, slice.end});
    }
  return waits;
}

// What the recording knows about why a GPU stayed free for so long.
std::string reason_of(const Case& c, const Wait& wait) {
  const SourceId gpu = c.times[wait.device].source;
  for (const Event& event : c.recording.events)
    if (is<events::DeviceLost>(event) && event.source == gpu && event.at < wait.end)
      return fmt::format("the driver lost this GPU at {}", c.when(event.at));
  const auto next = std::find_if(c.job.batch.attempts.begin(), c.job.batch.attempts.end(), [&](const auto& attempt) {
    return attempt.begin >= wait.end - kMillisecond &&
           std::find(attempt.devices.begin(), attempt.devices.end(), gpu) != attempt.devices.end();
  });
  if (next == c.job.batch.attempts.end()) return "it was given no task any more";
  if (next->devices.size() > 1)
    return fmt::format("the next task there, {}, needs {} GPUs at once", task_name(c, *next), next->devices.size());
  return fmt::format("the next task there was {}", task_name(c, *next));
}

}  // namespace

std::vector<Finding> tasks_waited(const Case& c) {
  const Nanos cost = c.ledger().total(Account::kTaskWaiting);
  if (!c.job.batch.present || c.share(cost) < kMaterial) return {};
  constexpr Nanos kGap = kSecond;
  constexpr std::size_t kShown = 3;
  std::vector<Wait> waits = waits_of(c);
  std::stable_sort(waits.begin(), waits.end(),
                   [](const Wait& a, const Wait& b) { return a.end - a.begin > b.end - b.begin; });
  Nanos gaps = 0;
  std::size_t short_ones = 0;
  for (const Wait& wait : waits)
    if (wait.end - wait.begin < kGap) gaps += wait.end - wait.begin, ++short_ones;
  Finding finding = batch_finding(Cause::kTaskWaiting, "GPUs stood free while tasks waited", cost);
  for (std::size_t i = 0; i < std::min(kShown, waits.size() - short_ones); ++i)
    finding.evidence.push_back(fmt::format("{} stood free for {} from {} on: {}", c.device_name(waits[i].device),
                                           human_duration(waits[i].end - waits[i].begin), c.when(waits[i].begin),
                                           reason_of(c, waits[i])));
  if (short_ones > 0)
    finding.evidence.push_back(fmt::format("{} between tasks, {} together, {} each on average",
                                           count_of(short_ones, "short gap"), human_duration(gaps),
                                           human_duration(gaps / static_cast<Nanos>(short_ones))));
  finding.told_apart_from = {"nothing to do: a task that wants a GPU was ready all that time"};
  finding.would_overturn = "a limit that is meant: max_running of a group, memory or cores that the waiting tasks need";
  if (2 * gaps >= cost)
    finding.advice = "fewer and longer tasks: each start costs the launcher and the system some milliseconds";
  else
    finding.advice =
        "headroom batch status says what the first task in the queue waits for: memory, cores, a group's limit or "
        "more GPUs at once; say smaller needs where they are guesses";
  finding.bound = fmt::format("{} at most, if every GPU got its next task at once", removal_bound(c, cost));
  return {finding};
}

namespace {

struct Discarded {
  Nanos kernels = 0, held = 0;  // device time
  std::map<AttemptOutcome, std::size_t> outcomes;
  std::size_t under_way = 0, all = 0, attempts = 0;
  Nanos out_of_memory = 0;              // of kernels and held
  std::map<std::int32_t, Nanos> tasks;  // device time by task
};

using AttemptsOfTask = std::vector<std::vector<const TaskAttempt*>>;

const TaskAttempt* attempt_at(const AttemptsOfTask& of_task, std::int32_t task, Nanos at) {
  for (const TaskAttempt* attempt : of_task[static_cast<std::size_t>(task)])
    if (attempt->begin <= at && at < attempt->end) return attempt;
  return nullptr;
}

bool out_of_memory(const TaskAttempt& attempt) {
  return attempt.outcome == AttemptOutcome::kGpuOutOfMemory || attempt.outcome == AttemptOutcome::kHostOutOfMemory;
}

Discarded discarded_of(const Case& c) {
  Discarded sum;
  AttemptsOfTask of_task(c.job.batch.tasks.size());
  for (const TaskAttempt& attempt : c.job.batch.attempts) {
    of_task[static_cast<std::size_t>(attempt.task)].push_back(&attempt);
    if (attempt.devices.empty()) continue;
    ++sum.attempts;
    if (attempt.counted()) continue;
    ++sum.all;
    if (attempt.outcome)
      ++sum.outcomes[*attempt.outcome];
    else
      ++sum.under_way;
  }
  for (const DeviceTime& time : c.times)
    for (const Slice& slice : time.slices) {
      if (slice.task < 0) continue;
      const TaskAttempt* attempt = attempt_at(of_task, slice.task, slice.begin + (slice.end - slice.begin) / 2);
      const Nanos part = part_of(c, slice);
      if (slice.account == Account::kDiscarded)
        sum.kernels += part;
      else if (attempt && !attempt->counted())
        sum.held += part;
      else
        continue;
      sum.tasks[slice.task] += part;
      if (attempt && out_of_memory(*attempt)) sum.out_of_memory += part;
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

std::string discarded_advice(const Discarded& d, bool memory) {
  if (memory)
    return "say the need in the task file (gpu_memory), so that the first attempt already gets the room; or a smaller "
           "batch";
  const std::size_t stopped =
      d.under_way +
      (d.outcomes.contains(AttemptOutcome::kInterrupted) ? d.outcomes.at(AttemptOutcome::kInterrupted) : 0);
  if (2 * stopped > d.all) return "let tasks write checkpoints and go on from them: stopping then costs little";
  return "headroom batch show --failed has the reasons; checks of arguments and data before the first step fail "
         "sooner";
}

}  // namespace

std::vector<Finding> discarded_work(const Case& c) {
  if (!c.job.batch.present) return {};
  const Discarded d = discarded_of(c);
  const Nanos cost = d.kernels + d.held;
  if (c.share(cost) < kMaterial) return {};
  const bool memory = 2 * d.out_of_memory >= cost;
  Finding finding = batch_finding(memory ? Cause::kOomRestartLoop : Cause::kWastedTrials,
                                  memory ? "Tasks ran out of memory, and their work was thrown away"
                                         : "Work of tasks that did not succeed was thrown away",
                                  cost);
  finding.evidence = {outcomes_words(d), fmt::format("their kernels ran for {}; they held GPUs without a kernel for {}",
                                                     human_duration(d.kernels), human_duration(d.held))};
  const auto most = std::max_element(d.tasks.begin(), d.tasks.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != d.tasks.end())
    finding.evidence.push_back(fmt::format("most of it, {}, was of task {}", human_duration(most->second),
                                           c.job.batch.tasks[static_cast<std::size_t>(most->first)]));
  finding.told_apart_from = {"slow work: it is the outcome of these attempts that makes it lost, not their speed"};
  finding.would_overturn = "later attempts that went on from what these had written: then part of it counted";
  finding.advice = discarded_advice(d, memory);
  finding.bound = fmt::format("{} at most, if none of it had been begun", removal_bound(c, cost));
  return {finding};
}

}  // namespace headroom::diagnose
