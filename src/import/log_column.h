// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "import/import.h"
#include "model/absent.h"
#include "model/metric.h"

namespace headroom {

inline constexpr std::int64_t kOfOneScale = 10'000;  // see ColumnRule::of_one

// What a log's column is for.
enum class ColumnRole : std::uint8_t {
  kMetric,     // a number of its own
  kReasonBit,  // "Active" / "Not Active": one bit of Metric::kEventReasons
  kTimestamp,
  kDate,
  kTime,
  kIndex,
  kUuid,
  kPciBusId,
  kSerial,
  kHost,     // the machine that the GPU is in
  kPhase,    // what the job was at then, in words
  kFree,     // memory that is not in use: with the total it is told by what is
  kFact,     // a constant of the device: see DeviceFact
  kNotKept,  // known, and nothing that a recording holds
};

enum class DeviceFact : std::uint8_t {
  kName,
  kMemoryTotal,
  kDriverVersion,
  kComputeCapability,
  kComputeMode,
  kPersistenceMode,
  kMigMode,
  kSmClockMax,
  kPcieLinkGenMax,
  kPcieLinkWidthMax,
  kCount,
};
inline constexpr std::size_t kDeviceFacts = static_cast<std::size_t>(DeviceFact::kCount);

enum class Dimension : std::uint8_t { kPlain, kRatio, kBytes, kByteRate, kWatts, kMegahertz, kSeconds, kCelsius };

// How a column is read. stored = number * multiplier, which holds the unit and the metric's decimal places. Of a time
// it is the unit in nanoseconds, where the header names one; 0: its size tells.
struct ColumnRule {
  ColumnRole role = ColumnRole::kNotKept;
  Metric metric{};
  DeviceFact fact{};
  std::int64_t reason_bit = 0;
  Dimension dimension = Dimension::kPlain;
  std::int64_t multiplier = 1;
  std::int64_t low = 0, high = 0;  // stored values outside cannot be true
  int rank = 0;                    // of several columns for one metric, the one with the lowest rank is kept
  bool of_one = false;             // a ratio without a unit: percent, or a fraction of one
  bool any_size = false;           // of memory: no unit in the header
  bool says_percent = false;       // … and a cell had a unit
  bool perfcap = false;            // reasons in the bits of GPU-Z
  std::optional<int> gpu;          // a column of this GPU alone: "gpu0_util"
  // The unit written in the cell read last, and its multiplier: units hardly ever change within a column.
  std::array<char, 16> cell_unit{};  // ends with zeros
  std::int64_t cell_multiplier = 1;
};

// The rule for a header such as "power.draw [W]", "gpu_util_%" or (of dmon) "pwr"; nothing for one that is not known.
// What nvidia-smi does not call so is told by its words: column_by_words().
[[nodiscard]] std::optional<ColumnRule> csv_column(std::string_view header);
[[nodiscard]] std::optional<ColumnRule> dmon_column(std::string_view header);
// What a number with this unit is multiplied by, for the rule's metric; nothing for a unit of another dimension.
[[nodiscard]] std::optional<std::int64_t> unit_multiplier(std::string_view unit, const ColumnRule& rule);
// A header without its unit, in lower case: "power.draw", "gpu_util".
[[nodiscard]] std::string bare_header(std::string_view header);
// Known name that looks most like `header`, or "".
[[nodiscard]] std::string_view closest_column(std::string_view header);

// A cell as a stored value, or why there is none. kGarbage: it is a number that cannot be true.
struct CellValue {
  std::int64_t value = 0;
  std::uint8_t absent = 0;  // 0, or an Absent
  bool unreadable = false;  // not even a number; absent is kGarbage
};
[[nodiscard]] CellValue read_cell(std::string_view text, ColumnRule& rule);
// "[N/A]", "-", "[GPU is lost]" and their like: the reason; nothing for other texts.
[[nodiscard]] std::optional<Absent> absence_of(std::string_view text);

}  // namespace headroom
