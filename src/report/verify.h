// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/prediction.h"
#include "report/layout.h"

namespace headroom::report {

[[nodiscard]] std::string verify_words(const VerifiedOption& applied);  // "a delivered: …."

// The answer of `headroom verify`: predicted, measured, kept or not; then the comparison that it rests on.
[[nodiscard]] std::string to_text(const Verification& verification, const TextOptions& options);
// "headroom.verify/1" (docs/json.md).
[[nodiscard]] std::string to_json(const Verification& verification);

// `headroom plan --history`: per cause how much of what was predicted came true, and what follows for the next one;
// the newest predictions with what was measured.
[[nodiscard]] std::string predictions_text(const std::vector<CauseHistory>& causes,
                                           const std::vector<PredictionOutcome>& outcomes, const TextOptions& options);
// "headroom.predictions/1".
[[nodiscard]] std::string predictions_json(const std::vector<CauseHistory>& causes,
                                           const std::vector<PredictionOutcome>& outcomes);

}  // namespace headroom::report
