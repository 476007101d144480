// SPDX-License-Identifier: Apache-2.0
#include "model/ledger.h"

#include "model/places.h"

namespace headroom {

std::string Tiers::letters() const {
  std::string text;
  for (std::size_t i = 0; i < kLetters.size(); ++i)
    if (bits_ & (1U << i)) text += kLetters[i];
  return text;
}

std::string_view confidence_name(Confidence confidence) {
  switch (confidence) {
    case Confidence::kHigh:
      return "high";
    case Confidence::kMedium:
      return "medium";
    case Confidence::kLow:
      break;
  }
  return "low";
}

Nanos Ledger::total(Account account, std::optional<std::size_t> device) const {
  Nanos sum = 0;
  for (const auto& entry : entries)
    if (entry.account == account && (!device || entry.device == *device)) sum += entry.ns;
  return sum;
}

Nanos Ledger::busy(std::optional<std::size_t> device) const {
  Nanos sum = 0;
  for (const auto& entry : entries)
    if (is_busy(entry.account) && (!device || entry.device == *device)) sum += entry.ns;
  return sum;
}

CodeLine Ledger::line_of(std::int32_t where, Account account) const {
  const auto line = [&](const std::vector<CodeLine>& all) {
    const bool known = where >= 0 && static_cast<std::size_t>(where) < all.size();
    return known ? all[static_cast<std::size_t>(where)] : CodeLine{};
  };
  if (account == Account::kStartup) return line(lines_of_startup);
  if (account == Account::kSync) return line(lines_of_sync);
  if (account != Account::kInput) return line(lines);
  CodeLine loads = line(lines_of_input);
  return loads.file.empty() ? line(lines) : loads;
}

std::string Ledger::spot(std::int32_t where, Account account) const {
  return with_line(places[static_cast<std::size_t>(where)], line_of(where, account).line);
}

}  // namespace headroom
