// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>

#include "base/civil_time.h"
#include "base/time.h"
#include "import/log_date.h"

namespace headroom {

// What one zone is called, and an hour ahead in summer.
struct SummerZone {
  std::string_view standard, summer;
};

// Reads the timestamps of one log: "2025/11/01 15:51:09.123" (nvidia-smi), ISO 8601 with or without a zone, what
// parse_worded_time() reads, and seconds, ms, us or ns since 1970, told apart by their size; small numbers are time
// since the log began. Remembers what the log's times were like.
class TimeReader {
 public:
  explicit TimeReader(std::function<std::int64_t(std::int64_t)> utc_offset) : utc_offset_(std::move(utc_offset)) {}

  [[nodiscard]] std::optional<Nanos> read(std::string_view text);
  // What parse_elapsed() reads: since the log began.
  [[nodiscard]] std::optional<Nanos> read_duration(std::string_view text);
  void set_unit(Nanos unit) { unit_ = unit; }  // of numbers, where the header names it; 0: their size tells
  void set_order(DateOrder order) { order_ = order; }
  void set_year(int year) { year_ = year; }  // of dates that name none
  // Numbers without a unit are days as Excel counts them, since 1899-12-30.
  void set_excel_days() { excel_days_ = true; }
  // A local time, in nanoseconds since 1970, as Unix time.
  [[nodiscard]] Nanos to_unix(Nanos local);

  [[nodiscard]] bool all_whole_seconds() const { return whole_; }
  [[nodiscard]] bool since_beginning() const { return since_beginning_; }
  [[nodiscard]] bool year_was_missing() const { return year_missing_; }
  [[nodiscard]] bool zone_was_missing() const { return zone_missing_; }
  [[nodiscard]] bool zone_was_named() const { return zone_named_; }  // "IST" says too little to be used
  // … but CEST behind CET says that the clock was set forward by an hour.
  [[nodiscard]] bool summer_time_changed() const { return summer_time_changed_; }
  [[nodiscard]] std::int64_t last_offset_seconds() const { return last_offset_; }

 private:
  [[nodiscard]] WordedTime in_its_year(std::string_view text, WordedTime time);
  [[nodiscard]] std::optional<Nanos> read_calendar(std::string_view text);
  [[nodiscard]] std::optional<Nanos> read_epoch(std::string_view text);
  [[nodiscard]] std::optional<Nanos> read_excel_days(std::string_view text);
  [[nodiscard]] std::optional<Nanos> apply_zone(Nanos local, std::string_view zone);
  [[nodiscard]] Nanos in_named_zone(Nanos local, std::string_view zone);

  std::function<std::int64_t(std::int64_t)> utc_offset_;
  Nanos unit_ = 0;
  DateOrder order_ = DateOrder::kUnknown;
  int year_ = kFirstYear;
  bool year_missing_ = false;
  Nanos last_local_ = 0;  // of a time without a year
  bool whole_ = true, zone_missing_ = false, zone_named_ = false, since_beginning_ = false, excel_days_ = false;
  const SummerZone* zone_ = nullptr;  // that the log names: its first row in summer time or not, with this offset
  bool first_in_summer_ = false, summer_time_changed_ = false;
  std::int64_t first_offset_ = 0;
  char minute_text_[17] = {};  // the minute read last, "2025/11/05 00:00:": consecutive rows share it
  Nanos minute_ = 0;
  std::int64_t offset_hour_ = std::numeric_limits<std::int64_t>::min();  // the local hour that hour_offset_ is for
  std::int64_t hour_offset_ = 0, last_offset_ = 0;
};

}  // namespace headroom
