// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/human.h"
#include "diagnose/batch_times.h"
#include "diagnose/host_summary.h"

namespace headroom::diagnose {

namespace {

// Start-ups on the devices: by the process that started, the time from its begin to its first kernel.
std::vector<Nanos> startups(const Case& c) {
  std::map<std::pair<std::int32_t, std::int64_t>, Nanos> by_process;
  for (const DeviceTime& time : c.times)
    for (const Slice& slice : time.slices)
      if (slice.account == Account::kStartup && slice.task >= 0)
        by_process[{slice.task, slice.pid}] += part_of(c, slice);
  std::vector<Nanos> lengths;
  for (const auto& [process, length] : by_process)
    if (length > 0) lengths.push_back(length);
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace

std::vector<Finding> trial_churn(const Case& c) {
  constexpr std::size_t kMany = 10;
  const Nanos cost = c.ledger().total(Account::kStartup);
  if (!c.job.batch.present || c.share(cost) < kMaterial) return {};
  const auto lengths = startups(c);
  if (lengths.size() < kMany || lengths.size() < 3 * c.times.size()) return {};
  const Nanos median = lengths[lengths.size() / 2];
  Finding finding;
  finding.cause = Cause::kTrialChurn;
  finding.title = "Many tasks each start from nothing";
  finding.cost = cost;
  finding.confidence = Confidence::kHigh;
  finding.tier = "NPS";
  finding.evidence = {fmt::format("{} starts of about {} ({} at most): {} of GPU time without a kernel",
                                  human_count(static_cast<std::int64_t>(lengths.size())), human_duration(median),
                                  human_duration(lengths.back()), human_duration(cost)),
                      fmt::format("{} of the GPUs' time, {} of it with kernels", human_percent(c.share(cost)),
                                  human_percent(c.share(c.ledger().total(Account::kUseful))))};
  finding.told_apart_from = {"input and host code: no kernel of these tasks had run yet"};
  finding.would_overturn = "start-up that is part of the work itself, such as fitting on the CPU before the GPU's part";
  finding.advice =
      "let one process do several tasks: imports, data and the CUDA context then come once; start-up beside another "
      "task's kernels costs nothing, so more tasks per GPU hide it. Wrong where tasks leak state into each other";
  // One start per GPU remains.
  const Nanos left = median * static_cast<Nanos>(c.times.size());
  finding.bound = fmt::format("{} at most, if each GPU started once and the rest stays as it is",
                              removal_bound(c, std::max<Nanos>(0, cost - left)));
  return {finding};
}

namespace {

// The time in which GPUs were held by tasks while others waited for a place.
struct Held {
  Nanos busy = 0, idle = 0, attempts = 0;  // device time, device time, time of attempts on devices
  std::optional<std::int64_t> largest;     // memory of an attempt
  Nanos cpu = 0, cpu_length = 0;           // of attempts whose CPU time is known

  [[nodiscard]] double kernel_share() const {
    return static_cast<double>(busy) / static_cast<double>(std::max<Nanos>(1, busy + idle));
  }
  [[nodiscard]] double concurrency() const {
    return static_cast<double>(attempts) / static_cast<double>(std::max<Nanos>(1, busy + idle));
  }
};

Held held_of(const Case& c) {
  const WaitingTime waiting(c);
  const Nanos from = c.ledger().begin, to = c.ledger().end;
  Held held;
  for (const DeviceTime& time : c.times)
    for (const Slice& slice : time.slices) {
      const Nanos part = waiting.within(std::clamp(slice.begin, from, to), std::clamp(slice.end, from, to));
      const std::string_view state = info(slice.account).state;
      if (slice.account == Account::kUseful || slice.account == Account::kDiscarded)
        held.busy += part;
      else if (state == "idle")
        held.idle += part;
    }
  for (const TaskAttempt& attempt : c.job.batch.attempts) {
    held.attempts += static_cast<Nanos>(attempt.devices.size()) *
                     waiting.within(std::clamp(attempt.begin, from, to), std::clamp(attempt.end, from, to));
    if (attempt.devices.empty()) continue;
    if (attempt.peak_gpu_bytes) held.largest = std::max(held.largest.value_or(0), *attempt.peak_gpu_bytes);
    if (!attempt.cpu_time) continue;
    held.cpu += *attempt.cpu_time;
    held.cpu_length += attempt.end - attempt.begin;
  }
  return held;
}

// How many tasks a GPU could hold: by kernels, by its memory and by its share of the cores.
struct Room {
  double by_kernels = 1;
  std::optional<double> by_memory, by_cores;

  [[nodiscard]] double least() const {
    return std::min({by_kernels, by_memory.value_or(by_kernels), by_cores.value_or(by_kernels)});
  }
};

Room room_of(const Case& c, const Held& held) {
  constexpr double kUsableMemory = 0.98;
  Room room;
  room.by_kernels = held.concurrency() / held.kernel_share();
  std::optional<std::int64_t> smallest;
  for (const DeviceTime& time : c.times)
    if (const auto total = time.device.memory_total_bytes) smallest = std::min(smallest.value_or(*total), *total);
  if (smallest && held.largest && *held.largest > 0)
    room.by_memory = std::floor(kUsableMemory * static_cast<double>(*smallest) / static_cast<double>(*held.largest));
  if (const double cores = usable_cores(c.recording); cores > 0 && held.cpu > 0 && held.cpu_length > 0) {
    const double per_task = static_cast<double>(held.cpu) / static_cast<double>(held.cpu_length);
    room.by_cores = cores / per_task / static_cast<double>(c.times.size());
    // Tasks that wait for a core seem to need less of it: what the machine has left is the limit then.
    if (const auto busy = busy_cores(c.recording); busy && *busy > 0)
      room.by_cores = std::min(*room.by_cores, held.concurrency() * cores / *busy);
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

std::string chosen_by(const Case& c) {
  for (const std::string& word : c.recording.meta.command) {
    if (word == "--") break;  // the tasks' own words
    if (word == "--no-pack" || word.starts_with("--per-gpu")) return word;
  }
  return "";
}

}  // namespace

std::vector<Finding> under_packing(const Case& c) {
  constexpr double kMostlyIdle = 0.6, kWorthIt = 1.2, kAnyKernels = 0.01;
  if (!c.job.batch.present) return {};
  const Held held = held_of(c);
  if (c.share(held.idle) < kMaterial || held.kernel_share() > kMostlyIdle) return {};
  if (held.kernel_share() < kAnyKernels) return {};  // they wait for something else than each other
  const Room room = room_of(c, held);
  const double gain = room.least() / std::max(1.0, held.concurrency());
  if (gain < kWorthIt) return {};
  Finding finding;
  finding.cause = Cause::kUnderPacking;
  finding.title = "Tasks waited while the GPUs that others held were mostly idle";
  finding.cost = held.idle;
  finding.confidence = room.by_memory && room.by_cores ? Confidence::kHigh : Confidence::kMedium;
  finding.tier = "NPS";
  finding.evidence = {fmt::format("while tasks waited, {:.1f} tasks per GPU kept kernels resident for {} of the time",
                                  held.concurrency(), human_percent(held.kernel_share())),
                      room_words(room, held)};
  const std::string flag = chosen_by(c);
  if (!flag.empty()) finding.evidence.push_back(fmt::format("the command said {}", flag));
  finding.told_apart_from = {"a full GPU: the driver saw no kernel for most of that time"};
  finding.would_overturn = "two tasks at once on one GPU that each take twice as long";
  finding.advice = flag.empty()
                       ? "more tasks per GPU (--per-gpu), smaller needs in the task file where they are guesses"
                       : fmt::format("without {}: Headroom then adds tasks for as long as that pays", flag);
  const auto held_time = static_cast<double>(held.busy + held.idle) / static_cast<double>(c.times.size());
  const auto span = static_cast<double>(c.ledger().span());
  finding.bound = fmt::format("{} at most, with {:.0f} tasks per GPU, if {}their kernels do not slow each other down",
                              human_factor(span / std::max(1.0, span - held_time * (1 - 1 / gain))),
                              std::max(2.0, std::floor(room.least())), room.by_memory ? "" : "their memory fits and ");
  return {finding};
}

}  // namespace headroom::diagnose
