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

// Whether it is worth a word beside the other findings: not where it is a little, nor where looks that came late cover
// less time, in all, than lies between two readings.
[[nodiscard]] inline bool is_a_problem(const Loss& loss, const RecordingMeta& meta) {
  if (loss.count <= 0 || loss.severity < Severity::kDataLoss || is_little(loss, meta.end - meta.start)) return false;
  if (loss.what != info(LossKind::kMissedTick).name || loss.places.empty()) return true;
  Nanos late = 0;
  for (const LossPlace& place : loss.places) late += place.end - place.begin;
  return late >= meta.interval;
}

}  // namespace headroom
