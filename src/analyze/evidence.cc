// SPDX-License-Identifier: Apache-2.0
#include "analyze/evidence.h"

#include <algorithm>

#include "analyze/call_evidence.h"
#include "analyze/process_evidence.h"
#include "analyze/stack_evidence.h"

namespace headroom {

std::vector<std::unique_ptr<Evidence>> evidence_of(const Recording& recording, const JobView& job,
                                                   const StackView& stacks, const stacks::Families& families,
                                                   const Thresholds& limits) {
  std::vector<std::unique_ptr<Evidence>> ordered;
  if (auto calls = std::make_unique<ProfiledCalls>(recording, families); !calls->empty())
    ordered.push_back(std::move(calls));
  const bool sampled = std::any_of(job.did.begin(), job.did.end(), [](const auto& list) { return !list.empty(); });
  if (StoppedTime::is_in(job)) ordered.push_back(std::make_unique<StoppedTime>());
  if (!stacks.looks.empty()) ordered.push_back(std::make_unique<Stacks>(stacks, limits));
  if (sampled) ordered.push_back(std::make_unique<ProcessCounters>(limits));
  return ordered;
}

}  // namespace headroom
