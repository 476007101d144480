// SPDX-License-Identifier: Apache-2.0
#include "diagnose/idle_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/ends.h"
#include "base/human.h"
#include "base/strings.h"
#include "diagnose/core_waits.h"
#include "diagnose/host_stacks.h"
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

// A finding's own time, as other time is compared with it.
struct OwnTime {
  std::set<std::int32_t> places;        // where a good part of it lies; looks do not tell to the moment where one ends
  std::set<std::int32_t> input_places;  // of that in which it waited for its data
  std::set<Account> accounts;
  ToldPhases told;
  bool all_told = false;  // who says where it validates says of the rest that it is something else
};

// All that a place keeps the devices waiting.
double idle_there(const Analysis& a, std::int32_t place) {
  Nanos there = 0;
  for (const LedgerEntry& entry : a.ledger.entries)
    if (entry.where == place && is_held_idle(entry.account)) there += entry.ns;
  return static_cast<double>(there);
}

OwnTime own_time(const Analysis& a, const Finding& finding) {
  constexpr double kLeast = 0.05, kAllOfIt = 0.95;  // of its time
  constexpr double kOfPlace = 0.2;  // of all idle time of a place: less is what looks put on the wrong side of an edge
  const auto cost = static_cast<double>(finding.cost());
  OwnTime own;
  own.told = told_phases(a, finding.claims);
  own.all_told = finding.cause == Cause::kValidation && static_cast<double>(own.told.time) >= kAllOfIt * cost;
  std::map<std::int32_t, Nanos> by_place;
  for (const ClaimedPiece& piece : finding.claims) {
    own.accounts.insert(piece.account);
    if (piece.where < 0) continue;
    by_place[piece.where] += piece.end - piece.begin;
    if (piece.account == Account::kInput) own.input_places.insert(piece.where);
  }
  for (const auto& [place, ns] : by_place)
    if (is_most(a, ns, finding.cost()) ||
        (static_cast<double>(ns) >= kLeast * cost && static_cast<double>(ns) >= kOfPlace * idle_there(a, place)))
      own.places.insert(place);
  return own;
}

// A function of these, called by another, and of another account: that is a part of something else.
bool by_another_caller(const Analysis& a, const OwnTime& own, const Slice& slice) {
  if (slice.where < 0 || own.places.contains(slice.where) || own.accounts.contains(slice.account)) return false;
  const auto function = [&](std::int32_t place) {
    return function_of(a.ledger.places[static_cast<std::size_t>(place)]);
  };
  return std::any_of(own.places.begin(), own.places.end(),
                     [&](std::int32_t place) { return function(place) == function(slice.where); });
}

// The job itself names it as something else.
bool named_otherwise(const Analysis& a, const OwnTime& own, const Slice& slice) {
  if (slice.named < 0) return own.all_told && own.told.pids.contains(slice.pid);
  return !own.told.phases.empty() && !own.told.phases.contains(slice.named) &&
         told_by_the_job(a.phases[static_cast<std::size_t>(slice.named)]);
}

// Stacks tell where the time of the finding lies, and saw other code of the job here.
bool is_at_other_code(const OwnTime& own, const Slice& slice) {
  return slice.tiers.has("Y") && slice.where >= 0 && !own.places.empty() && !own.places.contains(slice.where);
}

// Stacks that know validation, or a wait for data, where they see it, and saw other code; or that saw code in nearly
// every second, of which no checkpoint is.
bool saw_other_code(const Analysis& a, const OwnTime& own, const Slice& slice) {
  if (slice.account != Account::kHostCode || !slice.tiers.has("Y") || slice.where < 0 ||
      own.places.contains(slice.where))
    return false;
  const bool waits = own.accounts == std::set{Account::kInput} && !own.places.empty();
  const auto role = a.code.roles.find(a.ledger.places[static_cast<std::size_t>(slice.where)]);
  const bool throughout = role != a.code.roles.end() && role->second.recurs == Recurs::kThroughout;
  return waits || own.accounts.contains(Account::kValidationHost) ||
         (own.accounts.contains(Account::kCheckpoint) && throughout);
}

// Whether time that is no end of the work may have the cause of the finding.
bool may_be_of(const Analysis& a, const Finding& finding, const OwnTime& own, const Slice& slice) {
  // That it waited for its data is told, what kept the data is not.
  if (slice.account == Account::kInput)
    return own.accounts.contains(Account::kInput) || (!is_told(slice) && !is_at_other_code(own, slice));
  // The first batch is waited for before the first kernel, at the same place; and who wants a core starts slowly, too.
  // Workers that are kept have to be started once all the same.
  if (slice.account == Account::kStartup)
    return (own.input_places.contains(slice.where) && finding.cause != Cause::kEpochWorkerRestart) ||
           finding.cause == Cause::kCpuOversubscribed;
  if (named_otherwise(a, own, slice)) return false;
  // That it writes is told, and what it did before may be a part of that.
  if (slice.account == Account::kCheckpoint && may_be(finding, Cause::kCheckpointSync)) return true;
  // Looks at stacks do not tell to the moment where waiting for kernels ended and this began.
  if (slice.account == Account::kSync && !slice.tiers.has("X") && !slice.tiers.has("C")) return true;
  // More of the same code, in pauses and between steps.
  if (slice.account == Account::kHostCode && own.accounts.contains(slice.account) && own.places.contains(slice.where))
    return true;
  return between_kernels(slice) && slice.confidence != Confidence::kHigh && !is_told(slice) &&
         !by_another_caller(a, own, slice) && !saw_other_code(a, own, slice);
}

// The part of other time that cores to spare may save: that in which threads wanted one, and what sharing may have cost
// the rest. Where in each piece it lies is not known.
Claims part_without_cores(const Analysis& a, const Claims& claims) {
  if (claims.empty()) return claims;
  const HostSummary s = host_during(a.job, a.devices, claims);
  const double helper = s.helpers == 0 ? 0 : s.helper_cpu / static_cast<double>(s.helpers);
  const double part = 1 - std::min(1 / without_waits(s.owner_delay, s.owner_cpu),
                                   1 / without_waits(s.helpers == 0 ? 0 : s.helper_delay, helper));
  Claims wanted = claims;
  for (ClaimedPiece& piece : wanted)
    piece.end = piece.begin + static_cast<Nanos>(std::min(1.0, part) * static_cast<double>(piece.end - piece.begin));
  std::erase_if(wanted, [](const ClaimedPiece& piece) { return piece.begin >= piece.end; });
  return wanted;
}

// All time whose account is not sure, and which may have the cause of the finding.
Claims unsure_time(const Analysis& a, const Finding& finding, bool ends) {
  const OwnTime own = own_time(a, finding);
  const bool told =
      !own.places.empty() && (finding.cause == Cause::kValidation || finding.cause == Cause::kCheckpointSync);
  return claim(a, [&](std::size_t, const Slice& slice) {
    if (a.held_for_nothing(slice)) return false;
    // What follows the last kernel is known by its place, not by what it was: it may be the last one of these pauses.
    // Where stacks tell what these are for, they do so of the last one, too.
    if (slice.account == Account::kTeardown || an_end_lies_in(slice))
      return (ends && !told) || own.places.contains(slice.where);
    return may_be_of(a, finding, own, slice);
  });
}

}  // namespace

std::string counting(const Claims& more) {
  constexpr double kNearlyAll = 0.95, kMost = 0.5;
  const Nanos all = length(more);
  const Nanos start = length_of(more, [](const ClaimedPiece& piece) { return piece.account == Account::kStartup; });
  const double before = as_share(start, all);
  if (before >= kNearlyAll)
    return fmt::format(", counting {} before the first kernel that may have the same cause", human_duration(all));
  return fmt::format(", counting {} of other time that may have the same cause{}", human_duration(all),
                     before >= kMost ? fmt::format(" ({} of it before the first kernel)", human_duration(start)) : "");
}

namespace {

// Whether every cause that one names is named by the other, whose bound then holds for each of them.
bool names_no_more(const Finding& one, const Finding& other) {
  const auto named = [&](Cause cause) { return names(other, cause); };
  return one.cause ? named(*one.cause) : std::all_of(one.candidates.begin(), one.candidates.end(), named);
}

// Takes out of what a finding counts what an earlier one, with all that it counts, answers for: time whose cause that
// one tells, and all of it where they name the same causes. Of other causes the bound needs it.
Claims taken_by(const Finding& other, const Claims& counted, const Finding& finding, const Claims& left) {
  // Whose bound counts no time, such as a wait for a core, tells what its own was all the same: of that cause.
  const bool turns = names(other, Cause::kOneProcessImbalance);  // another GPU computes meanwhile, whatever else goes
  if (counted.empty()) return turns || names(finding, *other.cause) ? common(left, other.claims) : Claims{};
  if (names_no_more(finding, other)) return common(left, counted);
  // A set out of which others were left by what was seen is of no other cause (weigh.cc).
  constexpr std::size_t kNarrowed = 4;
  const bool narrowed = !other.speaks_for.empty() && other.tiers.has("Y") &&
                        (other.candidates.size() == kNarrowed || other.names_no_data);
  return other.cause || narrowed || turns ? common(left, other.claims) : Claims{};
}

std::string of_findings(const std::vector<std::string>& numbers) {
  return fmt::format("{} {}", numbers.size() == 1 ? "finding" : "findings", headroom::join(numbers, " and "));
}

// What a finding counts, its own time included; nothing where its bound counts no time.
struct Counted {
  std::size_t finding;
  Claims time;
};

// What a finding counts beside its own time and no earlier one answers for, and the numbers of those that also count
// some of it, or count some in its place.
struct Uncounted {
  Claims left;
  Nanos taken = 0;
  std::vector<std::string> also, instead;
};

Uncounted uncounted(const Analysis& a, const std::vector<Finding>& findings, const std::vector<Counted>& before,
                    const Finding& finding) {
  Uncounted rest{.left = without(finding.counted, finding.claims), .also = {}, .instead = {}};
  const Nanos all = length(rest.left);
  for (const auto& [index, counted] : before) {
    const Nanos both = length(common(rest.left, counted));
    const Claims taken = taken_by(findings[index], counted, finding, rest.left);
    if (a.material(both - length(taken))) rest.also.push_back(fmt::format("{}", index + 1));
    if (!a.material(length(taken))) continue;
    rest.instead.push_back(fmt::format("{}", index + 1));
    rest.left = without(rest.left, taken);
  }
  rest.taken = all - length(rest.left);
  return rest;
}

std::string uncounted_words(const Uncounted& rest) {
  std::string more = rest.left.empty() ? "" : counting(rest.left);
  if (!rest.also.empty()) more += fmt::format(", as {} may", of_findings(rest.also));
  if (!rest.instead.empty())
    more += fmt::format(", while {} more that may have the same cause are counted in {}", human_duration(rest.taken),
                        of_findings(rest.instead));
  return more;
}

}  // namespace

void count_once(const Analysis& a, std::vector<Finding>& findings) {
  std::vector<Counted> before;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    Finding& finding = findings[i];
    if (!finding.gain || finding.counted.empty() || removal(a, finding.counted) != finding.gain->high) {
      if ((finding.cause || names(finding, Cause::kOneProcessImbalance)) && !finding.claims.empty())
        before.push_back({i, {}});
      continue;
    }
    const Uncounted rest = uncounted(a, findings, before, finding);
    Claims time = united(finding.claims, rest.left);
    if (!rest.instead.empty() || !rest.also.empty()) {
      Gain gain = *finding.gain;
      gain.more = uncounted_words(rest);
      gains_by_removal(a, time, finding, std::move(gain));
    }
    before.push_back({i, std::move(time)});
  }
}

void gains_at_most(const Analysis& a, Finding& finding, const std::string& condition, bool ends) {
  Claims others = without(unsure_time(a, finding, ends), finding.claims);
  const auto is_after = [&](const ClaimedPiece& piece) {
    return piece.begin >= time_of_kernels(a.devices[piece.device]).end;
  };
  // What all comes after the last kernel is nothing that comes with steps.
  constexpr double kNearlyAll = 0.9;
  if (static_cast<double>(length_of(finding.claims, is_after)) >= kNearlyAll * static_cast<double>(finding.cost()))
    std::erase_if(others, [&](const ClaimedPiece& piece) { return !is_after(piece); });
  if (main_account(finding.claims) == Account::kHostCode && !finding.asleep) {  // code that ran is no sleep elsewhere
    std::set<std::int32_t> own;
    for (const ClaimedPiece& piece : finding.claims) own.insert(piece.where);
    Claims elsewhere = others;
    std::erase_if(elsewhere, [&](const ClaimedPiece& piece) { return own.contains(piece.where); });
    others = without(others, asleep_in(a, elsewhere));
  }
  if (finding.cause == Cause::kCpuOversubscribed) {
    const auto starts = [](const ClaimedPiece& piece) { return piece.account == Account::kStartup; };
    Claims at_start;
    std::copy_if(others.begin(), others.end(), std::back_inserter(at_start), starts);
    std::erase_if(others, starts);
    others = united(part_without_cores(a, others), part_without_cores(a, at_start));
  }
  Claims all = united(finding.claims, others);
  const std::string more = counting(without(all, finding.claims));
  gains_by_removal(a, finding, condition);
  const auto of_its_own = finding.gain;
  const auto most = removal(a, all);
  // Where the rest makes no difference to the figure that is read it is not worth a word.
  const bool same = most && of_its_own && human_factor(of_its_own->high) == human_factor(*most);
  gains_by_removal(a, all, finding, Gain{.condition = condition, .more = same ? "" : more});
  if (!same && finding.gain) finding.counted = std::move(all);
}

}  // namespace headroom::diagnose
