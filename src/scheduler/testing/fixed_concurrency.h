// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "scheduler/testing/families_box.h"

// What the planner is compared with: the same tasks, so many at once on each GPU.
namespace headroom::scheduler::families {

enum class Order { kAsGiven, kLongestFirst, kRoundRobin };  // round robin: task i on GPU i mod G, fixed beforehand

struct FixedResult {
  double makespan = 0;  // more than the limit, if it was given up
  int most = 0;         // tasks that were on one GPU at once
};

// At most k tasks a GPU, told the true memory, so that none runs out.
class FixedRun {
 public:
  FixedRun(const Family& family, std::uint64_t seed, int k, Order order, double noise = 0.05)
      : family_(family),
        k_(k),
        order_(order),
        tasks_(tasks_of(family, seed)),
        box_(family, tasks_, seed * 31 + 7, noise) {
    std::iota(queue_.begin(), queue_.end(), std::size_t{0});
    if (order == Order::kLongestFirst)
      std::stable_sort(queue_.begin(), queue_.end(),
                       [&](std::size_t a, std::size_t b) { return tasks_[a].alone() > tasks_[b].alone(); });
    for (const SimTask& task : tasks_) alone_ += task.alone();
  }

  // Given up when it takes longer than `limit`, or surely will, if there is one.
  FixedResult run(double limit = 0) {
    place();
    while (!queue_.empty() || !box_.jobs().empty()) {
      if (limit > 0 && soonest_end() > limit) return {2 * limit, most_};
      for (const Ended& ended : box_.step(box_.now() + 10 * kSecond)) {
        --running_[ended.job.gpu], reserved_[ended.job.gpu] -= tasks_[ended.job.task].peak_gb;
        if (ended.out_of_memory) queue_.insert(queue_.begin(), ended.job.task);
      }
      place();
    }
    return {seconds(box_.now()), most_};
  }

 private:
  [[nodiscard]] bool full() const {
    return std::all_of(running_.begin(), running_.end(), [&](int n) { return n >= k_; });
  }

  // The one with the fewest tasks of those that have room.
  [[nodiscard]] std::optional<std::size_t> gpu_for(std::size_t task) const {
    std::optional<std::size_t> best;
    for (std::size_t g = 0; g < running_.size(); ++g) {
      if (order_ == Order::kRoundRobin && task % running_.size() != g) continue;
      const bool fits =
          running_[g] < k_ && reserved_[g] + box_.tenant_gb(g) + tasks_[task].peak_gb <= family_.memory_gb;
      if (fits && (!best || running_[g] < running_[*best])) best = g;
    }
    return best;
  }

  void place() {
    for (auto at = queue_.begin(); at != queue_.end() && !full();) {
      const auto gpu = gpu_for(*at);
      if (!gpu) {
        ++at;
        continue;
      }
      box_.start(*at, ++started_, *gpu);
      most_ = std::max(most_, ++running_[*gpu]);
      reserved_[*gpu] += tasks_[*at].peak_gb;
      at = queue_.erase(at);
    }
  }

  [[nodiscard]] double soonest_end() const {
    constexpr double kFastest = 1.25;  // of alone, on the average of a run: the device at full speed, and noise
    double done = box_.done();
    for (const Job& job : box_.jobs()) done += job.work;
    const double now = seconds(box_.now());
    return std::max(now, now + (alone_ / kFastest - done) / (k_ * family_.gpus));
  }

  const Family& family_;
  const int k_;
  const Order order_;
  const std::vector<SimTask> tasks_;
  Box box_;
  std::vector<std::size_t> queue_ = std::vector<std::size_t>(tasks_.size());
  std::vector<int> running_ = std::vector<int>(static_cast<std::size_t>(family_.gpus));  // of each GPU
  std::vector<double> reserved_ = std::vector<double>(running_.size());                  // GB
  std::uint64_t started_ = 0;
  int most_ = 0;
  double alone_ = 0;
};

struct Best {
  int k = 1;
  double makespan = 0;
};
// The best fixed concurrency, found by trying all of `ks`, which rise. From the most down: where memory lets no more
// run, more are the same; and what is slower than the best so far is given up, so that few are run in full.
inline Best best_fixed(const Family& family, std::uint64_t seed, const std::vector<int>& ks, Order order,
                       double noise = 0.05) {
  Best best;
  std::optional<int> same_from;
  for (auto k = ks.rbegin(); k != ks.rend(); ++k) {
    if (same_from && *k >= *same_from) continue;
    const FixedResult tried = FixedRun(family, seed, *k, order, noise).run(best.makespan);
    same_from = tried.most;
    if (best.makespan == 0 || tried.makespan <= best.makespan) best = {std::min(*k, tried.most), tried.makespan};
  }
  return best;
}

}  // namespace headroom::scheduler::families
