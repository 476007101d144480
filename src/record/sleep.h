// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "model/recording.h"

namespace headroom {

// Leaves out what says nothing new of processes that sleep beside the work on the GPUs: a live picture of a machine has
// hundreds of them, and a row of each for every reading. A process is beside that work which has no context on a GPU,
// and no parent that has: of those at work each look counts, in their shares of time.
class SleepLeftOut {
 public:
  explicit SleepLeftOut(Nanos every) : every_(every) {}
  // Of rows that are equal, but for cells that were not sampled, the first, the last and one in `every` stay; a cell
  // that only one of two rows has is kept. Called again after rows were added at the end, or taken at the beginning.
  void leave_out(Recording& recording);

 private:
  Nanos every_;
  std::size_t sources_ = 0;       // of which it is known
  std::vector<bool> at_work_;     // whether they are at work, by source
  std::vector<Nanos> looked_at_;  // by source: the last row that was considered
};

}  // namespace headroom
