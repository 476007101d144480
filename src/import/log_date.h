// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace headroom {

// Which of the first two numbers of "02-11-2025" is the day; of "25/11/02" the first may be the year.
enum class DateOrder : std::uint8_t { kUnknown, kDayFirst, kMonthFirst, kYearFirst };

struct WordedTime {
  Nanos local = 0;        // as a clock on the wall had it, in nanoseconds since 1970
  std::string_view zone;  // "", "UTC", "+05:30", "IST"
  bool no_year = false;   // "Oct 12 06:00:00", as syslog and ts(1) have it
};
// "Mon Feb  3 10:00:00 2025" (date(1), ctime), "03/02/2025 10:00:00 PM", "3 Feb 2025, 10:00", "20250203-100000" and
// their like; of `year` where it names none. Nothing for what is no date with a time, or one whose order is not known.
inline constexpr int kFirstYear = 1972;  // with a 29th of February
[[nodiscard]] std::optional<WordedTime> parse_worded_time(std::string_view text, DateOrder order,
                                                          int year = kFirstYear);

// "3.2.2025 10.00.00": a date, and behind it a time of day with points.
[[nodiscard]] bool is_pointed_time(std::string_view text);

// A length of time as Python and pandas write it: "0:00:30.000225", "26:04:30", "1 day, 2:04:30", "0 days 00:00:30".
[[nodiscard]] std::optional<Nanos> parse_elapsed(std::string_view text);

// How long the blank without a break is that `text` begins with, as languages have it between a number and what comes
// behind; 0: it begins with none. U+00A0 in UTF-8 or Windows-1252, U+2009, U+202F.
[[nodiscard]] std::size_t no_break_blank(std::string_view text);

// Finds the order of the dates of a log: a number above 12 is a day, or a year of two digits, and of two rows in a row
// it is the day that goes on; a day of the week is that of one date alone.
class DateOrderFinder {
 public:
  // False where the order of `text` is no question.
  bool add(std::string_view text);
  [[nodiscard]] DateOrder order() const;
  // All of one day: which it is changes the date of the log, and nothing in it.
  [[nodiscard]] bool one_day() const {
    return first_ != 0 && first_changed_ == 0 && second_changed_ == 0 && third_changed_ == 0;
  }
  // Dates such as "25/11/15", all of one day: the first number may be the year, or the last.
  [[nodiscard]] bool year_is_open() const { return one_day() && may_begin_with_a_year(); }
  // What such dates are taken for: of this century's years those before 2020 are the less likely ones.
  [[nodiscard]] DateOrder likely_order() const;

 private:
  [[nodiscard]] bool may_begin_with_a_year() const { return dates_ > 0 && year_may_be_first_ == dates_; }
  int first_ = 0, second_ = 0, third_ = 0;
  std::int64_t first_above_12_ = 0, second_above_12_ = 0, first_changed_ = 0, second_changed_ = 0;
  std::int64_t third_changed_ = 0, dates_ = 0, year_may_be_first_ = 0;
  std::int64_t day_first_by_weekday_ = 0, month_first_by_weekday_ = 0;
};

// Tells days since 1899-12-30, as Excel counts them, from seconds since a machine began, by how far they are apart.
class ExcelDaysFinder {
 public:
  // False where `text` is no number that may be either.
  bool add(std::string_view text);
  [[nodiscard]] bool are_days() const;
  [[nodiscard]] bool unclear() const;

 private:
  [[nodiscard]] double step() const;
  [[nodiscard]] double mean_step() const;
  [[nodiscard]] bool are_seconds() const;
  double last_ = 0;
  std::vector<double> steps_;
};

}  // namespace headroom
