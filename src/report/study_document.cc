// SPDX-License-Identifier: Apache-2.0
#include "report/study_document.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "report/beginning.h"
#include "report/html.h"
#include "report/html_study.h"
#include "report/markdown.h"
#include "report/study_text.h"

namespace headroom::report {

namespace {

std::string title_of(const StudyDocument& d) {
  return d.report.name.empty() ? "Headroom study" : "Headroom study: " + d.report.name;
}

std::string what_if_html(const StudyReport& report) {
  std::string html = html::what_if_chart(report) + html::table(what_if_table(report));
  if (const std::string note = what_if_note(report); !note.empty())
    html += "<p class=\"dim\">" + html::escaped(note) + "</p>\n";
  std::size_t number = 0;
  for (const WhatIf& row : report.what_if) {
    ++number;
    html += html::details(fmt::format("{}. {}: how to do it", number, row.change),
                          html::points(what_if_points(report, row)),
                          number == 1 && row.helps ? html::Shown::kOpen : html::Shown::kClosed);
  }
  return html + html::points(study_calibration(report, Facts::kAll));
}

std::string what_if_markdown(const StudyReport& report) {
  std::string text = markdown::table(what_if_table(report));
  if (const std::string note = what_if_note(report); !note.empty()) text += markdown::escaped(note) + "\n\n";
  std::size_t number = 0;
  for (const WhatIf& row : report.what_if)
    text += fmt::format("### {}. {}\n\n{}", ++number, markdown::escaped(row.change),
                        markdown::points(what_if_points(report, row)));
  return text + markdown::points(study_calibration(report, Facts::kAll));
}

}  // namespace

std::string to_html(const StudyDocument& d) {
  const StudyReport& report = d.report;
  std::string introduction;
  for (const std::string& sentence : study_introduction(d)) introduction += "<p>" + html::escaped(sentence) + "</p>\n";
  return html::page(
      {.verb = "study",
       .title = title_of(d),
       .headline = study_headline(d),
       .introduction = introduction,
       .parts = {
           {"time", "What the workers' time went into", html::worker_time_chart(report)},
           {"anomalies", "What wants a look", html::points(anomaly_points(report))},
           {"what-if", "What would find the best value sooner", what_if_html(report)},
           {"trials", "Trials over time", html::trials_chart(d)},
           {"curves", "Learning curves", html::curves_chart(d)},
           {"best", "The best value over time", html::best_chart(d)},
           {"facts", "How it ran", html::points(study_facts(report, Facts::kAll))},
           {"states", "Trials by state", html::table(trial_states_table(report)) + html::table(rungs_table(report))},
           {"source", "What it was read from",
            html::points(study_sources(report, Facts::kAll)) + "<p>The same as text, and for programs:</p>\n" +
                html::commands(study_commands(d))},
       }});
}

std::string to_markdown(const StudyDocument& d) {
  using markdown::section;
  const StudyReport& report = d.report;
  std::string text = markdown_beginning("study") + fmt::format("# {}\n\n", markdown::escaped(study_headline(d)));
  for (const std::string& sentence : study_introduction(d)) text += markdown::escaped(sentence) + "\n\n";
  text += section("What the workers' time went into", markdown::table(worker_time_table(report)));
  text += section("What wants a look", markdown::points(anomaly_points(report)));
  text += section("What would find the best value sooner", what_if_markdown(report));
  text += section("Trials over time", markdown::table(trials_table(d)));
  if (const Curves curves = curves_of(d); !curves.curves.empty())
    text += section("Learning curves", markdown::table(curves_table(d)));
  text += section("The best value over time", markdown::table(best_table(report)));
  text += section("How it ran", markdown::points(study_facts(report, Facts::kAll)));
  text +=
      section("Trials by state", markdown::table(trial_states_table(report)) + markdown::table(rungs_table(report)));
  text += section("What it was read from",
                  markdown::points(study_sources(report, Facts::kAll)) + markdown::commands(study_commands(d)));
  return text + "Written by headroom " HEADROOM_VERSION ".\n";
}

}  // namespace headroom::report
