// SPDX-License-Identifier: Apache-2.0
#include "plan/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "model/observations.h"

namespace headroom::planning {

namespace {

std::string why_no_stacks(const Explanation& e) {
  if (e.batch) return "";  // unless it is asked to
  const auto& missing = e.meta.missing_tiers;
  const auto why = std::find_if(missing.begin(), missing.end(), [](const auto& one) { return one.tier == 'Y'; });
  return why == missing.end() || why->why.empty() ? "" : fmt::format(" (there are none here: {})", why->why);
}

// What there is where nobody looked at processes.
std::string_view what_leaves(const RecordingMeta& meta) {
  const auto has = [&](char tier) { return meta.tiers.find(tier) != std::string::npos; };
  if (has('C')) return "a trace of kernels and copies leaves";
  if (has('N')) return "readings of the GPU alone leave";
  return "times of steps alone leave";
}

// Each look once, behind the causes that it tells from the others.
std::string looks_at(const Finding& finding, const RecordingMeta& meta) {
  std::vector<std::pair<std::string, std::vector<std::string_view>>> looks;
  for (const Cause cause : finding.candidates) {
    const std::string step = step_of_observation(cause, finding, meta);
    auto known = std::find_if(looks.begin(), looks.end(), [&](const auto& look) { return look.first == step; });
    if (known == looks.end()) known = looks.insert(looks.end(), {step, {}});
    known->second.push_back(info(cause).words);
  }
  if (looks.size() == 1) return looks.front().first;
  std::vector<std::string> parts;
  for (const auto& [step, told] : looks) parts.push_back(fmt::format("{}: {}", fmt::join(told, " or "), step));
  return join(parts, "; ");
}

}  // namespace

Candidate first_look(const Explanation& e) {
  const auto& tiers = e.meta.tiers;
  const auto set = std::find_if(e.findings.begin(), e.findings.end(),
                                [](const Finding& f) { return !f.cause && !f.claims.empty(); });
  Candidate made;
  Option& option = made.option;
  option.id = "observe";
  option.finding = static_cast<std::size_t>(set - e.findings.begin());
  option.candidates = set->candidates;
  option.why_safe = "it changes nothing";
  option.promises = false;
  option.undo = "none needed";
  option.gain.none = "none by itself: it makes the answer surer";
  option.verify = "the next plan names one cause where this one names several";
  option.effort = "one run";
  if (tiers.find('P') == std::string::npos) {
    option.title = fmt::format("First record the next run: {} several causes open", what_leaves(e.meta));
    option.apply = "headroom run -- CMD (process times and Python stacks; nothing of the job changes)";
    if (e.meta.origin == "run" && !set->advice.empty()) {  // it was run so, and saw no more: that says what then
      option.title = fmt::format("First look closer at the next run: {} several causes open", what_leaves(e.meta));
      option.apply = set->advice;
    }
  } else if (tiers.find('Y') == std::string::npos && !without_python(e.meta)) {
    option.title = "First look at the stacks: process times leave several causes open";
    option.apply =
        fmt::format("{}{}, or {}", e.batch ? "headroom batch TASKS --stacks 20" : "headroom run --stacks 20 -- CMD",
                    why_no_stacks(e), step_of_observation(set->candidates.front(), *set, e.meta));
  } else {
    option.title = "Tell the candidates apart";
    option.apply = looks_at(*set, e.meta);
    option.verify = "what it shows fits one of these causes, and none of the others";
  }
  return made;
}

}  // namespace headroom::planning
