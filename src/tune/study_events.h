// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "model/study.h"

namespace headroom::tune {

// What happened in a study, in the order of time. When reports came is an estimate: evenly spaced after a start-up that
// all trials share, the last one at the trial's end.
struct StudyEvent {
  enum class Kind : std::uint8_t { kBegin, kReport, kEnd };

  Nanos at = 0;
  Kind kind = Kind::kBegin;
  std::uint32_t trial = 0;   // index into Study::trials
  std::uint32_t report = 0;  // of the trial's, for kReport
};

// Of the trials that began first, as many as have no more than `most_reports` together.
[[nodiscard]] std::vector<StudyEvent> study_events(const Study& study, std::size_t most_reports);

}  // namespace headroom::tune
