// SPDX-License-Identifier: Apache-2.0
#include "report/live_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "model/named_causes.h"

namespace headroom::report {

std::vector<std::string> finding_keys(const Explanation& explanation) {
  std::vector<std::string> keys;
  std::map<std::string, std::size_t> seen;
  for (const Finding& finding : explanation.findings) {
    std::string key = is_settled(finding) ? std::string(info(*finding.cause).id) : "";
    std::vector<std::string> candidates;
    if (!is_settled(finding))
      for (const Cause cause : possible_causes(finding)) candidates.emplace_back(info(cause).id);
    std::sort(candidates.begin(), candidates.end());  // which is likeliest may change
    for (const std::string& candidate : candidates) key += "|" + candidate;
    const std::size_t number = seen[key]++;
    keys.push_back(number == 0 ? key : fmt::format("{}#{}", key, number + 1));
  }
  return keys;
}

namespace {

// Between the end of what is read and the last reading of a GPU; a standstill does not end there.
constexpr Nanos kTail = 5 * kSecond;

// How long the claims on one device reach back from the end without a break.
Nanos standing(const Finding& finding, Nanos end) {
  Nanos longest = 0;
  for (std::size_t last = finding.claims.size(); last-- > 0;) {
    if (end - finding.claims[last].end > kTail) continue;
    std::size_t first = last;
    while (first > 0 && finding.claims[first - 1].device == finding.claims[last].device &&
           finding.claims[first].begin - finding.claims[first - 1].end <= kTail)
      --first;
    longest = std::max(longest, end - finding.claims[first].begin);
  }
  return longest;
}

// The longest time without a kernel between two kernels of a device.
Nanos longest_pause(const std::vector<Slice>& slices) {
  Nanos longest = 0, busy_until = -1;
  for (const Slice& slice : slices) {
    if (!is_busy(slice.account)) continue;
    if (busy_until >= 0) longest = std::max(longest, slice.begin - busy_until);
    busy_until = slice.end;
  }
  return longest;
}

std::set<std::string> gpus_of(const Finding& finding, const Explanation& in) {
  std::set<std::string> gpus;
  for (const ClaimedPiece& piece : finding.claims) gpus.insert(in.ledger.devices[piece.device].uuid);
  return gpus;
}

StandingFinding standing_of(const Finding& finding, const std::string& key, bool alarm, Nanos since) {
  return {.key = key, .title = finding.title, .advice = finding.advice, .alarm = alarm, .since = since};
}

// The slices of these GPUs.
std::vector<const std::vector<Slice>*> slices_of(const Explanation& whole, const std::set<std::string>& gpus) {
  std::vector<const std::vector<Slice>*> slices;
  for (std::size_t device = 0; device < whole.slices.size(); ++device)
    if (gpus.contains(whole.ledger.devices[device].uuid)) slices.push_back(&whole.slices[device]);
  return slices;
}

// When the last of these GPUs worked, or was held by nobody; nothing where none did.
std::optional<Nanos> last_at_work(const Explanation& whole, const std::set<std::string>& gpus) {
  std::optional<Nanos> last;
  for (const auto* slices : slices_of(whole, gpus)) {
    const auto went_on = std::find_if(slices->rbegin(), slices->rend(), [](const Slice& slice) {
      return !is_held_idle(slice.account) && slice.account != Account::kUnobserved;
    });
    if (went_on != slices->rend()) last = std::max(last.value_or(went_on->end), went_on->end);
  }
  return last;
}

bool costs_time_after(const Finding& finding, Nanos from) {
  return std::any_of(finding.claims.begin(), finding.claims.end(),
                     [&](const ClaimedPiece& piece) { return piece.end > from; });
}

}  // namespace

LiveFindings::Kind LiveFindings::kind_of(const Finding& finding) {
  constexpr std::array kStands{Cause::kHang, Cause::kUnreleasedAfterWork, Cause::kProcessStopped};
  const auto is_standstill = [&](Cause cause) {
    return std::find(kStands.begin(), kStands.end(), cause) != kStands.end();
  };
  if (finding.cause == Cause::kDeviceLost) return Kind::kLost;
  if (finding.cause == Cause::kWastedTrials || finding.cause == Cause::kOomRestartLoop) return Kind::kFailingBatch;
  if (finding.cause ? is_standstill(*finding.cause)
                    : std::all_of(finding.candidates.begin(), finding.candidates.end(), is_standstill))
    return Kind::kStandstill;
  return Kind::kUsual;
}

bool LiveFindings::stands(const Finding& finding, const Explanation& in, const Explanation& whole) const {
  const bool idle = finding.asleep || finding.cause == Cause::kProcessStopped;
  const Nanos time = standing(finding, in.ledger.end);
  Nanos paused = 0;
  for (const auto* slices : slices_of(whole, gpus_of(finding, in))) paused = std::max(paused, longest_pause(*slices));
  return finding.confidence != Confidence::kLow && time >= (idle ? rule_.standstill : rule_.at_work) &&
         time >= 2 * paused;
}

bool LiveFindings::rings(const Finding& finding, const Explanation& in, const Explanation& whole) const {
  switch (kind_of(finding)) {
    case Kind::kLost:
      return true;
    case Kind::kFailingBatch:
      return whole.batch && whole.batch->failed_before_any_success >= rule_.failures;
    case Kind::kStandstill:
      return stands(finding, in, whole);
    case Kind::kUsual:
      break;
  }
  return false;
}

// What a standstill is called may change while it lasts.
const std::string* LiveFindings::stood_already(const Finding& finding, const std::set<std::string>& gpus) const {
  if (kind_of(finding) != Kind::kStandstill) return nullptr;
  const auto found = std::find_if(alarms_.begin(), alarms_.end(), [&](const auto& one) {
    return one.second.kind == Kind::kStandstill && one.second.gpus == gpus;
  });
  return found == alarms_.end() ? nullptr : &found->first;
}

bool LiveFindings::is_over(const Alarm& alarm, const Explanation& whole) {
  switch (alarm.kind) {
    case Kind::kFailingBatch:
      return whole.batch && whole.batch->failed_before_any_success == 0;
    case Kind::kLost:
    case Kind::kStandstill:
      return last_at_work(whole, alarm.gpus).value_or(alarm.told_at) > alarm.told_at;
    case Kind::kUsual:
      break;
  }
  return false;
}

LiveFindings::News LiveFindings::look(const Explanation& whole, const Explanation& recent) {
  News news;
  for (auto alarm = alarms_.begin(); alarm != alarms_.end();) {
    if (!is_over(alarm->second, whole)) {
      ++alarm;
      continue;
    }
    news.over.push_back(alarm->first);
    stands_no_more(alarm->first);
    told_.erase(alarm->first);
    alarm = alarms_.erase(alarm);
  }
  const auto ring = [&](const Explanation& in, std::size_t i, const std::string& key) {
    const Finding& finding = in.findings[i];
    const std::set<std::string> gpus = gpus_of(finding, in);
    if (!rings(finding, in, whole)) return;
    if (const std::string* same = stood_already(finding, gpus)) return call_it(*same, finding);
    if (kind_of(finding) == Kind::kLost && is_known_loss(finding, gpus)) return;
    if (alarms_.contains(key)) return;
    told_.insert(key);
    stands_no_more(key);  // as what cost time before
    alarms_[key] = {kind_of(finding), gpus, whole.ledger.end};
    const bool of_gpus = kind_of(finding) != Kind::kFailingBatch && !gpus.empty();
    const Nanos since = of_gpus ? last_at_work(whole, gpus).value_or(whole.ledger.begin) : whole.ledger.end;
    standing_.push_back({standing_of(finding, key, true, since)});
    news.fresh.push_back({&in, i, key, true});
  };
  std::map<std::string, Nanos> now;
  const auto keys = finding_keys(whole);
  const auto budget = static_cast<double>(whole.ledger.budget());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Finding& finding = whole.findings[i];
    ring(whole, i, keys[i]);
    const bool stands_still = kind_of(finding) == Kind::kStandstill && standing(finding, whole.ledger.end) > 0;
    const bool weighty = !stands_still && finding.confidence != Confidence::kLow && finding.cost() >= rule_.cost &&
                         static_cast<double>(finding.cost()) >= rule_.share * budget;
    if (whole.ledger.span() < rule_.evidence || !weighty) continue;
    const auto before = since_.find(keys[i]);
    const Nanos since = now[keys[i]] = before == since_.end() ? whole.ledger.end : before->second;
    if (before == since_.end() || whole.ledger.end - since < rule_.held || !told_.insert(keys[i]).second) continue;
    standing_.push_back({standing_of(finding, keys[i], false, since)});
    news.fresh.push_back({&whole, i, keys[i], false});
  }
  since_ = std::move(now);
  const auto recent_keys = finding_keys(recent);
  for (std::size_t i = 0; i < recent_keys.size(); ++i)
    if (kind_of(recent.findings[i]) == Kind::kStandstill) ring(recent, i, recent_keys[i]);
  see_what_holds(whole, recent);
  return news;
}

// What is kept of a recording may begin within it.
bool LiveFindings::is_known_loss(const Finding& finding, const std::set<std::string>& gpus) {
  const Nanos from = finding.claims.empty() ? 0 : finding.claims.front().begin;
  const Nanos until = finding.claims.empty() ? 0 : finding.claims.back().end;
  const auto [known, is_new] = lost_until_.try_emplace(gpus, until);
  const Nanos before = std::exchange(known->second, std::max(known->second, until));
  return !is_new && from <= before;
}

void LiveFindings::stands_no_more(const std::string& key) {
  std::erase_if(standing_, [&](const Told& told) { return told.finding.key == key; });
}

// What it is called, and what it names, may change from look to look.
void LiveFindings::call_it(const std::string& key, const Finding& finding) {
  for (auto& [told, holds] : standing_)
    if (told.key == key) told.title = finding.title, told.advice = finding.advice;
}

// A standstill that is no alarm is over.
void LiveFindings::see_what_holds(const Explanation& whole, const Explanation& recent) {
  const auto keys = finding_keys(whole);
  for (auto& [standing, holds] : standing_) {
    if (standing.alarm) continue;
    const bool held = std::exchange(holds, false);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Finding& finding = whole.findings[i];
      if (keys[i] != standing.key || kind_of(finding) == Kind::kStandstill ||
          !costs_time_after(finding, recent.ledger.begin))
        continue;
      holds = true;
      if (!held) standing.since = whole.ledger.end;
      call_it(standing.key, finding);
    }
  }
}

std::vector<StandingFinding> LiveFindings::now() const {
  std::vector<StandingFinding> now;
  for (const Told& told : standing_)
    if (told.holds) now.push_back(told.finding);
  return now;
}

LeftToTell left_to_tell(const std::vector<ToldFinding>& told, const Explanation& explanation) {
  LeftToTell left;
  const auto keys = finding_keys(explanation);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (std::none_of(told.begin(), told.end(), [&](const ToldFinding& one) { return one.key == keys[i]; }))
      left.fresh.push_back(i);
  for (const ToldFinding& one : told)
    if (!one.over && std::find(keys.begin(), keys.end(), one.key) == keys.end())
      (one.alarm ? left.over : left.withdrawn).push_back(one);
  return left;
}

}  // namespace headroom::report
