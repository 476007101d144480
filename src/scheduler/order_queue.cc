// SPDX-License-Identifier: Apache-2.0
#include "scheduler/order_queue.h"

namespace headroom::scheduler {

void ReadyQueue::push(Bucket bucket, const QueueKey& key) {
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  auto& tasks = buckets_[bucket];
  if (!tasks.empty()) heads_.erase({*tasks.begin(), bucket});
  if (tasks.insert(key).second) ++size_;
  heads_.insert({*tasks.begin(), bucket});
}

bool ReadyQueue::erase(Bucket bucket, const QueueKey& key) {
  if (bucket >= buckets_.size()) return false;
  auto& tasks = buckets_[bucket];
  const auto found = tasks.find(key);
  if (found == tasks.end()) return false;
  heads_.erase({*tasks.begin(), bucket});
  tasks.erase(found);
  --size_;
  if (!tasks.empty()) heads_.insert({*tasks.begin(), bucket});
  return true;
}

std::optional<QueueKey> ReadyQueue::from(Bucket bucket, const QueueKey& key) const {
  if (bucket >= buckets_.size()) return std::nullopt;
  const auto found = buckets_[bucket].lower_bound(key);
  return found != buckets_[bucket].end() ? std::optional(*found) : std::nullopt;
}

}  // namespace headroom::scheduler
