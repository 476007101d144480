// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/visible.h"
#include "report/markdown.h"

namespace headroom::report::markdown {

namespace {

// As text in a fence longer than any run of backticks in it.
std::string code(std::string_view text) {
  const std::string shown = visible(text);
  std::size_t longest = 0, run = 0;
  for (const char c : shown) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`'), gap = longest > 0 ? " " : "";
  return fence + gap + shown + gap + fence;
}

}  // namespace

// A backslash keeps punctuation from being markup (CommonMark 2.4). What is left as text GitHub still makes mentions of
// @, references of # and links of addresses: an empty comment within keeps it from that.
std::string escaped(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_[]<>#|~&";
  const std::string shown = visible(text);
  std::string safe;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (kMarkup.find(shown[i]) != std::string_view::npos) safe += '\\';
    safe += shown[i];
    const std::string_view rest = std::string_view(shown).substr(i);
    const bool address = rest.starts_with("://") || (rest.starts_with("w.") && safe.ends_with("www"));
    if (shown[i] == '@' || shown[i] == '#' || address) safe += "<!-- -->";
  }
  return safe;
}

std::string table(const Table& one) {
  if (one.rows.empty()) return "";
  std::string text = "**" + escaped(one.caption) + "**\n\n|", rule = "|";
  for (std::size_t i = 0; i < one.head.size(); ++i) {
    text += " " + escaped(one.head[i]) + " |";
    rule += i < one.words ? " --- |" : " ---: |";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : one.rows) {
    text += "|";
    for (const std::string& cell : row) text += " " + escaped(cell) + " |";
    text += "\n";
  }
  if (!one.note.empty()) text += "\n" + escaped(one.note) + "\n";
  return text + "\n";
}

std::string points(const std::vector<Point>& points) {
  std::string text;
  for (const Point& point : points)
    text += fmt::format("* {}: {}\n", escaped(point.label), point.code ? code(point.text) : escaped(point.text));
  return text.empty() ? text : text + "\n";
}

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? "" : fmt::format("## {}\n\n{}", title, body);
}

std::string commands(const std::vector<std::string>& lines) {
  std::string text = "```\n";
  for (const std::string& line : lines) text += visible(line) + "\n";
  return text + "```\n\n";
}

}  // namespace headroom::report::markdown
