// SPDX-License-Identifier: Apache-2.0
#include "live/hook.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/child.h"
#include "base/fd.h"

namespace headroom {

namespace {

constexpr Nanos kLook = 20 * kMillisecond;    // where the kernel cannot tell that a process has ended
constexpr Nanos kReapPatience = 2 * kSecond;  // in uninterruptible sleep a process outlives SIGKILL for long

Result<Fd> file_of(std::string_view document) {
  Fd file(::memfd_create("headroom-hook", MFD_CLOEXEC));
  if (!file) return tl::unexpected(errno_error("make a file in memory"));
  HR_TRYV(write_all(file.get(), document));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return tl::unexpected(errno_error("rewind a file in memory"));
  return file;
}

// Until the child has ended, `until`, or a signal; of the last, whether.
bool wait(Child& child, const Result<Fd>& process, Nanos until, Signals* signals) {
  while (!child.try_wait()) {
    const Nanos left = until - boottime_now();
    if (left <= 0) return false;
    const Nanos sleep = process ? left : std::min(left, kLook);
    pollfd watched[]{{.fd = process ? process->get() : -1, .events = POLLIN, .revents = 0},
                     {.fd = signals != nullptr ? signals->fd() : -1, .events = POLLIN, .revents = 0}};
    ::poll(watched, 2, static_cast<int>(std::min<Nanos>(sleep / kMillisecond + 1, 60'000)));
    if (signals != nullptr && !signals->drain().empty()) {
      (void)child.try_wait();  // it may have ended just then
      return true;
    }
  }
  return false;
}

}  // namespace

HookEnd run_hook(const std::string& command, std::string_view document, Nanos until, Signals& signals) {
  const auto input = file_of(document);
  if (!input) return {.trouble = input.error().what};
  sigset_t none;
  ::sigemptyset(&none);
  auto child = Child::spawn({.argv = {"/bin/sh", "-c", command},
                             .set_env = {},
                             .cwd = "",
                             .standard_in = input->get(),
                             .standard_out = STDERR_FILENO,
                             .own_group = true,
                             .signal_mask = none,
                             .on_drop = OnDrop::kLeave});
  if (!child) return {.trouble = child.error().what};
  const auto process = open_pidfd(child->pid());
  const bool interrupted = wait(*child, process, until, &signals);
  if (const auto status = child->status()) {
    if (status->signal != 0)
      return {.trouble = fmt::format("died of signal {}", status->signal), .by_signal = interrupted};
    return {.trouble = status->code == 0 ? "" : fmt::format("ended with {}", status->code), .by_signal = interrupted};
  }
  child->kill(SIGKILL);
  (void)wait(*child, process, boottime_now() + kReapPatience, nullptr);
  return {.trouble = interrupted ? "was killed, as a signal came" : "took too long and was killed",
          .out_of_time = !interrupted,
          .by_signal = interrupted};
}

}  // namespace headroom
