// SPDX-License-Identifier: Apache-2.0
#include "output/log_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/strings.h"
#include "base/visible.h"
#include "output/line_kinds.h"

namespace headroom::output {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kLongestJson = 64 << 10;  // of a line
constexpr std::size_t kMostNames = 1000;        // more is data, not parameters
constexpr int kDeepest = 8;

template <class T>
void put(std::vector<std::pair<std::string, T>>& list, const std::string& name, T value) {
  const auto same = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == name; });
  if (same != list.end())
    same->second = std::move(value);
  else if (list.size() < kMostNames)
    list.emplace_back(name, std::move(value));
}

std::string text_of(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

void take_parameters(const ordered_json& object, const std::string& above, int depth, Attempt& attempt) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && !value.empty() && depth < kDeepest)
      take_parameters(value, above + key + ".", depth + 1, attempt);
    else
      put(attempt.parameters_resolved, above + key, text_of(value));
  }
}

void take_metrics(const ordered_json& object, const std::string& above, int depth, Attempt& attempt) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && depth < kDeepest)
      take_metrics(value, above + key + ".", depth + 1, attempt);
    else if (value.is_number())
      put(attempt.metrics, above + key, value.get<double>());
  }
}

// False where the line is not of ours.
bool take_json(std::string_view line, Attempt& attempt) {
  constexpr std::string_view kOurs = "headroom";
  if (line.size() > kLongestJson || !trim(line).starts_with('{') || line.find(kOurs) == std::string_view::npos)
    return false;
  const auto json = parse_json<ordered_json>(line);
  if (!json.is_object()) return false;
  const auto said = json.find(kOurs);
  if (said == json.end() || !said->is_object()) return false;
  if (const auto params = said->find("params"); params != said->end() && params->is_object())
    take_parameters(*params, "", 0, attempt);
  if (const auto metrics = said->find("metrics"); metrics != said->end() && metrics->is_object())
    take_metrics(*metrics, "", 0, attempt);
  return true;
}

}  // namespace

LogFacts::LogFacts(const std::vector<LogPattern>& patterns) {
  for (const auto& pattern : patterns)
    if (pattern.kind == LogPattern::Kind::kMetric || pattern.kind == LogPattern::Kind::kParameter)
      patterns_.push_back({.pattern = pattern, .matcher = Matcher(pattern)});
}

void LogFacts::take_log(std::string_view text, Attempt& attempt) const {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    if (end > begin) take_line(text.substr(begin, end - begin), attempt);
    begin = end + 1;
  }
}

void LogFacts::take_told(std::string_view line, Attempt& attempt) const {
  for (const LineMatch& match : kinds_of(without_log_prefix(line)))
    if (const auto told = parameter_of(match))
      if (std::none_of(patterns_.begin(), patterns_.end(),
                       [&](const Compiled& one) { return one.pattern.name == told->name; }))
        put(attempt.parameters_resolved, std::string(told->name), std::string(told->value));
}

void LogFacts::take_line(std::string_view line, Attempt& attempt) const {
  if (take_json(line, attempt)) return;
  take_told(line, attempt);
  for (const Compiled& one : patterns_) {
    const auto found = one.matcher.find(line);
    if (!found) continue;
    if (one.pattern.kind == LogPattern::Kind::kParameter)
      put(attempt.parameters_resolved, one.pattern.name, std::string(*found));
    else if (const auto value = parse_number<double>(*found))
      put(attempt.metrics, one.pattern.name, *value);
  }
}

bool LogFacts::take_file(std::string_view text, Attempt& attempt) {
  const auto json = parse_json<ordered_json>(text);
  if (!json.is_object()) return false;
  take_parameters(json, "", 0, attempt);
  return true;
}

namespace {

// Without escape sequences and control characters, and with others from outside made visible; what a progress bar has
// overwritten is gone, too.
std::string printable(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (const auto from = line.rfind('\r'); from != std::string_view::npos) line.remove_prefix(from + 1);
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {  // CSI: up to its final byte
      for (i += 2; i < line.size() && (line[i] < '@' || line[i] > '~');) ++i;
      continue;
    }
    if (static_cast<unsigned char>(line[i]) >= ' ' && line[i] != '\x7f') text += line[i];
  }
  return visible(trim(text));
}

std::string shortened(std::string text) {
  constexpr std::size_t kLongest = 160;
  constexpr std::string_view kMore = "…";
  if (text.size() <= kLongest) return text;
  std::size_t end = kLongest - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + std::string(kMore);
}

// Without what Headroom itself said of its recording: a line, and a second one for the next step.
std::vector<std::string_view> lines_of_job(std::string_view output) {
  constexpr std::string_view kOurs = "headroom: ", kNext = "  ";
  std::vector<std::string_view> lines;
  for (const std::string_view line : split(output, '\n')) {
    lines.push_back(line);
    if (line.find(kJobRunsOn) == std::string_view::npos) continue;
    if (line.starts_with(kOurs)) {
      lines.pop_back();
    } else if (line.starts_with(kNext) && lines.size() > 1 && lines[lines.size() - 2].starts_with(kOurs)) {
      lines.resize(lines.size() - 2);
    }
  }
  return lines;
}

struct End {
  std::string last, exception;  // the last line, and that of the last traceback
  std::size_t behind = 0;       // lines after that
  std::string in_thread;        // that of the last traceback of another thread before that one
};

End end_of(std::string_view output) {
  constexpr std::string_view kTraceback = "Traceback (most recent call last):";
  constexpr std::string_view kThread = "Exception in thread ";
  End end;
  bool in_traceback = false, threads = false;  // the traceback that follows, or the last one, is another thread's
  for (const std::string_view line : lines_of_job(output)) {
    if (line.starts_with(kTraceback)) {
      in_traceback = true;
      end.exception.clear();
      continue;
    }
    if (line.starts_with(kThread)) threads = true;
    std::string text = printable(line);
    if (text.empty()) continue;
    ++end.behind;
    if (in_traceback && line.front() != ' ' && line.front() != '\t') {
      end.exception = text;
      end.behind = 0;
      in_traceback = false;
      if (std::exchange(threads, false)) end.in_thread = text;
    }
    end.last = std::move(text);
  }
  return end;
}

}  // namespace

std::string last_words(std::string_view output) {
  End end = end_of(output);
  return shortened(end.exception.empty() ? std::move(end.last) : std::move(end.exception));
}

std::string exception_at_end(std::string_view output) {
  constexpr std::size_t kFew = 5;  // of a tracker that says good-bye, of a launcher
  End end = end_of(output);
  if (end.behind > kFew) return "";
  std::string told = shortened(std::move(end.exception));
  if (told.empty() || end.in_thread.empty() || told == shortened(end.in_thread)) return told;
  return fmt::format("{}; before that, in another thread, {}", told, shortened(std::move(end.in_thread)));
}

}  // namespace headroom::output
