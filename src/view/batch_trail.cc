// SPDX-License-Identifier: Apache-2.0
#include "view/batch_trail.h"

#include <algorithm>

namespace headroom::view {

namespace {

constexpr Nanos kSpeaksFor = 3 * kSecond;   // a reading, at most
constexpr Nanos kOldKernels = 3 * kSecond;  // so long a driver's utilisation may still have a task's that has ended
constexpr Nanos kLongestColumn = 5;         // seconds

Account idle_account(const BatchProgress& progress, const BatchProgress::Gpu& gpu) {
  if (gpu.running > 0) return Account::kUnexplained;
  return progress.tasks.ready > 0 && gpu.usable && !progress.draining ? Account::kTaskWaiting : Account::kNoTask;
}

}  // namespace

void BatchTrail::add_slice(Gpu& gpu, Nanos begin, Nanos end, Account account) {
  if (end <= begin) return;
  if (!gpu.slices.empty() && gpu.slices.back().account == account && gpu.slices.back().end == begin)
    gpu.slices.back().end = end;
  else
    gpu.slices.push_back({.begin = begin, .end = end, .account = account});
}

void BatchTrail::add(const BatchProgress& progress) {
  const Nanos now = progress.elapsed, known_from = std::max(end_, now - kSpeaksFor);
  if (now <= end_) return;
  gpus_.resize(std::max(gpus_.size(), progress.gpus.size()));
  for (std::size_t i = 0; i < progress.gpus.size(); ++i) {
    const BatchProgress::Gpu& seen = progress.gpus[i];
    Gpu& gpu = gpus_[i];
    if (seen.running > 0) gpu.last_task = now;
    add_slice(gpu, end_, known_from, Account::kUnobserved);
    if (!seen.util_ratio) {
      add_slice(gpu, known_from, now, Account::kUnobserved);
      continue;
    }
    gpu.observed = true;
    const bool ours = gpu.last_task >= 0 && now - gpu.last_task < kOldKernels;
    const auto busy =
        static_cast<Nanos>(std::clamp(*seen.util_ratio, 0.0, 1.0) * static_cast<double>(now - known_from));
    add_slice(gpu, known_from, known_from + busy, ours ? Account::kUnderWay : Account::kForeign);
    add_slice(gpu, known_from + busy, now, idle_account(progress, seen));
    const auto old =
        std::find_if(gpu.slices.begin(), gpu.slices.end(), [&](const Slice& slice) { return slice.end > now - kKept; });
    if (old - gpu.slices.begin() > gpu.slices.end() - old) gpu.slices.erase(gpu.slices.begin(), old);
  }
  end_ = now;
}

bool BatchTrail::observed(std::size_t gpu) const { return gpu < gpus_.size() && gpus_[gpu].observed; }

Nanos BatchTrail::column(std::size_t columns) const {
  Nanos seconds = 1;
  while (seconds < kLongestColumn && end_ > seconds * kSecond * static_cast<Nanos>(columns)) ++seconds;
  return seconds * kSecond;
}

Strip BatchTrail::strip(std::size_t gpu, std::size_t columns) const {
  if (gpu >= gpus_.size() || columns == 0 || end_ <= 0) return {};
  // Columns begin at multiples of their time: what is drawn moves on, and does not change.
  const Nanos step = column(columns), last = (end_ + step - 1) / step;
  const Nanos first =
      std::max<Nanos>(0, last - static_cast<Nanos>(std::min<Nanos>(static_cast<Nanos>(columns), kKept / step)));
  return strip_of(gpus_[gpu].slices, first * step, last * step, static_cast<std::size_t>(last - first));
}

}  // namespace headroom::view
