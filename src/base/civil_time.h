// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"

// Dates and times of day as programs write them.
namespace headroom {

inline constexpr Nanos kDay = 86'400 * kSecond;

// "2025/11/01", "2025-11-01" or "20251101" as midnight, in nanoseconds since 1970; no zone. Years 1970 to 2099.
[[nodiscard]] std::optional<Nanos> parse_date(std::string_view text);
// "15:51:09", "15:51:09.123" or "15:51:09,123" as nanoseconds since midnight.
[[nodiscard]] std::optional<Nanos> parse_time_of_day(std::string_view text);
// Its parts at the beginning of `text`: "15:51:" as nanoseconds since midnight, and "09" or "09.123" since the minute
// began; `used` is how much of it.
[[nodiscard]] std::optional<Nanos> parse_leading_minute(std::string_view text);
[[nodiscard]] std::optional<Nanos> parse_leading_seconds(std::string_view text, std::size_t& used);
// The whole at the beginning of `text`, likewise.
[[nodiscard]] std::optional<Nanos> parse_leading_time(std::string_view text, std::size_t& used);
// "+05:30", "-0800" or "+02" as seconds east of UTC.
[[nodiscard]] std::optional<std::int64_t> parse_utc_offset(std::string_view text);

struct IsoTime {
  Nanos at = 0;       // Unix time where the text names its zone, else what a clock on the wall had
  bool zone = false;  // it names its zone
};
// "2026-11-20 10:40:34.726566", with or without fraction, with "T" or a blank, with or without a zone.
[[nodiscard]] std::optional<IsoTime> parse_iso_time(std::string_view text);

}  // namespace headroom
