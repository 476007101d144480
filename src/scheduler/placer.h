// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/batch.h"
#include "scheduler/forecast.h"
#include "scheduler/machine.h"

namespace headroom::scheduler {

// Position in the queue: higher priority, then longest expected, then as asked. A task of unknown length counts as
// the longest: it shows what its group needs while there is still time to act on it.
struct QueueKey {
  int minus_priority = 0;
  Nanos minus_expected = std::numeric_limits<Nanos>::min();
  TaskIndex task = 0;
  auto operator<=>(const QueueKey&) const = default;
};

// The ready tasks, in buckets of tasks that need the same: whether the first of a bucket can start answers it for
// the rest. So looking through the queue costs a step per bucket, however many tasks wait.
class ReadyQueue {
 public:
  using Bucket = std::uint32_t;
  using Heads = std::set<std::pair<QueueKey, Bucket>>;

  void push(Bucket bucket, const QueueKey& key);
  bool erase(Bucket bucket, const QueueKey& key);
  [[nodiscard]] const Heads& heads() const { return heads_; }  // the first of each bucket, in order
  // The first task of the bucket that is not before `key`.
  [[nodiscard]] std::optional<QueueKey> from(Bucket bucket, const QueueKey& key) const;
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  std::vector<std::set<QueueKey>> buckets_;
  Heads heads_;
  std::size_t size_ = 0;
};

// Which ready task starts where: the order of the queue, and who may pass whom.

class Placer {
 public:
  Placer(const PlannerSetup& setup, TaskGraph& graph, Machine& machine, const Fit& fit);

  void add(TaskIndex task);       // it is ready
  void withdraw(TaskIndex task);  // it was, and has ended
  void gpu_lost(GpuIndex gpu);
  // Starts what fits, in the graph and on the machine. The answer holds until the next call.
  [[nodiscard]] std::span<StartAttempt> place();

  [[nodiscard]] bool empty() const { return queue_.empty(); }
  // How many buckets of the queue were looked at so far: what placing costs.
  [[nodiscard]] std::int64_t looks() const { return looks_; }
  // A ready task whose GPUs are there, though they may be taken.
  [[nodiscard]] bool could_start_one() const;
  // For the first task in the queue, and for any; "" where it is not ready.
  [[nodiscard]] std::string why_waiting() const;
  [[nodiscard]] std::string why_waiting(TaskIndex task) const;
  // What keeps the task from the GPU, with the numbers; "" where only its turn has not come.
  [[nodiscard]] std::string obstacle(TaskIndex task, GpuIndex gpu) const { return fit_.obstacle(task, gpu, gain()); }

 private:
  // GPUs that are kept for a task that waits for whole ones, or was passed too often: nothing behind it may take them.
  struct Reservation {
    TaskIndex task = 0;
    std::vector<GpuIndex> gpus;
    bool host = false;
  };
  enum class LookAhead : std::uint8_t { kOn, kOff };

  void scan(LookAhead look_ahead);
  [[nodiscard]] bool try_bucket(const QueueKey& head, ReadyQueue::Bucket bucket);
  [[nodiscard]] bool try_start(TaskIndex task, bool behind);  // behind the reservation's task
  [[nodiscard]] bool try_slot(TaskIndex task);
  [[nodiscard]] bool try_shared(TaskIndex task, bool behind);
  [[nodiscard]] bool try_whole(TaskIndex task, bool behind);
  void start(TaskIndex task, std::vector<GpuIndex> on, const Need& need);

  [[nodiscard]] bool fits(TaskIndex task, GpuIndex gpu, const Need& need);
  [[nodiscard]] double gain() const;
  [[nodiscard]] bool dominated(TaskIndex task, std::span<const TaskIndex> rejected) const;
  [[nodiscard]] bool plain(TaskIndex task) const;
  [[nodiscard]] bool reserved(GpuIndex gpu, TaskIndex task, bool behind) const;
  void reserve(TaskIndex task, int times_passed);
  [[nodiscard]] Nanos longest_before_reservation() const;  // a task so long ends before the reserved GPUs are empty
  [[nodiscard]] ReadyQueue::Bucket bucket_of(TaskIndex task);
  [[nodiscard]] QueueKey key_of(TaskIndex task) const;

  const PlannerSetup& setup_;
  TaskGraph& graph_;
  Machine& machine_;
  const Fit& fit_;
  CriticalPath critical_path_;
  ReadyQueue queue_;
  using BucketKey = std::tuple<std::uint32_t, bool, std::int64_t, std::int64_t>;  // profile, and what tries taught
  std::map<BucketKey, ReadyQueue::Bucket> bucket_index_;
  std::vector<ReadyQueue::Bucket> buckets_;  // by task
  std::vector<int> passed_;                  // by bucket: starts behind its first task while that was blocked
  std::optional<Reservation> reservation_;
  AttemptId next_attempt_;
  std::int64_t looks_ = 0;
  LookAhead look_ahead_ = LookAhead::kOn;  // in the scan under way
  std::vector<StartAttempt> started_;      // in this call of place()
};

}  // namespace headroom::scheduler
