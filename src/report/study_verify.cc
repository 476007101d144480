// SPDX-License-Identifier: Apache-2.0
#include "report/study_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "report/beginning.h"
#include "report/html.h"
#include "report/json_values.h"
#include "report/markdown.h"
#include "report/palette.h"
#include "report/requirements.h"
#include "report/study_text.h"

namespace headroom::report {

namespace {

Json finite_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json range_json(const std::optional<Estimate>& range) {
  if (!range) return nullptr;
  return {
      {"estimate", finite_json(range->value)}, {"low", finite_json(range->low)}, {"high", finite_json(range->high)}};
}

std::string answer_of(const StudyVerification& v) {
  if (v.kept) return fmt::format("{}: {}.", *v.kept ? "Kept" : "Not kept", v.why);
  constexpr std::string_view kFew = "too few to say";
  if (std::string_view(v.why).starts_with(kFew)) return fmt::format("Too few to say{}.", v.why.substr(kFew.size()));
  return fmt::format("{}: {}.", v.differences.empty() ? "Not known whether it was kept" : "Not comparable", v.why);
}

std::string which_trials(const StudyVerification& v) {
  std::string text = fmt::format("Study {}: ", v.study);
  if (v.goes_on)
    text += fmt::format("only trials from number {} on count{}, and {} of these ended before the last one began",
                        v.since, v.plans_own ? ", which the plan did not know yet" : "", human_count(v.ended));
  else
    text += fmt::format("{} ended before the last one began", count_of(v.ended, "trial"));
  if (v.used == 0) return text + ".";
  if (v.goes_on) return text + "; they are held against the replays of the plan's whole study.";
  return text + fmt::format("; the first {} to end {} held against the first {} of the plan's replays.",
                            human_count(v.used), v.used == 1 ? "is" : "are", human_count(v.used));
}

std::string verdict_of(const VerifiedFigure& figure) {
  const std::string word = !figure.kept ? "not known" : *figure.kept ? "kept" : "not kept";
  return figure.why.empty() ? word : fmt::format("{}: {}", word, figure.why);
}

std::string measured_words(const VerifiedFigure& figure) {
  if (!figure.measured) return "-";
  const Estimate& seen = *figure.measured;
  const std::string value = figure_words(figure.figure, seen.value), range = range_words(figure.figure, seen);
  return range == value ? value : fmt::format("{} ({})", value, range);
}

std::string row(std::string_view label, const std::string& words, const TextOptions& options) {
  constexpr std::size_t kLabel = 14;
  return wrap(words, options.width, "  " + pad_right(label, kLabel), std::string(kLabel + 2, ' '));
}

std::string state_counts(const ComparedStudy& side, TrialState state) {
  return human_count(side.states[static_cast<std::size_t>(state)]);
}

struct SideBySide {
  std::string label, a, b;
};

std::string ended_words(const ComparedStudy& side, StudyFigure figure, Estimate FirstTrials::*member) {
  if (!side.ended) return "-";
  return measured_words({.figure = figure, .measured = (*side.ended).*member});
}

std::string seconds_words(const std::optional<double>& seconds) { return seconds ? duration_words(*seconds) : "-"; }

std::vector<SideBySide> rows_of(const StudyComparison& c) {
  std::vector<SideBySide> rows{{"", "A", "B"}};
  const auto add = [&](std::string label, const auto& of) { rows.push_back({std::move(label), of(c.a), of(c.b)}); };
  add("trials", [](const ComparedStudy& s) { return human_count(s.trials); });
  for (const auto& [state, word] :
       {std::pair(TrialState::kComplete, "complete"), std::pair(TrialState::kPruned, "pruned"),
        std::pair(TrialState::kFail, "failed"), std::pair(TrialState::kRunning, "running")})
    add(word, [state = state](const ComparedStudy& s) { return state_counts(s, state); });
  add("trials/h", [](const ComparedStudy& s) {
    return ended_words(s, StudyFigure::kTrialsPerHour, &FirstTrials::trials_per_hour);
  });
  add("a trial takes",
      [](const ComparedStudy& s) { return ended_words(s, StudyFigure::kTrialLength, &FirstTrials::trial_seconds); });
  add("start-up share",
      [](const ComparedStudy& s) { return s.startup_share ? human_percent(*s.startup_share) : "not known"; });
  add("workers", [](const ComparedStudy& s) { return human_count(s.workers); });
  add("at once", [](const ComparedStudy& s) {
    return s.ended ? figure_words(StudyFigure::kAtOnce, s.ended->at_once.value) : "-";
  });
  add("pruned share",
      [](const ComparedStudy& s) { return ended_words(s, StudyFigure::kPruned, &FirstTrials::pruned_share); });
  if (!c.one_objective) return rows;
  add("best value", [](const ComparedStudy& s) { return s.best ? fmt::format("{:.6g}", s.best->value) : "-"; });
  add("time to it", [](const ComparedStudy& s) { return s.best ? duration_words(s.best->worked_seconds) : "-"; });
  if (c.a.reached_seconds && c.b.reached_seconds)
    add("to the worse one", [](const ComparedStudy& s) { return seconds_words(s.reached_seconds); });
  return rows;
}

std::string which_studies(const StudyComparison& c) {
  return fmt::format("A is study {} of {}, B is study {} of {}.", c.a.name, c.a.storage, c.b.name, c.b.storage);
}

std::string headline_of(const StudyComparison& c) {
  return c.differences.empty() ? "Two studies, side by side" : "These two studies cannot be compared";
}

Table table_of(const StudyComparison& c) {
  Table table{.caption = "Figures of both studies", .head = {"", "A", "B"}};
  for (const SideBySide& one : rows_of(c))
    if (!one.label.empty()) table.rows.push_back({one.label, one.a, one.b});
  return table;
}

std::vector<Point> points_of(const char* label, const std::vector<std::string>& sentences) {
  std::vector<Point> points;
  for (const std::string& sentence : sentences) points.push_back({label, sentence + "."});
  return points;
}

constexpr std::string_view kDecides =
    "* moved by the change, as predicted: this decides. Ranges hold the truth 90 % of the time.";
constexpr std::string_view kRemembered =
    "Remembered: headroom verify --history shows how far such predictions came true.";

std::string headline_of(const StudyVerification& v) { return fmt::format("{}. {}", v.change, answer_of(v)); }

Table table_of(const StudyVerification& v) {
  Table table{.caption = "Each figure, predicted and measured",
              .head = {"Figure", "As it is", "Predicted", "Measured", "Kept"},
              .words = 5};
  for (const VerifiedFigure& figure : v.figures) {
    const auto range = [&](const std::optional<Estimate>& of) {
      return of ? range_words(figure.figure, *of) : std::string("-");
    };
    table.rows.push_back({fmt::format("{}{}", info(figure.figure).label, figure.wanted ? " *" : ""),
                          range(figure.as_it_is), range(figure.predicted), measured_words(figure), verdict_of(figure)});
  }
  if (!table.rows.empty()) table.note = kDecides;
  return table;
}

std::vector<std::string> introduction_of(const StudyVerification& v) {
  std::vector<std::string> sentences{
      which_trials(v),
      fmt::format("The plan: {}. What was made after it: study {} of {}.", v.plan, v.study, v.storage)};
  if (v.remembered) sentences.emplace_back(kRemembered);
  return sentences;
}

constexpr std::string_view kWhyNot = "Why they cannot be compared", kSideBySide = "Side by side",
                           kRequired = "Required", kMind = "What to mind", kFigures = "Predicted and measured";

Json side_json(const ComparedStudy& side) {
  Json states = Json::object();
  for (std::size_t i = 0; i < kTrialStates; ++i)
    states[std::string(trial_state_name(static_cast<TrialState>(i)))] = side.states[i];
  const auto of = [&](Estimate FirstTrials::*member) {
    return side.ended ? range_json((*side.ended).*member) : Json(nullptr);
  };
  return {{"storage", side.storage},
          {"study", side.name},
          {"trials", side.trials},
          {"states", std::move(states)},
          {"ended", side.ended ? side.ended->trials : 0},
          {"trials_per_hour", of(&FirstTrials::trials_per_hour)},
          {"trial_seconds", of(&FirstTrials::trial_seconds)},
          {"startup_share", optional_json(side.startup_share)},
          {"workers", side.workers},
          {"trials_at_once", of(&FirstTrials::at_once)},
          {"pruned_ratio", of(&FirstTrials::pruned_share)},
          {"best", side.best ? Json{{"value", finite_json(side.best->value)},
                                    {"trial", side.best->trial},
                                    {"worked_seconds", finite_json(side.best->worked_seconds)}}
                             : Json(nullptr)},
          {"worse_best_seconds", optional_json(side.reached_seconds)}};
}

}  // namespace

std::string to_text(const StudyVerification& v, const TextOptions& given) {
  const TextOptions options = clamped(given);
  std::string text = wrap(bold(headline_of(v), options), options.width, "", "");
  text += wrap(which_trials(v), options.width, "", "");
  for (const VerifiedFigure& figure : v.figures) {
    const std::string before =
        figure.as_it_is ? fmt::format("as it is {}, ", range_words(figure.figure, *figure.as_it_is)) : "";
    const std::string predicted = figure.predicted ? range_words(figure.figure, *figure.predicted) : "-";
    text += row(info(figure.figure).label,
                fmt::format("{}predicted {}, measured {}: {}{}", before, predicted, measured_words(figure),
                            verdict_of(figure), figure.wanted ? " *" : ""),
                options);
  }
  if (!v.figures.empty()) text += wrap(kDecides, options.width, "", "");
  text += requirements_text(v.requirements, options);
  if (v.remembered) text += wrap(kRemembered, options.width, "", "");
  return text;
}

std::string to_json(const StudyVerification& v) {
  Json json{{"schema", "headroom.verify-study/1"},
            {"plan", v.plan},
            {"storage", v.storage},
            {"study", v.study},
            {"change", v.change},
            {"ended", v.ended},
            {"used", v.used},
            {"since", v.since},
            {"goes_on", v.goes_on},
            {"plans_own", v.plans_own},
            {"differences", v.differences}};
  json["figures"] = Json::array();
  for (const VerifiedFigure& figure : v.figures)
    json["figures"].push_back({{"figure", info(figure.figure).id},
                               {"as_it_is", range_json(figure.as_it_is)},
                               {"predicted", range_json(figure.predicted)},
                               {"measured", range_json(figure.measured)},
                               {"wanted", figure.wanted},
                               {"kept", optional_json(figure.kept)},
                               {"why", text_json(figure.why)}});
  json["kept"] = optional_json(v.kept);
  json["why"] = v.why;
  json["remembered"] = v.remembered;
  if (!v.requirements.empty()) json["requirements"] = requirements_json(v.requirements);
  return dump(json);
}

std::string to_html(const StudyVerificationDocument& d) {
  const StudyVerification& v = d.verification;
  std::string introduction;
  for (const std::string& sentence : introduction_of(v)) introduction += "<p>" + html::escaped(sentence) + "</p>\n";
  return html::page({.verb = "verify",
                     .title = "Headroom verification",
                     .headline = headline_of(v),
                     .introduction = introduction,
                     .parts = {
                         {"reasons", kWhyNot, html::points(points_of("Not comparable", v.differences))},
                         {"figures", kFigures, html::table(table_of(v))},
                         {"required", kRequired, html::table(requirements_table(v.requirements))},
                     }});
}

std::string to_markdown(const StudyVerificationDocument& d) {
  using markdown::section;
  const StudyVerification& v = d.verification;
  std::string text = markdown_beginning("verify") + fmt::format("# {}\n\n", markdown::escaped(headline_of(v)));
  for (const std::string& sentence : introduction_of(v)) text += markdown::escaped(sentence) + "\n\n";
  return text + section(kWhyNot, markdown::points(points_of("Not comparable", v.differences))) +
         section(kFigures, markdown::table(table_of(v))) +
         section(kRequired, markdown::table(requirements_table(v.requirements))) +
         "Written by headroom " HEADROOM_VERSION ".\n";
}

std::string to_text(const StudyComparison& c, const TextOptions& given) {
  const TextOptions options = clamped(given);
  std::string text;
  for (const std::string& difference : c.differences)
    text += warning("!", options) + wrap("Not comparable: " + difference + ".", options.width - 1, " ", "  ");
  text += wrap(which_studies(c), options.width, "", "");
  std::size_t label = 0, a = 0;
  const auto rows = rows_of(c);
  for (const SideBySide& one : rows) label = std::max(label, one.label.size()), a = std::max(a, one.a.size());
  for (const SideBySide& one : rows) {
    if (options.width >= label + 2 * a + 6)
      text += fmt::format("  {}  {}  {}\n", pad_right(one.label, label), pad_right(one.a, a), one.b);
    else if (!one.label.empty())
      text += wrap(fmt::format("{}: A {}, B {}", one.label, one.a, one.b), options.width, "  ", "    ");
  }
  text += requirements_text(c.requirements, options);
  for (const std::string& note : c.notes) text += wrap("Note: " + note + ".", options.width, "", "  ");
  return text;
}

std::string to_json(const StudyComparison& c) {
  Json json{{"schema", "headroom.compare-study/1"},
            {"comparable", c.differences.empty()},
            {"differences", c.differences},
            {"notes", c.notes},
            {"a", side_json(c.a)},
            {"b", side_json(c.b)}};
  if (!c.requirements.empty()) json["requirements"] = requirements_json(c.requirements);
  return dump(json);
}

std::string to_html(const StudyComparisonDocument& d) {
  const StudyComparison& c = d.comparison;
  return html::page({.verb = "compare",
                     .title = "Headroom comparison",
                     .headline = headline_of(c),
                     .introduction = "<p>" + html::escaped(which_studies(c)) + "</p>\n",
                     .parts = {
                         {"reasons", kWhyNot, html::points(points_of("Not comparable", c.differences))},
                         {"figures", kSideBySide, html::table(table_of(c))},
                         {"required", kRequired, html::table(requirements_table(c.requirements))},
                         {"notes", kMind, html::points(points_of("Note", c.notes))},
                     }});
}

std::string to_markdown(const StudyComparisonDocument& d) {
  using markdown::section;
  const StudyComparison& c = d.comparison;
  return markdown_beginning("compare") +
         fmt::format("# {}\n\n{}\n\n", headline_of(c), markdown::escaped(which_studies(c))) +
         section(kWhyNot, markdown::points(points_of("Not comparable", c.differences))) +
         section(kSideBySide, markdown::table(table_of(c))) +
         section(kRequired, markdown::table(requirements_table(c.requirements))) +
         section(kMind, markdown::points(points_of("Note", c.notes))) + "Written by headroom " HEADROOM_VERSION ".\n";
}

}  // namespace headroom::report
