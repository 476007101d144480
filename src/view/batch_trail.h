// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "model/batch_progress.h"
#include "view/strip.h"

namespace headroom::view {

// What the GPUs of a running batch did lately, from what the batch itself samples: nothing is read back from its
// recording. An account is as the ledger has it, as far as a sample tells it:
//   a kernel ran             work under way; others' kernels where no task has been on the GPU for a while
//   none, tasks are there    unexplained, which is not the ledger's: nobody has looked for a cause yet
//   none, and no task        task waiting or no task, by the queue
//   no reading               unobserved
class BatchTrail {
 public:
  static constexpr Nanos kKept = 600 * kSecond;

  void add(const BatchProgress& progress);  // as often as it is known; speaks for the time since the last one

  // How much time a column of a picture has: so much that all of it fits into `columns`, and 5 s at most.
  [[nodiscard]] Nanos column(std::size_t columns) const;
  // In columns of that, the last one not yet full; as many as there are, `columns` at most.
  [[nodiscard]] Strip strip(std::size_t gpu, std::size_t columns) const;
  [[nodiscard]] bool observed(std::size_t gpu) const;  // one reading at least said what it does

 private:
  struct Gpu {
    std::vector<Slice> slices;  // in order of time
    Nanos last_task = -1;       // when one was last on it; -1: never
    bool observed = false;
  };
  static void add_slice(Gpu& gpu, Nanos begin, Nanos end, Account account);

  std::vector<Gpu> gpus_;
  Nanos end_ = 0;  // since the batch's begin
};

}  // namespace headroom::view
