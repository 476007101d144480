// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tune/study_model.h"

namespace headroom::tune {

// What somebody may change about a study, and what speaks against it.
struct Change {
  std::string name, how;
  ReplaySettings settings;
  bool warm = false;                // the world says what that means in seconds
  std::int64_t loader_workers = 0;  // per trial
  Safety safety = Safety::kSafe;
  std::string why;
  bool fits = true;  // the GPU's memory
};

[[nodiscard]] Change as_it_is(const StudyModel& model);

// The changes worth a replay, from the study's own settings. `left_out` gets a sentence for each kind that is not
// among them for want of something.
[[nodiscard]] std::vector<Change> changes(const StudyModel& model, const StudyOptions& options,
                                          const StudyReport& facts, std::vector<std::string>& left_out);

}  // namespace headroom::tune
