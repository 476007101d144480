// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/time.h"

namespace headroom::cli {

class WatchedRecording;

// This machine, watched while `headroom serve` runs, as `top` watches it where nothing is recorded: by a thread of its
// own, since a driver may take its time to answer.
class ServedBox {
 public:
  // `keep`: what is recorded stays.
  explicit ServedBox(bool keep);
  ~ServedBox();  // ends what is being recorded
  ServedBox(const ServedBox&) = delete;
  ServedBox& operator=(const ServedBox&) = delete;

  struct Shown {
    std::string path;  // "": nothing is, yet or at all
    std::string name;  // for people: "this machine", "train.py (4711)"
  };
  [[nodiscard]] Shown shown() const;

 private:
  void watch(bool keep);  // it may throw
  void show(const WatchedRecording& watched);
  [[nodiscard]] bool pause(Nanos time);  // false: it is over

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Shown shown_;          // guarded
  bool ending_ = false;  // guarded
  std::thread thread_;
};

}  // namespace headroom::cli
