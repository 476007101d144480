// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/batch.h"

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

}  // namespace headroom::scheduler
