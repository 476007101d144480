// SPDX-License-Identifier: Apache-2.0
#include "live/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace headroom {

namespace {
void drain_counter(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(fd, &count, sizeof count);
}

epoll_event event_of(int fd, Loop::Ready ready) {
  epoll_event event{};
  if (ready == Loop::Ready::kRead || ready == Loop::Ready::kEither) event.events |= EPOLLIN;
  if (ready == Loop::Ready::kWrite || ready == Loop::Ready::kEither) event.events |= EPOLLOUT;
  event.data.fd = fd;
  return event;
}
}  // namespace

Result<std::unique_ptr<Loop>> Loop::create() {
  auto loop = std::make_unique<Loop>();
  loop->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  // A timer, because the time-out of epoll_wait() adds 0.1 % of the wait.
  loop->timer_ = Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  loop->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!loop->epoll_ || !loop->timer_ || !loop->wake_) return tl::unexpected(errno_error("make an event loop"));
  Loop* self = loop.get();
  HR_TRYV(loop->watch(loop->timer_.get(), [self] { self->run_timers(); }));
  HR_TRYV(loop->watch(loop->wake_.get(), [self] { self->run_posted(); }));
  return loop;
}

Result<void> Loop::watch(int fd, Handler handler, Ready ready) {
  epoll_event event = event_of(fd, ready);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return tl::unexpected(errno_error("watch a descriptor"));
  handlers_[fd] = std::make_shared<Handler>(std::move(handler));
  return {};
}

void Loop::expect(int fd, Ready ready) {
  epoll_event event = event_of(fd, ready);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::forget(int fd) {
  if (handlers_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::TimerId Loop::at(Nanos boottime, Handler handler) {
  timers_.emplace(std::pair{boottime, ++last_timer_}, std::move(handler));
  set_timer();
  return last_timer_;
}

void Loop::cancel(TimerId timer) {
  const auto found =
      std::find_if(timers_.begin(), timers_.end(), [&](const auto& t) { return t.first.second == timer; });
  if (found == timers_.end()) return;
  timers_.erase(found);
  set_timer();
}

void Loop::post(Handler handler) {
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(handler));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(wake_.get(), &one, sizeof one);
}

void Loop::run() {
  running_ = true;
  std::array<epoll_event, 16> events{};
  while (running_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    HR_CHECK(count >= 0 || errno == EINTR, "epoll_wait failed");
    for (int i = 0; i < count && running_; ++i) {
      const auto found = handlers_.find(events[static_cast<std::size_t>(i)].data.fd);
      if (found == handlers_.end()) continue;  // forgotten by a handler before it in this round
      const auto handler = found->second;      // keeps it alive while it forgets itself
      const Nanos before = thread_cpu_now();
      (*handler)();
      longest_call_ = std::max(longest_call_, thread_cpu_now() - before);
    }
  }
}

void Loop::set_timer() {
  itimerspec when{};
  if (!timers_.empty()) {
    const Nanos next = std::max<Nanos>(timers_.begin()->first.first, 1);  // 0 would disarm it
    when.it_value = {.tv_sec = static_cast<time_t>(next / kSecond), .tv_nsec = static_cast<long>(next % kSecond)};
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void Loop::run_timers() {
  drain_counter(timer_.get());
  const Nanos now = boottime_now();
  while (running_ && !timers_.empty() && timers_.begin()->first.first <= now) {
    auto due = timers_.extract(timers_.begin());
    due.mapped()();
  }
  set_timer();
}

void Loop::run_posted() {
  drain_counter(wake_.get());
  std::vector<Handler> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (auto& handler : posted) handler();
}

}  // namespace headroom
