// SPDX-License-Identifier: Apache-2.0
#include "diagnose/unseen.h"

#include <algorithm>

#include "analyze/ran_before.h"
#include "diagnose/idle_parts.h"
#include "model/losses.h"
#include "model/observations.h"

namespace headroom::diagnose {

bool readings_alone(const Analysis& a) {
  return (!a.job.has_host || a.job.owners_unknown) && !a.job.batch.present && !is_profiled(a);
}

Window unread_around(const Analysis& a, const LostDevice& lost) {
  const auto known = std::find_if(a.devices.begin(), a.devices.end(),
                                  [&](const DeviceTime& time) { return time.source == lost.source; });
  if (known == a.devices.end()) return {};
  Window unread = a.window;
  for (const Slice& slice : known->slices) {
    if (slice.account == Account::kUnobserved) continue;
    if (slice.begin >= lost.at) return {unread.begin, slice.begin};
    unread.begin = slice.end;
  }
  return unread;
}

Claims unread_by_loss(const Analysis& a, const LostDevice& lost) {
  const Window unread = unread_around(a, lost);
  return claim(a, [&](std::size_t device, const Slice& slice) {
    return a.devices[device].source == lost.source && slice.account == Account::kUnobserved &&
           slice.begin >= unread.begin && slice.end <= unread.end;
  });
}

Nanos unseen_at_end(const Analysis& a) {
  Nanos unseen = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.gpus[device].unreported) continue;
    Nanos from = a.window.end;
    const auto& slices = a.devices[device].slices;
    for (auto last = slices.rbegin(); last != slices.rend() && last->account == Account::kUnobserved; ++last)
      from = last->begin;
    unseen += a.window.end - from;
  }
  return unseen;
}

bool logged_no_utilisation(const Analysis& a, std::size_t device) {
  return a.gpus[device].unreported && is_imported(a.meta) && !a.stats_of(device, Metric::kGpuUtil);
}

std::string no_utilisation_words(const Analysis& a) {
  const bool left_out = std::any_of(a.losses.begin(), a.losses.end(),
                                    [](const Loss& loss) { return loss.what == info(LossKind::kColumnNotKept).name; });
  return left_out ? "no column that is known as one of utilisation" : "no column of utilisation";
}

namespace {
constexpr std::int64_t kEnough = 10;  // readings, one a second
}

std::optional<std::int64_t> too_few_readings(const Analysis& a) {
  if (!is_imported(a.meta) || is_profiled(a)) return std::nullopt;
  std::int64_t most = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (const MetricStats* util = a.stats_of(device, Metric::kGpuUtil)) most = std::max(most, util->samples);
  return most > 0 && most < kEnough ? std::optional(most) : std::nullopt;
}

bool watched_for_a_moment(const Analysis& a) {
  const bool whole_life = a.job.has_job && !was_met_midway(a) && a.meta.stop_reason == "job_ended";
  return a.meta.origin == "record" && a.meta.end - a.meta.start < kEnough * kSecond && !whole_life;
}

bool was_met_midway(const Analysis& a) {
  return std::any_of(a.processes.begin(), a.processes.end(),
                     [&](const RecordedProcess& process) { return ran_before(process.facts, a.meta.start); });
}

bool may_have_missed_kernels(const Analysis& a) {
  const Nanos unseen = unseen_at_end(a);
  return a.material(unseen) || (unseen > 0 && !a.lost.empty());
}

}  // namespace headroom::diagnose
