// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/recording.h"

// The end of a recording that goes on, to be looked at again and again.
namespace headroom {

// The recording that forget_before() would leave, beside the one that goes on. What is not of a time (sources, texts,
// lists) is lent to it: `whole` has that again when this ends, and must not be used before.
class RecentPart {
 public:
  RecentPart(Recording& whole, Nanos instant);
  ~RecentPart();
  RecentPart(const RecentPart&) = delete;
  RecentPart& operator=(const RecentPart&) = delete;
  [[nodiscard]] const Recording& recording() const { return part_; }

 private:
  void exchange_what_is_lent();
  Recording& whole_;
  Recording part_;
};

// `until`, or earlier: when the last kernel before it was seen on each GPU that is used; the recording's start where
// one has none. What a window means rests on them: whether a process that does nothing has not begun yet, or is done.
[[nodiscard]] Nanos last_kernels_before(const Recording& recording, Nanos until);

}  // namespace headroom
