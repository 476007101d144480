// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "compare/history.h"
#include "model/prediction.h"

// The user's own record of predictions that were verified: predictions.jsonl in the folder of state, readable by the
// user only, the newest 2,000 of them. Several may write at once.
namespace headroom::cli {

[[nodiscard]] Result<std::string> predictions_path();
// A file that is not there is an empty history.
[[nodiscard]] Result<compare::Outcomes> past_predictions();
[[nodiscard]] Result<void> remember(const PredictionOutcome& outcome);
// How the key of an outcome names a file.
[[nodiscard]] std::string absolute_path(const std::string& path);
// Prints them, per cause and the newest ones, as text or headroom.predictions/1.
[[nodiscard]] Result<void> show_predictions(bool json);

}  // namespace headroom::cli
