// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "model/study_report.h"
#include "tune/study_options.h"

namespace headroom::tune {

// A time that a study can have: from 1970 to 2096, so that sums of a time and a duration fit. Others count as not
// there.
[[nodiscard]] inline std::optional<Nanos> sane(std::optional<Nanos> time) {
  constexpr Nanos kLatest = 4'000'000'000 * kSecond;
  return time && *time >= 0 && *time <= kLatest ? time : std::nullopt;
}

// The latest begin or end in the study's own times.
[[nodiscard]] std::optional<Nanos> latest_time(const Study& study);

// Whether the study's times are UTC (Optuna from 5.0 on) or the local time of this machine (before), or what else
// heartbeats say. In this order: the storage says it, told, heartbeats (which are Unix time), none may lie after the
// storage was written last or after now, and a storage in use was written just after its latest time. That the local
// time of this machine is UTC tells nothing of who wrote the storage.
[[nodiscard]] StudyClock study_clock(const Study& study, const StudyOptions& options);

}  // namespace headroom::tune
