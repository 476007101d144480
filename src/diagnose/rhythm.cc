// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rhythm.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/human.h"
#include "diagnose/named_code.h"

namespace headroom::diagnose {

namespace {

// How often there was such a pause: readings cut it into pieces, and moments of steps lie among its times.
Nanos rounds_of(const Claims& pauses) {
  constexpr Nanos kMoment = 100 * kMillisecond, kPart = 4;  // of the longest, by judgement
  std::vector<Nanos> lengths;
  Nanos end = 0;
  for (const Window& time : times_of(pauses)) {
    if (lengths.empty() || time.begin - end >= kMoment) lengths.push_back(0);
    lengths.back() += time.length();
    end = time.end;
  }
  const Nanos longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  return std::count_if(lengths.begin(), lengths.end(), [&](Nanos one) { return kPart * one >= longest; });
}

}  // namespace

std::optional<Rhythm> rhythm_of(const Analysis& a, const Claims& pauses) {
  const std::vector<NamedCode> code = code_in(a, pauses);
  constexpr Nanos kLeastWork = kSecond;  // between two pauses: less is a step, and each has its code before or after it
  const Nanos times = rounds_of(pauses);
  if (times < 2 || code.empty() || code[0].least < a.limits[Threshold::kMajority]) return std::nullopt;
  if (a.ledger.total(Account::kUseful) / times < kLeastWork) return std::nullopt;
  Nanos before = 0, after = 0;
  for (const LedgerEntry& entry : a.ledger.entries) {
    if (entry.where != code[0].where) continue;
    if (entry.account == Account::kStartup) before += entry.ns;
    if (entry.account == Account::kTeardown) after += entry.ns;
  }
  const Nanos enough = length(pauses) / times / 2;
  if (before >= enough)
    return Rhythm{true,
                  fmt::format("{} ran for {} before the first kernel, too, as what prepares the next kernels does",
                              code[0].place, human_duration(before))};
  if (after >= enough)
    return Rhythm{false, fmt::format("{} ran for {} after the last kernel, too, as what ends an epoch does",
                                     code[0].place, human_duration(after))};
  return std::nullopt;
}

}  // namespace headroom::diagnose
