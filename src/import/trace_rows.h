// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/dictionary.h"
#include "model/gpu_work.h"
#include "model/recording.h"

// From intervals in any order to rows that say what was open from then on.
namespace headroom {

// What a device was at: each kind of work for as long as any of it ran.
struct WorkInterval {
  Nanos begin = 0, end = 0;
  GpuWork what{};
};
class WorkRows {
 public:
  WorkRows(RecordingSink& sink, SourceId source, Nanos start);
  void add(const WorkInterval& work);  // in order of begin
  void finish();

 private:
  void put(Nanos at);
  void close_until(Nanos at);
  [[nodiscard]] ListId list();

  RecordingSink& sink_;
  SourceId source_;
  ListRow row_;
  std::array<std::int64_t, kGpuWorks.size()> open_{};
  std::vector<WorkInterval> ends_;  // a heap: the earliest end first
  std::unordered_map<std::uint32_t, ListId> lists_;
};

// What was open on a thread from an instant on: one within the other.
struct NamedInterval {
  static constexpr std::int32_t kAnyDepth = -1;
  Nanos begin = 0, end = 0;
  TextId name = 0;
  // Those of depth 0 and of depth 1 end where the next of theirs begins; those of any depth with the one of any depth
  // around them, and they are named only where none of depth 0 or 1 is open.
  std::int32_t depth = kAnyDepth;
};
// Whether rows say for the how many-th time what is open innermost began: it goes on after what lies within it.
enum class Times { kCounted, kNotCounted };
// `deepest`: of those of any depth within each other; what lies deeper is left out.
void write_nested(std::vector<NamedInterval> intervals, std::size_t deepest, Times times, const Dictionary& names,
                  MemorySink& sink, SourceId source);

}  // namespace headroom
