// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace headroom::cli {

// How far east of UTC a clock on the wall is that shows `shown` (nanoseconds since 1970, as if that were UTC). `zone`:
// "UTC", "local" (this machine's), "+09:00", or a name of the zone database, "Asia/Tokyo".
[[nodiscard]] Result<Nanos> offset_of_zone(const std::string& zone, Nanos shown);

}  // namespace headroom::cli
