// SPDX-License-Identifier: Apache-2.0
#include "base/civil_time.h"

#include <chrono>

#include "base/strings.h"

namespace headroom {

namespace {

// Exactly the digits of `text` as a number, or -1.
int digits(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return -1;
    value = value * 10 + (c - '0');
  }
  return text.empty() ? -1 : value;
}

std::optional<Nanos> civil(int year, int month, int day) {
  if (year < 1970 || year >= 2100 || month < 1 || month > 12 || day < 1) return std::nullopt;  // fits Nanos
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days{date}.time_since_epoch().count() * kDay;
}

}  // namespace

std::optional<Nanos> parse_leading_seconds(std::string_view text, std::size_t& used) {
  const int second = digits(text.substr(0, 2));
  if (text.size() < 2 || second < 0 || second > 60) return std::nullopt;
  Nanos nanos = second * kSecond;
  used = 2;
  if (text.size() > 3 && (text[2] == '.' || text[2] == ',') && is_digit(text[3])) {
    Nanos scale = kSecond / 10;
    for (used = 3; used < text.size() && is_digit(text[used]); ++used, scale /= 10) nanos += (text[used] - '0') * scale;
  }
  return nanos;
}

std::optional<Nanos> parse_leading_minute(std::string_view text) {
  if (text.size() < 6 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const int hour = digits(text.substr(0, 2)), minute = digits(text.substr(3, 2));
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59) return std::nullopt;
  return (hour * 60 + minute) * Nanos{60} * kSecond;
}

std::optional<Nanos> parse_leading_time(std::string_view text, std::size_t& used) {
  constexpr std::size_t kSeconds = 6;
  const auto minute = parse_leading_minute(text);
  const auto second = minute ? parse_leading_seconds(text.substr(kSeconds), used) : std::nullopt;
  if (!second) return std::nullopt;
  used += kSeconds;
  return *minute + *second;
}

std::optional<Nanos> parse_date(std::string_view text) {
  if (text.size() == 8) return civil(digits(text.substr(0, 4)), digits(text.substr(4, 2)), digits(text.substr(6, 2)));
  if (text.size() != 10 || text[4] != text[7] || (text[4] != '/' && text[4] != '-')) return std::nullopt;
  return civil(digits(text.substr(0, 4)), digits(text.substr(5, 2)), digits(text.substr(8, 2)));
}

std::optional<Nanos> parse_time_of_day(std::string_view text) {
  std::size_t used = 0;
  const auto time = parse_leading_time(text, used);
  return time && used == text.size() ? time : std::nullopt;
}

std::optional<std::int64_t> parse_utc_offset(std::string_view text) {
  if (text.size() < 3 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const int hours = digits(text.substr(1, 2));
  std::string_view rest = text.substr(3);
  if (!rest.empty() && rest[0] == ':') rest.remove_prefix(1);
  const int minutes = rest.empty() ? 0 : rest.size() == 2 ? digits(rest) : -1;
  if (hours < 0 || hours > 18 || minutes < 0 || minutes > 59) return std::nullopt;
  return (hours * 3600 + minutes * 60) * (text[0] == '-' ? -1 : 1);
}

std::optional<IsoTime> parse_iso_time(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || (text[10] != ' ' && text[10] != 'T')) return std::nullopt;
  std::size_t used = 0;
  const auto date = parse_date(text.substr(0, 10));
  const auto time = parse_leading_time(text.substr(11), used);
  if (!date || !time) return std::nullopt;
  const std::string_view zone = text.substr(11 + used);
  if (zone.empty()) return IsoTime{*date + *time, false};
  const auto offset = zone == "Z" ? 0 : parse_utc_offset(zone);
  if (!offset) return std::nullopt;
  return IsoTime{*date + *time - *offset * kSecond, true};
}

}  // namespace headroom
