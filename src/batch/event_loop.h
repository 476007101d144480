// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "batch/batch.h"
#include "live/loop.h"
#include "live/signals.h"

namespace headroom::batch {

// Runs a batch on an event loop: signals, timers, the executor's events and snapshots of the recording reach it here.
class BatchLoop {
 public:
  BatchLoop(Loop& loop, Signals& signals, Executor& executor, Batch& batch);
  ~BatchLoop();
  BatchLoop(const BatchLoop&) = delete;
  BatchLoop& operator=(const BatchLoop&) = delete;

  void run();  // until the batch is done, and nothing of it runs
  void look(const Snapshot& now);
  [[nodiscard]] Result<std::vector<std::string>> cancel(const std::vector<std::string>& patterns);
  void interrupt(int signal);    // as if it had come
  void woken() { set_timer(); }  // the batch was told something by somebody else

 private:
  void handle_signals();
  void set_timer();

  Loop& loop_;
  Signals& signals_;
  Executor& executor_;
  Batch& batch_;
  Loop::TimerId timer_ = 0;
  Nanos timer_at_ = 0;
  int last_signal_ = 0;
  Nanos last_signal_at_ = 0;
};

}  // namespace headroom::batch
