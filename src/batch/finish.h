// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "batch/batch.h"
#include "batch/prepare.h"
#include "batch/say.h"
#include "live/session.h"
#include "model/explanation.h"

namespace headroom::batch {

// Writes the run's end into the journal. Says what cannot be written, here and below. False: results are lost.
[[nodiscard]] bool write_end(Prepared& batch, const BatchEnd& end, const SessionResult& recorded, const Say& say);

// What the recording says of the attempts.
struct FromRecording {
  const std::optional<Explanation>& explanation;
  const std::vector<AttemptMetric>& metrics;  // that their processes marked
};
// What follows from the recording and may take a while: the attempts' GPU time and metrics go into the journal, the
// journal into the recording, and what tasks taught is kept for the next batch.
void complete_records(Prepared& batch, const BatchEnd& end, const SessionResult& recorded, const FromRecording& from,
                      const Say& say);

// Of a batch of which all tasks had succeeded before.
void write_that_nothing_was_left(Prepared& batch, const Say& say);

}  // namespace headroom::batch
