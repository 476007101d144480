// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/result.h"
#include "diagnose/claims.h"
#include "diagnose/explain.h"
#include "plan/plan.h"
#include "report/document.h"
#include "report/json.h"
#include "report/text.h"
#include "view/view.h"

namespace headroom::testing {

// Whatever can be read can be explained: the ledger sums to its budget, the findings keep their law, all reports can be
// written, and what they draw is the ledger. What was explained is returned.
inline Explanation check_explained(const Recording& recording) {
  Explanation explanation = explain(recording);
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
  const view::View view = view::view_of(recording, explanation);
  Nanos drawn = 0;
  for (const view::Gpu& gpu : view.gpus)
    for (const auto& bin : gpu.strip.bins)
      for (const view::Share& share : bin) drawn += share.ns;
  HR_CHECK(drawn == sum, "what is drawn is the ledger");
  const Plan to_do = plan(explanation);
  const report::Document document{explanation, view, to_do, "REC", "", {}};
  HR_CHECK(!report::to_html(document).empty() && !report::to_markdown(document).empty(), "a document");
  return explanation;
}

}  // namespace headroom::testing
