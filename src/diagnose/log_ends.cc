// SPDX-License-Identifier: Apache-2.0
#include "diagnose/log_ends.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/unseen.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

bool in_a_gap(const Analysis& a, std::size_t device, const Slice& slice) {
  return std::any_of(a.gpus[device].job_gaps.begin(), a.gpus[device].job_gaps.end(), [&](const JobGap& pause) {
    return slice.begin >= pause.time.begin && slice.end <= pause.time.end;
  });
}

// Whether this one, which worked before, was given back about when another one was taken.
bool made_room(const Analysis& a, std::size_t device, Nanos taken) {
  const auto& end = a.gpus[device].quiet_end;
  const Nanos slack = std::max(a.limits.time(Threshold::kHeldLong), 3 * a.meta.interval);
  return end && end->memory_after && *end->memory_after < kLeastContext && end->from > a.window.begin &&
         end->from <= taken + slack;
}

bool had_to_wait(const Analysis& a, std::size_t device) {
  const auto& until = a.gpus[device].free_until;
  if (!until || a.ledger.busy(device) == 0) return false;
  for (std::size_t other = 0; other < a.devices.size(); ++other)
    if (other != device && made_room(a, other, *until)) return true;
  return false;
}

}  // namespace

bool at_a_quiet_end(const Analysis& a, std::size_t device, const Slice& slice) {
  return a.gpus[device].quiet_end && slice.begin >= a.gpus[device].quiet_end->from;
}

Turns turns_of(const Analysis& a) {
  Turns turns;
  if (!readings_alone(a)) return turns;
  std::optional<Nanos> last;  // of the later ones to be taken
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (!had_to_wait(a, device)) continue;
    turns.later.push_back(device);
    last = std::max(last.value_or(a.window.begin), *a.gpus[device].free_until);
  }
  for (std::size_t device = 0; last && device < a.devices.size(); ++device)
    if (made_room(a, device, *last)) turns.first.push_back(device);
  return turns;
}

bool before_its_turn(const Analysis& a, std::size_t device, const Slice& slice) {
  const auto& until = a.gpus[device].free_until;
  return until && slice.begin < *until && !is_busy(slice.account) && readings_alone(a) && had_to_wait(a, device);
}

bool during_work(const Analysis& a, std::size_t device, const Slice& slice) {
  return !at_a_quiet_end(a, device, slice) && !in_a_gap(a, device, slice) && !before_its_turn(a, device, slice);
}

Claims between_jobs_of(const Analysis& a) {
  return claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kUnexplained && in_a_gap(a, device, slice);
  });
}

bool only_starts(const Analysis& a) {
  if (!readings_alone(a) || a.job.has_contexts ||
      static_cast<double>(a.ledger.busy()) > a.limits[Threshold::kQuietUtil] * static_cast<double>(a.ledger.budget()))
    return false;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (memory_growth(a, device).lately) return true;
  return false;
}

bool hardly_used(const Analysis& a) {
  const double quiet = a.limits[Threshold::kQuietUtil];
  if (!readings_alone(a) || a.job.has_contexts || a.ledger.busy() == 0 ||
      static_cast<double>(a.ledger.busy()) > quiet * static_cast<double>(a.ledger.budget()))
    return false;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    if (!util || util->samples == 0 || util->p95 > quiet || a.gpus[device].quiet_end) return false;
  }
  return true;
}

std::string most_memory(const Analysis& a, std::size_t device) {
  if (a.meta.origin == "run" && too_short_to_list(a)) return "";  // read before it began and after it ended
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  const auto total = a.devices[device].device.memory_total_bytes;
  if (!memory || memory->samples == 0 || !total) return "";
  return fmt::format("{} of {} at most", human_bytes(static_cast<std::int64_t>(memory->max)), human_bytes(*total));
}

std::string memory_words(const Analysis& a, std::size_t device) {
  const std::string most = most_memory(a, device);
  return most.empty() ? "" : fmt::format("{}: {}", a.device_name(device), most);
}

MemoryGrowth memory_growth(const Analysis& a, std::size_t device) {
  constexpr double kStill = 0.9;  // of the most that was in use
  const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
  const auto& end = a.gpus[device].memory_end;
  if (!memory || memory->samples == 0 || !end || memory->max < kLeastContext || end->used < kStill * memory->max ||
      end->used < 2 * memory->min)
    return {};
  const auto mebibytes = [](double bytes) { return static_cast<std::int64_t>(bytes) >> 20; };
  return {fmt::format("{}: memory in use grew from {} MiB to {} MiB, as at the start of a job", a.device_name(device),
                      mebibytes(memory->min), mebibytes(end->used)),
          memory->p50 < kStill * end->used};
}

}  // namespace headroom::diagnose
