// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/events.h"
#include "model/recording.h"

namespace headroom {

struct Extent {
  Nanos begin = 0, end = 0;
  bool operator==(const Extent&) const = default;
};

// From the start of a task's attempt to its end, or that of the recording where no end is recorded.
struct AttemptSlice {
  events::AttemptStart attempt;
  std::optional<AttemptOutcome> outcome;
  Extent stretch;
};
[[nodiscard]] std::vector<AttemptSlice> attempt_slices(const Recording& recording);

// In which lane each stretch is drawn, so that within a lane each two are apart or one is inside the other, which is
// all that trace viewers can show on one track. `stretches` are in order of begin, of those that begin together the
// longest first; each gets the first lane that takes it.
[[nodiscard]] std::vector<std::size_t> lanes_of(const std::vector<Extent>& stretches);

// A slice of a trace of which it is not known whether it overlaps with others of its track.
struct LooseSlice {
  int group = 0;            // the trace's process
  std::int64_t thread = 0;  // its track
  Extent stretch;
  std::string track, name, args;  // `track`: the name of its track; `args`: JSON
};

// A slice on a thread where it overlaps with none.
struct PlacedSlice {
  const LooseSlice* slice = nullptr;
  std::int64_t thread = 0;
  bool opens = false;  // the first one of its thread
};

// Sorts `slices`. The first lane of a track is the track, further ones are threads from `free` on.
[[nodiscard]] std::vector<PlacedSlice> place(std::vector<LooseSlice>& slices, std::int64_t free);

// Time in which a text was part of the lists of a track: a function on a stack, an open phase.
struct NestedSlice {
  Nanos begin = 0, end = 0;
  TextId name = kNoText;
  bool operator==(const NestedSlice&) const = default;
};

// Turns rows of lists (sampled stacks, open phases) into nested slices, outer ones first: a row holds until the next
// one, for `longest` at most, the last one until `end`. Equal beginnings of consecutive rows are one slice.
[[nodiscard]] std::vector<NestedSlice> nested_slices(const Recording& recording, const std::vector<ListRow>& rows,
                                                     Nanos longest, Nanos end);

}  // namespace headroom
