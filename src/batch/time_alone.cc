// SPDX-License-Identifier: Apache-2.0
#include "batch/time_alone.h"

#include <algorithm>

namespace headroom::batch {

namespace {

// How fast an attempt is beside those on its GPUs, of alone.
double speed_beside_others(const std::vector<scheduler::GpuIndex>& gpus, const scheduler::Planner& planner) {
  constexpr double kSlowest = 0.02;
  double speed = 1;
  for (const scheduler::GpuIndex index : gpus) {
    const auto gpu = planner.gpu(index);
    const auto tasks = static_cast<double>(gpu.running.size());
    if (tasks > 1) speed = std::min(speed, std::clamp(gpu.predicted_rate / tasks, kSlowest, 1.0));
  }
  return speed;
}

}  // namespace

void count_time_alone(BookedAttempt& attempt, const scheduler::Planner& planner, Nanos now) {
  TimeAlone& alone = attempt.alone;
  alone.seconds += alone.speed * seconds(std::max<Nanos>(0, now - alone.at));
  alone.at = now;
  alone.speed = speed_beside_others(attempt.gpus, planner);
}

Nanos time_alone(const TimeAlone& alone, Nanos now) {
  return static_cast<Nanos>((alone.seconds + alone.speed * seconds(now - alone.at)) * 1e9);
}

double stretch_of(const TimeAlone& alone, Nanos start, Nanos end) {
  return alone.seconds > 0 ? std::max(1.0, seconds(end - start) / alone.seconds) : 1;
}

}  // namespace headroom::batch
