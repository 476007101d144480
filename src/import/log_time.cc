// SPDX-License-Identifier: Apache-2.0
#include "import/log_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/strings.h"

namespace headroom {

namespace {

constexpr std::array kSummerZones{
    SummerZone{"CET", "CEST"},  SummerZone{"EET", "EEST"},  SummerZone{"WET", "WEST"},  SummerZone{"MET", "MEST"},
    SummerZone{"GMT", "BST"},   SummerZone{"EST", "EDT"},   SummerZone{"CST", "CDT"},   SummerZone{"MST", "MDT"},
    SummerZone{"PST", "PDT"},   SummerZone{"AKST", "AKDT"}, SummerZone{"AST", "ADT"},   SummerZone{"NST", "NDT"},
    SummerZone{"AEST", "AEDT"}, SummerZone{"ACST", "ACDT"}, SummerZone{"NZST", "NZDT"},
};

}  // namespace

namespace {

// "2025-05-05T23:50:00Z" for "20250505T235000Z", which ISO 8601 calls the basic form; "" for other texts.
std::string with_signs(std::string_view text) {
  constexpr std::size_t kDate = 8, kEnd = 15;  // where the "T" is, and what follows the seconds
  if (text.size() < kEnd || text[kDate] != 'T') return "";
  for (std::size_t i = 0; i < kEnd; ++i)
    if (i != kDate && !is_digit(text[i])) return "";
  return fmt::format("{}-{}-{}T{}:{}:{}{}", text.substr(0, 4), text.substr(4, 2), text.substr(6, 2), text.substr(9, 2),
                     text.substr(11, 2), text.substr(13, 2), text.substr(kEnd));
}

}  // namespace

std::optional<Nanos> TimeReader::read(std::string_view text) {
  constexpr std::size_t kSecondsEnd = 19;  // "2025-03-14 10:15:01"
  if (text.size() > kSecondsEnd + 1 && (text[4] == '/' || text[4] == '-') && text[kSecondsEnd] == ':' &&
      text[kSecondsEnd - 3] == ':' && is_digit(text[kSecondsEnd + 1])) {  // and ":440", for milliseconds
    const std::string pointed = fmt::format("{}.{}", text.substr(0, kSecondsEnd), text.substr(kSecondsEnd + 1));
    return read(pointed);
  }
  if (const std::string parted = with_signs(text); !parted.empty()) return read(parted);
  const bool calendar = text.size() >= 19 && (text[4] == '/' || text[4] == '-');
  auto at = calendar ? read_calendar(text) : read_epoch(text);
  if (!at)
    if (auto worded = parse_worded_time(text, order_, year_)) {
      if (worded->no_year) worded = in_its_year(text, *worded);
      at = apply_zone(worded->local, worded->zone);
    }
  if (at && *at % kSecond != 0) whole_ = false;
  return at;
}

// Half a year and more from the time before is New Year's Eve.
WordedTime TimeReader::in_its_year(std::string_view text, WordedTime time) {
  constexpr Nanos kHalfYear = 183 * kDay;
  const Nanos step = year_missing_ ? time.local - last_local_ : 0;
  if (step < -kHalfYear || step > kHalfYear) {
    const int next = year_ + (step < 0 ? 1 : -1);
    if (const auto other = parse_worded_time(text, order_, next)) time = *other, year_ = next;
  }
  year_missing_ = true;
  last_local_ = time.local;
  return time;
}

std::optional<Nanos> TimeReader::read_duration(std::string_view text) {
  auto length = parse_elapsed(text);
  if (!length) length = parse_elapsed(fmt::format("0:{}", text));  // minutes and seconds
  if (!length) return std::nullopt;
  since_beginning_ = true;
  if (*length % kSecond != 0) whole_ = false;
  return length;
}

Nanos TimeReader::to_unix(Nanos local) {
  zone_missing_ = true;
  if (!utc_offset_) return local;
  const std::int64_t second = local / kSecond;
  if (second / 3600 != offset_hour_) {  // offsets change at most at full hours of local time
    offset_hour_ = second / 3600;
    hour_offset_ = utc_offset_(second);
  }
  last_offset_ = hour_offset_;
  return local - last_offset_ * kSecond;
}

std::optional<Nanos> TimeReader::read_calendar(std::string_view text) {
  constexpr std::size_t kDate = 10, kSeconds = sizeof minute_text_;  // where the date ends, and where seconds begin
  if (std::memcmp(minute_text_, text.data(), sizeof minute_text_) != 0) {
    if (text[kDate] != ' ' && text[kDate] != 'T' && text[kDate] != '_') return std::nullopt;
    const auto date = parse_date(text.substr(0, kDate)), minute = parse_leading_minute(text.substr(kDate + 1));
    if (!date || !minute) return std::nullopt;
    minute_ = *date + *minute;
    std::memcpy(minute_text_, text.data(), sizeof minute_text_);
  }
  std::size_t used = 0;
  const auto time = parse_leading_seconds(text.substr(kSeconds), used);
  if (!time) return std::nullopt;
  return apply_zone(minute_ + *time, trim(text.substr(kSeconds + used)));
}

std::optional<Nanos> TimeReader::apply_zone(Nanos local, std::string_view zone) {
  if (zone.empty()) return to_unix(local);
  if (zone == "Z" || zone == "z" || zone == "UTC") return local;
  if (zone[0] != '+' && zone[0] != '-') {
    constexpr std::size_t kLongest = 40;
    const auto letters = [](char c) {
      return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '/' || c == '_';
    };
    if (zone.size() < kLongest && zone[0] != '/' && zone.find('/') != std::string_view::npos &&
        std::all_of(zone.begin(), zone.end(), letters)) {  // "Europe/Berlin"
      zone_named_ = true;
      return to_unix(local);
    }
    const bool word = zone.size() <= 5 && std::all_of(zone.begin(), zone.end(), [](char c) {
                        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
                      });
    if (!word) return std::nullopt;
    return in_named_zone(local, zone);
  }
  const auto offset = parse_utc_offset(zone);
  if (!offset) return std::nullopt;
  last_offset_ = *offset;
  return local - last_offset_ * kSecond;
}

// Which offset a name stands for is not known; that summer time is an hour ahead is. GMT is UTC, unless BST came first.
Nanos TimeReader::in_named_zone(Nanos local, std::string_view zone) {
  constexpr std::int64_t kHour = 3600;
  const auto* known = std::find_if(kSummerZones.begin(), kSummerZones.end(),
                                   [&](const SummerZone& z) { return z.standard == zone || z.summer == zone; });
  const bool is_utc = zone == "GMT";
  zone_named_ = zone_named_ || !is_utc;
  if (known == kSummerZones.end()) return to_unix(local);
  const bool summer = known->summer == zone;
  if (zone_ != known) {
    const Nanos at = is_utc ? local : to_unix(local);
    zone_ = known, first_in_summer_ = summer, first_offset_ = is_utc ? 0 : last_offset_;
    return at;
  }
  if (summer == first_in_summer_) return is_utc ? local : to_unix(local);
  summer_time_changed_ = true;
  return local - (first_offset_ + (summer ? kHour : -kHour)) * kSecond;
}

// Days with their decimals are told to some microseconds: what is less than a millisecond is none of the log's.
std::optional<Nanos> TimeReader::read_excel_days(std::string_view text) {
  constexpr double kUntil1970 = 25'569, kMost = 73'050;  // the year 2100
  const auto days = parse_number<double>(text);
  if (!days || !(*days > kUntil1970 && *days < kMost)) return std::nullopt;
  const double milliseconds = (*days - kUntil1970) * 86'400e3;
  return to_unix(std::llround(milliseconds) * kMillisecond);
}

std::optional<Nanos> TimeReader::read_epoch(std::string_view text) {
  if (unit_ == kDay || (excel_days_ && unit_ == 0)) return read_excel_days(text);
  const std::size_t point = std::min(text.find('.'), text.size());
  const auto whole = parse_number<std::int64_t>(text.substr(0, point));
  if (!whole || *whole < 0) return std::nullopt;
  // 1e11 s is the year 5138; 1e11 ms is 1973. The same factor of 1000 separates ms, us and ns.
  constexpr std::int64_t kSecondsEnd = 100'000'000'000;
  const Nanos unit = unit_ > 0                          ? unit_
                     : *whole < kSecondsEnd             ? kSecond
                     : *whole < kSecondsEnd * 1000      ? kMillisecond
                     : *whole < kSecondsEnd * 1'000'000 ? kMicrosecond
                                                        : Nanos{1};
  constexpr Nanos kEnd = 4'102'444'800 * kSecond;  // the year 2100
  if (*whole >= kEnd / unit) return std::nullopt;
  Nanos at = *whole * unit, scale = unit;
  for (std::size_t i = point + 1; i < text.size(); ++i) {
    if (!is_digit(text[i])) return std::nullopt;
    scale /= 10;
    at += (text[i] - '0') * scale;
  }
  constexpr Nanos kNoMachine = 100'000'000 * kSecond;  // 1973: no log of a GPU is that old, and none is that long
  if (at < kNoMachine) since_beginning_ = true;
  return at;
}

}  // namespace headroom
