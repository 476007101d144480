// SPDX-License-Identifier: Apache-2.0
#include "report/compare_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/beginning.h"
#include "report/compare_words.h"
#include "report/facts_compare.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/requirements.h"

namespace headroom::report {

namespace {

constexpr double kWide = 960;

// An interval of factors beside 1, which is no difference. `most`: the right edge.
std::string interval(const std::string& words, std::string_view html_class, double low, double high, double most) {
  const auto x = [&](double factor) { return std::clamp(factor / most, 0.0, 1.0) * kWide; };
  return html::chart_row(words, html::svg("step", 960, 14, words, "",
                                          html::rectangle("ground", 0, 0, kWide, 14) +
                                              html::rectangle(html_class, std::min(x(low), kWide - 4), 0,
                                                              std::max(4.0, x(high) - x(low)), 14) +
                                              html::rectangle("one", x(1) - 1, 0, 2, 14)));
}

std::string result_chart(const ComparisonDocument& d) {
  std::string html;
  double most = 1.2;
  const auto widen = [&](double high) { most = std::max(most, std::min(high, 10.0) * 1.1); };
  std::string label = "time at equal work";
  if (d.verification != nullptr) {
    const VerifiedOption& applied = d.verification->applied;
    if (applied.high) widen(*applied.high);
    if (applied.measured) widen(applied.measured->high);
    if (applied.low && applied.high)
      html += interval(fmt::format("predicted: {:.2f}x to {:.2f}x", *applied.low, *applied.high), "a-unexplained",
                       *applied.low, *applied.high, most);
    if (applied.measured)
      html += interval(fmt::format("measured: {:.2f}x to {:.2f}x", applied.measured->low, applied.measured->high),
                       applied.measured->low > 1    ? "gain"
                       : applied.measured->high < 1 ? "bad"
                                                    : "running",
                       applied.measured->low, applied.measured->high, most);
    label = "times as fast";
  } else if (d.comparison.comparable()) {
    const Ratio& ratio = *d.comparison.ratio;
    widen(ratio.high);
    html += interval(fmt::format("B: {:.3f} to {:.3f} of A's time", ratio.low, ratio.high),
                     ratio.high < 1  ? "gain"
                     : ratio.low > 1 ? "bad"
                                     : "a-unexplained",
                     ratio.low, ratio.high, most);
  }
  if (html.empty()) return "";
  return html + html::axis(label, {"0", fmt::format("{:.2g}", most)}) +
         "<p class=\"dim\">The upright line is 1: no difference.</p>\n" + html::table_twin(result_table(d));
}

// A over B for each part, on one scale.
std::string parts_chart(const std::string& caption, const std::vector<ComparedPart>& parts) {
  constexpr std::size_t kMost = 12;
  constexpr double kWorthALine = 0.005;  // of the longest
  double longest = 0;
  for (const ComparedPart& part : parts) longest = std::max({longest, part.a_seconds, part.b_seconds});
  if (!(longest > 0)) return "";
  std::string html = html::legend({{"running", "A"}, {"pruned", "B"}});
  std::size_t drawn = 0;
  for (const ComparedPart& part : parts) {
    if (drawn == kMost || std::max(part.a_seconds, part.b_seconds) < kWorthALine * longest) continue;
    ++drawn;
    const std::string words =
        fmt::format("{}: A {}, B {}", part.name, time_words(part.a_seconds), time_words(part.b_seconds));
    html +=
        html::chart_row(words, html::svg("pair", 960, 20, words, "",
                                         html::rectangle("running", 0, 0, part.a_seconds / longest * kWide, 9) +
                                             html::rectangle("pruned", 0, 11, part.b_seconds / longest * kWide, 9)));
  }
  if (parts.size() > drawn)
    html += html::dim(fmt::format("{} more, smaller ones, are in the table.", parts.size() - drawn));
  return html + html::table_twin(parts_table(caption, parts));
}

std::string_view verb_of(const ComparisonDocument& d) { return d.verification != nullptr ? "verify" : "compare"; }

std::string_view result_title(const Comparison& c) { return c.comparable() ? "The result" : "What to do"; }
std::string_view reasons_title(const Comparison& c) {
  return c.comparable() ? "What to mind" : "Why they cannot be compared";
}

std::string captioned(const char* what, const Comparison& c) { return fmt::format("{}, per {}", what, c.unit); }

}  // namespace

std::string to_html(const ComparisonDocument& d) {
  const Comparison& c = d.comparison;
  std::string introduction;
  for (const std::string& sentence : comparison_introduction(d))
    introduction += "<p>" + html::escaped(sentence) + "</p>\n";
  const html::Part result{"result", result_title(c), result_chart(d) + html::points(result_points(d))};
  const html::Part reasons{"reasons", reasons_title(c), html::points(reason_points(c))};
  return html::page({.verb = verb_of(d),
                     .title = d.verification != nullptr ? "Headroom verification" : "Headroom comparison",
                     .headline = comparison_headline(d),
                     .introduction = introduction,
                     .parts = {
                         // What is not comparable has its reasons first.
                         c.comparable() ? result : reasons,
                         c.comparable() ? reasons : result,
                         {"required", "Required", html::table(requirements_table(c.requirements))},
                         {"figures", "Side by side", html::table(figures_table(c.figures))},
                         {"memory", kMemoryTitle, html::points(memory_points(c))},
                         {"parts", "GPU time", parts_chart(captioned("GPU time by account", c), c.accounts)},
                         {"phases", "Phases",
                          parts_chart(captioned("GPU time by phase", c), c.phases) + html::dim(short_phases_words(c))},
                         {"tasks", "Tasks", html::table(tasks_table(c))},
                         {"parameters", "What differs", html::table(parameters_table(c))},
                         {"metrics", "What the programs printed", html::table(metrics_table(d))},
                         {"artefacts", "Artefacts", html::table(artefacts_table(c))},
                     }});
}

std::string to_markdown(const ComparisonDocument& d) {
  using markdown::section;
  const Comparison& c = d.comparison;
  std::string text =
      markdown_beginning(verb_of(d)) + fmt::format("# {}\n\n", markdown::escaped(comparison_headline(d)));
  for (const std::string& sentence : comparison_introduction(d)) text += markdown::escaped(sentence) + "\n\n";
  const std::string result =
      section(result_title(c), markdown::table(result_table(d)) + markdown::points(result_points(d)));
  const std::string reasons = section(reasons_title(c), markdown::points(reason_points(c)));
  text += c.comparable() ? result + reasons : reasons + result;
  text += section("Required", markdown::table(requirements_table(c.requirements)));
  text += section("Side by side", markdown::table(figures_table(c.figures)));
  text += section(kMemoryTitle, markdown::points(memory_points(c)));
  text += section("GPU time", markdown::table(parts_table(captioned("GPU time by account", c), c.accounts)));
  Table phases = parts_table(captioned("GPU time by phase", c), c.phases);
  phases.note = short_phases_words(c);
  text += section("Phases", markdown::table(phases));
  text += section("Tasks", markdown::table(tasks_table(c)));
  text += section("What differs", markdown::table(parameters_table(c)));
  text += section("What the programs printed", markdown::table(metrics_table(d)));
  text += section("Artefacts", markdown::table(artefacts_table(c)));
  return text + "Written by headroom " HEADROOM_VERSION ".\n";
}

}  // namespace headroom::report
