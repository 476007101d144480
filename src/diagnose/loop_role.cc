// SPDX-License-Identifier: Apache-2.0
#include "diagnose/loop_role.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnose/claims.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"

namespace headroom::diagnose {

namespace {

LoopPart part_of(Account account) {
  switch (account) {
    case Account::kInput:
      return LoopPart::kLoading;
    case Account::kValidationHost:
      return LoopPart::kEvaluation;
    case Account::kCheckpoint:
      return LoopPart::kSaving;
    default:
      return LoopPart::kUnknown;
  }
}

// By what marks, output or stacks tell that the time was for; counters alone may mistake one for another.
LoopPart told_part(const Analysis& a, const Finding& finding) {
  // Who waits for the disk writes, be it a state or a log.
  if (share_in(a, finding.claims, stacks::Family::kWrite) >= a.limits[Threshold::kMajority]) return LoopPart::kUnknown;
  const double most = a.limits[Threshold::kMajority] * static_cast<double>(finding.cost());
  if (static_cast<double>(length(common(finding.claims, told_time(a)))) >= most)
    if (const LoopPart part = part_of(main_account(finding.claims)); part != LoopPart::kUnknown) return part;
  using stacks::Family;
  if (share_in(a, finding.claims, Family::kLogging) >= a.limits[Threshold::kMajority]) return LoopPart::kLogging;
  // A forward pass alone may be one of an evaluation, or generate.
  const double trains =
      share_in(a, finding.claims, Family::kBackward) + share_in(a, finding.claims, Family::kOptimizer);
  const bool steps = trains >= a.limits[Threshold::kMaterial] &&
                     trains + share_in(a, finding.claims, Family::kForward) >= a.limits[Threshold::kMajority];
  return steps ? LoopPart::kStep : LoopPart::kUnknown;
}

std::string_view part_words(LoopPart part) {
  return part == LoopPart::kStep ? "a training step" : "the end of an epoch";
}

std::string_view times_words(Recurs recurs) {
  switch (recurs) {
    case Recurs::kThroughout:
      return "was seen in nearly every second from the first kernel to the last, as what comes with each step, or "
             "every so many";
    case Recurs::kAtTimes:
      return "was seen at some times only, more than a second apart: it does not come with each step, unless a step "
             "takes that long";
    case Recurs::kEachEpoch:
      return "was seen between one epoch and the next, as the job's own words number them, and hardly at other "
             "times";
    case Recurs::kOnce:
      return "was seen at one time only, with the job at other code before and after";
    case Recurs::kUnknown:
      break;
  }
  return "";
}

// What comes with each step is what one expects, and what part of the loop is known comes when that does: the title
// says when other code runs.
std::string_view title_words(Recurs recurs) {
  switch (recurs) {
    case Recurs::kAtTimes:
      return ", at some times only";
    case Recurs::kEachEpoch:
      return ", between epochs";
    case Recurs::kOnce:
      return ", at one time only";
    case Recurs::kThroughout:
    case Recurs::kUnknown:
      break;
  }
  return "";
}

}  // namespace

bool is_of_one_account(const Analysis& a, std::int32_t where, Account account) {
  constexpr double kNearlyAll = 0.9;
  Nanos all = 0, own = 0;
  for (const LedgerEntry& entry : a.ledger.entries) {
    const bool begins_or_ends = entry.account == Account::kStartup || entry.account == Account::kTeardown;
    if (entry.where != where || !is_held_idle(entry.account) || begins_or_ends) continue;
    all += entry.ns;
    if (entry.account == account) own += entry.ns;
  }
  return static_cast<double>(own) >= kNearlyAll * static_cast<double>(all);
}

void tell_the_role(const Analysis& a, Finding& finding) {
  const Account account = main_account(finding.claims);
  if (finding.claims.empty() || account == Account::kStartup || account == Account::kTeardown ||
      account == Account::kSync || finding.tiers.has("C"))
    return;
  finding.role.part = told_part(a, finding);
  if (!finding.code || !is_of_one_account(a, *finding.code, account)) return;
  const auto known = a.code.roles.find(a.ledger.places[static_cast<std::size_t>(*finding.code)]);
  if (known == a.code.roles.end()) return;
  const LoopPart told = finding.role.part;
  finding.role = known->second;
  if (told != LoopPart::kUnknown) finding.role.part = told, finding.role.caller.clear();
  // Time that lies in pauses is no part of each step, whatever else the same function does.
  const bool paused = 2 * length(in_pauses(a, finding.claims)) >= finding.cost();
  if (paused && finding.role.recurs == Recurs::kThroughout) finding.role.recurs = Recurs::kUnknown;
  std::string text(times_words(finding.role.recurs));
  if (!finding.role.caller.empty())
    text += fmt::format("{}is a part of {}, by its stacks ({})", text.empty() ? "" : "; it ",
                        part_words(finding.role.part), finding.role.caller);
  if (!text.empty()) finding.evidence.push_back(known->first + " " + text);
  if (finding.role.part != LoopPart::kUnknown) return;
  if (finding.title.ends_with(known->first) || finding.title.ends_with(a.ledger.spot(*finding.code, account)))
    finding.title += title_words(finding.role.recurs);
}

}  // namespace headroom::diagnose
