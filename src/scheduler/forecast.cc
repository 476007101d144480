// SPDX-License-Identifier: Apache-2.0
#include "scheduler/forecast.h"

#include <algorithm>
#include <cmath>

namespace headroom::scheduler {

namespace {

constexpr double kTrueShare = 0.7;  // of reported utilisation that is kernel time: the work a GPU can do
constexpr double kSlack = 1.05;     // of the work: GPUs do not all end at the same instant
constexpr double kLonger = 1.06;  // of the longest tasks: no length is known better, and a late end of these costs most
constexpr double kWorseEnd = 1.002;  // a place is worse if the batch would end so much later
constexpr double kLong = 0.9;        // of the time that is left: what takes so much must begin
constexpr int kBisections = 24;

}  // namespace

int Forecast::most(double speed) const {
  int n = 1;
  while (n < full && speeds[static_cast<std::size_t>(n)] >= speed) ++n;
  return n;
}

double Forecast::capacity(double time) const {
  double rate = 0;
  for (const double critical : critical_seconds) {
    const int n = most(critical / time);
    rate += n * speeds[static_cast<std::size_t>(n - 1)];
  }
  return rate * time;
}

double Forecast::end() const {
  const double wanted = kSlack * work_seconds;
  double low = *std::max_element(critical_seconds.begin(), critical_seconds.end());
  if (low > 0 && capacity(low) >= wanted) return low;
  double high = std::max(low, wanted);  // a single task's rate, on one GPU
  for (int i = 0; i < kBisections; ++i) {
    const double middle = 0.5 * (low + high);
    (middle > 0 && capacity(middle) >= wanted ? high : low) = middle;
  }
  return high;
}

const Forecast* CriticalPath::forecast(double load) {
  if (!graph_.lengths_known() || setup_.pack != PackMode::kPack || machine_.usable_gpus() < 2) return nullptr;
  if (!forecast_) forecast_ = make(load);
  return &*forecast_;
}

Forecast CriticalPath::make(double load) const {
  Forecast made;
  double loads = 0, parallelism = 0;
  int count = 0;
  double work = std::max(0.0, graph_.queued_seconds());  // sums of fractions do not end at exactly 0
  for (const Gpu& gpu : machine_.gpus()) {
    if (!gpu.usable) continue;
    double longest = 0;
    for (const AttemptId id : gpu.running)
      longest = std::max(longest, kLonger * seconds(machine_.remaining(machine_.running().at(id))));
    made.critical_seconds.push_back(longest);
    for (const double one : machine_.loads(gpu)) loads += one, ++count;
    parallelism += gpu.packer.parallelism();
  }
  for (const auto& [id, attempt] : machine_.running()) work += seconds(machine_.remaining(attempt));
  made.work_seconds = work;
  const double usual = count > 0 ? loads / count : load;
  parallelism = parallelism / static_cast<double>(made.critical_seconds.size());
  if (!setup_.space_sharing) parallelism = std::max(parallelism, 1.0 / kTrueShare);
  double last = 0;
  for (int n = 1; n <= kMaxPerGpu; ++n) {
    const double rate = work_rate(std::vector<double>(static_cast<std::size_t>(n), usual), parallelism);
    if (n > 1 && rate < kWorthIt * last) break;
    made.speeds.push_back(rate / n);
    last = rate;
  }
  made.full = static_cast<int>(made.speeds.size());
  made.end_seconds = made.end();
  return made;
}

double CriticalPath::soonest_place(GpuIndex besides) const {
  std::optional<double> soonest;
  for (const auto& [id, attempt] : machine_.running()) {
    if (std::find(attempt.gpus.begin(), attempt.gpus.end(), besides) != attempt.gpus.end()) continue;
    const double left = seconds(machine_.remaining(attempt));
    soonest = std::min(soonest.value_or(left), left);
  }
  return soonest.value_or(0);
}

bool CriticalPath::room_on(TaskIndex task, GpuIndex index) const {
  const Gpu& gpu = machine_.gpu(index);
  const Need need = fit_.need_of(task, index);
  return fit_.memory_fits(gpu, need) &&
         gpu.packer.admits(machine_.now(), machine_.loads(gpu), need.load, kWorthItByTurns) &&
         !(need.probe && !gpu.running.empty() && fit_.probe_runs(graph_.profile(task).group));
}

// A GPU whose longest task decides when the batch ends takes no shorter ones that would slow it too much, where the
// others get the rest done in the meantime. Tasks that are long themselves begin at once, on the GPU where the end of
// the batch is soonest: two long ones side by side leave the other GPUs to the many short ones.
bool CriticalPath::delayed_by(TaskIndex task, GpuIndex index, double load) {
  if (graph_.task(task).expected < 0) return false;
  const Forecast* view = forecast(load);
  if (!view) return false;
  const double length = seconds(graph_.task(task).expected), end = view->end_seconds;
  // It may wait if it would end in time after the next of the others' places gets free.
  const bool is_long = (length + soonest_place(index)) / view->speeds.back() > kLong * end;
  std::size_t at = 0;
  double here = 0, soonest = 0;
  bool room_here = false, room_elsewhere = false;
  for (GpuIndex other = 0; other < machine_.gpu_count(); ++other) {
    const Gpu& gpu = machine_.gpu(other);
    if (!gpu.usable) continue;
    Forecast with = *view;
    double& critical = with.critical_seconds[at++];
    if (is_long) critical = std::max(critical, kLonger * length);
    if (!is_long && other != index) continue;
    const double then = is_long ? with.end() : end;
    const int most = with.most(critical / then), count = static_cast<int>(gpu.running.size()) + 1;
    const bool room = most == with.full || count <= most;
    if (other == index) {
      here = then, room_here = room;
      continue;
    }
    if (!room || !room_on(task, other)) continue;
    room_elsewhere = true;
    if (soonest == 0 || then < soonest) soonest = then;
  }
  if (!is_long) return !room_here;
  return room_elsewhere && (!room_here || here > kWorseEnd * soonest);
}

}  // namespace headroom::scheduler
