// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace headroom {

// What a job says of itself: by marks in its code or by NVTX ranges (tier X), or in its output (tier L).
struct Mark {
  // The numbers up to kParameter are those of the marks' ring (wire/marks.h).
  enum class Kind : std::uint8_t {
    kBegin = 1,      // a phase `name` begins, within those that are open on its thread
    kEnd = 2,        // the innermost open phase of that name ends; "": the innermost
    kPhase = 3,      // from now on this phase and no other; "": none
    kStep = 4,       // `count` steps were done, with `value` samples in all (0: not known)
    kMetric = 5,     // `name` is `value`
    kParameter = 6,  // `name` is `text`
    kProgress = 7,   // of folds, epochs or steps (`name`: "fold", "epoch", "step") it is at number `count` of `of`
  };
  Kind kind = Kind::kBegin;
  Nanos at = 0;  // CLOCK_BOOTTIME
  std::string_view name = {};
  std::string_view text = {};
  double value = 0;
  std::int64_t count = 1;
  std::int32_t nth = 0;  // kPhase: for the how many-th time it begins, be it open or interrupted; 0: nobody counts
  std::int64_t of = 0;   // kProgress; 0: of how many is not said
  std::string_view state = {};  // kProgress: as in events::Progress
  bool in_epoch = false;        // kProgress of steps: they are those of one epoch
};

}  // namespace headroom
