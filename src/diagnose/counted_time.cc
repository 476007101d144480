// SPDX-License-Identifier: Apache-2.0
#include "diagnose/idle_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/ends.h"
#include "base/human.h"
#include "base/strings.h"
#include "diagnose/pauses.h"
#include "model/named_causes.h"
#include "model/places.h"

namespace headroom::diagnose {

namespace {

// Marks, output, or stacks of a family say what it was: not a guess by counters.
bool is_told(const Slice& slice) {
  if (slice.tiers.has("X") || slice.tiers.has("L")) return true;
  return slice.tiers.has("Y") && !slice.tiers.has("P") && slice.account != Account::kHostCode &&
         slice.account != Account::kUnexplained;
}

}  // namespace

Claims told_time(const Analysis& a) {
  return claim(a, [](std::size_t, const Slice& slice) { return is_told(slice); });
}

namespace {

bool told_by_the_job(const Phase& phase) { return phase.named_by == "marks" || phase.named_by == "nvtx"; }

// What a finding's time went to, and its accounts; where one place ends and the next begins looks do not tell to the
// moment.
struct Whereabouts {
  std::set<std::int32_t> places;
  std::set<Account> accounts;
};

Whereabouts whereabouts(const Finding& finding) {
  constexpr double kLeast = 0.05;  // of its time
  std::map<std::int32_t, Nanos> by_place;
  Whereabouts found;
  for (const ClaimedPiece& piece : finding.claims) {
    if (piece.where >= 0) by_place[piece.where] += piece.end - piece.begin;
    found.accounts.insert(piece.account);
  }
  for (const auto& [place, ns] : by_place)
    if (static_cast<double>(ns) >= kLeast * static_cast<double>(finding.cost())) found.places.insert(place);
  return found;
}

// A function of these, called by another, and of another account: that is a part of something else.
bool by_another_caller(const Analysis& a, const Whereabouts& own, const Slice& slice) {
  if (slice.where < 0 || own.places.contains(slice.where) || own.accounts.contains(slice.account)) return false;
  const auto function = [&](std::int32_t place) {
    return function_of(a.ledger.places[static_cast<std::size_t>(place)]);
  };
  return std::any_of(own.places.begin(), own.places.end(),
                     [&](std::int32_t place) { return function(place) == function(slice.where); });
}

struct ToldPhases {
  std::set<std::int32_t> phases;
  std::set<std::int64_t> pids;  // of processes that name them
  Nanos time = 0;
};

// The phases that the job itself names in which this time lies.
ToldPhases told_phases(const Analysis& a, const Claims& claims) {
  ToldPhases told;
  for (const ClaimedPiece& piece : claims) {
    const auto& slices = a.devices[piece.device].slices;
    auto slice = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                  [](Nanos at, const Slice& s) { return at < s.end; });
    for (; slice != slices.end() && slice->begin < piece.end; ++slice)
      if (slice->named >= 0 && told_by_the_job(a.phases[static_cast<std::size_t>(slice->named)])) {
        told.phases.insert(slice->named);
        told.pids.insert(slice->pid);
        told.time += std::min(slice->end, piece.end) - std::max(slice->begin, piece.begin);
      }
  }
  return told;
}

// All time whose account is not sure, and which may have the cause of the finding.
Claims unsure_time(const Analysis& a, const Finding& finding, bool ends) {
  const ToldPhases told = told_phases(a, finding.claims);
  // Who says where it validates says of the rest that it is something else.
  constexpr double kAllOfIt = 0.95;
  const bool said = finding.cause == Cause::kValidation &&
                    static_cast<double>(told.time) >= kAllOfIt * static_cast<double>(finding.cost());
  const auto elsewhere = [&](const Slice& slice) {
    if (slice.named < 0) return said && told.pids.contains(slice.pid);
    return !told.phases.empty() && !told.phases.contains(slice.named) &&
           told_by_the_job(a.phases[static_cast<std::size_t>(slice.named)]);
  };
  std::set<std::int32_t> input_places;
  bool input = false;
  for (const ClaimedPiece& piece : finding.claims) {
    if (piece.account != Account::kInput) continue;
    input = true;
    if (piece.where >= 0) input_places.insert(piece.where);
  }
  const Whereabouts own_time = whereabouts(finding);
  const bool checkpoints = may_be(finding, Cause::kCheckpointSync);
  // Stacks that know validation where they see it, and saw other code.
  const auto other_code = [&](const Slice& slice) {
    return own_time.accounts.contains(Account::kValidationHost) && slice.account == Account::kHostCode &&
           slice.tiers.has("Y") && slice.where >= 0 && !own_time.places.contains(slice.where);
  };
  const auto may_be_this = [&](const Slice& slice) {
    // What follows the last kernel is known by its place, not by what it was: it may be the last one of these pauses,
    // and is more of the same code where stacks say so.
    if (slice.account == Account::kTeardown || an_end_lies_in(slice))
      return ends || (slice.where >= 0 && own_time.places.contains(slice.where));
    // That it writes is told, and what it did before may be a part of that.
    if (slice.account == Account::kCheckpoint && checkpoints) return !elsewhere(slice);
    // That it waited for its data is told, what kept the data is not.
    if (slice.account == Account::kInput) return input || !is_told(slice);
    // The first batch is waited for before the first kernel, at the same place; and who wants a core starts slowly,
    // too.
    if (slice.account == Account::kStartup)
      return input_places.contains(slice.where) || finding.cause == Cause::kCpuOversubscribed;
    // Looks at stacks do not tell to the moment where waiting for kernels ended and this began.
    if (slice.account == Account::kSync && !slice.tiers.has("X") && !slice.tiers.has("C")) return !elsewhere(slice);
    // More of the same code, in pauses and between steps.
    if (slice.account == Account::kHostCode && own_time.accounts.contains(slice.account) && slice.where >= 0 &&
        own_time.places.contains(slice.where))
      return !elsewhere(slice);
    return between_kernels(slice) && slice.confidence != Confidence::kHigh && !is_told(slice) && !elsewhere(slice) &&
           !by_another_caller(a, own_time, slice) && !other_code(slice);
  };
  return claim(a, [&](std::size_t, const Slice& slice) { return may_be_this(slice) && !a.held_for_nothing(slice); });
}

std::string counting(Nanos more) {
  return fmt::format(", counting {} of other time that may have the same cause", human_duration(more));
}

// Whether every cause that one names is named by the other, whose bound then holds for each of them.
bool names_no_more(const Finding& one, const Finding& other) {
  const auto named = [&](Cause cause) { return names(other, cause); };
  return one.cause ? named(*one.cause) : std::all_of(one.candidates.begin(), one.candidates.end(), named);
}

// Takes out of what a finding counts what an earlier one, with all that it counts, answers for: time whose cause that
// one tells, and all of it where they name the same causes. Of other causes the bound needs it.
Claims taken_by(const Finding& other, const Claims& counted, const Finding& finding, const Claims& left) {
  // Whose bound counts no time, such as a wait for a core, tells what its own was all the same: of that cause.
  if (counted.empty()) return names(finding, *other.cause) ? common(left, other.claims) : Claims{};
  if (names_no_more(finding, other)) return common(left, counted);
  // A set out of which others were left by what was seen is of no other cause (weigh.cc).
  constexpr std::size_t kNarrowed = 4;
  const bool narrowed = !other.speaks_for.empty() && other.tiers.has("Y") && other.candidates.size() == kNarrowed;
  return other.cause || narrowed ? common(left, other.claims) : Claims{};
}

std::string of_findings(const std::vector<std::string>& numbers) {
  return fmt::format("{} {}", numbers.size() == 1 ? "finding" : "findings", headroom::join(numbers, " and "));
}

}  // namespace

void count_once(const Analysis& a, std::vector<Finding>& findings) {
  std::vector<std::pair<std::size_t, Claims>> before;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Finding& finding = findings[i];
    if (!finding.gain || finding.counted.empty() || removal(a, finding.counted) != finding.gain->high) {
      if (finding.cause && !finding.claims.empty()) before.emplace_back(i, Claims{});
      continue;
    }
    Claims left = without(finding.counted, finding.claims);
    const Nanos other = length(left);
    std::vector<std::string> there, twice;
    for (const auto& [index, counted] : before) {
      const Nanos both = length(common(left, counted));
      const Claims taken = taken_by(findings[index], counted, finding, left);
      if (a.material(length(taken))) there.push_back(fmt::format("{}", index + 1));
      if (a.material(both - length(taken))) twice.push_back(fmt::format("{}", index + 1));
      if (a.material(length(taken))) left = without(left, taken);
    }
    Claims with_left = united(finding.claims, left);
    if (!there.empty() || !twice.empty()) {
      Gain gain = *finding.gain;
      gain.more = left.empty() ? "" : counting(length(left));
      if (!twice.empty()) gain.more += fmt::format(", as {} may", of_findings(twice));
      if (!there.empty())
        gain.more += fmt::format(", while {} more that may have the same cause are counted in {}",
                                 human_duration(other - length(left)), of_findings(there));
      gains_by_removal(a, with_left, finding, std::move(gain));
    }
    before.emplace_back(i, std::move(with_left));
  }
}

void gains_at_most(const Analysis& a, Finding& finding, const std::string& condition, bool ends) {
  Claims all = united(finding.claims, unsure_time(a, finding, ends));
  const std::string more = counting(length(all) - finding.cost());
  gains_by_removal(a, finding, condition);
  const auto of_its_own = finding.gain;
  const auto most = removal(a, all);
  // Where the rest makes no difference to the figure that is read it is not worth a word.
  const bool same = most && of_its_own && human_factor(of_its_own->high) == human_factor(*most);
  gains_by_removal(a, all, finding, Gain{.condition = condition, .more = same ? "" : more});
  if (!same && finding.gain) finding.counted = std::move(all);
}

}  // namespace headroom::diagnose
