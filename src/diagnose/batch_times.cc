// SPDX-License-Identifier: Apache-2.0
#include "diagnose/batch_times.h"

namespace headroom::diagnose {

std::optional<Tail> tail_of(const Case& c) {
  const BatchView& batch = c.job.batch;
  Nanos from = batch.queue.empty() ? c.ledger().begin : batch.queue.back().at, end = c.ledger().begin;
  bool any = false;
  for (const TaskAttempt& attempt : batch.attempts) {
    if (attempt.devices.empty()) continue;
    any = true;
    from = std::max(from, attempt.begin);
    end = std::max(end, attempt.end);
  }
  if (!any || end <= from) return std::nullopt;
  Tail tail{end, end, 0, {}};
  for (const DeviceTime& time : c.times) {
    Nanos free_from = end;
    for (const Slice& slice : time.slices) {
      const Nanos part = slice.account == Account::kNoTask ? part_of(c, slice, from, end) : 0;
      if (part == 0) continue;
      tail.lost += part;
      free_from = std::min(free_from, std::max(slice.begin, from));
    }
    tail.free_from.push_back(free_from);
    tail.begin = std::min(tail.begin, free_from);
  }
  return tail;
}

WaitingTime::WaitingTime(const Case& c) {
  const auto& queue = c.job.batch.queue;
  Nanos sum = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    if (!queue[i].waiting) continue;
    const Nanos end = i + 1 < queue.size() ? queue[i + 1].at : c.recording.meta.end;
    stretches_.push_back({queue[i].at, end, sum});
    sum += end - queue[i].at;
  }
}

Nanos WaitingTime::until(Nanos at) const {
  const auto next = std::upper_bound(stretches_.begin(), stretches_.end(), at,
                                     [](Nanos instant, const Stretch& s) { return instant < s.begin; });
  if (next == stretches_.begin()) return 0;
  const Stretch& last = *std::prev(next);
  return last.before + std::min(at, last.end) - last.begin;
}

std::optional<BatchTimes> batch_times(const Case& c) {
  if (!c.job.batch.present) return std::nullopt;
  BatchTimes times;
  for (const TaskAttempt& attempt : c.job.batch.attempts) {
    if (attempt.devices.empty()) continue;
    ++times.attempts;
    if (!attempt.counted()) ++times.not_succeeded;
  }
  if (const auto tail = tail_of(c)) {
    times.tail = tail->end - tail->begin;
    times.tail_lost = tail->lost;
  }
  return times;
}

}  // namespace headroom::diagnose
