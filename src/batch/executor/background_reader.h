// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "base/time.h"
#include "batch/executor/executor.h"

namespace headroom::batch {

// Reads what tasks have printed on a thread of its own: their files may be on a disk that does not answer, and patterns
// take as long as there is to read. One reading after the other; one that takes longer than `budget` is given up, and
// its thread is left behind until it returns.
class BackgroundReader {
 public:
  // `ready` is called on that thread when there is something to take.
  BackgroundReader(Nanos budget, std::function<void()> ready);
  ~BackgroundReader();  // what was not read by then is not read
  BackgroundReader(const BackgroundReader&) = delete;
  BackgroundReader& operator=(const BackgroundReader&) = delete;

  void read(AttemptId attempt, ReadOutput read);
  // What has been read, and what has been given up by now.
  [[nodiscard]] std::vector<OutputRead> take();

 private:
  struct Shared;
  [[nodiscard]] bool start_thread();
  void give_up_waiting(Nanos patience);
  void give_up_overdue();

  const Nanos budget_;
  std::shared_ptr<Shared> shared_;  // of all its threads
};

}  // namespace headroom::batch
