// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "model/fleet.h"
#include "report/layout.h"

namespace headroom::report {

// What Jobstats' averages say, as a list of its own.
[[nodiscard]] std::string averages_text(const FleetAverages& averages, FleetBy by, const TextOptions& options);
[[nodiscard]] nlohmann::ordered_json averages_json(const FleetAverages& averages);

}  // namespace headroom::report
