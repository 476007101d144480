// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "report/facts.h"
#include "report/html.h"
#include "report/html_charts.h"
#include "report/words.h"

namespace headroom::report {

namespace {

using html::escaped;

std::string findings(const Document& d) {
  const auto numbers = finding_numbers(d.explanation);
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Finding& finding = d.explanation.findings[i];
    const std::string cost = finding_cost(d.explanation, finding);
    text +=
        fmt::format("<article>\n<h3 id=\"finding-{0}\">{0}. {1}{2}</h3>\n{3}</article>\n", numbers[i],
                    escaped(finding.title), cost.empty() ? "" : " <span class=\"cost\">" + escaped(cost) + "</span>",
                    html::points(finding_points(d.explanation, finding)));
  }
  return text + html::points(limits_points(d.explanation));
}

std::string options(const Document& d) {
  std::string text = "<p>" + escaped(plan_headline(d.plan)) + "</p>\n";
  text += html::option_chart(d) + html::table(options_table(d));
  std::size_t number = 0;
  for (const Option& option : d.plan.options) {
    ++number;  // the first one is what most readers came for
    text += html::details(fmt::format("{}. {}: how to do it, check it and undo it", number, option.title),
                          html::points(option_points(d.plan, option)),
                          number == 1 ? html::Shown::kOpen : html::Shown::kClosed);
  }
  text += html::points(plan_points(d.plan));
  if (!d.plan.options.empty() && !d.recording.empty())
    text += "<p>To check a change afterwards:</p>\n" +
            html::commands({fmt::format("headroom plan {} -o plan.json", d.recording),
                            "# make one change, record again, then:", "headroom verify plan.json last"});
  return text;
}

std::string stacks(const Document& d) {
  if (d.flame_graph.empty()) return "";
  return "<p>What the job was at while its GPUs were idle: the outermost function on top, as wide as its time.</p>\n"
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Flame graph\">" +
         d.flame_graph + "</div>\n" + html::table_twin(functions_table(d));
}

std::string detail_tables(const Document& d) {
  return html::table(phases_table(d)) + html::table(readings_table(d)) + html::table(processes_table(d));
}

std::string recording_facts(const Document& d) {
  std::string text = html::points(evidence_points(d.explanation));
  const std::string losses = html::table(losses_table(d));
  text += losses.empty() ? "<p>Nothing was lost while recording or reading, as far as was counted.</p>\n" : losses;
  if (!d.recording.empty())
    text += "<p>The recording says more than this report:</p>\n" +
            html::commands({fmt::format("headroom why {} --full{}", d.recording, d.stretch)});
  return text;
}

std::string title_of(const Document& d) {
  const std::string& path = d.explanation.path;
  return path.empty() ? "Headroom report" : "Headroom report: " + path.substr(path.rfind('/') + 1);
}

std::string stretch(const Document& d) {
  const std::string words = stretch_words(d);
  return words.empty() ? "" : "<p>" + escaped(words) + "</p>\n";
}

std::string problems(const Explanation& e) {
  const std::vector<std::string> words = problem_words(e);
  return words.empty() ? ""
                       : "<p class=\"problem\"><strong>Problems:</strong> " + escaped(join(words, "; ")) + ".</p>\n";
}

}  // namespace

std::string to_html(const Document& d) {
  const Explanation& e = d.explanation;
  return html::page({.verb = "report",
                     .title = title_of(d),
                     .headline = e.headline,
                     .introduction = stretch(d) + problems(e),
                     .parts = {
                         {"ledger", "Where the time went", html::ledger_charts(d)},
                         {"time", "Over time", html::time_charts(d)},
                         {"findings", "What cost time", findings(d)},
                         {"options", "What to change", options(d)},
                         {"tasks", "Tasks", html::batch_charts(d)},
                         {"stacks", "Stacks of idle time", stacks(d)},
                         {"health", "Health", html::table(health_table(d))},
                         {"details", "Phases, readings, processes", detail_tables(d)},
                         {"parameters", "Parameters and metrics the job told", html::points(parameter_points(e))},
                         {"provenance", "What was recorded", html::points(provenance_points(e))},
                         {"evidence", "How it was recorded", recording_facts(d)},
                     }});
}

}  // namespace headroom::report
