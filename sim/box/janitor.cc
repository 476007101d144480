// SPDX-License-Identifier: Apache-2.0
#include "sim/box/janitor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <bit>
#include <vector>

#include "base/child.h"

namespace headroom::sim {

namespace {

constexpr long kPeriodNs = 500'000'000;
constexpr std::int64_t kNobody = -1, kSomebody = 0;

Result<void> watch(int epoll, int fd, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return tl::unexpected(errno_error("epoll_ctl"));
  return {};
}

constexpr std::uint64_t kWakeTag = 0, kTimerTag = 1;  // a process is watched under its pid, which is above 1

}  // namespace

Result<Janitor> Janitor::start(const Box& box) {
  Janitor janitor(box);
  janitor.writer_.number = kSupervisor;
  janitor.epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!janitor.epoll_) return tl::unexpected(errno_error("epoll_create1"));
  const std::string path = box.directory() + "/wake";
  janitor.wake_ = Fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));  // RDWR: never at end of file
  if (!janitor.wake_) return tl::unexpected(errno_error("open " + path));
  janitor.timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!janitor.timer_) return tl::unexpected(errno_error("timerfd_create"));
  const itimerspec period{.it_interval = {0, kPeriodNs}, .it_value = {0, kPeriodNs}};
  ::timerfd_settime(janitor.timer_.get(), 0, &period, nullptr);
  HR_TRYV(watch(janitor.epoll_.get(), janitor.wake_.get(), kWakeTag));
  HR_TRYV(watch(janitor.epoll_.get(), janitor.timer_.get(), kTimerTag));
  return janitor;
}

void Janitor::tidy() {
  epoll_event events[16];
  const int count = ::epoll_wait(epoll_.get(), events, 16, 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t tag = events[i].data.u64;
    char drained[256];
    if (tag == kWakeTag || tag == kTimerTag) {
      while (::read(tag == kWakeTag ? wake_.get() : timer_.get(), drained, sizeof drained) > 0) {
      }
    } else {
      followed_.erase(static_cast<std::int64_t>(tag));
    }
  }
  for (std::uint32_t device = 0; device < box_->store().header().box.device_count; ++device) look_at(device);
}

// The process that holds the slot's lock, as this pid namespace sees it (kSomebody: it is in none we can see).
std::int64_t Janitor::owner_of(std::uint32_t device, std::uint32_t slot) const {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(device * kSlots + slot);
  lock.l_len = 1;
  if (::fcntl(box_->alive_fd(), F_GETLK, &lock) != 0) return kSomebody;
  if (lock.l_type == F_UNLCK) return kNobody;
  return lock.l_pid > 1 ? lock.l_pid : kSomebody;
}

void Janitor::look_at(std::uint32_t device) {
  const Store& store = box_->store();
  *writer_.scratch = {};  // it held another device
  load(store.area(device), *writer_.scratch);
  struct Found {
    std::uint32_t slot, generation;
    std::int64_t owner;
  };
  std::vector<Found> found;
  bool death = false;
  for (std::uint64_t set = writer_.scratch->live; set != 0; set &= set - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(set));
    const Found entry{slot, writer_.scratch->contexts[slot].generation, owner_of(device, slot)};
    if (entry.owner > 1) follow(entry.owner);
    death = death || entry.owner == kNobody;
    found.push_back(entry);
  }
  (void)transact(store, device, writer_, [&](Image& image) {
    for (const Found& entry : found) {
      Context& context = image.contexts[entry.slot];
      if (!is_live(image, entry.slot) || context.generation != entry.generation) continue;
      if (entry.owner == kNobody)
        end_context(image, store.header(), device, entry.slot, End::kDied);
      else if (entry.owner > 1)
        context.pid = static_cast<std::uint32_t>(entry.owner);
    }
    return 0;
  });
  if (death) wake_all(store.area(device));
}

void Janitor::follow(std::int64_t pid) {
  if (followed_.contains(pid)) return;
  auto pidfd = open_pidfd(static_cast<pid_t>(pid));
  if (!pidfd) return;  // already gone, or an old kernel: the timer finds out
  if (watch(epoll_.get(), pidfd->get(), static_cast<std::uint64_t>(pid))) followed_.emplace(pid, std::move(*pidfd));
}

}  // namespace headroom::sim
