// SPDX-License-Identifier: Apache-2.0
#include "diagnose/joined_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/human.h"
#include "diagnose/claims.h"

namespace headroom::diagnose {

namespace {

struct Member {
  std::size_t part = 0;
  Finding finding;  // its claims are those of the joined ledger
};

// Of one kind: the same cause or set of causes, and part of the same finding.
struct Kind {
  std::vector<Member> members;  // the costliest first
  std::optional<std::size_t> whole;
};

std::string kind_of(const Finding& finding, std::optional<std::size_t> whole) {
  std::string key = fmt::format("{}|{}|", whole ? static_cast<std::int64_t>(*whole) : -1,
                                finding.cause ? static_cast<int>(*finding.cause) : -1);
  for (const Cause cause : finding.candidates) key += fmt::format("{},", static_cast<int>(cause));
  return key;
}

bool by_device_and_time(const ClaimedPiece& x, const ClaimedPiece& y) {
  return std::pair(x.device, x.begin) < std::pair(y.device, y.begin);
}

// Finds the kinds, and of which kind each finding of a part is.
class Kinds {
 public:
  void add(std::size_t part, std::vector<Finding> findings, const PlaceOfPart& place) {
    std::vector<std::size_t> of(findings.size());
    for (const bool parts : {false, true})
      for (std::size_t i = 0; i < findings.size(); ++i) {
        if (findings[i].part_of.has_value() != parts) continue;
        const auto whole = parts ? std::optional(of[*findings[i].part_of]) : std::nullopt;
        const auto [entry, is_new] = index_.try_emplace(kind_of(findings[i], whole), kinds_.size());
        if (is_new) kinds_.push_back({{}, whole});
        of[i] = entry->second;
      }
    for (std::size_t i = 0; i < findings.size(); ++i) {
      Finding& finding = findings[i];
      finding.claims = in_joined(finding.claims, place);
      finding.counted = in_joined(finding.counted, place);
      if (finding.code) finding.code = place.places[static_cast<std::size_t>(*finding.code)];
      kinds_[of[i]].members.push_back({part, std::move(finding)});
    }
  }

  std::vector<Kind> take() {
    for (Kind& kind : kinds_)
      std::stable_sort(kind.members.begin(), kind.members.end(),
                       [](const Member& x, const Member& y) { return x.finding.cost() > y.finding.cost(); });
    return std::move(kinds_);
  }

 private:
  std::vector<Kind> kinds_;
  std::map<std::string, std::size_t> index_;
};

// Their names, or how many they are.
std::string whose(const std::set<std::string>& machines, std::size_t of) {
  if (machines.size() == of) return of == 2 ? "on both machines" : fmt::format("on all {} machines", of);
  return fmt::format("on {} of {} machines", machines.size(), of);
}

// Joins the findings of one kind.
class OneFinding {
 public:
  OneFinding(Kind& kind, const std::vector<PlaceOfPart>& parts, const JoinedTime& time)
      : kind_(kind), parts_(parts), time_(time), lead_(parts[kind.members.front().part]) {}

  Finding make() {
    for (const Member& member : kind_.members) machines_.insert(parts_[member.part].machine);
    Finding all = kind_.members.front().finding;
    const bool alone = kind_.members.size() == 1;
    if (parts_.size() > 1) {
      say_whose(all);
      if (!alone) agree(all);
      bound(all);
    }
    kind_.members.clear();  // their claims are in it
    return all;
  }

 private:
  [[nodiscard]] const std::string& of_lead() const { return lead_.name; }

  template <class Field>
  [[nodiscard]] bool same(const Field& field) const {
    const auto& first = kind_.members.front().finding.*field;
    return std::all_of(kind_.members.begin(), kind_.members.end(),
                       [&](const Member& member) { return member.finding.*field == first; });
  }

  void say_whose(Finding& all) const {
    std::set<std::string> every;
    for (const PlaceOfPart& part : parts_) every.insert(part.machine);
    if (kind_.members.size() == 1)
      all.title = fmt::format("{}: {}", of_lead(), all.title);
    else if (machines_.size() == 1)  // several recordings of it
      all.title = fmt::format("{}: {}; likewise in {}", of_lead(), all.title,
                              count_of(kind_.members.size() - 1, "other recording"));
    else if (same(&Finding::title))
      all.title = fmt::format("{}, {}", all.title, whose(machines_, every.size()));
    else
      all.title = fmt::format(
          "{}: {}; likewise {}", of_lead(), all.title,
          machines_.size() == 2 ? "on one other machine" : fmt::format("on {} other machines", machines_.size() - 1));
  }

  // What is said of all is what is so of each; the rest is that of the costliest, and says so.
  void agree(Finding& all) const {
    const std::string of = of_lead() + ": ";
    for (std::string& sentence : all.evidence) sentence = of + sentence;
    if (all.cost() > 0) {
      const Member &most = kind_.members.front(), &least = kind_.members.back();
      all.evidence.insert(
          all.evidence.begin(),
          fmt::format("most on {}, {}, and least on {}, {}", of_lead(), human_duration(most.finding.cost()),
                      parts_[least.part].name, human_duration(least.finding.cost())));
    }
    for (std::string& words : all.speaks_for)
      if (!words.empty()) words = of + words;
    if (!same(&Finding::advice) && !all.advice.empty()) all.advice = of + all.advice;
    if (!same(&Finding::would_overturn) && !all.would_overturn.empty()) all.would_overturn = of + all.would_overturn;
    if (!same(&Finding::code)) all.code.reset();
    if (!same(&Finding::remedy)) all.remedy.reset();
    if (!same(&Finding::interpreter_at)) all.interpreter_at.clear();
    all.claims.clear(), all.counted.clear();
    const bool counts_more = std::any_of(kind_.members.begin(), kind_.members.end(),
                                         [](const Member& member) { return !member.finding.counted.empty(); });
    for (const Member& member : kind_.members) {
      const Finding& one = member.finding;
      all.claims.insert(all.claims.end(), one.claims.begin(), one.claims.end());
      const Claims& counted = one.counted.empty() ? one.claims : one.counted;
      if (counts_more) all.counted.insert(all.counted.end(), counted.begin(), counted.end());
      all.tiers |= one.tiers;
      all.confidence = std::max(all.confidence, one.confidence);  // the less sure one
      for (bool Finding::*claim : {&Finding::mostly_waits, &Finding::asleep, &Finding::by_threads,
                                   &Finding::no_threads_to_save, &Finding::may_import_late})
        all.*claim = all.*claim && one.*claim;
      std::erase_if(all.told_apart_from, [&](const std::string& words) {
        return std::find(one.told_apart_from.begin(), one.told_apart_from.end(), words) == one.told_apart_from.end();
      });
    }
    std::sort(all.claims.begin(), all.claims.end(), by_device_and_time);
    std::sort(all.counted.begin(), all.counted.end(), by_device_and_time);
  }

  // A part's own bound is of its own time. All may wait for one another: each instant that is claimed anywhere could
  // go.
  void bound(Finding& all) const {
    const bool bounded = std::all_of(kind_.members.begin(), kind_.members.end(),
                                     [](const Member& member) { return member.finding.gain.has_value(); });
    const bool given = !all.bound.empty();
    all.gain.reset();
    if (!given) return;
    not_bounded("these recordings", all);
    const Claims& claims = all.counted.empty() ? all.claims : all.counted;
    const auto high = bounded ? removal_of(time_, claims) : std::nullopt;
    if (!high) return;
    const Gain& own = *kind_.members.front().finding.gain;
    Gain gain{.low = 1.0, .high = *high, .condition = own.condition, .any_cause = own.any_cause, .causes = own.causes};
    if (!all.counted.empty() && length(all.counted) > all.cost())
      gain.more = fmt::format(", counting {} of other time that may have the same cause",
                              human_duration(length(all.counted) - all.cost()));
    all.bound = fmt::format("{} at most, of all these machines together, {}", human_factor(*high), gain.words());
    all.gain = std::move(gain);
  }

  Kind& kind_;
  const std::vector<PlaceOfPart>& parts_;
  const JoinedTime& time_;
  const PlaceOfPart& lead_;
  std::set<std::string> machines_;
};

// That all is well is so where it is well in every part.
bool is_partly_healthy(const Kind& kind, std::size_t parts) {
  return kind.members.front().finding.cause == Cause::kHealthy && kind.members.size() < parts;
}

}  // namespace

Claims in_joined(const Claims& claims, const PlaceOfPart& part) {
  Claims joined = claims;
  for (ClaimedPiece& piece : joined) {
    piece.device = part.devices[piece.device];
    piece.begin += part.shift, piece.end += part.shift;
    if (piece.where >= 0) piece.where = part.places[static_cast<std::size_t>(piece.where)];
  }
  std::sort(joined.begin(), joined.end(), by_device_and_time);
  return joined;
}

std::optional<double> removal_of(const JoinedTime& time, const Claims& claims) {
  std::vector<Nanos> kernels = time.kernels;
  Nanos claimed = 0, all = time.end - time.begin;
  for (const ClaimedPiece& piece : claims)
    if (piece.account == Account::kUseful) kernels[piece.device] -= piece.end - piece.begin;
  for (const Window& window : times_of(claims)) claimed += window.length();
  const Nanos longest = kernels.empty() ? 0 : *std::max_element(kernels.begin(), kernels.end());
  if (time.batch || longest <= 0 || all <= 0) return std::nullopt;
  const Nanos left = std::max(longest, all - claimed);
  return std::max(1.0, static_cast<double>(all) / static_cast<double>(left));
}

std::vector<Finding> join_findings(std::vector<std::vector<Finding>> findings, const std::vector<PlaceOfPart>& parts,
                                   const JoinedTime& time) {
  Kinds found;
  for (std::size_t part = 0; part < findings.size(); ++part) found.add(part, std::move(findings[part]), parts[part]);
  std::vector<Kind> kinds = found.take();
  std::vector<Finding> joined;
  std::vector<std::size_t> wholes;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (!kinds[i].whole && !is_partly_healthy(kinds[i], parts.size())) wholes.push_back(i);
    joined.push_back(OneFinding(kinds[i], parts, time).make());
  }
  std::stable_sort(wholes.begin(), wholes.end(),
                   [&](std::size_t x, std::size_t y) { return joined[x].cost() > joined[y].cost(); });
  std::vector<Finding> ordered;
  for (const std::size_t whole : wholes) {
    const std::size_t place = ordered.size();
    for (std::size_t i = whole; i < kinds.size(); ++i) {  // a kind stands behind its whole
      if (i != whole && kinds[i].whole != whole) continue;
      joined[i].part_of = i == whole ? std::nullopt : std::optional(place);
      ordered.push_back(std::move(joined[i]));
    }
  }
  return ordered;
}

void add_finding(Finding found, std::vector<Finding>& findings) {
  std::vector<Finding> kept{std::move(found)};
  std::vector<std::optional<std::size_t>> place;
  for (Finding& finding : findings) {
    const Nanos before = finding.cost();
    const bool whole_gone = finding.part_of && !place[*finding.part_of];
    Claims left = without(finding.claims, kept.front().claims);
    const Nanos now = length(left);
    const bool gone = whole_gone || (before > 0 && 2 * now < before);  // it is what this one tells better
    place.push_back(gone ? std::nullopt : std::optional(kept.size()));
    if (gone) continue;
    finding.claims = std::move(left);
    if (now < before) say_of_which(finding, before);
    if (finding.part_of) finding.part_of = place[*finding.part_of];
    kept.push_back(std::move(finding));
  }
  // It stands before the first whole that costs less.
  std::size_t to = 1;
  while (to < kept.size() && (kept[to].part_of || kept[to].cost() > kept.front().cost())) ++to;
  std::rotate(kept.begin(), kept.begin() + 1, kept.begin() + static_cast<std::ptrdiff_t>(to));
  for (Finding& finding : kept)
    if (finding.part_of && *finding.part_of < to) --*finding.part_of;
  findings = std::move(kept);
}

}  // namespace headroom::diagnose
