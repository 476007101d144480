// SPDX-License-Identifier: Apache-2.0
#include "import/log_date.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/civil_time.h"
#include "base/median.h"
#include "base/strings.h"
#include "import/date_signs.h"

namespace headroom {

namespace {

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
// As Windows writes them into %DATE%: German, French, Spanish, Italian, Dutch, Portuguese.
constexpr std::array<std::string_view, 29> kShortWeekdays{
    "mo",  "di",  "mi",  "do",  "fr",  "sa",  "so", "lun", "mar", "mer", "jeu", "ven", "sam", "dim", "mié",
    "jue", "vie", "sáb", "dom", "gio", "sab", "ma", "wo",  "vr",  "za",  "zo",  "seg", "qua", "qui"};

// Of the day; "p. m." is Spanish.
constexpr std::array<std::string_view, 6> kHalves{"am", "pm", "a.m.", "p.m.", "a.", "p."};

// Between a date and its time: "Mar 10, 2025 @ 09:15:00.000" of Kibana, "10. mars 2025 kl. 09.15".
constexpr std::array<std::string_view, 7> kBetween{"@", "at", "um", "kl", "kl.", "klo", "à"};

// As date(1) writes them elsewhere, from the first letters by which they are known: German, French, Spanish, Italian,
// Dutch, Portuguese. Those that begin as the English ones do are known by these.
struct MonthWord {
  std::string_view begin;
  int month;  // from 0
};
constexpr std::array<MonthWord, 27> kOtherMonths{{
    {"ene", 0}, {"gen", 0}, {"fév", 1}, {"fev", 1}, {"mär", 2},  {"mrz", 2}, {"mrt", 2},  {"avr", 3},  {"abr", 3},
    {"mai", 4}, {"mei", 4}, {"mag", 4}, {"maj", 4}, {"juin", 5}, {"giu", 5}, {"juil", 6}, {"lug", 6},  {"aoû", 7},
    {"aou", 7}, {"ago", 7}, {"set", 8}, {"okt", 9}, {"ott", 9},  {"out", 9}, {"dez", 11}, {"dic", 11}, {"déc", 11},
}};

std::optional<int> other_month(std::string_view word) {
  const std::string small = lower(word);
  const auto found = std::find_if(kOtherMonths.begin(), kOtherMonths.end(),
                                  [&](const MonthWord& one) { return small.starts_with(one.begin); });
  return found == kOtherMonths.end() ? std::nullopt : std::optional(found->month);
}

// 1 for "Feb" and "February" of kMonths, counted from 0; nothing for other words.
template <std::size_t kSize>
std::optional<int> place_in(const std::array<std::string_view, kSize>& names, std::string_view word) {
  if (word.size() < 3) return std::nullopt;
  const std::string begin = lower(word.substr(0, 3));
  const auto found = std::find(names.begin(), names.end(), begin);
  return found == names.end() ? std::nullopt : std::optional(static_cast<int>(found - names.begin()));
}

bool all_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

int number(std::string_view digits) { return parse_number<int>(digits).value_or(-1); }

// A comma before a part of a second: "10:15:01,44".
bool splits_a_second(std::string_view text, std::size_t at) {
  return text[at] == ',' && at >= 3 && at + 1 < text.size() && text[at - 3] == ':' && is_digit(text[at - 1]) &&
         is_digit(text[at + 1]);
}

// "09:05:03.4" for "9:5:3.4".
std::string with_two_digits(std::string_view time) {
  std::string padded;
  bool first = true;
  for (const std::string_view part : split(time, ':')) {
    if (!std::exchange(first, false)) padded += ':';
    if (!part.empty() && is_digit(part[0]) && (part.size() == 1 || !is_digit(part[1]))) padded += '0';
    padded += part;
  }
  return padded;
}

// The next word of `rest`, up to a blank, which may be one without a break, a comma or an underscore.
std::string_view next_word(std::string_view& rest) {
  const auto between = [&](std::size_t at) {
    if (splits_a_second(rest, at)) return std::size_t{0};
    return std::string_view(" ,_\t").find(rest[at]) != std::string_view::npos ? 1 : no_break_blank(rest.substr(at));
  };
  std::size_t begin = 0;
  while (begin < rest.size() && between(begin) > 0) begin += between(begin);
  std::size_t end = begin;
  while (end < rest.size() && between(end) == 0) ++end;
  const std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

// "03-02-2025": three numbers, or a month's name in the middle, between the same signs.
struct Triple {
  std::string_view parts[3];
  char sign = 0;
};
std::optional<Triple> triple_of(std::string_view word) {
  Triple triple;
  const std::size_t first = word.find_first_of("/-.");
  if (first == std::string_view::npos || first == 0) return std::nullopt;
  triple.sign = word[first];
  const std::size_t second = word.find(triple.sign, first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  triple.parts[0] = word.substr(0, first);
  triple.parts[1] = word.substr(first + 1, second - first - 1);
  triple.parts[2] = word.substr(second + 1);
  if (!all_digits(triple.parts[0]) || !all_digits(triple.parts[2])) return std::nullopt;
  return all_digits(triple.parts[1]) || place_in(kMonths, triple.parts[1]) ? std::optional(triple) : std::nullopt;
}

bool order_matters(const Triple& triple) {
  return triple.sign != '.' && triple.parts[0].size() <= 2 && triple.parts[1].size() <= 2;  // 3.2.2025 is the third
}

// "23:30:00" for "23.30.00", as Finnish, Danish and Italian have it, and for "23-30-00"; "23:30" for "23.30". "" for
// what is no time of the day.
std::string with_colons(std::string_view text) {
  const std::size_t first = text.find_first_of(".-");
  if (first == 0 || first > 2) return "";
  const bool seconds = text.size() == first + 6 && text[first + 3] == text[first];
  if (!seconds && (text.size() != first + 3 || text[first] != '.')) return "";
  std::string time(text);
  time[first] = ':';
  if (seconds) time[first + 3] = ':';
  const bool digits =
      std::all_of(time.begin(), time.end(), [](char c) { return c == ':' || is_digit(c); }) && time[first + 1] != ':';
  return digits ? time : "";
}

class Parser {
 public:
  Parser(DateOrder order, int other_year) : order_(order), other_year_(other_year) {}

  bool word(std::string_view text) {
    if (text.find(':') != std::string_view::npos && is_digit(text[0])) return clock(text);
    if (dated() && std::find(kBetween.begin(), kBetween.end(), text) != kBetween.end()) return true;
    if (const std::string time = dated() ? with_colons(text) : ""; !time.empty()) return clock(time);
    if (const auto triple = triple_of(text)) return date(*triple);
    if (const auto month = place_in(kMonths, text); month && may_be_month()) return named(*month, text);
    if (const auto fits = half_or_weekday(text)) return *fits;
    if (const auto month = other_month(text); month && may_be_month()) return named(*month, text);
    const bool pointed = text.size() <= 3 && text.ends_with('.');  // "3. Jun"
    if (const auto bare = text.substr(0, text.size() - (pointed ? 1 : 0)); all_digits(bare)) return digits(bare);
    if (const std::size_t dash = text.find('-'); dash == 8 && all_digits(text.substr(0, 8)))  // 20250203-100000
      return digits(text.substr(0, 8)) && digits(text.substr(9));
    return zone(text);
  }

  [[nodiscard]] std::optional<WordedTime> result() const {
    const int year = year_ < 0 ? other_year_ : year_;
    if (year_ < 0 && !month_named_) return std::nullopt;
    if (!time_ || month_ < 1 || month_ > 12 || day_ < 1 || day_ > 31) return std::nullopt;
    const auto midnight = parse_date(fmt::format("{:04}-{:02}-{:02}", year, month_, day_));
    if (!midnight) return std::nullopt;
    Nanos time = *time_;
    constexpr Nanos kHalf = kDay / 2;
    if (afternoon_) {
      if (time >= kHalf + 3600 * kSecond) return std::nullopt;
      if (time >= kHalf) time -= kHalf;
      if (*afternoon_) time += kHalf;
    }
    return WordedTime{*midnight + time, zone_, year_ < 0};
  }

 private:
  // Whether a half of the day or a day of the week may stand there; nothing for other words.
  std::optional<bool> half_or_weekday(std::string_view text) {
    const std::string small = lower(text);
    if (std::find(kHalves.begin(), kHalves.end(), small) != kHalves.end()) return half(small[0] == 'p');
    if (small == "m.") return afternoon_.has_value();
    const auto bare = std::string_view(small).substr(0, small.size() - (small.ends_with('.') ? 1 : 0));
    const bool weekday = place_in(kWeekdays, text) ||
                         std::find(kShortWeekdays.begin(), kShortWeekdays.end(), bare) != kShortWeekdays.end();
    return weekday ? std::optional(true) : std::nullopt;
  }
  [[nodiscard]] bool dated() const { return year_ >= 0 && day_ > 0 && !time_; }
  bool zone(std::string_view text) {
    for (const std::string_view utc : {"GMT", "UTC"})  // "GMT+0200"
      if (text.size() > utc.size() && text.starts_with(utc) && (text[3] == '+' || text[3] == '-'))
        text.remove_prefix(utc.size());
    if (text.size() > 6 || !time_ || !zone_.empty()) return false;
    zone_ = text;
    return true;
  }
  // "mar." is a Tuesday in French, Spanish and Italian, where a month follows.
  [[nodiscard]] bool may_be_month() const { return month_ == 0 || tuesday_; }
  bool named(int month, std::string_view text) {
    const std::string small = lower(text);
    tuesday_ = month_ == 0 && (small == "mar" || small == "mar.");
    month_ = month + 1;
    month_named_ = true;
    return true;
  }
  bool clock(std::string_view text) {
    if (time_) return false;
    std::string padded = with_two_digits(text);
    if (padded.size() == 5 || (padded.size() > 5 && padded[5] != ':')) padded.insert(5, ":00");
    std::size_t used = 0;
    time_ = parse_leading_time(padded, used);
    if (!time_) return false;
    const std::string rest = lower(padded.substr(used));
    if (rest.empty()) return true;
    if (rest == "am" || rest == "pm") return half(rest[0] == 'p');
    zone_ = text.substr(text.size() - rest.size());
    return true;
  }
  bool half(bool afternoon) {
    if (afternoon_) return false;
    afternoon_ = afternoon;
    return true;
  }
  bool date(const Triple& triple) {
    if (year_ >= 0 || day_ != 0) return false;
    const auto& [a, b, c] = triple.parts;
    if (a.size() == 4) return set(number(a), b, number(c));
    if (order_ == DateOrder::kYearFirst && a.size() == 2 && c.size() == 2) return set(2000 + number(a), b, number(c));
    const int year = c.size() == 4 ? number(c) : c.size() == 2 ? 2000 + number(c) : -1;
    if (!order_matters(triple)) return set(year, b, number(a));
    if (order_ == DateOrder::kUnknown && number(a) <= 12 && number(b) <= 12 && a != b) return false;
    const bool day_first = order_ == DateOrder::kDayFirst || (order_ == DateOrder::kUnknown && number(a) > 12);
    return day_first ? set(year, b, number(a)) : set(year, a, number(b));
  }
  bool set(int year, std::string_view month, int day) {
    const auto named = place_in(kMonths, month);
    year_ = year, month_ = named ? *named + 1 : number(month), day_ = day;
    return true;
  }
  bool digits(std::string_view text) {
    if (text.size() == 14) return digits(text.substr(0, 8)) && digits(text.substr(8));
    if (text.size() == 8 && year_ < 0) return set(number(text.substr(0, 4)), text.substr(4, 2), number(text.substr(6)));
    if (text.size() == 6 && !time_ && year_ >= 0)
      return clock(fmt::format("{}:{}:{}", text.substr(0, 2), text.substr(2, 2), text.substr(4)));
    if (text.size() == 4 && year_ < 0) return (year_ = number(text)) >= 0;
    if (text.size() <= 2 && day_ == 0) return (day_ = number(text)) > 0;
    return false;
  }

  DateOrder order_;
  int other_year_;  // where it names none
  int year_ = -1, month_ = 0, day_ = 0;
  bool tuesday_ = false;      // the month may have been one
  bool month_named_ = false;  // in a word of its own
  std::optional<Nanos> time_;
  std::optional<bool> afternoon_;
  std::string_view zone_;
};

}  // namespace

std::size_t no_break_blank(std::string_view text) {
  for (const std::string_view blank : {"\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89", "\xa0"})
    if (text.starts_with(blank)) return blank.size();
  return 0;
}

namespace {

std::optional<WordedTime> parse_usual_time(std::string_view text, DateOrder order, int year) {
  Parser parser(order, year);
  const std::size_t t = text.find('T');  // 03-02-2025T10:00:00
  const bool joined =
      t != std::string_view::npos && t > 0 && t + 1 < text.size() && is_digit(text[t - 1]) && is_digit(text[t + 1]);
  for (std::string_view rest :
       {text.substr(0, joined ? t : text.size()), joined ? text.substr(t + 1) : std::string_view()})
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest))
      if (!parser.word(word)) return std::nullopt;
  return parser.result();
}

}  // namespace

std::optional<WordedTime> parse_worded_time(std::string_view text, DateOrder order, int year) {
  constexpr std::size_t kLongest = 96;
  if (text.size() > kLongest) return std::nullopt;
  // "Sun Oct 19 2025 15:00:00 GMT+0200 (Central European Summer Time)", as JavaScript has it
  if (const auto named = text.find(" ("); named != std::string_view::npos && text.ends_with(')') && is_all_ascii(text))
    text = text.substr(0, named);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const auto usual = with_usual_signs(text);
  if (!usual) return parse_usual_time(text, order, year);
  auto time = parse_usual_time(*usual, order, year);
  if (!time || time->zone.empty()) return time;
  const auto at = text.rfind(time->zone);  // it is kept as it was
  time->zone = at == std::string_view::npos ? std::string_view() : text.substr(at, time->zone.size());
  return time;
}

bool is_pointed_time(std::string_view text) {
  constexpr std::size_t kShortest = 7;  // "9.05.03": "9.05" may be a number
  const auto blank = text.find(' ');
  if (blank == std::string_view::npos || text.size() - blank - 1 < kShortest) return false;
  const std::string_view time = text.substr(blank + 1);
  return triple_of(text.substr(0, blank)) && time.find('.') != std::string_view::npos && !with_colons(time).empty();
}

std::optional<Nanos> parse_elapsed(std::string_view text) {
  constexpr std::int64_t kMost = 100'000;  // days, and hours: within what a recording holds
  Nanos days = 0;
  if (const auto word = text.find(" day"); word != std::string_view::npos) {
    const auto count = parse_number<std::int64_t>(text.substr(0, word));
    if (!count || *count < 0 || *count > kMost) return std::nullopt;
    days = *count * kDay;
    text.remove_prefix(word + 4);
    if (text.starts_with('s')) text.remove_prefix(1);
    if (text.starts_with(',')) text.remove_prefix(1);
    if (trim(text).empty()) return days;
    if (text[0] != ' ') return std::nullopt;
    text = trim(text);
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || !is_digit(text[0])) return std::nullopt;
  const auto hours = parse_number<std::int64_t>(text.substr(0, colon));
  const auto rest = parse_time_of_day(fmt::format("00{}", text.substr(colon)));
  if (!hours || *hours > kMost || !rest) return std::nullopt;
  return days + *hours * 3600 * kSecond + *rest;
}

namespace {

// Whether it is this day of the week, from Monday; false for no date.
bool is_weekday(int year, int month, int day, int weekday) {
  constexpr int kThursday = 3, kDays = 7;
  const auto date = parse_date(fmt::format("{:04}-{:02}-{:02}", year, month, day));
  return date && (*date / kDay + kThursday) % kDays == weekday;
}

// "25/11/02" may begin with its year, which is not before that of the oldest log.
bool may_be_year_first(const Triple& triple) {
  constexpr int kOldest = 10, kMostDays = 31;
  const int day = number(triple.parts[2]);
  return triple.parts[0].size() == 2 && triple.parts[2].size() == 2 && number(triple.parts[0]) >= kOldest &&
         number(triple.parts[1]) <= 12 && day >= 1 && day <= kMostDays;
}

}  // namespace

bool DateOrderFinder::add(std::string_view text) {
  std::optional<int> weekday;
  if (!text.empty() && !is_digit(text[0])) {
    weekday = place_in(kWeekdays, text);
    text.remove_prefix(std::min(text.find(' ') + 1, text.size()));
  }
  const auto triple = triple_of(text.substr(0, text.find_first_of(" T_,")));
  if (!triple || !order_matters(*triple) || !all_digits(triple->parts[1])) return false;
  const int first = number(triple->parts[0]), second = number(triple->parts[1]), third = number(triple->parts[2]);
  ++dates_;
  if (weekday && triple->parts[2].size() == 4 && first != second) {
    day_first_by_weekday_ += is_weekday(third, second, first, *weekday) ? 1 : 0;
    month_first_by_weekday_ += is_weekday(third, first, second, *weekday) ? 1 : 0;
  }
  if (may_be_year_first(*triple)) ++year_may_be_first_;
  if (first > 12) ++first_above_12_;
  if (second > 12) ++second_above_12_;
  if (first_ != 0) {
    if (first != first_) ++first_changed_;
    if (second != second_) ++second_changed_;
    if (third != third_) ++third_changed_;
  }
  first_ = first, second_ = second, third_ = third;
  return true;
}

DateOrder DateOrderFinder::likely_order() const {
  constexpr int kLikely = 20;
  return third_ < kLikely && first_ >= kLikely ? DateOrder::kYearFirst : DateOrder::kDayFirst;
}

DateOrder DateOrderFinder::order() const {
  if ((day_first_by_weekday_ > 0) != (month_first_by_weekday_ > 0))
    return day_first_by_weekday_ > 0 ? DateOrder::kDayFirst : DateOrder::kMonthFirst;
  if (may_begin_with_a_year() && third_changed_ > first_changed_) return DateOrder::kYearFirst;
  if (year_is_open() && first_above_12_ > 0) return DateOrder::kUnknown;
  if ((first_above_12_ > 0) != (second_above_12_ > 0))
    return first_above_12_ > 0 ? DateOrder::kDayFirst : DateOrder::kMonthFirst;
  if (first_above_12_ > 0 || first_changed_ == second_changed_) return DateOrder::kUnknown;
  return first_changed_ > second_changed_ ? DateOrder::kDayFirst : DateOrder::kMonthFirst;
}

namespace {
constexpr double kLongestStepOfDays = 0.005, kShortestOfSeconds = 0.5;  // 7 minutes; half a day, if it were days
}

bool ExcelDaysFinder::add(std::string_view text) {
  constexpr double kFirst = 30'000, kLast = 60'000;  // 1982 and 2064; half a day of seconds
  const auto number = parse_number<double>(text);
  if (!number || !(*number >= kFirst && *number <= kLast)) return false;
  if (last_ > 0 && *number != last_) steps_.push_back(std::abs(*number - last_));
  last_ = *number;
  return true;
}

// Of several GPUs most rows are milliseconds behind the one before: the mean must say the same as the median.
double ExcelDaysFinder::step() const { return steps_.empty() ? kShortestOfSeconds : median(steps_); }
double ExcelDaysFinder::mean_step() const {
  const double sum = std::accumulate(steps_.begin(), steps_.end(), 0.0);
  return steps_.empty() ? kShortestOfSeconds : sum / static_cast<double>(steps_.size());
}
bool ExcelDaysFinder::are_days() const { return step() <= kLongestStepOfDays && mean_step() <= kLongestStepOfDays; }
bool ExcelDaysFinder::are_seconds() const {
  constexpr std::int64_t kRounds = 3;  // one or two may be nights between days of work
  const auto wide = std::count_if(steps_.begin(), steps_.end(), [](double s) { return s >= kShortestOfSeconds; });
  return step() >= kShortestOfSeconds || (mean_step() >= kShortestOfSeconds && wide >= kRounds);
}
bool ExcelDaysFinder::unclear() const { return !are_days() && !are_seconds(); }

}  // namespace headroom
