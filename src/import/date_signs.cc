// SPDX-License-Identifier: Apache-2.0
#include "import/date_signs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace headroom {

bool is_all_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

namespace {

// "2025年3月14日 上午10:15:01", "2025. 3. 14. 오전 10:15:01", "2025/03/14 (金) 午後3:15:01" with the words of others.
std::string of_east_asia(std::string_view text) {
  struct Sign {
    std::string_view from, to;
  };
  constexpr std::array<Sign, 24> kSigns{{
      {"年 ", "-"},     {"年", "-"},      {"月 ", "-"},     {"月", "-"},      {"日", " "},      {"년 ", "-"},
      {"년", "-"},      {"월 ", "-"},     {"월", "-"},      {"일", " "},      {"時", ":"},      {"时", ":"},
      {"시 ", ":"},     {"分", ":"},      {"분 ", ":"},     {"秒", ""},       {"초", ""},       {"上午", " AM "},
      {"下午", " PM "}, {"午前", " AM "}, {"午後", " PM "}, {"오전", " AM "}, {"오후", " PM "}, {"　", " "},
  }};
  constexpr std::array<std::string_view, 6> kOfDays{"星期", "周", "週", "曜", "요", "("};  // in names of weekdays
  std::string plain;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view word = rest.substr(0, rest.find(' '));
    const bool weekday = !is_all_ascii(word) && std::any_of(kOfDays.begin(), kOfDays.end(),
                                                            [&](auto part) { return word.find(part) != word.npos; });
    if (weekday && std::none_of(word.begin(), word.end(), is_digit)) {
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      plain += ' ';
      continue;
    }
    const auto sign =
        std::find_if(kSigns.begin(), kSigns.end(), [&](const Sign& s) { return rest.starts_with(s.from); });
    if (sign == kSigns.end()) {
      plain += rest[0];
      rest.remove_prefix(1);
      continue;
    }
    plain += sign->to;
    rest.remove_prefix(sign->from.size());
  }
  return plain;
}

bool has_unusual_signs(std::string_view text) {
  return text.size() > 16 &&
         (text.substr(4, 2) == ". " || (text[10] == '-' && text[13] == '-') || (text[2] == '/' && text[6] == '/'));
}

// "2025. 3. 14. " is "2025-3-14 ", and "2025-03-14-10-15-01" has a blank between date and time.
std::string signs_exchanged(std::string text) {
  if (text.size() > 6 && text.substr(4, 2) == ". ") {
    const auto month = text.find(". ", 6), day = month == std::string::npos ? month : text.find(". ", month + 2);
    if (day != std::string::npos)
      text = fmt::format("{}-{}-{} {}", text.substr(0, 4), text.substr(6, month - 6),
                         text.substr(month + 2, day - month - 2), text.substr(day + 2));
  }
  constexpr std::size_t kDashes[] = {4, 7, 10, 13, 16};
  const bool dashed = text.size() == 19 && std::all_of(std::begin(kDashes), std::end(kDashes),
                                                       [&](std::size_t at) { return text[at] == '-'; });
  if (dashed) text[10] = ' ', text[13] = text[16] = ':';
  // "14/Mar/2025:10:15:01", as web servers have it
  if (text.size() > 12 && text[2] == '/' && text[6] == '/' && text[11] == ':') text[11] = ' ';
  return text;
}

}  // namespace

std::optional<std::string> with_usual_signs(std::string_view date) {
  const bool ascii = is_all_ascii(date);
  if (ascii && !has_unusual_signs(date)) return std::nullopt;
  return signs_exchanged(ascii ? std::string(date) : of_east_asia(date));
}

}  // namespace headroom
