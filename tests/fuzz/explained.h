// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/result.h"
#include "diagnose/claims.h"
#include "diagnose/explain.h"
#include "report/json.h"
#include "report/text.h"

namespace headroom::testing {

// Whatever can be read can be explained: the ledger sums to its budget, the findings keep their law, and both reports
// can be written.
inline void check_explained(const Recording& recording) {
  const Explanation explanation = explain(recording);
  Nanos sum = 0;
  for (const auto& entry : explanation.ledger.entries) sum += entry.ns;
  HR_CHECK(sum == explanation.ledger.budget(), "the ledger sums to its budget");
  for (const Finding& finding : explanation.findings) {
    HR_CHECK(finding.cost() >= 0 && finding.cost() <= explanation.ledger.budget(),
             "a finding costs no more than there is");
    for (const Finding& other : explanation.findings)
      if (&other != &finding && other.part_of == finding.part_of)
        HR_CHECK(length(diagnose::common(finding.claims, other.claims)) == 0, "nothing is claimed twice");
  }
  HR_CHECK(!report::to_text(explanation, {}).empty() && !report::to_json(explanation).empty(), "a report");
}

}  // namespace headroom::testing
