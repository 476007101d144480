// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "model/recording.h"

namespace headroom::batch {

// What a batch tells its recording and asks of it. Nothing here waits.
class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  virtual void add_event(const Event& event) = 0;
  virtual void read_process_lists() = 0;              // the driver's, at the next tick, due or not
  virtual void follow_tree_of(std::int64_t pid) = 0;  // a process of this machine, and what it starts
};

}  // namespace headroom::batch
