// SPDX-License-Identifier: Apache-2.0
#include "contention/forecast.h"

#include <algorithm>
#include <deque>
#include <memory>

namespace headroom::contention {

namespace {

Nanos ceil_div(Nanos a, Nanos b) { return (a + b - 1) / b; }

std::uint64_t sum_shares(std::span<const Load> loads, Nanos longer_than) {
  std::uint64_t sum = 0;
  for (const Load& load : loads) sum += load.backlog > longer_than ? load.share_permille : 0;
  return sum;
}

// One job on the made-up clock.
struct Runner {
  std::deque<Nanos> tickets;   // queued steps, oldest first
  Nanos host_until = kNoHost;  // its host work ends then
  std::int64_t steps = 0;
  static constexpr Nanos kNoHost = -1;
};

// Everything the job does at this instant; returns when it acts next by itself.
Nanos act(Device& device, std::size_t index, const Job& job, Runner& runner) {
  while (!runner.tickets.empty() && device.streams[index].attained >= runner.tickets.front()) {
    runner.tickets.pop_front();
    ++runner.steps;
  }
  if (runner.host_until != Runner::kNoHost && runner.host_until <= device.t) {
    const Nanos ticket = submit(device, index, {std::max<Nanos>(1, job.device), job.share_permille});
    if (ticket >= 0) runner.tickets.push_back(ticket);
    runner.host_until = Runner::kNoHost;
  }
  const bool room = runner.tickets.size() < static_cast<std::size_t>(std::max(1, job.in_flight));
  if (runner.host_until == Runner::kNoHost && room) runner.host_until = device.t + std::max<Nanos>(1, job.host);
  return runner.host_until;
}

void run_until(Device& device, const Policy& policy, std::span<const Job> jobs, std::vector<Runner>& runners,
               Nanos end) {
  while (device.t < end) {
    Nanos next = end;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Nanos at = act(device, i, jobs[i], runners[i]);
      if (at != Runner::kNoHost) next = std::min(next, at);
    }
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (!runners[i].tickets.empty())
        next = std::min(next, completion(device, policy, i, runners[i].tickets.front(), next));
    advance(device, policy, next);
  }
}

}  // namespace

Nanos completion_processor_sharing(std::span<const Load> loads, std::size_t which, Nanos work) {
  Nanos time = work;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (i != which) time += std::min(loads[i].backlog, work);
  return time;
}

Nanos completion_round_robin(std::span<const Load> loads, std::size_t which, Nanos work, Nanos quantum,
                             std::size_t running, Nanos slice_left) {
  const bool has_device = which == running;
  if (has_device && work <= slice_left) return work;
  const Nanos slices = ceil_div(has_device ? work - slice_left : work, quantum);
  const std::size_t n = loads.size();
  const auto turn = [&](std::size_t i) { return (i + n - running) % n; };  // 0: the one that runs now
  Nanos time = work;
  for (std::size_t i = 0; i < n; ++i) {
    if (i == which) continue;
    Nanos may_use = slices * quantum;
    if (!has_device && i == running)
      may_use = slice_left + (slices - 1) * quantum;
    else if (!has_device && turn(i) > turn(which))
      may_use = (slices - 1) * quantum;
    time += std::min(loads[i].backlog, may_use);
  }
  return time;
}

Nanos completion_space_sharing(std::span<const Load> loads, std::size_t which, Nanos work) {
  // All running kernels attain the same; the speed changes where one of them ends.
  std::vector<Nanos> ends;
  for (std::size_t i = 0; i < loads.size(); ++i)
    if (loads[i].backlog > 0 && (i == which || loads[i].backlog < work))
      ends.push_back(i == which ? work : loads[i].backlog);
  std::sort(ends.begin(), ends.end());
  Nanos attained = 0, permille_time = 0;
  for (const Nanos end : ends) {
    const auto sum = static_cast<Nanos>(sum_shares(loads, attained));
    permille_time += (end - attained) * std::max<Nanos>(1000, sum);
    attained = end;
    if (end >= work) break;
  }
  return ceil_div(permille_time, 1000);
}

double relative_speed(std::span<const Load> loads, Schedule schedule) {
  if (loads.empty()) return 1.0;
  if (schedule != Schedule::kSpaceSharing) return 1.0 / static_cast<double>(loads.size());
  return std::min(1.0, 1000.0 / static_cast<double>(std::max<std::uint64_t>(1, sum_shares(loads, -1))));
}

std::vector<JobRate> run_together(std::span<const Job> jobs, const Policy& policy, Nanos span) {
  const auto device = std::make_unique<Device>();
  std::vector<Runner> runners(jobs.size());
  const Nanos warm = span / 10;
  run_until(*device, policy, jobs, runners, warm);
  std::vector<JobRate> rates(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i)
    rates[i] = {-static_cast<double>(runners[i].steps), -seconds(device->streams[i].kernel)};
  run_until(*device, policy, jobs, runners, span);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    rates[i].steps_per_second += static_cast<double>(runners[i].steps);
    rates[i].steps_per_second /= seconds(span - warm);
    rates[i].device_share += seconds(device->streams[i].kernel);
    rates[i].device_share /= seconds(span - warm);
  }
  return rates;
}

}  // namespace headroom::contention
