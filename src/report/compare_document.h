// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/comparison.h"
#include "model/prediction.h"

// The document of a comparison, and of a verification, which rests on one: what `headroom compare --full` and
// `headroom verify --full` say, drawn. Both forms are written from the same tables and points (document.h).
namespace headroom::report {

struct ComparisonDocument {
  const Comparison& comparison;
  const Verification* verification = nullptr;  // that this is the comparison of
};
[[nodiscard]] std::string to_html(const ComparisonDocument& document);
[[nodiscard]] std::string to_markdown(const ComparisonDocument& document);

}  // namespace headroom::report
