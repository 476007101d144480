// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_json.h"

#include "report/json_values.h"

namespace headroom::report {

Json ledger_json(const Explanation& e) {
  const auto name_or_null = [](const auto& list, std::int32_t index, const auto& name_of) {
    return index < 0 ? Json(nullptr) : Json(name_of(list[static_cast<std::size_t>(index)]));
  };
  Json accounts = Json::array();
  for (const LedgerEntry& entry : e.ledger.entries)
    accounts.push_back(
        {{"state", info(entry.account).state},
         {"cause", info(entry.account).cause},
         {"label", info(entry.account).label},
         {"ns", entry.ns},
         {"device", e.ledger.devices[entry.device].uuid},
         {"phase", name_or_null(e.phases, entry.phase, [](const Phase& phase) { return phase.name; })},
         {"task", name_or_null(e.ledger.tasks, entry.task, [](const std::string& name) { return name; })},
         {"pid", entry.pid == 0 ? Json(nullptr) : Json(entry.pid)},
         {"where", name_or_null(e.ledger.places, entry.where, [](const std::string& name) { return name; })},
         {"tier", entry.tiers.letters()},
         {"confidence", confidence_name(entry.confidence)}});
  return {
      {"budget_ns", e.ledger.budget()}, {"begin_ns", e.ledger.begin}, {"end_ns", e.ledger.end}, {"accounts", accounts}};
}

}  // namespace headroom::report
