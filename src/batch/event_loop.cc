// SPDX-License-Identifier: Apache-2.0
#include "batch/event_loop.h"

#include <csignal>
#include <utility>

#include "base/time.h"

namespace headroom::batch {

BatchLoop::BatchLoop(Loop& loop, Signals& signals, Executor& executor, Batch& batch)
    : loop_(loop), signals_(signals), executor_(executor), batch_(batch) {
  const auto watched = loop_.watch(signals_.fd(), [this] { handle_signals(); });
  HR_CHECK(watched.has_value(), "a fresh event loop takes a descriptor");
  executor_.listen([this] {
    batch_.wake();
    set_timer();
  });
}

BatchLoop::~BatchLoop() {
  executor_.listen(nullptr);
  loop_.forget(signals_.fd());
  loop_.cancel(timer_);
}

void BatchLoop::run() {
  batch_.begin();
  set_timer();
  if (!batch_.done()) loop_.run();
  executor_.finish();
}

void BatchLoop::look(const Snapshot& now) {
  batch_.look(now);
  set_timer();
}

Result<std::vector<std::string>> BatchLoop::cancel(const std::vector<std::string>& patterns) {
  auto cancelled = batch_.cancel(patterns);
  set_timer();
  return cancelled;
}

void BatchLoop::interrupt(int signal) {
  batch_.interrupt(signal);
  set_timer();
}

// Who signals a process and then its group, as timeout(1) does, means it once; so does a group whose first process
// passes on what it got. Nobody presses Ctrl-C twice that fast.
void BatchLoop::handle_signals() {
  constexpr Nanos kOnce = 100 * kMillisecond;
  for (const Signal& signal : signals_.drain()) {
    if (signal.number == SIGCHLD) continue;
    const Nanos now = monotonic_now();
    if (signal.number == last_signal_ && now - last_signal_at_ < kOnce) continue;
    last_signal_ = signal.number;
    last_signal_at_ = now;
    // Slurm can send SIGUSR1 some time before a job's end (--signal=B:USR1@120).
    batch_.interrupt(signal.number == SIGUSR1 ? SIGINT : signal.number);
  }
  batch_.wake();
  set_timer();
}

void BatchLoop::set_timer() {
  if (batch_.done()) return loop_.stop();
  const auto next = batch_.next_wake();
  if (timer_ != 0 && next && *next >= timer_at_ && *next - timer_at_ < kMillisecond) return;
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  if (!next) return;
  timer_at_ = *next;
  timer_ = loop_.at(*next, [this] {
    timer_ = 0;
    batch_.wake();
    set_timer();
  });
}

}  // namespace headroom::batch
