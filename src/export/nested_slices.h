// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/recording.h"

namespace headroom {

// Time in which a text was part of the lists of a track: a function on a stack, an open phase.
struct NestedSlice {
  Nanos begin = 0, end = 0;
  TextId name = kNoText;
  bool operator==(const NestedSlice&) const = default;
};

// What rows of lists are as slices within slices, outer ones first: a row speaks until the next one, for `longest` at
// most, and the last one until `end`. What two rows one after the other begin with is one slice.
[[nodiscard]] std::vector<NestedSlice> nested_slices(const Recording& recording, const std::vector<ListRow>& rows,
                                                     Nanos longest, Nanos end);

}  // namespace headroom
