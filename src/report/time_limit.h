// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "model/explanation.h"

// Whether what is left of a job that runs, as its own output tells it, fits until Slurm ends it.
namespace headroom::report {

struct TimeLimit {
  enum class Fits : std::uint8_t { kYes, kMayNot, kNo };
  Fits fits = Fits::kMayNot;
  double left_seconds = 0;               // until Slurm ends the job
  double over_low = 0;                   // of kNo: so many seconds too long at least
  std::optional<double> over_high = {};  // and at most; absent: not known, pauses come on top
  bool operator==(const TimeLimit&) const = default;
};

// Nothing where either is not known, or the end is over.
[[nodiscard]] std::optional<TimeLimit> time_limit(const Explanation& e);
// progress_words of a job that runs, and "; these steps do not fit, by 40 to 60 min: Slurm ends the job in 42:00".
[[nodiscard]] std::string progress_of(const Explanation& e);

}  // namespace headroom::report
