// SPDX-License-Identifier: Apache-2.0
#include "model/start_part.h"

#include <algorithm>
#include <map>

namespace headroom {

namespace {

bool is_import(std::string_view place) { return place == "imports" || place.starts_with("import "); }

bool is_function(std::string_view place) { return !is_import(place) && place.find(" (") != std::string_view::npos; }

// Functions that are a good part of it each, where they are most of it together.
std::vector<std::int32_t> functions_of(const Ledger& ledger, const std::map<std::int32_t, Nanos>& by_place, Nanos all) {
  constexpr Nanos kPart = 5;  // a fifth
  std::vector<std::int32_t> code;
  Nanos sum = 0;
  for (const auto& [where, ns] : by_place)
    if (kPart * ns >= all && is_function(ledger.places[static_cast<std::size_t>(where)]))
      code.push_back(where), sum += ns;
  std::stable_sort(code.begin(), code.end(),
                   [&](std::int32_t x, std::int32_t y) { return by_place.at(x) > by_place.at(y); });
  return 2 * sum > all ? code : std::vector<std::int32_t>();
}

}  // namespace

StartPart part_of_start(const Ledger& ledger, const Finding& finding) {
  const auto imports_at = [&](std::int32_t where) { return is_import(ledger.places[static_cast<std::size_t>(where)]); };
  std::map<std::int32_t, Nanos> by_place;
  Nanos imports = 0, untold = 0;
  for (const ClaimedPiece& piece : finding.claims) {
    const Nanos ns = piece.end - piece.begin;
    if (piece.where < 0) {
      untold += ns;
      continue;
    }
    by_place[piece.where] += ns;
    if (imports_at(piece.where)) imports += ns;
  }
  const Nanos all = std::max<Nanos>(1, finding.cost());
  StartPart part;
  part.imports = 2 * imports > all || (finding.code && imports_at(*finding.code));
  Nanos told = imports;
  if (!part.imports) {
    part.code = finding.code ? std::vector{*finding.code} : functions_of(ledger, by_place, all);
    if (part.code.empty()) return {};
    told = 0;
    for (const std::int32_t where : part.code) told += by_place[where];
  }
  part.told = static_cast<double>(told) / static_cast<double>(all);
  part.share = static_cast<double>(told + untold) / static_cast<double>(all);
  return part;
}

std::string code_of_start(const Ledger& ledger, const StartPart& part) {
  std::vector<std::string> spots;
  for (const std::int32_t where : part.code) spots.push_back(ledger.spot(where, Account::kStartup));
  std::string text;
  for (std::size_t i = 0; i < spots.size(); ++i)
    text += (i == 0 ? "" : i + 1 == spots.size() ? " and " : ", ") + spots[i];
  return text;
}

}  // namespace headroom
