// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "model/study.h"
#include "model/study_report.h"

namespace headroom::tune {

struct PrunerGuess {
  Inferred said;
  std::optional<PrunerSettings> settings;  // where they give the study back, and no others do as well
};

// What pruned the trials of a study, as far as it can be told from what its storage has: likely settings are held
// against what happened. Storages do not say when a report came: reports are taken as evenly spaced, the last at the
// trial's end. So two that came at nearly the same time may be taken in the wrong order.
[[nodiscard]] PrunerGuess guess_pruner(const Study& study);

}  // namespace headroom::tune
