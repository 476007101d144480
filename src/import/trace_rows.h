// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "model/dictionary.h"
#include "model/gpu_work.h"
#include "model/recording.h"

// From intervals in any order to rows that say what was open from then on.
namespace headroom {

// What a device was at: each kind of work for as long as any of it ran.
class WorkRows {
 public:
  void add(GpuWork what, Nanos begin, Nanos end);
  void write(RecordingSink& sink, SourceId source, Nanos start) &&;

 private:
  struct Change {
    Nanos at = 0;
    GpuWork what{};
    std::int8_t by = 0;  // 0: a kernel that took no time
    bool begins = false;
  };
  std::vector<Change> changes_;
};

// What was open on a thread, one within the other.
class NestedRows {
 public:
  static constexpr int kAnyDepth = -1;
  // Intervals of depth 0 and 1 do not overlap others of their own depth by more than an end; of any depth, those that
  // begin within another end with it at the latest.
  void add(int depth, Nanos begin, Nanos end, TextId name);
  void write(RecordingSink& sink, SourceId source, const Dictionary& names) &&;

 private:
  struct Interval {
    Nanos begin = 0, end = 0;
    TextId name = 0;
    std::int32_t depth = 0;
  };
  std::vector<Interval> intervals_;
};

}  // namespace headroom
