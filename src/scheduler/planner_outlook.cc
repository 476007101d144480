// SPDX-License-Identifier: Apache-2.0
// When the batch will end, as a fluid: which running tasks decide that, and so how much company they may have. Only
// with lengths known from earlier batches: wrong ones cost more than it gains.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/planner_state.h"

namespace headroom::scheduler {

namespace {

constexpr double kTrueShare = 0.7;  // of reported utilisation that is kernel time: the work a GPU can do
constexpr double kSlack = 1.05;     // of the work: GPUs do not all end at the same instant
constexpr double kLonger = 1.06;  // of the longest tasks: no length is known better, and a late end of these costs most
constexpr double kWorseEnd = 1.002;  // a place is worse if the batch would end so much later
constexpr double kLong = 0.9;        // of the time that is left: what takes so much must begin
constexpr int kBisections = 24;

}  // namespace

// The most tasks of which each still has this speed.
int Outlook::most(double speed) const {
  int n = 1;
  while (n < full && speeds[static_cast<std::size_t>(n)] >= speed) ++n;
  return n;
}

// With `time` left: the work the GPUs do if each takes only as many tasks as lets its longest one end in time.
double Outlook::capacity(double time) const {
  double rate = 0;
  for (const double critical : critical_seconds) {
    const int n = most(critical / time);
    rate += n * speeds[static_cast<std::size_t>(n - 1)];
  }
  return rate * time;
}

double Outlook::end() const {
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

// Made once for an event, and again after each start: many tasks are held against it.
const Outlook* Planner::State::outlook(double load) {
  if (unknown_lengths > 0 || setup.pack != PackMode::kPack || usable_gpus() < 2) return nullptr;
  if (outlook_) return &*outlook_;
  Outlook& seen = outlook_.emplace();
  double loads = 0, parallelism = 0;
  int count = 0;
  double work = std::max(0.0, queued_seconds);  // sums of fractions do not end at exactly 0
  for (const Gpu& gpu : gpus) {
    if (!gpu.usable) continue;
    double longest = 0;
    for (const AttemptId id : gpu.running) longest = std::max(longest, kLonger * seconds(remaining(running.at(id))));
    seen.critical_seconds.push_back(longest);
    for (const double one : this->loads(gpu)) loads += one, ++count;
    parallelism += gpu.packer.parallelism();
  }
  for (const auto& [id, attempt] : running) work += seconds(remaining(attempt));
  seen.work_seconds = work;
  const double usual = count > 0 ? loads / count : load;
  parallelism = parallelism / static_cast<double>(seen.critical_seconds.size());
  if (!setup.space_sharing) parallelism = std::max(parallelism, 1.0 / kTrueShare);
  double last = 0;
  for (int n = 1; n <= kMaxPerGpu; ++n) {
    const double rate = work_rate(std::vector<double>(static_cast<std::size_t>(n), usual), parallelism);
    if (n > 1 && rate < kWorthIt * last) break;
    seen.speeds.push_back(rate / n);
    last = rate;
  }
  seen.full = static_cast<int>(seen.speeds.size());
  seen.end_seconds = seen.end();
  return &seen;
}

double Planner::State::soonest_place(GpuIndex besides) const {
  std::optional<double> soonest;
  for (const auto& [id, attempt] : running) {
    if (std::find(attempt.gpus.begin(), attempt.gpus.end(), besides) != attempt.gpus.end()) continue;
    const double left = seconds(remaining(attempt));
    soonest = std::min(soonest.value_or(left), left);
  }
  return soonest.value_or(0);
}

// A GPU whose longest task decides when the batch ends takes no shorter ones that would slow it too much, where the
// others get the rest done in the meantime. Tasks that are long themselves begin at once, on the GPU where the end of
// the batch is soonest: two long ones side by side leave the other GPUs to the many short ones.
bool Planner::State::delays_critical(const TaskRecord& task, GpuIndex index, double load) {
  if (!use_outlook || task.expected < 0 || (claim_ && &task == &tasks[claim_->task])) return false;
  const Outlook* view = outlook(load);
  if (!view) return false;
  const double length = seconds(task.expected), end = view->end_seconds;
  // It may wait if it would end in time after the next of the others' places gets free.
  const bool is_long = (length + soonest_place(index)) / view->speeds.back() > kLong * end;
  std::size_t at = 0;
  double here = 0, soonest = 0;
  bool room_here = false, room_elsewhere = false;
  for (GpuIndex other = 0; other < static_cast<GpuIndex>(gpus.size()); ++other) {
    const Gpu& gpu = gpus[static_cast<std::size_t>(other)];
    if (!gpu.usable) continue;
    Outlook with = *view;
    double& critical = with.critical_seconds[at++];
    if (is_long) critical = std::max(critical, kLonger * length);
    if (!is_long && other != index) continue;
    const double then = is_long ? with.end() : end;
    const int most = with.most(critical / then), count = static_cast<int>(gpu.running.size()) + 1;
    bool room = most == with.full || count <= most;
    if (other == index) {
      here = then, room_here = room;
      continue;
    }
    const Need need = need_of(task, other);
    room = room && memory_fits(gpu, need) && gpu.packer.admits(now, loads(gpu), need.load, kWorthItKnown) &&
           !(need.probe && count > 1 && probe_runs(profile(task).group));
    if (!room) continue;
    room_elsewhere = true;
    if (soonest == 0 || then < soonest) soonest = then;
  }
  if (!is_long) return !room_here;
  return room_elsewhere && (!room_here || here > kWorseEnd * soonest);
}

}  // namespace headroom::scheduler
