// SPDX-License-Identifier: Apache-2.0
#include "plan/named_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/human.h"
#include "model/advice_words.h"
#include "model/named_causes.h"
#include "model/places.h"

namespace headroom::planning {

namespace {

Nanos time_at(const Finding& finding, std::int32_t place) {
  Nanos there = 0;
  for (const ClaimedPiece& piece : finding.claims)
    if (piece.where == place) there += piece.end - piece.begin;
  return there;
}

// The same where it is no wait for kernels.
Nanos runs_at(const Finding& finding, std::int32_t place, Account account = Account::kHostCode) {
  Nanos there = 0;
  for (const ClaimedPiece& piece : finding.claims)
    if (piece.account == account && piece.where == place) there += piece.end - piece.begin;
  return there;
}

// What the code of a set does there: it runs, or it writes.
Account account_of_code(const Finding& finding) {
  const auto at = [&](Account account) { return runs_at(finding, *finding.code, account); };
  return at(Account::kCheckpoint) > at(Account::kHostCode) ? Account::kCheckpoint : Account::kHostCode;
}

// Whether both findings are at the same code of a place: what a script runs by itself is one function, whatever it is
// at.
bool same_code(const Explanation& e, const Finding& one, const Finding& other, std::int32_t place) {
  const auto line = [&](const Finding& finding) {
    return e.ledger.line_of(place, finding.claims.front().account).line;
  };
  const bool script = e.ledger.places[static_cast<std::size_t>(place)].starts_with("<module>");
  return !script || (line(one) > 0 && line(one) == line(other));
}

// Other findings most of whose time is of the same place: the change ends them as well.
std::vector<std::size_t> others_of(const Explanation& e, std::size_t index, std::int32_t place) {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < std::min<std::size_t>(64, e.findings.size()); ++i)
    if (i != index && !e.findings[i].part_of && e.findings[i].gain &&
        2 * time_at(e.findings[i], place) > e.findings[i].cost() &&
        same_code(e, e.findings[index], e.findings[i], place))
      others.push_back(i);
  return others;
}

// Whether the same place has time of still others, so that its change would gain more than these bounds allow.
bool costs_elsewhere(const Explanation& e, std::size_t index, std::int32_t place,
                     const std::vector<std::size_t>& others) {
  Nanos elsewhere = 0;
  for (std::size_t i = 0; i < e.findings.size(); ++i)
    if (i != index && std::find(others.begin(), others.end(), i) == others.end() && !e.findings[i].claims.empty() &&
        same_code(e, e.findings[index], e.findings[i], place))
      elsewhere += time_at(e.findings[i], place);
  const Finding& finding = e.findings[index];
  const double allowed = seconds(e.ledger.span()) * (1 - 1 / finding.gain->high) - seconds(finding.cost());
  constexpr double kRounding = 0.01;  // of the time
  return seconds(elsewhere) > std::max(0.0, allowed) + kRounding * seconds(e.ledger.span());
}

// All that a place keeps the one GPU waiting that is used, in time of this account; nothing where several are.
std::optional<Nanos> idle_at(const Explanation& e, std::size_t device, std::int32_t place, Account account) {
  Nanos there = 0;
  for (const LedgerEntry& entry : e.ledger.entries) {
    if (entry.device != device && is_busy(entry.account)) return std::nullopt;
    if (entry.device == device && entry.where == place && entry.account == account) there += entry.ns;
  }
  return there;
}

// Of code that waits for a core, or that runs after the last kernel: what takes the cores, or that the GPU is kept, is
// the cause, and the code may be changed all the same. Its bound is all that it keeps the GPU waiting.
std::optional<Candidate> code_beside_the_cause(const Explanation& e, std::size_t index) {
  const Finding& finding = e.findings[index];
  const bool after = finding.cause == Cause::kUnreleasedAfterWork;
  if (after && finding.asleep) return std::nullopt;  // what it waits for can come without the GPU
  const Account account = after ? Account::kTeardown : Account::kHostCode;
  const auto there = idle_at(e, finding.claims.front().device, *finding.code, account);
  if (!there || 2 * runs_at(finding, *finding.code, account) <= finding.cost()) return std::nullopt;
  Candidate made;
  Option& option = made.option;
  option.id = kNamedCode;
  option.finding = index;
  option.title = fmt::format("Change the code itself: {}", e.ledger.spot(*finding.code, account));
  option.apply = "make that code cheaper, or let it overlap with the kernels: ahead of the step, or beside it";
  option.gain.condition = std::string(kWithoutTheCode);
  option.gain.more = "; how much of that can be had is not known";
  made.change = Change{.mechanism = Mechanism::kRemoves, .finding = index, .most = seconds(*there)};
  return made;
}

// Whether what it waits for, which loads, is to be made faster.
bool waits_for_a_loader(const Finding& finding) {
  return finding.mostly_waits && names(finding, Cause::kInputTooFewWorkers);
}

// What is so of each change of code.
void describe(const Finding& finding, Candidate& made) {
  Option& option = made.option;
  option.safety = Safety::kModerate;
  option.why_safe = "what runs beside the kernels must not need what they have not computed yet";
  made.effort = Effort::kLines;
  option.effort = info(made.effort).name;
  option.verify = "time per step; the job's own metric";
  option.undo = "the code as it was";
  made.flipped = finding.would_overturn;
}

}  // namespace

double share_of_code(const Finding& finding) {
  if (!finding.code || finding.cost() == 0) return 0;
  return static_cast<double>(runs_at(finding, *finding.code, account_of_code(finding))) /
         static_cast<double>(finding.cost());
}

double share_of_all_time(const StepModel::Claimed& claimed, double share) {
  return claimed.most > claimed.seconds ? 1 - (1 - share) * claimed.seconds / claimed.most : share;
}

namespace {

// Of a set: what its code costs there at most.
Candidate change_of_code(const Finding& finding, std::size_t index, std::string title, double share) {
  Candidate made;
  Option& option = made.option;
  option.id = kNamedCode;
  option.finding = index;
  option.candidates = possible_causes(finding);
  option.title = std::move(title);
  option.apply = finding.advice;
  option.gain = *finding.gain;
  option.gain.low = option.gain.high = 1;  // the simulation's to say
  option.gain.beside.clear();              // of one cause
  if (const std::string percent = human_percent(share); percent != human_percent(1))
    option.gain.more += fmt::format("; that code has {} of that time", percent);
  option.gain.more += "; how much of that can be had is not known";
  describe(finding, made);
  made.change = Change{.mechanism = Mechanism::kRemoves, .finding = index, .share = share};
  return made;
}

}  // namespace

std::optional<Candidate> named_code(const Explanation& e, std::size_t index) {
  const Finding& finding = e.findings[index];
  if (finding.advice.empty()) return std::nullopt;
  if (!finding.code && !finding.holder) return std::nullopt;
  if (finding.code && (finding.cause == Cause::kCpuOversubscribed || finding.cause == Cause::kUnreleasedAfterWork)) {
    auto made = code_beside_the_cause(e, index);
    if (made) describe(finding, *made);
    if (made && finding.cause == Cause::kUnreleasedAfterWork)
      made->option.verify = "time from the last kernel to the end of the process";
    return made;
  }
  if (!finding.gain) return std::nullopt;
  // What keeps code from running is another thread's: its change is the one of that cause.
  if (is_settled(finding) || is_likeliest(finding, Cause::kGilContention)) return std::nullopt;
  const std::string_view change =
      finding.asleep || finding.mostly_waits ? "Shorten the wait in" : "Change the code itself:";
  if (!finding.code)  // of this finding's time alone: what else it is on the stack for is told by no place
    return change_of_code(finding, index, fmt::format("{} {}", change, finding.holder->words()), finding.holder->share);
  const Account account = account_of_code(finding);
  const Nanos there = runs_at(finding, *finding.code, account);
  const std::vector<std::size_t> others = others_of(e, index, *finding.code);
  if (2 * there <= finding.cost() || costs_elsewhere(e, index, *finding.code, others)) return std::nullopt;
  Candidate made = change_of_code(finding, index, fmt::format("{} {}", change, e.ledger.spot(*finding.code, account)),
                                  share_of_code(finding));
  Option& option = made.option;
  const std::string& place = e.ledger.places[static_cast<std::size_t>(*finding.code)];
  const std::string_view function = function_of(place);
  if (function != place) option.gain.more += fmt::format("; what {} costs other callers is not counted", function);
  if (account == Account::kCheckpoint) option.why_safe = "a crash may lose what the disk does not have yet";
  made.change.cheaper = waits_for_a_loader(finding);
  for (const std::size_t other : others) {
    made.change.also |= std::uint64_t{1} << other;
    option.gain.more += fmt::format("; in finding {} as well", other + 1);
  }
  return made;
}

}  // namespace headroom::planning
