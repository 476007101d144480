// SPDX-License-Identifier: Apache-2.0
#include "import/log_time.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace headroom {

std::optional<Nanos> TimeReader::read(std::string_view text) {
  const bool calendar = text.size() >= 19 && (text[4] == '/' || text[4] == '-');
  auto at = calendar ? read_calendar(text) : read_epoch(text);
  if (!at)
    if (const auto worded = parse_worded_time(text, order_)) at = apply_zone(worded->local, worded->zone);
  if (at && *at % kSecond != 0) whole_ = false;
  return at;
}

std::optional<Nanos> TimeReader::read_duration(std::string_view text) {
  const auto length = parse_elapsed(text);
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
  if (text[10] != ' ' && text[10] != 'T' && text[10] != '_') return std::nullopt;
  if (std::memcmp(date_text_, text.data(), sizeof date_text_) != 0) {
    const auto date = parse_date(text.substr(0, 10));
    if (!date) return std::nullopt;
    date_ = *date;
    std::memcpy(date_text_, text.data(), sizeof date_text_);
  }
  std::size_t used = 0;
  const auto time = parse_leading_time(text.substr(11), used);
  if (!time) return std::nullopt;
  return apply_zone(date_ + *time, trim(text.substr(11 + used)));
}

std::optional<Nanos> TimeReader::apply_zone(Nanos local, std::string_view zone) {
  if (zone.empty()) return to_unix(local);
  if (zone == "Z" || zone == "z" || zone == "UTC" || zone == "GMT") return local;
  if (zone[0] != '+' && zone[0] != '-') {
    const bool word = zone.size() <= 5 && std::all_of(zone.begin(), zone.end(), [](char c) {
                        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
                      });
    if (!word) return std::nullopt;
    zone_named_ = true;
    return to_unix(local);
  }
  const auto offset = parse_utc_offset(zone);
  if (!offset) return std::nullopt;
  last_offset_ = *offset;
  return local - last_offset_ * kSecond;
}

std::optional<Nanos> TimeReader::read_epoch(std::string_view text) {
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
