// SPDX-License-Identifier: Apache-2.0
#include "live/signals.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "model/slurm.h"

namespace headroom {

Result<Signals> Signals::block(std::initializer_list<int> numbers) {
  Signals signals;
  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int number : numbers) ::sigaddset(&watched, number);
  sigset_t blocked = watched;
  ::sigaddset(&blocked, SIGPIPE);
  ::sigaddset(&blocked, SIGXFSZ);
  // With SIGCHLD ignored (some supervisors leave it so) the kernel reaps children itself and their exit code is lost.
  if (::sigismember(&watched, SIGCHLD) == 1) ::signal(SIGCHLD, SIG_DFL);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &signals.mask_before_);
  signals.fd_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.fd_) {
    Error error = errno_error("make a signal descriptor");
    ::pthread_sigmask(SIG_SETMASK, &signals.mask_before_, nullptr);
    return tl::unexpected(std::move(error));
  }
  return signals;
}

std::vector<Signal> Signals::drain() {
  std::vector<Signal> result;
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    result.push_back({.number = static_cast<int>(info.ssi_signo),
                      .from_kernel = info.ssi_code > 0,
                      .sender = static_cast<pid_t>(info.ssi_pid)});
  return result;
}

void Signals::release() {
  (void)drain();
  sigset_t mask = mask_before_;
  ::sigaddset(&mask, SIGPIPE);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

bool sent_to_whole_step(const Signal& signal, const std::string& root) {
  if (signal.from_kernel || signal.sender <= 0) return false;
  constexpr std::size_t kMostOfTitle = 4096;
  const auto title = read_file(fmt::format("{}/proc/{}/cmdline", root, signal.sender), kMostOfTitle);
  const auto sender = title ? slurmstepd_of(*title) : std::nullopt;
  return sender && sender->step;
}

}  // namespace headroom
