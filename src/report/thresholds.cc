// SPDX-License-Identifier: Apache-2.0
#include "report/thresholds.h"

#include <nlohmann/json.hpp>

#include "model/thresholds.h"

namespace headroom::report {

std::string thresholds_to_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ThresholdInfo& row : kThresholds)
    list.push_back({{"name", row.name}, {"value", row.value}, {"unit", row.unit}, {"why", row.why}});
  return nlohmann::ordered_json{{"schema", "headroom.thresholds/1"}, {"thresholds", list}}.dump(2) + "\n";
}

}  // namespace headroom::report
