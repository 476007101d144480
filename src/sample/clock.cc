// SPDX-License-Identifier: Apache-2.0
#include "sample/clock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace headroom {

Result<std::unique_ptr<SystemClock>> SystemClock::create() {
  auto clock = std::make_unique<SystemClock>();
  clock->timer_ = Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!clock->timer_) return tl::unexpected(errno_error("make a timer"));
  clock->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!clock->wake_) return tl::unexpected(errno_error("make an event descriptor"));
  return clock;
}

void SystemClock::wait_until(Nanos until) {
  // A timer, because the time-out of poll() adds 0.1 % of the wait and does not run in suspend.
  itimerspec when{};
  const Nanos at = std::max<Nanos>(until, 1);  // 0 would disarm it
  when.it_value = {.tv_sec = static_cast<time_t>(at / kSecond), .tv_nsec = static_cast<long>(at % kSecond)};
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
  pollfd fds[2] = {{.fd = timer_.get(), .events = POLLIN, .revents = 0},
                   {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  ::poll(fds, 2, -1);
  std::uint64_t count = 0;
  if (fds[1].revents != 0) [[maybe_unused]]
    const auto drained = ::read(wake_.get(), &count, sizeof count);
}

void SystemClock::interrupt() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(wake_.get(), &one, sizeof one);
}

}  // namespace headroom
