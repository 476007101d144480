// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace headroom {

// The event loop of a live verb: descriptors, timers and calls from other threads, all handled on one thread. A handler
// may add and remove anything, itself included.
class Loop {
 public:
  using Handler = std::function<void()>;
  using TimerId = std::uint64_t;

  [[nodiscard]] static Result<std::unique_ptr<Loop>> create();

  [[nodiscard]] Result<void> watch(int fd, Handler readable);  // until forgotten; the descriptor stays the caller's
  void forget(int fd);
  TimerId at(Nanos boottime, Handler handler);  // once
  TimerId after(Nanos delay, Handler handler) { return at(boottime_now() + delay, std::move(handler)); }
  void cancel(TimerId timer);
  void post(Handler handler);  // from any thread
  void run();                  // until stop()
  void stop() { running_ = false; }

 private:
  void set_timer();
  void run_timers();
  void run_posted();

  Fd epoll_, timer_, wake_;
  std::map<int, std::shared_ptr<Handler>> handlers_;
  std::map<std::pair<Nanos, TimerId>, Handler> timers_;
  TimerId last_timer_ = 0;
  bool running_ = false;
  std::mutex mutex_;
  std::vector<Handler> posted_;  // guarded by mutex_
};

}  // namespace headroom
