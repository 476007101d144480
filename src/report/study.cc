// SPDX-License-Identifier: Apache-2.0
#include "report/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/visible.h"
#include "report/layout.h"
#include "report/palette.h"
#include "report/study_text.h"
#include "report/text.h"

namespace headroom::report {

namespace {

// How much is said where lines are few.
struct Detail {
  std::size_t anomalies, rows, edits;
  Facts facts;
};
constexpr std::array kDetails{
    Detail{4, 8, 3, Facts::kUsual}, Detail{3, 8, 3, Facts::kUsual}, Detail{3, 6, 3, Facts::kUsual},
    Detail{2, 6, 3, Facts::kUsual}, Detail{2, 5, 3, Facts::kUsual}, Detail{2, 5, 3, Facts::kFew},
    Detail{1, 5, 3, Facts::kFew},   Detail{1, 4, 3, Facts::kFew},   Detail{1, 4, 2, Facts::kFew},
    Detail{1, 4, 1, Facts::kFew},   Detail{1, 3, 1, Facts::kFew},   Detail{1, 2, 0, Facts::kFew}};
constexpr Detail kAll{10'000, 10'000, 10'000, Facts::kUsual};

// Never wrapped: a command is there to be copied.
std::string next(const StudyReport& report, const TextOptions& options) {
  const std::string name = options.recording.empty() ? typed_word(report.storage) : options.recording;
  const std::string first = fmt::format("headroom study {} {}", name, options.full ? "--json" : "--full");
  std::string text = "Next: " + typed(first, options);
  if (!report.live || report.recording) return text + "\n";  // --watch takes no recording
  const std::string second = fmt::format("headroom study {} --watch", name);
  const bool fits = display_width(first) + display_width(second) + 9 <= options.width;
  return text + (fits && options.utf8 ? " · " : "\n      ") + typed(second, options) + "\n";
}

std::string whole(const StudyReport& report, const TextOptions& options, const Detail& detail) {
  return study_answer(report, options) + study_facts_text(report, options, detail.facts) +
         study_anomalies(report, options, detail.anomalies) + (options.full ? study_tables(report, options) : "") +
         study_what_if(report, options, detail.rows, detail.edits) + study_calibration(report, options) +
         study_source(report, options) + next(report, options);
}

std::string best_words(const StudyReport& report) {
  if (report.directions.size() > 1)
    return fmt::format("{} on the front", human_count(static_cast<std::int64_t>(report.pareto.size())));
  return report.best.empty() ? "-" : fmt::format("{:.6g}", report.best.back().value);
}

}  // namespace

std::string to_text(const StudyReport& report, const TextOptions& wanted) {
  const TextOptions options = clamped(wanted);
  if (options.full) return whole(report, options, kAll);
  std::string text;
  for (const Detail& detail : kDetails) {
    text = whole(report, options, detail);
    if (lines_in(text) <= line_limit(1, options)) break;
  }
  return text;
}

std::string study_list(const std::vector<StudyReport>& studies, const TextOptions& wanted) {
  const TextOptions options = clamped(wanted);
  constexpr std::size_t kTrials = 9, kComplete = 10, kBest = 16;
  std::size_t name = 10;
  for (const StudyReport& study : studies) name = std::max(name, display_width(visible(study.name)) + 1);
  const std::size_t room = options.width - std::min(options.width, kTrials + kComplete + kBest);
  name = std::min(name, std::max<std::size_t>(room, 5));
  std::string text = bold(fmt::format("{}{}{}{}", pad_right("study", name), pad_left("trials", kTrials),
                                      pad_left("complete", kComplete), pad_left("best", kBest)),
                          options) +
                     "\n";
  for (const StudyReport& study : studies) {
    std::int64_t complete = 0;
    for (const StateFacts& state : study.states)
      if (state.state == TrialState::kComplete) complete = state.count;
    text += fmt::format("{}{}{}{}\n", pad_right(study.name, name), pad_left(human_count(study.trials), kTrials),
                        pad_left(human_count(complete), kComplete), pad_left(best_words(study), kBest));
  }
  return text + "\n";
}

}  // namespace headroom::report
