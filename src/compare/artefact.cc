// SPDX-License-Identifier: Apache-2.0
#include "compare/artefact.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/human.h"
#include "base/strings.h"

namespace headroom::compare {

namespace {

enum class Kind { kEnd, kText, kNumber, kTime };
struct Token {
  Kind kind = Kind::kEnd;
  std::string_view text;
  double value = 0;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool about_time(std::string_view word) {
  constexpr std::array<std::string_view, 6> kWords{"time", "date", "stamp", "elapsed", "duration", "seconds"};
  const std::string small = lower(word);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view part) { return small.find(part) != std::string::npos; });
}

// Cuts a text into numbers, times, words and single characters.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  Token next() {
    if (rest_.empty()) return {};
    if (const std::size_t length = time_length(); length > 0) return take(Kind::kTime, length);
    if (is_letter(rest_[0])) return word();
    if (const Token token = number(); token.kind == Kind::kNumber) return token;
    if (rest_[0] == '\n') word_ = {};
    return take(Kind::kText, 1);
  }

 private:
  Token take(Kind kind, std::size_t length, double value = 0) {
    const Token token{kind, rest_.substr(0, length), value};
    rest_.remove_prefix(length);
    return token;
  }
  Token word() {
    std::size_t length = 1;
    while (length < rest_.size() && (is_letter(rest_[length]) || is_digit(rest_[length]))) ++length;
    word_ = rest_.substr(0, length);
    return take(Kind::kText, length);
  }
  Token number() {
    const std::size_t sign = rest_[0] == '-' ? 1 : 0;
    if (sign >= rest_.size() || !is_digit(rest_[sign])) return {};
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{}) return {};
    return take(about_time(word_) ? Kind::kTime : Kind::kNumber, static_cast<std::size_t>(end - rest_.data()), value);
  }
  // "2026-11-22", "2026-11-22T19:48:52.5Z", "19:48:52"; 0: none begins here.
  [[nodiscard]] std::size_t time_length() const {
    const auto matches = [&](std::size_t at, std::string_view pattern) {
      if (rest_.size() < at + pattern.size()) return false;
      for (std::size_t i = 0; i < pattern.size(); ++i)
        if (pattern[i] == 'd' ? !is_digit(rest_[at + i]) : rest_[at + i] != pattern[i]) return false;
      return true;
    };
    std::size_t length = 0;
    if (matches(0, "dddd-dd-dd")) {
      length = 10;
      if (length + 1 >= rest_.size() || (rest_[length] != 'T' && rest_[length] != ' ') ||
          !matches(length + 1, "dd:dd:dd"))
        return length;
      ++length;
    } else if (!matches(0, "dd:dd:dd")) {
      return 0;
    }
    length += 8;
    if (length < rest_.size() && (rest_[length] == '.' || rest_[length] == ',')) {
      ++length;
      while (length < rest_.size() && is_digit(rest_[length])) ++length;
    }
    if (matches(length, "+dd:dd") || matches(length, "-dd:dd")) return length + 6;
    return length + (length < rest_.size() && rest_[length] == 'Z' ? 1 : 0);
  }

  std::string_view rest_;
  std::string_view word_;  // the last one on this line
};

struct Counts {
  std::int64_t numbers = 0, differing = 0;
  double largest = 0;  // difference
};

bool same_number(double x, double y, double tolerance, double& difference) {
  difference = std::abs(x - y) / std::max({1.0, std::abs(x), std::abs(y)});
  return x == y || difference <= tolerance;
}

std::int64_t lines_before(std::string_view text, std::size_t at) {
  return std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

}  // namespace

ComparedArtefact compare_artefact(std::string name, std::string_view a, std::string_view b, double tolerance) {
  ComparedArtefact result{.name = std::move(name), .same = true, .difference = ""};
  if (a == b) return result;
  if (a.find('\0') != std::string_view::npos || b.find('\0') != std::string_view::npos) {
    result.same = false;
    result.difference = a.size() != b.size()
                            ? fmt::format("{} and {} bytes", human_count(static_cast<std::int64_t>(a.size())),
                                          human_count(static_cast<std::int64_t>(b.size())))
                            : fmt::format("the bytes differ from byte {} on",
                                          human_count(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin()));
    return result;
  }
  Tokens of_a(a), of_b(b);
  Counts counts;
  for (;;) {
    const Token x = of_a.next(), y = of_b.next();
    if (x.kind == Kind::kEnd && y.kind == Kind::kEnd) break;
    if (x.kind != y.kind || (x.kind == Kind::kText && x.text != y.text)) {
      result.same = false;
      const std::size_t at = x.kind == Kind::kEnd ? a.size() : static_cast<std::size_t>(x.text.data() - a.data());
      result.difference = fmt::format("the text differs from line {} on", lines_before(a, at) + 1);
      return result;
    }
    if (x.kind != Kind::kNumber) continue;
    ++counts.numbers;
    double difference = 0;
    if (same_number(x.value, y.value, tolerance, difference)) continue;
    ++counts.differing;
    counts.largest = std::max(counts.largest, difference);
  }
  if (counts.differing == 0) return result;
  result.same = false;
  result.difference = fmt::format("{} of {} differ, by {:.1g} at most", human_count(counts.differing),
                                  count_of(counts.numbers, "number"), counts.largest);
  return result;
}

}  // namespace headroom::compare
