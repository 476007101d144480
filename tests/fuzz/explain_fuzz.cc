// SPDX-License-Identifier: Apache-2.0
// Whatever can be decoded can be explained: the ledger sums to its budget, the findings keep their law, and both
// reports can be written.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "diagnose/claims.h"
#include "diagnose/explain.h"
#include "import/jsonl.h"
#include "report/json.h"
#include "report/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom;
  constexpr Nanos kMostIntervals = 1 << 20;  // time that a file only claims costs memory, which is no crash
  const auto recording = read_jsonl({reinterpret_cast<const char*>(data), size});
  if (!recording) return 0;
  Nanos span = 0;
  if (__builtin_sub_overflow(recording->meta.end, recording->meta.start, &span)) return 0;
  if (span / std::max<Nanos>(1, recording->meta.interval) > kMostIntervals) return 0;
  const Explanation explanation = explain(*recording);
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
  return 0;
}
