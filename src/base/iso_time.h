// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/time.h"

namespace headroom {

// "2026-11-20T14:15:03.000000Z" of a Unix time in nanoseconds.
[[nodiscard]] std::string iso_time(Nanos unix_ns);

}  // namespace headroom
