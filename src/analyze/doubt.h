// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/ledger.h"
#include "model/finding.h"

namespace headroom {

// The time of the devices about which readings were lost: for it the slices say less surely what they say. Only losses
// of data that touch slices, and whose place in time is known, count (model/losses.h).
[[nodiscard]] Claims doubtful_time(const Recording& recording, const std::vector<DeviceTime>& devices);

// Lowers the confidence of that time by one step. Slices are cut at its borders; accounts and lengths stay.
void lower_confidence(std::vector<DeviceTime>& devices, const Claims& doubtful);

}  // namespace headroom
