// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/device_list.h"
#include "report/layout.h"

namespace headroom::report {

// A table of the GPUs with their processes. What could not be read is "-", and the reasons stand below.
[[nodiscard]] std::string to_text(const DeviceList& list, const TextOptions& options);
// "headroom.devices/1": every reading by its metric's name, null where there is none, and why under "absent".
[[nodiscard]] std::string to_json(const DeviceList& list);

}  // namespace headroom::report
