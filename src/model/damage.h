// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/losses.h"
#include "model/recording.h"

namespace headroom {

// Whether the loss lies in the file and not in the recording: it was damaged after it was written, is of a newer
// program, or is a trace without its end. To record again is no remedy for the first two.
[[nodiscard]] inline bool lost_in_reading(const Loss& loss) {
  const auto kind = loss_kind_of(loss.what);
  return kind &&
         ((*kind >= LossKind::kMissingRows && *kind <= LossKind::kUnknownTime) || *kind == LossKind::kTruncatedTrace);
}

}  // namespace headroom
