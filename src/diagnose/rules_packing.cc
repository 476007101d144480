// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "base/human.h"
#include "diagnose/batch_times.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// Start-ups on the devices: by the process that started, the time from its begin to its first kernel.
std::vector<Nanos> startups(const Analysis& a) {
  std::map<std::pair<std::int32_t, std::int64_t>, Nanos> by_process;
  for (const DeviceTime& time : a.devices)
    for (const Slice& slice : time.slices)
      if (slice.account == Account::kStartup && slice.task >= 0 && !a.held_for_nothing(slice))
        by_process[{slice.task, slice.pid}] += slice.end - slice.begin;
  std::vector<Nanos> lengths;
  for (const auto& [process, length] : by_process) lengths.push_back(length);
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace

namespace {

// "1.5 s"; of few long ones among many short ones half of them and the mean, which makes the sum.
std::string each_startup(const std::vector<Nanos>& lengths) {
  const Nanos median = lengths[lengths.size() / 2];
  const Nanos mean = std::accumulate(lengths.begin(), lengths.end(), Nanos{0}) / static_cast<Nanos>(lengths.size());
  if (mean <= 2 * median) return fmt::format("in each about {}", human_duration(median));
  return fmt::format("in half of them at most {}, on average {}", human_duration(median), human_duration(mean));
}

}  // namespace

std::optional<Finding> trial_churn(const Analysis& a, const Claims& startup) {
  constexpr double kSomeOwn = 0.25;  // of the time in own functions: not all of it is start-up
  if (!a.job.batch.present) return std::nullopt;
  const auto lengths = startups(a);
  const double per_gpu = a.limits[Threshold::kChurnStartsPerGpu] * static_cast<double>(a.devices.size());
  const double starts = static_cast<double>(lengths.size());
  if (starts < a.limits[Threshold::kChurnStarts] || starts < per_gpu) return std::nullopt;
  const Nanos median = lengths[lengths.size() / 2], cost = length(startup);
  Finding finding;
  finding.cause = Cause::kTrialChurn;
  finding.title = "Many tasks each start from nothing";
  finding.claims = startup;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "NPS";
  finding.evidence = {
      fmt::format("{} starts, {} ({} at most) without a kernel of any task: {} of GPU time",
                  human_count(static_cast<std::int64_t>(lengths.size())), each_startup(lengths),
                  human_duration(lengths.back()), human_duration(cost)),
      fmt::format("that is {} of the GPUs' whole time; kernels had {} of it", human_percent(a.share(cost)),
                  human_percent(a.share(a.ledger.total(Account::kUseful))))};
  const std::vector<std::string> no_core = starved_sentence(a, host_during(a.job, a.devices, startup));
  append(finding.evidence, no_core);
  finding.told_apart_from = {"input and host code: no kernel of these tasks had run yet"};
  if (imported_later(a, startup) > 0) finding.told_apart_from.front() += ", or their stacks were in an import";
  finding.advice = fmt::format(
      "let one process do several tasks: imports, data and the CUDA context then come once; {}. Wrong where tasks leak "
      "state into each other",
      no_core.empty() ? "start-up beside another task's kernels costs nothing, so more tasks per GPU hide it"
                      : "on cores that nothing else uses each starts sooner, and so it does where fewer start at once");
  if (const double own = own_code(a, startup); own >= a.limits[Threshold::kMajority]) {
    finding.title = "Many tasks each run code of their own before their first kernel";
    finding.confidence = Confidence::kLow;
    finding.evidence.push_back(
        fmt::format("{} of this time is in functions of the job's own: what each task does anew there is "
                    "work, what all do alike is start-up",
                    human_percent(own)));
    finding.advice =
        "what all tasks do alike in it: do it once, in one process for several of them; what each does anew is work: "
        "make "
        "it cheaper, or put more tasks on a GPU, so that it lies beside another one's kernels";
  } else if (own >= kSomeOwn) {
    finding.confidence = Confidence::kMedium;
  }
  // One start per GPU remains.
  const Nanos left = a.ledger.budget() - std::max<Nanos>(0, cost - median * static_cast<Nanos>(a.devices.size()));
  bound_by(Gain{1.0, static_cast<double>(a.ledger.budget()) / static_cast<double>(std::max<Nanos>(1, left)),
                "if each GPU started once and the rest stays as it is"},
           finding);
  return finding;
}

namespace {

// The time in which GPUs were held by tasks while others waited for a place.
struct Held {
  Claims claims;                             // the idle part
  Nanos busy = 0, idle = 0, attempts = 0;    // device time, device time, time of attempts on devices
  Nanos all_attempts = 0, longest = 0;       // those on devices while none waited, too
  std::vector<std::pair<Nanos, Nanos>> ran;  // begin and end of each
  std::optional<std::int64_t> largest;       // memory of an attempt
  Nanos cpu = 0, cpu_length = 0;             // of attempts whose CPU time is known

  [[nodiscard]] double kernel_share() const { return as_share(busy, busy + idle); }
  [[nodiscard]] double concurrency() const { return as_share(attempts, busy + idle); }
};

Held held_of(const Analysis& a) {
  const WaitingTime waiting(a);
  const Nanos from = a.window.begin, to = a.window.end;
  Held held;
  // Slices are cut where the queue changes: all of one waits beside tasks, or none of it.
  for (const DeviceTime& time : a.devices)
    for (const Slice& slice : time.slices)
      if (is_busy(slice.account) && slice.account != Account::kForeign)
        held.busy += waiting.within(slice.begin, slice.end);
  held.claims = claim(a, [&](std::size_t, const Slice& slice) {
    return is_held_idle(slice.account) && !a.held_for_nothing(slice) &&
           a.job.batch.waiting(slice.begin + (slice.end - slice.begin) / 2);
  });
  held.idle = length(held.claims);
  for (const TaskAttempt& attempt : a.job.batch.attempts) {
    if (attempt.devices.empty()) continue;
    const auto devices = static_cast<Nanos>(attempt.devices.size());
    const Nanos begin = std::clamp(attempt.begin, from, to), end = std::clamp(attempt.end, from, to);
    held.attempts += devices * waiting.within(begin, end);
    held.all_attempts += devices * (end - begin);
    held.longest = std::max(held.longest, end - begin);
    held.ran.emplace_back(begin, end);
    if (attempt.peak_gpu_bytes) held.largest = std::max(held.largest.value_or(0), *attempt.peak_gpu_bytes);
    if (!attempt.cpu_time) continue;
    held.cpu += *attempt.cpu_time;
    held.cpu_length += attempt.end - attempt.begin;
  }
  return held;
}

// The time that at least one of them covers.
Nanos covered(std::vector<std::pair<Nanos, Nanos>> stretches) {
  std::sort(stretches.begin(), stretches.end());
  Nanos sum = 0, until = std::numeric_limits<Nanos>::min();
  for (const auto& [begin, end] : stretches) {
    sum += std::max<Nanos>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

// How many tasks a GPU could hold: by kernels, by its memory and by its share of the cores.
struct Room {
  double by_kernels = 1;
  std::optional<double> by_memory, by_cores;
  std::optional<double> beside_others;  // by cores, if other programs go on to take theirs

  [[nodiscard]] double least() const {
    return std::min({by_kernels, by_memory.value_or(by_kernels), by_cores.value_or(by_kernels)});
  }
};

Room room_of(const Analysis& a, const Held& held) {
  Room room;
  room.by_kernels = held.concurrency() / held.kernel_share();
  std::optional<std::int64_t> smallest;
  for (const DeviceTime& time : a.devices)
    if (const auto total = time.device.memory_total_bytes) smallest = std::min(smallest.value_or(*total), *total);
  if (smallest && held.largest && *held.largest > 0)
    room.by_memory = std::floor(a.limits[Threshold::kPackedMemory] * static_cast<double>(*smallest) /
                                static_cast<double>(*held.largest));
  if (const double cores = a.host.usable_cores; cores > 0 && held.cpu > 0 && held.cpu_length > 0) {
    const double per_task = static_cast<double>(held.cpu) / static_cast<double>(held.cpu_length);
    room.by_cores = cores / per_task / static_cast<double>(a.devices.size());
    // Tasks that wait for a core seem to need less of it: what the machine has left is the limit then.
    if (a.host.busy_cores && *a.host.busy_cores > 0)
      room.beside_others = held.concurrency() * cores / *a.host.busy_cores;
  }
  return room;
}

std::string room_words(const Room& room, const Held& held) {
  std::vector<std::string> words;
  if (room.by_memory)
    words.push_back(
        fmt::format("memory holds {:.0f} of the largest task ({})", *room.by_memory, human_bytes(*held.largest)));
  if (room.by_cores) words.push_back(fmt::format("the cores carry {:.1f} per GPU", *room.by_cores));
  return words.empty() ? "how many fit was not recorded" : fmt::format("{}", fmt::join(words, ", "));
}

std::string chosen_by(const Analysis& a) {
  for (const std::string& word : a.meta.command) {
    if (word == "--") break;  // the tasks' own words
    if (word == "--no-pack" || word.starts_with("--per-gpu")) return word;
  }
  return "";
}

}  // namespace

PackedTasks packed_tasks(const Analysis& a) {
  if (!a.job.batch.present) return {};
  const Held held = held_of(a);
  if (held.busy <= 0) return {};
  return {room_of(a, held).least(), held.concurrency()};
}

std::vector<Finding> under_packing(const Analysis& a) {
  if (!a.job.batch.present) return {};
  const Held held = held_of(a);
  if (!a.material(held.idle) || held.kernel_share() > a.limits[Threshold::kPackedBusy]) return {};
  if (held.kernel_share() < a.limits[Threshold::kPackedKernels])
    return {};  // they wait for something else than each other
  const Room room = room_of(a, held);
  const double beside_others = std::min(room.least(), room.beside_others.value_or(room.least()));
  if (beside_others / std::max(1.0, held.concurrency()) < a.limits[Threshold::kPackedGain]) return {};
  Finding finding;
  finding.cause = Cause::kUnderPacking;
  finding.title = "Tasks waited while the GPUs that other tasks held were mostly idle";
  finding.claims = held.claims;
  finding.confidence = room.by_memory && room.by_cores ? Confidence::kHigh : Confidence::kMedium;
  finding.tiers = "NPS";
  finding.evidence = {fmt::format("while tasks waited, {:.1f} tasks per GPU kept kernels resident for {} of the time",
                                  held.concurrency(), human_percent(held.kernel_share())),
                      room_words(room, held)};
  const std::string flag = chosen_by(a);
  if (!flag.empty()) finding.evidence.push_back(fmt::format("the command said {}", flag));
  finding.told_apart_from = {"a full GPU: the driver saw no kernel for most of that time"};
  finding.advice = flag.empty()
                       ? "more tasks per GPU (--per-gpu), smaller needs in the task file where they are guesses"
                       : fmt::format("without {}: Headroom then adds tasks for as long as that pays", flag);
  // With so many tasks at once on each GPU the attempts take this long, and never less than the longest of them.
  const double packed =
      std::max(static_cast<double>(held.longest),
               static_cast<double>(held.all_attempts) / (room.least() * static_cast<double>(a.devices.size())));
  const auto span = static_cast<double>(a.ledger.span());
  const auto ran = static_cast<double>(covered(held.ran));
  const double at_once = std::min(room.least(), static_cast<double>(a.job.batch.tasks.size()));
  finding.gain = Gain{1.0, span / std::max(1.0, span - ran + std::min(ran, packed)),
                      fmt::format("with {:.0f} tasks per GPU, if {}their kernels do not slow each other down{}",
                                  std::max(2.0, std::floor(at_once)), room.by_memory ? "" : "their memory fits and ",
                                  beside_others < room.least() ? " and other programs take no cores" : "")};
  constexpr double kNothing = 1.01;  // the longest attempt takes as long however many are at once
  if (finding.gain->high < kNothing) return {};
  finding.bound = bound_words(*finding.gain);
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
