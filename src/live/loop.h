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

  // Until forgotten; the descriptor stays the caller's. The handler is called, too, when the other end has gone for
  // good.
  enum class Ready : std::uint8_t { kNothing, kRead, kWrite, kEither };
  [[nodiscard]] Result<void> watch(int fd, Handler handler, Ready ready = Ready::kRead);
  void expect(int fd, Ready ready);  // of a watched one: what its handler is called for from now on
  void forget(int fd);
  TimerId at(Nanos boottime, Handler handler);  // once
  TimerId after(Nanos delay, Handler handler) { return at(boottime_now() + delay, std::move(handler)); }
  void cancel(TimerId timer);
  void post(Handler handler);  // from any thread
  void run();                  // until stop()
  void stop() { running_ = false; }
  // CPU time of this thread in the longest call of a descriptor's handler so far: nobody else was heard meanwhile.
  // Timers that are due together count as one call, and so do calls from other threads.
  [[nodiscard]] Nanos longest_call() const { return longest_call_; }

 private:
  void set_timer();
  void run_timers();
  void run_posted();

  Fd epoll_, timer_, wake_;
  std::map<int, std::shared_ptr<Handler>> handlers_;
  std::map<std::pair<Nanos, TimerId>, Handler> timers_;
  TimerId last_timer_ = 0;
  bool running_ = false;
  Nanos longest_call_ = 0;
  std::mutex mutex_;
  std::vector<Handler> posted_;  // guarded by mutex_
};

}  // namespace headroom
