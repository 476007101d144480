// SPDX-License-Identifier: Apache-2.0
#include "report/study_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/human.h"
#include "base/strings.h"
#include "report/palette.h"
#include "report/study_text.h"

namespace headroom::report {

namespace {

constexpr double kWindow = 1800;  // seconds

bool open_now(const TrialBar& bar) { return bar.state == TrialState::kRunning && !bar.dead; }

std::string_view end_word(TrialState state, std::size_t trials = 1) {
  switch (state) {
    case TrialState::kComplete:
      return "completed";
    case TrialState::kPruned:
      return trials == 1 ? "was pruned" : "were pruned";
    case TrialState::kFail:
      return "failed";
    case TrialState::kRunning:
      return "began";
    case TrialState::kWaiting:
      return trials == 1 ? "was put in the queue" : "were put in the queue";
  }
  return "";
}

std::string phrase(const TrialBar& bar) {
  if (bar.dead) return fmt::format("trial {} is dead", bar.trial);
  if (!is_finished(bar.state)) return fmt::format("trial {} {}", bar.trial, end_word(bar.state));
  return fmt::format("trial {} {} after {}", bar.trial, end_word(bar.state), duration_words(bar.end - bar.begin));
}

// The bars that are new or have another state than before.
std::vector<const TrialBar*> changed(const StudyReport& before, const StudyReport& now) {
  std::map<std::int64_t, std::pair<TrialState, bool>> known;
  for (const TrialBar& bar : before.bars) known.emplace(bar.trial, std::pair(bar.state, bar.dead));
  std::vector<const TrialBar*> bars;
  for (const TrialBar& bar : now.bars) {
    const auto was = known.find(bar.trial);
    if (was == known.end() || was->second != std::pair(bar.state, bar.dead)) bars.push_back(&bar);
  }
  return bars;
}

}  // namespace

std::string watch_rate(const StudyReport& now) {
  std::vector<std::string> parts;
  const auto open = std::count_if(now.bars.begin(), now.bars.end(), open_now);
  parts.push_back(fmt::format("{} open", human_count(open)));
  const double length = now.begin && now.end ? seconds(*now.end - *now.begin) : 0, window = std::min(length, kWindow);
  std::int64_t finished = 0, pruned = 0;
  for (const TrialBar& bar : now.bars) {
    if (!is_finished(bar.state) || bar.end < length - window) continue;
    finished += 1;
    pruned += bar.state == TrialState::kPruned ? 1 : 0;
  }
  if (window > 0 && finished > 0)
    parts.push_back(fmt::format("{} trials/h over the last {}, {} of them pruned",
                                per_hour(3600 * static_cast<double>(finished) / window), duration_words(window),
                                human_percent(static_cast<double>(pruned) / static_cast<double>(finished))));
  if (!now.best.empty())
    parts.push_back(fmt::format("best {:.6g} (trial {})", now.best.back().value, now.best.back().trial));
  return join(parts, "; ");
}

std::vector<std::string> watch_changes(const StudyReport& before, const StudyReport& now) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> phrases;
  if (!now.best.empty() && (before.best.empty() || before.best.back().trial != now.best.back().trial))
    phrases.push_back(fmt::format("new best {:.6g} by trial {}", now.best.back().value, now.best.back().trial));
  const auto bars = changed(before, now);
  if (bars.size() <= kNamed) {
    for (const TrialBar* bar : bars) phrases.push_back(phrase(*bar));
    return phrases;
  }
  std::map<std::pair<bool, TrialState>, std::size_t> counts;  // of a dead one its state tells nothing
  for (const TrialBar* bar : bars) counts[{bar->dead, bar->dead ? TrialState::kFail : bar->state}] += 1;
  for (const auto& [end, count] : counts)
    phrases.push_back(fmt::format("{} {}", count_of(count, "trial"), end.first ? "died" : end_word(end.second, count)));
  return phrases;
}

std::string watch_picture(const StudyReport& now, const std::vector<std::string>& happened, const TextOptions& wanted) {
  const TextOptions options = clamped(wanted);
  constexpr std::size_t kOpen = 8, kHappened = 8;
  std::string text = bold(wrap(states_words(now) + ".", options.width, "", ""), options) +
                     wrap(watch_rate(now) + ".", options.width, "", "");
  std::size_t shown = 0;
  const double length = now.begin && now.end ? seconds(*now.end - *now.begin) : 0;
  for (const TrialBar& bar : now.bars) {
    if (!open_now(bar) || ++shown > kOpen) continue;
    const std::string phase = bar.first_step > length ? ", in its start-up (estimated)" : "";
    text += wrap(fmt::format("trial {} for {}{}", bar.trial, duration_words(length - bar.begin), phase), options.width,
                 "  ", "    ");
  }
  if (shown > kOpen) text += fmt::format("  and {} more\n", shown - kOpen);
  for (std::size_t i = happened.size() - std::min(happened.size(), kHappened); i < happened.size(); ++i)
    text += faint(pad_right(happened[i], std::min(display_width(happened[i]), options.width)), options) + "\n";
  return text;
}

}  // namespace headroom::report
