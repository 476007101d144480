// SPDX-License-Identifier: Apache-2.0
#include "serve/worker.h"

#include <utility>

namespace headroom::serve {

Worker::Worker(Loop& loop) : loop_(loop), thread_([this] { work(); }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Worker::run(std::function<void()> work, std::function<void()> done) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(work), std::move(done)});
  }
  changed_.notify_one();
}

void Worker::work() {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job.work();
    loop_.post(std::move(job.done));
  }
}

}  // namespace headroom::serve
