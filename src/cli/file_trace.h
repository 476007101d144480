// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "base/time.h"

namespace headroom::cli {

// What changes when somebody writes to an SQLite file or its log: numbers, sizes and times of both; zeros where there
// is no such file.
using FileTrace = std::array<std::int64_t, 6>;
[[nodiscard]] FileTrace trace_of(const std::string& path);

// What grows and was last read so long ago is read again, changed or not: a recorder writes every two seconds, and
// where nothing more comes it may be gone.
inline constexpr Nanos kSilent = 6 * kSecond;

}  // namespace headroom::cli
