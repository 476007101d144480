// SPDX-License-Identifier: Apache-2.0
#include "diagnose/batch_times.h"

#include <algorithm>

#include "diagnose/claims.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

std::optional<Tail> tail_of(const Analysis& a) {
  const BatchView& batch = a.job.batch;
  Nanos from = batch.queue.empty() ? a.ledger.begin : batch.queue.back().at, end = a.ledger.begin;
  bool any = false;
  for (const TaskAttempt& attempt : batch.attempts) {
    if (attempt.devices.empty()) continue;
    any = true;
    from = std::max(from, attempt.begin);
    // Of one that goes on as much as readings cover: other rows may be later than these.
    end = std::max(end, a.goes_on && attempt.running ? std::min(attempt.end, a.window.end) : attempt.end);
  }
  if (!any || end <= from || from < a.window.begin || end > a.window.end) return std::nullopt;
  Tail tail{end, end, {}, std::vector<Nanos>(a.devices.size(), end)};
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (const Slice& slice : a.devices[device].slices) {
      const Nanos begin = std::max(slice.begin, from), until = std::min(slice.end, end);
      if (slice.account != Account::kNoTask || until <= begin) continue;
      add_piece(tail.lost, {device, begin, until, slice.account, slice.where});
      // It may have been free before the last task was started elsewhere, which is no part of the tail.
      tail.free_from[device] = std::min(tail.free_from[device], std::max(slice.begin, a.window.begin));
      tail.begin = std::min(tail.begin, begin);
    }
  return tail;
}

WaitingTime::WaitingTime(const Analysis& a) {
  const auto& queue = a.job.batch.queue;
  Nanos sum = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    if (!queue[i].waiting) continue;
    const Nanos end = i + 1 < queue.size() ? queue[i + 1].at : a.meta.end;
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

namespace {

// Whether no other attempt was on any of its GPUs meanwhile.
bool alone(const BatchView& batch, const TaskAttempt& attempt) {
  return std::none_of(batch.attempts.begin(), batch.attempts.end(), [&](const TaskAttempt& other) {
    return other.id != attempt.id && other.begin < attempt.end && attempt.begin < other.end &&
           std::any_of(other.devices.begin(), other.devices.end(), [&](SourceId device) {
             return std::find(attempt.devices.begin(), attempt.devices.end(), device) != attempt.devices.end();
           });
  });
}

}  // namespace

std::optional<BatchTimes> batch_times(const Analysis& a) {
  if (!a.job.batch.present) return std::nullopt;
  BatchTimes times;
  bool any_success = false;
  for (const TaskAttempt& attempt : a.job.batch.attempts) {
    if (attempt.devices.empty()) continue;
    ++times.attempts;
    if (attempt.in_vain()) ++times.not_succeeded;
    const bool too_large = attempt.outcome == AttemptOutcome::kGpuOutOfMemory && alone(a.job.batch, attempt);
    times.too_large |= too_large;
    any_success |= attempt.counted();
    if (too_large || (attempt.outcome && info(*attempt.outcome).tasks_fault)) ++times.failed_before_any_success;
    if (attempt.peak_gpu_bytes)
      times.largest_gpu_bytes = std::max(times.largest_gpu_bytes.value_or(0), *attempt.peak_gpu_bytes);
  }
  if (any_success) times.failed_before_any_success = 0;
  const PackedTasks packed = packed_tasks(a);
  times.room = packed.room, times.at_once = packed.at_once;
  if (const auto tail = tail_of(a)) {
    times.tail = tail->end - tail->begin;
    times.tail_lost = length(tail->lost);
  }
  return times;
}

}  // namespace headroom::diagnose
