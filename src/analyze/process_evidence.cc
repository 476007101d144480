// SPDX-License-Identifier: Apache-2.0
#include "analyze/process_evidence.h"

#include <algorithm>
#include <cmath>

#include "analyze/idle_cause.h"
#include "base/steady.h"

namespace headroom {

namespace {

constexpr double kTick = 0.01;  // seconds: process times count in ticks of 10 ms

HelperWork work_of(const HostView& host, const Activity& owner, Nanos at) {
  HelperWork work;
  work.cpu = owner.unseen_cpu;
  for (const std::vector<Activity>* list : host.helpers) {
    const Activity* activity = activity_at(*list, at);
    if (!activity) continue;
    work.cpu += std::max(activity->cpu, activity->main_cpu.value_or(0));
    work.read_bytes_per_second += activity->read_bytes_per_second.value_or(0);
    work.waits_for_data |= activity->state == 'D' || activity->wait == WaitChannel::kDisk ||
                           activity->wait == WaitChannel::kNetworkFs || activity->wait == WaitChannel::kSocket;
  }
  return work;
}

// Still in the sleep on the disk that follows a write: every look since showed it there.
bool after_writing(const std::vector<Activity>& list, const Activity* at, const Thresholds& limits) {
  while (at != list.data()) {
    --at;
    if (at->write_bytes_per_second.value_or(0) >= limits[Threshold::kWriting]) return true;
    if (at->state != 'D' && at->wait != WaitChannel::kDisk) return false;
  }
  return false;
}

Nanos begin_of_writing(const Activity& activity, double share) {
  return activity.end - std::llround(share * static_cast<double>(activity.end - activity.begin));
}

}  // namespace

void ProcessCounters::claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const {
  if (const auto whole = claim_whole(stretch)) parts.push_back({stretch.end - stretch.begin, *whole});
}

std::optional<HostClaim> ProcessCounters::claim_whole(const IdleStretch& stretch, bool with_helpers,
                                                      bool may_write) const {
  const HostView& host = stretch.use.host;
  if (stretch.part == UsePart::kStartup || !host.owner || host.owner->empty()) return std::nullopt;
  const Nanos at = stretch.begin + (stretch.end - stretch.begin + 1) / 2;
  const Activity* owner = activity_at(*host.owner, at);
  if (stretch.part == UsePart::kTail && !owner) return std::nullopt;
  if (!owner) return HostClaim{Account::kUnexplained, Confidence::kLow, "P"};
  const double idle = stretch.device.share(owner->begin, owner->end);
  Activity seen = *owner;
  // Times in ticks jump by one: no work of other threads.
  if (seen.main_cpu && seen.cpu - *seen.main_cpu < kTick / seconds(seen.end - seen.begin)) seen.cpu = *seen.main_cpu;
  if (stretch.use.spins && seen.main_cpu) {  // what it ran while kernels ran is no work of its own
    const double spun = std::min(*seen.main_cpu, 1.0 - idle);
    seen.main_cpu = *seen.main_cpu - spun, seen.cpu -= spun;
  }
  if (const auto share = writing_share(seen, limits_);
      share && *share < limits_[Threshold::kCovers] * idle && at < begin_of_writing(seen, *share))
    seen.write_bytes_per_second.reset();  // the writing came later in this interval
  if (!may_write) seen.write_bytes_per_second.reset();
  const IdleCause cause = idle_cause(seen, with_helpers ? work_of(host, *owner, at) : HelperWork{}, idle, limits_,
                                     may_write && after_writing(*host.owner, owner, limits_));
  // After the last kernel it is not known whether anything waits for it, but for what is written.
  if (stretch.part == UsePart::kTail && cause.account != Account::kCheckpoint) return std::nullopt;
  return HostClaim{cause.account, cause.confidence, "P"};
}

bool ProcessCounters::writes(const std::vector<Activity>& owner, const Activity& activity) const {
  if (activity.write_bytes_per_second.value_or(0) >= limits_[Threshold::kWriting]) return true;
  const bool in_disk = activity.state == 'D' || activity.wait == WaitChannel::kDisk;
  return in_disk && after_writing(owner, &activity, limits_);
}

void ProcessCounters::cut(const Use& use, std::vector<Nanos>& cuts) const {
  if (!use.host.owner) return;
  for (const Activity& activity : *use.host.owner) {
    cuts.push_back(activity.end);
    const auto share = writing_share(activity, limits_);
    if (share && *share < 1) cuts.push_back(begin_of_writing(activity, *share));
  }
}

bool StoppedTime::is_in(const JobView& job) {
  return std::any_of(job.did.begin(), job.did.end(), [](const std::vector<Activity>& list) {
    return std::any_of(list.begin(), list.end(), [](const Activity& a) { return a.state == kStoppedState; });
  });
}

void StoppedTime::claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const {
  const std::vector<Activity>* owner = stretch.use.host.owner;
  if (!owner) return;
  const Activity* now = activity_at(*owner, stretch.begin + (stretch.end - stretch.begin + 1) / 2);
  if (!now) return;
  const auto stopped = [](const Activity& a) { return a.state == kStoppedState; };
  const auto idle = [&](Nanos begin, Nanos end) { return end <= begin || stretch.device.share(begin, end) >= 1; };
  const bool until_now = stopped(*now) && idle(stretch.end, now->end);
  const bool since_before = now != owner->data() && stopped(*std::prev(now)) && idle(now->begin, stretch.begin);
  if (!until_now && !since_before) return;
  const Confidence sure = until_now && since_before ? Confidence::kHigh : Confidence::kMedium;
  parts.push_back({stretch.end - stretch.begin, {Account::kStopped, sure, "P"}});
}

void StoppedTime::cut(const Use& use, std::vector<Nanos>& cuts) const {
  if (!use.host.owner) return;
  for (const Activity& activity : *use.host.owner)
    if (activity.state == kStoppedState) cuts.insert(cuts.end(), {activity.begin, activity.end});
}

const Activity* activity_at(const std::vector<Activity>& list, Nanos at) {
  const std::size_t next = count_until(list, at - 1, [](const Activity& activity) { return activity.end; });
  if (next == list.size() || at < list[next].begin) return nullptr;
  return &list[next];
}

bool spins(const Use& use, const IdleTime& device, const Thresholds& limits) {
  if (use.first_kernel == kNever || !use.host.owner) return false;
  double ran = 0, busy = 0, product = 0, off_busy = 0, off_idle = 0, count = 0;
  for (const Activity& activity : *use.host.owner) {
    if (activity.begin < use.first_kernel || activity.end > use.last_kernel || !activity.main_cpu) continue;
    const double x = std::min(1.0, *activity.main_cpu);
    const double y = 1.0 - device.share(activity.begin, activity.end);
    ran += x, busy += y, product += x * y, ++count;
    off_busy += std::abs(x - y);
    // Code that waits for a core between kernels fills the time without them, too.
    off_idle += std::min(std::abs(x - (1.0 - y)), std::abs(std::min(1.0, x + activity.run_delay) - (1.0 - y)));
  }
  constexpr double kFew = 5;  // intervals
  constexpr double kNear =
      0.2;  // of the kernels' time: a thread that hardly ever runs is near to a GPU that hardly does
  return count >= kFew && std::abs(ran - busy) <= kNear * busy && off_busy <= limits[Threshold::kSpinning] * off_idle &&
         product * count > ran * busy;
}

}  // namespace headroom
