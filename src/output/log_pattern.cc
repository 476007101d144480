// SPDX-License-Identifier: Apache-2.0
#include "output/log_pattern.h"

#include <re2/re2.h>

#include "base/strings.h"

namespace headroom::output {

namespace {

RE2::Options quietly() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

Result<LogPattern> log_pattern(LogPattern::Kind kind, std::string_view name, std::string_view regex) {
  constexpr std::size_t kLongest = 1000;
  if (kind != LogPattern::Kind::kStep && trim(name).empty())
    return fail(Errc::kInvalidInput, "a pattern without a name", "write NAME=REGEX");
  if (regex.size() > kLongest)
    return fail(Errc::kInvalidInput, fmt::format("a pattern of {} characters", regex.size()),
                fmt::format("at most {}", kLongest));
  const RE2 compiled(re2::StringPiece(regex.data(), regex.size()), quietly());
  if (!compiled.ok())
    return fail(Errc::kInvalidInput, fmt::format("'{}' is no regular expression: {}", regex, compiled.error()),
                "the syntax is RE2's: as in Perl, without back-references, look-ahead and look-behind");
  if (kind != LogPattern::Kind::kPhase && compiled.NumberOfCapturingGroups() != 1)
    return fail(Errc::kInvalidInput, fmt::format("'{}' has {} groups", regex, compiled.NumberOfCapturingGroups()),
                "put parentheses around the value, and (?: … ) around the rest");
  return LogPattern{kind, std::string(trim(name)), std::string(regex)};
}

Result<LogPattern> parse_log_option(LogPattern::Kind kind, std::string_view name_equals_regex) {
  const auto equals = name_equals_regex.find('=');
  if (equals == std::string_view::npos)
    return fail(Errc::kInvalidInput, fmt::format("'{}' has no '='", name_equals_regex), "write NAME=REGEX");
  return log_pattern(kind, name_equals_regex.substr(0, equals), name_equals_regex.substr(equals + 1));
}

Matcher::Matcher(const LogPattern& pattern) : regex_(std::make_shared<const RE2>(pattern.regex, quietly())) {}

std::optional<std::string_view> Matcher::find(std::string_view line) const {
  re2::StringPiece group;
  if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex_, &group)) return std::nullopt;
  return std::string_view(group.data(), group.size());
}

bool Matcher::matches(std::string_view line) const {
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex_);
}

namespace {
constexpr double kMostCounted = 1e15;  // more is no count, as "nan" is none
}

void StepCounter::take(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());  // progress bars return
    if (end > begin) take_line(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void StepCounter::take_line(std::string_view line) {
  const auto found = pattern_.find(line);
  if (!found) return;
  seen_ = true;
  const auto number = parse_number<double>(*found);
  if (!number || !(*number >= 0 && *number <= kMostCounted)) {
    now_ += 1;
    return;
  }
  if (*number < now_) before_ += now_;
  now_ = *number;
}

}  // namespace headroom::output
