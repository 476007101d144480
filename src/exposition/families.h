// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "exposition/formats.h"
#include "exposition/snapshot.h"

namespace headroom::exposition {

// Headroom's own metrics; docs/prometheus.md lists them. Of a GPU with a ledger all accounts are there, also those that
// are 0, and they sum to headroom_elapsed_seconds_total.
[[nodiscard]] std::vector<Family> families_of(const Snapshot& snapshot);

// dcgm-exporter's default metrics as far as they are known, under its names and labels and in its units: for dashboards
// that are there already. Not for OpenMetrics, whose rules these names break.
[[nodiscard]] std::vector<Family> dcgm_families_of(const Snapshot& snapshot);

// The values of the label `gpu`, by position in snapshot.gpus: its index, or its UUID where several have that index.
[[nodiscard]] std::vector<std::string> gpu_labels(const Snapshot& snapshot);

}  // namespace headroom::exposition
