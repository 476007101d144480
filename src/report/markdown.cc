// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/strings.h"
#include "report/beginning.h"
#include "report/facts.h"
#include "report/markdown.h"
#include "report/words.h"

namespace headroom::report {

namespace {

using markdown::escaped;
using markdown::points;
using markdown::section;
using markdown::table;

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
  std::string text = markdown_beginning("report") + fmt::format("# {}\n\n", escaped(e.headline));
  if (const std::string words = stretch_words(d); !words.empty()) text += escaped(words) + "\n\n";
  if (const auto problems = problem_words(e); !problems.empty())
    text += fmt::format("**Problems:** {}.\n\n", escaped(join(problems, "; ")));
  const std::string ends = ends_words(e.ledger);
  text += section("Where the time went", table(ledger_table(d)) + (ends.empty() ? "" : escaped(ends) + "\n\n"));
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
