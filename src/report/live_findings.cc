// SPDX-License-Identifier: Apache-2.0
#include "report/live_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace headroom::report {

std::vector<std::string> finding_keys(const Explanation& explanation) {
  std::vector<std::string> keys;
  std::map<std::string, std::size_t> seen;
  for (const Finding& finding : explanation.findings) {
    std::string key = finding.cause ? std::string(info(*finding.cause).id) : "";
    std::vector<std::string> candidates;
    for (const Cause cause : finding.candidates) candidates.emplace_back(info(cause).id);
    std::sort(candidates.begin(), candidates.end());  // which is likeliest may change
    for (const std::string& candidate : candidates) key += "|" + candidate;
    const std::size_t number = seen[key]++;
    keys.push_back(number == 0 ? key : fmt::format("{}#{}", key, number + 1));
  }
  return keys;
}

std::vector<std::size_t> LiveFindings::look(const Explanation& explanation) {
  std::vector<std::size_t> tell;
  std::set<std::string> now;
  const auto keys = finding_keys(explanation);
  const auto budget = static_cast<double>(explanation.ledger.budget());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Finding& finding = explanation.findings[i];
    const bool weighty = finding.confidence != Confidence::kLow && finding.cost() >= rule_.cost &&
                         static_cast<double>(finding.cost()) >= rule_.share * budget;
    if (explanation.ledger.span() < rule_.evidence || !weighty) continue;
    now.insert(keys[i]);
    if (before_.contains(keys[i]) && told_.insert(keys[i]).second) tell.push_back(i);
  }
  before_ = std::move(now);
  return tell;
}

LeftToTell left_to_tell(const std::vector<ToldFinding>& told, const Explanation& explanation) {
  LeftToTell left;
  const auto keys = finding_keys(explanation);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (std::none_of(told.begin(), told.end(), [&](const ToldFinding& one) { return one.key == keys[i]; }))
      left.fresh.push_back(i);
  for (const ToldFinding& one : told)
    if (std::find(keys.begin(), keys.end(), one.key) == keys.end()) left.withdrawn.push_back(one);
  return left;
}

}  // namespace headroom::report
