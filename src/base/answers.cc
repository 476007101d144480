// SPDX-License-Identifier: Apache-2.0
#include "base/answers.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <vector>

#include "base/thread.h"

namespace headroom {

bool returns_within(Nanos patience, std::function<void()> ask) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> returned = done->get_future();
  std::thread asking = thread_without_signals([done, ask = std::move(ask)] {
    ask();
    done->set_value();
  });
  const bool in_time = returned.wait_for(std::chrono::nanoseconds(patience)) == std::future_status::ready;
  in_time ? asking.join() : asking.detach();
  return in_time;
}

Result<void> answers(const std::string& path) {
  static std::mutex mutex;
  static std::vector<std::string> silent;
  const auto is_silent = [&] {
    const std::scoped_lock lock(mutex);
    return std::find(silent.begin(), silent.end(), path) != silent.end();
  };
  const auto ask = [path] {
    struct stat ignored {};
    (void)::stat(path.c_str(), &ignored);
  };
  if (!is_silent()) {
    if (returns_within(kPatienceWithFiles, ask)) return {};
    const std::scoped_lock lock(mutex);
    silent.push_back(path);
  }
  return fail(Errc::kIo, fmt::format("{} does not answer", path), "is it on a network mount whose server is gone?");
}

}  // namespace headroom
