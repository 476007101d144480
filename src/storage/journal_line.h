// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

// The two operations that most lines of a journal are of. As long as they stand as Optuna writes them, keys in order
// and ASCII only, they are read without a parser of JSON, which costs several times as much; of every other line
// nothing is said here.
struct ReportLine {
  std::int64_t trial = 0, step = 0;
  double value = 0;
};
struct ParameterLine {
  std::int64_t trial = 0;
  std::string_view name;  // part of the line
  double value = 0;
  std::string distribution;
};
[[nodiscard]] std::optional<ReportLine> read_report_line(std::string_view line);
[[nodiscard]] std::optional<ParameterLine> read_parameter_line(std::string_view line);

}  // namespace headroom
