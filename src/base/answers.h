// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/time.h"

namespace headroom {

// How long a file system may take to say that a file is there.
inline constexpr Nanos kPatienceWithFiles = 5 * kSecond;

// kIo where the file system of `path` does not answer in that time: a call to a network mount whose server is gone
// never returns, and no flag helps. So a thread asks, and is left behind; the same path is asked again once that thread
// has returned. A file that is not there is an answer.
[[nodiscard]] Result<void> answers(const std::string& path);

// Calls `ask` on a thread of its own; false where it has not returned after `patience`: the thread is left behind, so
// `ask` owns what it uses.
[[nodiscard]] bool returns_within(Nanos patience, std::function<void()> ask);

// answers(), of any way to ask.
class Answers {
 public:
  Answers(Nanos patience, std::function<void(const std::string& path)> ask)
      : patience_(patience), ask_(std::move(ask)) {}
  [[nodiscard]] Result<void> of(const std::string& path);

 private:
  Nanos patience_;
  std::function<void(const std::string& path)> ask_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<std::atomic<bool>>> silent_;  // by path: whether its thread has returned
};

}  // namespace headroom
