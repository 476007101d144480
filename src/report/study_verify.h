// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/study_verification.h"
#include "report/layout.h"

namespace headroom::report {

// The answer of `headroom verify` about a study's change: kept or not, then each figure, predicted and measured.
[[nodiscard]] std::string to_text(const StudyVerification& verification, const TextOptions& options);
// "headroom.verify-study/1" (docs/json.md).
[[nodiscard]] std::string to_json(const StudyVerification& verification);

// The same as a document.
struct StudyVerificationDocument {
  const StudyVerification& verification;
};
[[nodiscard]] std::string to_html(const StudyVerificationDocument& document);
[[nodiscard]] std::string to_markdown(const StudyVerificationDocument& document);

// The answer of `headroom compare` of two studies, side by side.
[[nodiscard]] std::string to_text(const StudyComparison& comparison, const TextOptions& options);
// "headroom.compare-study/1".
[[nodiscard]] std::string to_json(const StudyComparison& comparison);

// The same as a document.
struct StudyComparisonDocument {
  const StudyComparison& comparison;
};
[[nodiscard]] std::string to_html(const StudyComparisonDocument& document);
[[nodiscard]] std::string to_markdown(const StudyComparisonDocument& document);

}  // namespace headroom::report
