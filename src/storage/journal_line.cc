// SPDX-License-Identifier: Apache-2.0
#include "storage/journal_line.h"

#include <algorithm>

#include "base/strings.h"

namespace headroom {

namespace {

// Takes a line apart from its beginning; every part is taken or nothing is.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool take(std::string_view part) {
    if (!rest_.starts_with(part)) return false;
    rest_.remove_prefix(part.size());
    return true;
  }
  bool take_key(std::string_view name) {
    if (!take("\"") || !take(name) || !take("\":")) return false;
    take(" ");
    return true;
  }
  bool take_comma() {
    if (!take(",")) return false;
    take(" ");
    return true;
  }
  template <class T>
  bool take_number(T& number) {
    const std::string_view word = rest_.substr(0, rest_.find_first_not_of("+-.0123456789eE"));
    const auto parsed = parse_number<T>(word);
    if (!parsed) return false;
    number = *parsed;
    return take(word);
  }
  bool take_text(std::string_view& text) {
    if (!take("\"")) return false;
    text = rest_.substr(0, rest_.find('"'));
    return is_plain(text) && text.find('\\') == std::string_view::npos && take(text) && take("\"");
  }
  // A text that is JSON itself: its quotes are escaped, and nothing else is.
  bool take_json(std::string& json) {
    if (!take("\"")) return false;
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find_first_of("\"\\"), rest_.size());
      if (!is_plain(rest_.substr(0, end))) return false;
      json += rest_.substr(0, end);
      rest_.remove_prefix(end);
      if (take("\"")) return true;
      if (!take("\\\"")) return false;
      json += '"';
    }
    return false;
  }
  bool is_at_end() const { return trim(rest_) == "}"; }

 private:
  static bool is_plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  }

  std::string_view rest_;
};

bool take_head(Line& line, std::string_view operation, std::int64_t& trial) {
  std::string_view worker;
  return line.take("{") && line.take_key("op_code") && line.take(operation) && line.take_comma() &&
         line.take_key("worker_id") && line.take_text(worker) && line.take_comma() && line.take_key("trial_id") &&
         line.take_number(trial) && line.take_comma();
}

}  // namespace

std::optional<ReportLine> read_report_line(std::string_view text) {
  Line line(text);
  ReportLine report;
  const bool whole = take_head(line, "7", report.trial) && line.take_key("step") && line.take_number(report.step) &&
                     line.take_comma() && line.take_key("intermediate_value") && line.take_number(report.value) &&
                     line.is_at_end();
  return whole ? std::optional(report) : std::nullopt;
}

std::optional<ParameterLine> read_parameter_line(std::string_view text) {
  Line line(text);
  ParameterLine parameter;
  const bool whole = take_head(line, "5", parameter.trial) && line.take_key("param_name") &&
                     line.take_text(parameter.name) && line.take_comma() && line.take_key("param_value_internal") &&
                     line.take_number(parameter.value) && line.take_comma() && line.take_key("distribution") &&
                     line.take_json(parameter.distribution) && line.is_at_end();
  return whole ? std::optional(std::move(parameter)) : std::nullopt;
}

}  // namespace headroom
