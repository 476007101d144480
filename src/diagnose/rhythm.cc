// SPDX-License-Identifier: Apache-2.0
#include "diagnose/rhythm.h"

#include <fmt/format.h>

#include "base/human.h"
#include "diagnose/named_code.h"

namespace headroom::diagnose {

std::optional<Rhythm> rhythm_of(const Analysis& a, const Claims& pauses) {
  const std::vector<NamedCode> code = code_in(a, pauses);
  const auto times = static_cast<Nanos>(times_of(pauses).size());
  if (times < 2 || code.empty() || code[0].least < a.limits[Threshold::kMajority]) return std::nullopt;
  constexpr Nanos kLeastWork = kSecond;  // between two pauses: less is a step, and each has its code before or after it
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
