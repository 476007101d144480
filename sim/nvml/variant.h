// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>

#include "base/result.h"

namespace headroom::sim {

// Writes a copy of the shared library `from` to `to` in which dlsym no longer finds `symbols`, as a driver that is
// too old does not have them. Names that `from` does not export are kInvalidInput.
//
// How: the dynamic symbol's name is changed in place. Its hash chain still leads to it, but the name no longer
// compares equal; nothing moves and nothing else is touched, so the library is the same otherwise.
[[nodiscard]] Result<void> write_library_without(const std::string& from, const std::string& to,
                                                 std::span<const std::string> symbols);

}  // namespace headroom::sim
