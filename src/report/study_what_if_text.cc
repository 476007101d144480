// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/palette.h"
#include "report/study_text.h"

namespace headroom::report {

namespace {

bool slower(const WhatIf& row) { return row.best_reached > 0 && row.time_to_best_ratio.low > 1; }

// In some of the replays by so much that it would be worth an edit.
bool may_gain(const WhatIf& row) {
  constexpr double kWorthIt = 0.98;
  return row.fits && row.best_reached > 0 && row.time_to_best_ratio.low <= kWorthIt;
}

// Fills the GPU with trials that lose: fewer are pruned, it is busier, and the best value comes later.
bool busier_and_slower(const StudyReport& report, const WhatIf& row) {
  constexpr double kBusier = 0.01;
  constexpr auto kPruned = static_cast<std::size_t>(TrialState::kPruned);
  return report.as_it_is && slower(row) && row.utilisation.value > report.as_it_is->utilisation.value + kBusier &&
         row.states[kPruned] < report.as_it_is->states[kPruned];
}

// Reached in some replays only: of too few of them nothing can be said.
bool seldom(const WhatIf& row) { return row.best_reached < 0.995; }
bool hardly(const WhatIf& row) { return row.best_reached < 0.5; }

// A word; with room for it, the reason.
std::string risk_cell(const WhatIf& row, std::size_t room) {
  const std::string longer = risk_words(row);
  return display_width(visible(longer)) <= room ? longer : risk_word(row);
}

// The best ones; the last of them gives way to one that is busier and slower, if none is among them: busy is not fast.
std::vector<const WhatIf*> chosen(const StudyReport& report, std::size_t rows) {
  std::vector<const WhatIf*> shown;
  for (const WhatIf& row : report.what_if)
    if (shown.size() < rows) shown.push_back(&row);
  const auto loses = [&](const WhatIf* row) { return busier_and_slower(report, *row); };
  const WhatIf* plainest = nullptr;  // of those, the one that most replays bear out
  for (const WhatIf& row : report.what_if)
    if (loses(&row) && (plainest == nullptr || row.best_reached > plainest->best_reached + 1e-6)) plainest = &row;
  if (rows >= 4 && plainest != nullptr && std::none_of(shown.begin(), shown.end(), loses)) shown.back() = plainest;
  return shown;
}

constexpr std::size_t kAllEdits = 1'000'000;

// The changes whose edits are told: the first `most` that help; all of them for kAllEdits.
std::vector<const WhatIf*> edited(const StudyReport& report, std::size_t most) {
  std::vector<const WhatIf*> rows;
  for (const WhatIf& row : report.what_if)
    if (most == kAllEdits || (row.helps && !row.how.empty() && rows.size() < most)) rows.push_back(&row);
  return rows;
}

// "1. warm workers": the numbers are those of the edits below.
std::string numbered(const StudyReport& report, const WhatIf& row, std::size_t edits) {
  const auto all = edited(report, edits);
  const auto at = std::find(all.begin(), all.end(), &row);
  if (at != all.end()) return fmt::format("{}. {}", at - all.begin() + 1, row.change);
  return all.empty() ? row.change : "   " + row.change;
}

struct Cells {
  std::string change, rate, ratio, busy;
  const WhatIf* row;
};

std::string narrow_table(const std::vector<Cells>& rows, std::string_view busy, const TextOptions& options) {
  std::string text;
  for (const Cells& row : rows) {
    text += wrap(row.change, options.width, row.change.starts_with(' ') ? "   " : "", "   ");
    text += wrap(
        fmt::format("{} trials/h; best in {}; {} {}; {}", row.rate, row.ratio, busy, row.busy, risk_cell(*row.row, 0)),
        options.width, "     ", "     ");
  }
  return text;
}

std::string table(const StudyReport& report, const std::vector<const WhatIf*>& shown, std::size_t edits,
                  const TextOptions& options) {
  constexpr std::size_t kNarrow = 76, kLeastChange = 20;
  std::vector<Cells> rows{{"change", "trials/h", "time to best", std::string(busy_of(report)), nullptr}};
  for (const WhatIf* row : shown)
    rows.push_back(
        {numbered(report, *row, edits), rate_words(report, *row), ratio_words(*row), busy_words(report, *row), row});
  if (options.width < kNarrow) return narrow_table({rows.begin() + 1, rows.end()}, rows.front().busy, options);
  std::size_t longest = 0, rate = 0, ratio = 0, busy = 0, risk = 4;
  for (const Cells& row : rows) {
    longest = std::max(longest, display_width(visible(row.change)));
    rate = std::max(rate, row.rate.size());
    ratio = std::max(ratio, row.ratio.size());
    busy = std::max(busy, row.busy.size());
    if (row.row != nullptr) risk = std::max(risk, risk_cell(*row.row, 0).size());
  }
  const std::size_t figures = rate + ratio + busy;
  const std::size_t gap = longest + figures + risk + 8 <= options.width ? 2 : 1;
  rate += gap, ratio += gap, busy += gap;
  const std::size_t others = figures + 4 * gap;
  const std::size_t room = options.width - std::min(options.width - kLeastChange, others + risk);
  const std::size_t change = std::min(longest, room);
  std::string text;
  for (const Cells& row : rows) {
    const bool cut = display_width(visible(row.change)) > change;
    if (cut) text += wrap(row.change, options.width, row.change.starts_with(' ') ? "   " : "", "   ");
    const std::string line = pad_right(cut ? "" : row.change, change) + pad_left(row.rate, rate) +
                             pad_left(row.ratio, ratio) + pad_left(row.busy, busy) + std::string(gap, ' ');
    text += row.row == nullptr
                ? faint(line + "risk", options)
                : line + visible(risk_cell(*row.row, options.width - std::min(options.width, change + others)));
    text += "\n";
  }
  return text;
}

// The edit; in few words where one that is told before it begins with the same: "as 1., except: …".
std::string edit_words(const std::vector<const WhatIf*>& rows, std::size_t index) {
  constexpr std::string_view kAnd = "; ";
  const std::string& how = rows[index]->how;
  const auto rest = [&](const std::string& longer, const std::string& begin) -> std::string {
    const bool begins = !begin.empty() && longer.starts_with(begin + std::string(kAnd));
    return begins ? longer.substr(begin.size() + kAnd.size()) : "";
  };
  for (std::size_t i = 0; i < index; ++i) {
    if (const std::string more = rest(how, rows[i]->how); !more.empty())
      return fmt::format("as {}., and: {}", i + 1, more);
    if (const std::string less = rest(rows[i]->how, how); !less.empty())
      return fmt::format("as {}., except: {}", i + 1, less);
  }
  return how;
}

// The edit as it is written where a line holds it; else its words wrapped.
std::string edit(const WhatIf& row, const std::string& how, std::size_t number, const TextOptions& options) {
  std::string text, before = fmt::format("{}. ", number);
  if (options.full) {
    text = bold(wrap(row.change, options.width, before, "   "), options);
    before = "   ";
  }
  for (const std::string_view line : split(how, '\n')) {
    const std::string shown = visible(line);
    if (trim(shown).empty()) continue;
    text += display_width(shown) + before.size() <= options.width ? before + shown + "\n"
                                                                  : wrap(line, options.width, before, "     ");
    before = "   ";
  }
  return text;
}

std::string rate_counts_failed(const StudyReport& report);

// In full with all that is known of each. Where many trials fail, that comes first: no change mends it.
std::string edits(const StudyReport& report, const TextOptions& options, std::size_t most) {
  constexpr std::string_view kFirst =
      "First see why trials fail, as told above: in the simulation they fail under each change, too.";
  std::string text;
  const auto rows = edited(report, options.full ? kAllEdits : most);
  if (!rows.empty() && !rate_counts_failed(report).empty()) text = wrap(kFirst, options.width, "", "");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string how = options.full ? rows[i]->how : edit_words(rows, i);
    if (!options.full && rows[i]->safety == Safety::kRisky && !rows[i]->why.empty())
      how += fmt::format(" (risky: {})", rows[i]->why);
    text += edit(*rows[i], how, i + 1, options);
    if (options.full) text += wrap(what_if_details(report, *rows[i]), options.width, "   ", "   ");
  }
  return text.empty() ? text : text + "\n";
}

// Where many trials fail, what trials per hour count.
std::string rate_counts_failed(const StudyReport& report) {
  constexpr double kMany = 0.1;
  if (!report.as_it_is) return "";
  const auto count = [&](TrialState state) { return report.as_it_is->states[static_cast<std::size_t>(state)]; };
  const double failed = count(TrialState::kFail),
               all = failed + count(TrialState::kComplete) + count(TrialState::kPruned);
  if (!(all > 0) || failed < kMany * all) return "";
  return fmt::format("trials/h counts all that end: of the study as it is {} of them failed, and {} per hour did not.",
                     human_percent(failed / all),
                     per_hour(report.as_it_is->trials_per_hour.value * (1 - failed / all)));
}

std::string counts(const std::array<double, kTrialStates>& states) {
  std::vector<std::string> parts;
  constexpr std::array<std::pair<TrialState, std::string_view>, 3> kShown{
      {{TrialState::kComplete, "complete"}, {TrialState::kPruned, "pruned"}, {TrialState::kFail, "failed"}}};
  for (const auto& [state, word] : kShown)
    parts.push_back(fmt::format("{:.0f} {}", states[static_cast<std::size_t>(state)], word));
  return join(parts, ", ");
}

}  // namespace

std::string ratio_words(const WhatIf& row) {
  const Estimate& ratio = row.time_to_best_ratio;
  if (!(row.best_reached > 0) || !std::isfinite(ratio.low) || !std::isfinite(ratio.high)) return "not reached";
  if (hardly(row)) return "hardly reached";
  return fmt::format("{:.2f}x-{:.2f}x{}", ratio.low, ratio.high, seldom(row) ? "*" : "");
}

std::string rate_words(const StudyReport& report, const WhatIf& row) {
  if (!report.as_it_is) return per_hour(row.trials_per_hour.value);
  return fmt::format("{} -> {}", per_hour(report.as_it_is->trials_per_hour.value), per_hour(row.trials_per_hour.value));
}

std::string busy_words(const StudyReport& report, const WhatIf& row) {
  const auto number = [](double ratio) { return fmt::format("{:.0f}", 100 * ratio); };
  if (!report.as_it_is) return number(row.utilisation.value) + " %";
  return fmt::format("{} -> {} %", number(report.as_it_is->utilisation.value), number(row.utilisation.value));
}

std::string_view busy_of(const StudyReport& report) {
  return report.utilisation_of_gpu ? "GPU busy" : report.startup.inside_seconds ? "computing" : "open";
}

std::string risk_word(const WhatIf& row) {
  if (!row.fits) return "does not fit";
  return slower(row) ? "slower" : std::string(info(row.safety).name);  // what_if_notes() says than what
}

std::string risk_words(const WhatIf& row) {
  const bool told_elsewhere = row.why.empty() || (row.fits && slower(row));
  return told_elsewhere ? risk_word(row) : fmt::format("{}: {}", risk_word(row), row.why);
}

std::string what_if_details(const StudyReport& report, const WhatIf& row) {
  std::vector<std::string> parts;
  if (row.fits && slower(row)) parts.emplace_back("slower to the best value than the study as it is");
  parts.push_back(fmt::format("{}{}; {} trials/h", info(row.safety).name, row.why.empty() ? "" : ": " + row.why,
                              range_words(StudyFigure::kTrialsPerHour, row.trials_per_hour)));
  parts.push_back(report.utilisation_of_gpu
                      ? human_figure(row.gpu_hours, 3) + " GPU-hours for the same trials"
                      : fmt::format("{} for the same trials", duration_words(row.gpu_hours * 3600)));
  if (row.best_reached > 0)
    parts.push_back("the best value after " + range_words(StudyFigure::kTimeToBest, row.time_to_best_seconds));
  parts.push_back(range_words(StudyFigure::kPruned, row.pruned_share) + " of the trials pruned");
  parts.push_back("a trial takes " + range_words(StudyFigure::kTrialLength, row.trial_seconds));
  parts.push_back(range_words(StudyFigure::kAtOnce, row.at_once) + " trials at once");
  if (row.memory_at_once_bytes)
    parts.push_back(range_words(StudyFigure::kMemory, *row.memory_at_once_bytes) + " of GPU memory");
  if (row.cores) parts.push_back(fmt::format("{:.3g} cores", *row.cores));
  if (seldom(row)) parts.push_back(fmt::format("the best value in {} of the replays", human_percent(row.best_reached)));
  return join(parts, "; ") + ".";
}

std::string what_if_notes(const StudyReport& report, const std::vector<const WhatIf*>& rows) {
  std::vector<std::string> sentences;
  if (std::any_of(rows.begin(), rows.end(), [&](const WhatIf* row) { return busier_and_slower(report, *row); }))
    sentences.emplace_back(report.utilisation_of_gpu
                               ? "Pruning less fills the GPU with trials that lose: busier, and slower."
                               : "Pruning less fills the time with trials that lose: busier, and slower.");
  else if (std::any_of(rows.begin(), rows.end(), [](const WhatIf* row) { return row->fits && slower(*row); }))
    sentences.emplace_back("Slower: the best value comes later than in the study as it is.");
  if (const std::string failed = rate_counts_failed(report); !failed.empty()) sentences.push_back(failed);
  if (!report.utilisation_of_gpu)
    sentences.emplace_back(
        report.startup.inside_seconds
            ? "Computing: at least one trial is past its start-up; nothing here tells what the GPU did."
            : "Open: at least one trial is; how much of that is start-up is not known, nor what the GPU did.");
  const bool any_helps = std::any_of(report.what_if.begin(), report.what_if.end(), [](auto& row) { return row.helps; });
  if (!any_helps)
    sentences.push_back(
        fmt::format("None of these {} to find the best value sooner.",
                    std::any_of(report.what_if.begin(), report.what_if.end(), may_gain) ? "is sure" : "promises"));
  if (std::any_of(rows.begin(), rows.end(), [](const WhatIf* row) { return seldom(*row) && !hardly(*row); }))
    sentences.emplace_back(
        "* reached in a part of the replays only; under another pruner the others count with all their time, and then "
        "that of the study as it is.");
  if (rows.size() < report.what_if.size())
    sentences.push_back(fmt::format("{} more with --full.",
                                    human_count(static_cast<std::int64_t>(report.what_if.size() - rows.size()))));
  return join(sentences, " ");
}

std::string what_if_title(const StudyReport& report) {
  return report.calibration.replays > 0
             ? fmt::format("What if: the study's own trials, simulated {} times under each change",
                           human_count(report.calibration.replays))
             : "What if: the study's own trials, simulated under each change";
}

std::string study_what_if(const StudyReport& report, const TextOptions& options, std::size_t rows,
                          std::size_t edit_count) {
  if (report.what_if.empty()) return "";
  const auto shown = chosen(report, rows);
  std::string text = bold(wrap(what_if_title(report) + ".", options.width, "", ""), options) +
                     table(report, shown, options.full ? kAllEdits : edit_count, options);
  text += wrap(what_if_notes(report, shown), options.width, "", "");
  text += "\n" + edits(report, options, edit_count);
  constexpr std::string_view kProof =
      "To see what a change delivered: -o plan.json keeps what is predicted, and headroom verify plan.json NEW.db "
      "holds the study with the change against it.";
  if (options.full) text += wrap(kProof, options.width, "", "") + "\n";
  return text;
}

std::vector<Point> study_calibration(const StudyReport& report, Facts which) {
  const Calibration& c = report.calibration;
  std::vector<Point> points;
  const auto add = [&](const char* label, const std::string& words) {
    if (!words.empty()) points.push_back({label, words.ends_with('.') || words.ends_with('?') ? words : words + "."});
  };
  if (!c.good) {
    add("No what-if", c.why);
    return points;
  }
  std::string line = c.why;
  if (which == Facts::kAll || line.empty())
    line = fmt::format("{}{}replayed as it was: {} in {}; observed: {} in {}", line, line.empty() ? "" : "; ",
                       counts(c.replayed), duration_words(c.replayed_seconds), counts(c.observed),
                       duration_words(c.observed_seconds));
  add("Calibration", line);
  if (which == Facts::kAll)
    for (const std::string& assumption : report.assumptions) points.push_back({"Assumed", assumption});
  return points;
}

std::string study_calibration(const StudyReport& report, const TextOptions& options) {
  std::string text;
  for (const Point& point : study_calibration(report, options.full ? Facts::kAll : Facts::kUsual))
    text += wrap(point.text, options.width, point.label + ": ", "  ");
  return text;
}

}  // namespace headroom::report
