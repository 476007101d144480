// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace headroom {

[[nodiscard]] std::string random_id();  // 16 hex digits: of a recording, of a batch
// Of the machine's run since it booted, in which a pid and CLOCK_BOOTTIME mean something; "" where the kernel does not
// tell.
[[nodiscard]] std::string boot_id();

}  // namespace headroom
