// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace headroom {

// Signals are the business of the threads that were there before. std::system_error: this user may have no more
// threads.
template <class Function>
[[nodiscard]] std::thread thread_without_signals(Function run) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(run));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace headroom
