// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace headroom::sim {

// Data-loader workers: child processes that make batches and pass them on through a pipe each, two ahead at most.
class Loader {
 public:
  // `make` runs in the workers, once per batch, after `begin`, once. Start them before the process uses a device.
  static Result<Loader> start(std::size_t workers, const std::function<void()>& begin,
                              const std::function<void()>& make);
  Loader() = default;
  ~Loader();
  Loader(Loader&&) = default;
  Loader& operator=(Loader&& other) noexcept;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  [[nodiscard]] Result<void> next();  // waits for the next batch, in turn from each worker

 private:
  void stop();

  struct Worker {
    pid_t pid = -1;
    Fd pipe;
  };
  std::vector<Worker> workers_;
  std::size_t turn_ = 0;
};

}  // namespace headroom::sim
