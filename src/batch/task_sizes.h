// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>

#include "base/time.h"

namespace headroom::batch {

// Whether tasks that shared GPUs can all have had the same work. Company makes a task's time longer, and its share of
// the GPU's time smaller, or leaves one of both as it was. So who took much longer than another and had much more of
// the GPU as well, had more to do.
class TaskSizes {
 public:
  void add(Nanos took, Nanos share);  // of one that succeeded
  [[nodiscard]] bool differ() const { return differ_; }

 private:
  struct Shares {
    Nanos least = 0, most = 0;
  };
  std::map<int, Shares> by_length_;  // in bins of the logarithm of the time taken: few, however many tasks there are
  bool differ_ = false;
};

}  // namespace headroom::batch
