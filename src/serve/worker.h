// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "live/loop.h"

namespace headroom::serve {

// One thread for what would keep the loop waiting: reading and explaining. In order, one at a time.
class Worker {
 public:
  explicit Worker(Loop& loop);
  // Waits for what is under way; what has not begun is not done.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // `work` on the thread, then `done` on the loop's.
  void run(std::function<void()> work, std::function<void()> done);

 private:
  struct Job {
    std::function<void()> work, done;
  };
  void work();

  Loop& loop_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // guarded
  bool ending_ = false;   // guarded
  std::thread thread_;
};

}  // namespace headroom::serve
