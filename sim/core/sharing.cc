// SPDX-License-Identifier: Apache-2.0
#include "sim/core/sharing.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace headroom::contention {

namespace {

constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

// A ticket that somebody waits for: an instant at which the simulation must stop.
struct Watch {
  std::size_t stream = kMaxStreams;
  Nanos ticket = 0;
};

std::uint64_t bit(std::size_t stream) { return std::uint64_t{1} << stream; }

template <class F>
void for_each(std::uint64_t set, F f) {
  for (; set != 0; set &= set - 1) f(static_cast<std::size_t>(std::countr_zero(set)));
}

const Segment& head(const Stream& stream) { return stream.segments[stream.head % kMaxSegments]; }

// Work until the stream's next event: its head segment's end or the ticket waited for.
Nanos until_event(const Device& device, std::size_t index, const Watch& watch) {
  const Stream& stream = device.streams[index];
  Nanos left = head(stream).end - stream.attained;
  if (index == watch.stream && watch.ticket > stream.attained) left = std::min(left, watch.ticket - stream.attained);
  return left;
}

void place(Device& device, std::size_t index) {
  const Stream& stream = device.streams[index];
  device.kernels &= ~bit(index);
  device.copies &= ~bit(index);
  if (stream.count == 0) return;
  (head(stream).engine == Engine::kKernel ? device.kernels : device.copies) |= bit(index);
}

// Gives `work` of service to the stream's head segment. `t` is the instant at which that service ends.
void serve(Device& device, std::size_t index, Nanos work, Nanos t) {
  Stream& stream = device.streams[index];
  stream.attained += work;
  if (head(stream).engine == Engine::kKernel) {
    stream.kernel += work;
    stream.sm += work * head(stream).share_permille;
  }
  if (stream.attained < head(stream).end) return;
  ++stream.head;
  --stream.count;
  if (stream.count == 0) stream.done_at = t;
  place(device, index);
}

// Round robin: who has the device from now on. The next in slot order when the quantum or the work has ended.
void choose(Device& device, const Policy& policy) {
  const bool runnable = device.running >= 0 && (device.kernels & bit(static_cast<std::size_t>(device.running))) != 0;
  if (runnable && device.slice_left > 0) return;
  const int after = static_cast<int>(device.running + 1);
  const std::uint64_t later = after >= 64 ? 0 : device.kernels & (~std::uint64_t{0} << after);
  device.running = std::countr_zero(later != 0 ? later : device.kernels);
  device.slice_left = policy.quantum;
}

std::uint64_t shares(const Device& device) {
  std::uint64_t sum = 0;
  for_each(device.kernels, [&](std::size_t i) { sum += head(device.streams[i]).share_permille; });
  return sum;
}

// Permille-nanoseconds of device time that give each sharer one nanosecond of service.
Nanos kernel_price(const Device& device, const Policy& policy) {
  switch (policy.schedule) {
    case Schedule::kRoundRobin:
      return 1000;
    case Schedule::kProcessorSharing:
      return 1000 * std::popcount(device.kernels);
    case Schedule::kSpaceSharing:
      return std::max<Nanos>(1000, static_cast<Nanos>(shares(device)));
  }
  return 1000;
}

// Device time until every sharer has had `work` more.
Nanos time_for(Nanos work, Nanos price, Nanos lag, Nanos rate) { return (work * price - lag + rate - 1) / rate; }

Nanos next_kernel_event(const Device& device, const Policy& policy, const Watch& watch) {
  if (device.kernels == 0) return kNever;
  Nanos work = kNever;
  if (policy.schedule == Schedule::kRoundRobin) {
    work = until_event(device, static_cast<std::size_t>(device.running), watch);
    if (std::popcount(device.kernels) > 1) work = std::min(work, device.slice_left);
  } else {
    for_each(device.kernels, [&](std::size_t i) { work = std::min(work, until_event(device, i, watch)); });
  }
  return time_for(work, kernel_price(device, policy), device.kernel_lag, policy.rate_permille);
}

Nanos next_copy_event(const Device& device, const Watch& watch) {
  if (device.copies == 0) return kNever;
  Nanos work = kNever;
  for_each(device.copies, [&](std::size_t i) { work = std::min(work, until_event(device, i, watch)); });
  return time_for(work, 1000 * std::popcount(device.copies), device.copy_lag, 1000);
}

// At full speed the integrals grow by the service given, so that they equal its sum exactly; what is not yet divisible
// among the sharers (below one nanosecond each) stays in the lag. Otherwise they grow by the clock.
void count_busy(Device& device, const Policy& policy, Nanos dt, Nanos work) {
  const auto sharers = std::popcount(device.kernels);
  const auto sum = static_cast<Nanos>(shares(device));
  const bool exact = policy.rate_permille == 1000;
  switch (policy.schedule) {
    case Schedule::kRoundRobin: {
      const Nanos time = exact ? work : dt;
      device.busy += time;
      device.sm_active += time * head(device.streams[device.running]).share_permille;
      break;
    }
    case Schedule::kProcessorSharing:
      device.busy += exact ? work * sharers : dt;
      device.sm_active += exact ? work * sum : dt * sum / sharers;
      break;
    case Schedule::kSpaceSharing:
      device.busy += dt;
      device.sm_active += dt * std::min<Nanos>(1000, sum);
      break;
  }
}

// The quantum of a stream that is alone renews itself; at an exact end the choice is left to the next step.
void use_slice(Device& device, const Policy& policy, Nanos work) {
  const Nanos over = work - device.slice_left;
  if (over <= 0) {
    device.slice_left = -over;
  } else {
    const Nanos rest = over % policy.quantum;
    device.slice_left = rest == 0 ? 0 : policy.quantum - rest;
  }
}

void step_kernels(Device& device, const Policy& policy, Nanos dt) {
  if (device.kernels == 0) return;
  const Nanos price = kernel_price(device, policy);
  device.kernel_lag += dt * policy.rate_permille;
  const Nanos work = device.kernel_lag / price;
  device.kernel_lag -= work * price;
  count_busy(device, policy, dt, work);
  const Nanos t = device.t + dt;
  if (policy.schedule == Schedule::kRoundRobin) {
    use_slice(device, policy, work);
    serve(device, static_cast<std::size_t>(device.running), work, t);
  } else {
    for_each(device.kernels, [&](std::size_t i) { serve(device, i, work, t); });
  }
  if (device.kernels == 0) device.kernel_lag = 0;
}

void step_copies(Device& device, std::uint64_t copies, Nanos dt) {
  if (copies == 0) return;
  const Nanos price = 1000 * std::popcount(copies);
  device.copy_lag += dt * 1000;
  const Nanos work = device.copy_lag / price;
  device.copy_lag -= work * price;
  device.copy_busy += work * std::popcount(copies);
  for_each(copies, [&](std::size_t i) { serve(device, i, work, device.t + dt); });
  if (device.copies == 0) device.copy_lag = 0;
}

// One step: to the next event or `until`.
void step(Device& device, const Policy& policy, Nanos until, const Watch& watch) {
  if ((device.kernels | device.copies) == 0) {
    device.slice_left = 0;
    device.t = until;
    return;
  }
  if (policy.schedule == Schedule::kRoundRobin && device.kernels != 0) choose(device, policy);
  const Nanos dt =
      std::min({until - device.t, next_kernel_event(device, policy, watch), next_copy_event(device, watch)});
  const std::uint64_t copies = device.copies;  // as they were: a kernel that ends now may be followed by a copy
  step_kernels(device, policy, dt);
  step_copies(device, copies, dt);
  device.t += dt;
}

}  // namespace

Nanos submit(Device& device, std::size_t index, const Work& work) {
  Stream& stream = device.streams[index];
  if (work.duration <= 0) return stream.submitted;
  if (backlog(stream) + work.duration > kMaxBacklog) return -1;
  Segment* last = stream.count == 0 ? nullptr : &stream.segments[(stream.head + stream.count - 1) % kMaxSegments];
  const bool same = last != nullptr && last->engine == work.engine && last->share_permille == work.share_permille;
  if (!same) {
    if (stream.count == kMaxSegments) return -1;
    last = &stream.segments[(stream.head + stream.count) % kMaxSegments];
    *last = {0, work.share_permille, work.engine};
    ++stream.count;
  }
  stream.submitted += work.duration;
  last->end = stream.submitted;
  place(device, index);
  return stream.submitted;
}

void advance(Device& device, const Policy& policy, Nanos until) {
  while (device.t < until) step(device, policy, until, {});
}

Nanos completion(const Device& device, const Policy& policy, std::size_t stream, Nanos ticket, Nanos horizon) {
  Device copy = device;
  while (copy.streams[stream].attained < ticket) {
    if (copy.t >= horizon || copy.streams[stream].count == 0) return horizon;
    step(copy, policy, horizon, {stream, ticket});
  }
  return std::min(copy.t, horizon);
}

void cancel(Device& device, std::size_t index) {
  Stream& stream = device.streams[index];
  stream.submitted = stream.attained;
  stream.count = 0;
  stream.done_at = device.t;
  place(device, index);
  if (device.kernels == 0) device.kernel_lag = 0;
  if (device.copies == 0) device.copy_lag = 0;
}

}  // namespace headroom::contention
