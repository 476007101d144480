// SPDX-License-Identifier: Apache-2.0
#include "base/answers.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <future>
#include <system_error>

#include "base/thread.h"

namespace headroom {

bool returns_within(Nanos patience, std::function<void()> ask) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> returned = done->get_future();
  std::thread asking;
  try {
    asking = thread_without_signals([done, ask] {
      ask();
      done->set_value();
    });
  } catch (const std::system_error&) {  // no more threads for this user: then it is waited for
    ask();
    return true;
  }
  const bool in_time = returned.wait_for(std::chrono::nanoseconds(patience)) == std::future_status::ready;
  in_time ? asking.join() : asking.detach();
  return in_time;
}

Result<void> Answers::of(const std::string& path) {
  const auto still_silent = [&] {
    const std::scoped_lock lock(mutex_);
    const auto found = silent_.find(path);
    if (found == silent_.end()) return false;
    if (!*found->second) return true;
    silent_.erase(found);
    return false;
  };
  if (!still_silent()) {
    auto returned = std::make_shared<std::atomic<bool>>(false);
    const bool in_time = returns_within(patience_, [ask = ask_, path, returned] {
      ask(path);
      *returned = true;
    });
    if (in_time) return {};
    const std::scoped_lock lock(mutex_);
    silent_[path] = returned;
  }
  return fail(Errc::kIo, fmt::format("{} does not answer", path), "is it on a network mount whose server is gone?");
}

Result<void> answers(const std::string& path) {
  static Answers of_this_process(kPatienceWithFiles, [](const std::string& asked) {
    struct stat ignored {};
    (void)::stat(asked.c_str(), &ignored);
  });
  return of_this_process.of(path);
}

}  // namespace headroom
