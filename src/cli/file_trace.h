// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace headroom::cli {

// What changes when somebody writes to an SQLite file or its log: numbers, sizes and times of both; zeros where there
// is no such file.
using FileTrace = std::array<std::int64_t, 6>;
[[nodiscard]] FileTrace trace_of(const std::string& path);

}  // namespace headroom::cli
