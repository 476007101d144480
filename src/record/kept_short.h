// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "model/recording.h"

namespace headroom {

// What a live picture keeps of its machine in memory, without what says nothing new.
//   Of processes that sleep beside the work on the GPUs: of rows that are equal, but for cells that were not sampled,
//   the first, the last two, which say what it does now, and one in `every`. A process is beside that work which has no
//   context on a GPU, and no parent that has: of those at work each look counts, in their shares of time. There are
//   hundreds of the others. Of the driver's fine power samples: the last seconds. The newest one is shown; what power
//   was before the rows of the GPU say.
class KeptShort {
 public:
  explicit KeptShort(Nanos every) : every_(every) {}
  // Called again after rows were added at the end, or taken at the beginning. A cell that only one of two rows has is
  // kept.
  void shorten(Recording& recording);

 private:
  Nanos every_;
  std::size_t sources_ = 0;       // of which it is known
  std::vector<bool> at_work_;     // whether they are at work, by source
  std::vector<Nanos> looked_at_;  // by source: the last row that was considered
};

}  // namespace headroom
