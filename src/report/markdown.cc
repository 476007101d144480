// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/visible.h"
#include "report/facts.h"
#include "report/words.h"

namespace headroom::report {

namespace {

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

// As text in a fence longer than any run of backticks in it.
std::string code(std::string_view text) {
  const std::string shown = visible(text);
  std::size_t longest = 0, run = 0;
  for (const char c : shown) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`'), gap = longest > 0 ? " " : "";
  return fence + gap + shown + gap + fence;
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

std::string findings(const Document& d) {
  const auto numbers = finding_numbers(d.explanation);
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += fmt::format("### {}. {}\n\n{}", numbers[i], escaped(d.explanation.findings[i].title),
                        points(finding_points(d.explanation, d.explanation.findings[i])));
  return text + points(limits_points(d.explanation));
}

std::string options(const Document& d) {
  std::string text = escaped(plan_headline(d.plan)) + "\n\n" + table(options_table(d));
  std::size_t number = 0;
  for (const Option& option : d.plan.options)
    text +=
        fmt::format("### Option {}: {}\n\n{}", ++number, escaped(option.title), points(option_points(d.plan, option)));
  return text + points(plan_points(d.plan));
}

std::string over_time(const Document& d) {
  std::string text;
  for (std::size_t gpu = 0; gpu < d.view.gpus.size(); ++gpu) text += table(time_table(d, gpu));
  return text;
}

std::string tasks(const Document& d) {
  const std::string words = batch_words(d);
  return words.empty() ? "" : escaped(words) + "\n\n" + table(runs_table(d));
}

std::string how(const Document& d) {
  const std::string losses = table(losses_table(d));
  return points(evidence_points(d.explanation)) +
         (losses.empty() ? "Nothing was lost while recording or reading, as far as was counted.\n\n" : losses);
}

}  // namespace

std::string to_markdown(const Document& d) {
  const Explanation& e = d.explanation;
  std::string text = fmt::format("# {}\n\n", escaped(e.headline));
  if (const auto problems = problem_words(e); !problems.empty())
    text += fmt::format("**Problems:** {}.\n\n", escaped(join(problems, "; ")));
  text += section("Where the time went", table(ledger_table(d)));
  text += section("What cost time", findings(d));
  text += section("What to change", options(d));
  text += section("Tasks", tasks(d));
  text += section("Over time", over_time(d));
  text += section("Stacks of idle time", table(functions_table(d)));
  text += section("Health", table(health_table(d)));
  text += section("Phases, readings, processes",
                  table(phases_table(d)) + table(readings_table(d)) + table(processes_table(d)));
  text += section("Parameters and metrics the job told", points(parameter_points(e)));
  text += section("What was recorded", points(provenance_points(e)));
  text += section("How it was recorded", how(d));
  return text + "Written by headroom " HEADROOM_VERSION ".\n";
}

}  // namespace headroom::report
