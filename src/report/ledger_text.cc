// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"

namespace headroom::report {

// Wide terminals get more evidence, not longer bars.
std::string account_rows(const Ledger& ledger, std::optional<std::size_t> device, const std::string& title,
                         const std::string& total, const TextOptions& options) {
  constexpr std::size_t kLabel = 20, kFigures = 19, kLongestBar = 46;
  const std::size_t cells = std::min(kLongestBar, options.width - 2 - kLabel - kFigures);
  const std::size_t line = 2 + kLabel + cells + kFigures;
  const Nanos whole = device ? ledger.span() : ledger.budget();
  std::string text = pad_right(title, line - display_width(total)) + total + "\n";
  for (const AccountInfo& account : kAccounts) {
    const Nanos ns = ledger.total(account.id, device);
    if (ns == 0) continue;
    const double share = whole > 0 ? static_cast<double>(ns) / static_cast<double>(whole) : 0;
    text += fmt::format("  {}{} {} {}\n", pad_right(account.label, kLabel), bar(share, cells, options.utf8),
                        pad_left(share >= 0.0005 ? fmt::format("{:.1f} %", 100 * share) : "< 0.1 %", 7),
                        pad_left(human_duration(ns), 9));
  }
  return text;
}

}  // namespace headroom::report
