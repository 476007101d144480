// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/human.h"
#include "base/strings.h"
#include "report/study_text.h"

namespace headroom::report {

std::string duration_words(double seconds) {
  constexpr double kMost = 9e9;  // Nanos hold no more
  if (!std::isfinite(seconds)) return "unknown";
  return human_duration(static_cast<Nanos>(std::clamp(seconds, -kMost, kMost) * 1e9));
}

std::string duration_words(const Estimate& estimate) {
  const std::string value = duration_words(estimate.value), low = duration_words(estimate.low),
                    high = duration_words(estimate.high);
  return low == value && high == value ? value : fmt::format("{} ({} to {})", value, low, high);
}

std::string per_hour(double rate) { return fmt::format("{:.{}f}", rate, rate < 10 ? 1 : 0); }

std::string figure_words(StudyFigure figure, double value) {
  switch (figure) {
    case StudyFigure::kTrialsPerHour:
      return per_hour(value);
    case StudyFigure::kTimeToBest:
    case StudyFigure::kTrialLength:
      return duration_words(value);
    case StudyFigure::kPruned:
      return human_percent(value);
    case StudyFigure::kAtOnce:
      return fmt::format("{:.1f}", value);
    case StudyFigure::kMemory:
      return human_bytes(static_cast<std::int64_t>(value));
  }
  return "";
}

std::string range_words(StudyFigure figure, const Estimate& range) {
  const std::string low = figure_words(figure, range.low), high = figure_words(figure, range.high);
  return low == high ? low : fmt::format("{} to {}", low, high);
}

std::string trial_words(const std::vector<std::int64_t>& numbers) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(numbers.size(), kShown); ++i) words.push_back(fmt::format("{}", numbers[i]));
  if (words.empty()) return "";
  if (words.size() == 1 && numbers.size() == 1) return "trial " + words.front();
  if (numbers.size() > kShown) return fmt::format("trials {} and others", join(words, ", "));
  const std::string last = words.back();
  words.pop_back();
  return fmt::format("trials {} and {}", join(words, ", "), last);
}

std::int64_t dead_trials(const StudyReport& report) {
  return std::count_if(report.bars.begin(), report.bars.end(), [](const TrialBar& bar) { return bar.dead; });
}

std::string states_words(const StudyReport& report) {
  const auto word = [](TrialState state) -> std::string_view {
    switch (state) {
      case TrialState::kRunning:
        return "running";
      case TrialState::kComplete:
        return "complete";
      case TrialState::kPruned:
        return "pruned";
      case TrialState::kFail:
        return "failed";
      case TrialState::kWaiting:
        return "waiting";
    }
    return "";
  };
  std::string text = count_of(report.trials, "trial");
  bool first = true;
  for (const TrialState state :
       {TrialState::kComplete, TrialState::kPruned, TrialState::kFail, TrialState::kRunning, TrialState::kWaiting})
    for (const StateFacts& facts : report.states) {
      if (facts.state != state || facts.count == 0) continue;
      text += fmt::format("{} {} {}", first ? ":" : ",", human_count(facts.count), word(state));
      first = false;
      const std::int64_t dead = state == TrialState::kRunning ? dead_trials(report) : 0;
      if (state == TrialState::kRunning && !report.live && dead < facts.count) text += " at the last sign of life";
      if (dead > 0 && dead >= facts.count)
        text += facts.count == 1 ? " (dead)" : " (all of them dead)";
      else if (dead > 0)
        text += fmt::format(" ({} of them dead)", human_count(dead));
    }
  return text;
}

std::vector<int> percents(const std::vector<double>& parts) {
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  std::vector<int> whole(parts.size(), 0);
  if (!(sum > 0) || !std::isfinite(sum)) return whole;
  std::vector<std::pair<double, std::size_t>> rests;
  int left = 100;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double percent = 100 * std::max(parts[i], 0.0) / sum;
    whole[i] = static_cast<int>(percent);
    left -= whole[i];
    rests.emplace_back(whole[i] - percent, i);  // the largest remainder first
  }
  std::sort(rests.begin(), rests.end());
  for (const auto& [rest, i] : rests) {
    if (left <= 0) break;
    whole[i] += 1;
    left -= 1;
  }
  return whole;
}

std::string labelled_words(std::string_view label, const std::string& words, const TextOptions& options) {
  constexpr std::size_t kLabel = 12, kNarrow = 60;
  if (options.width < kNarrow) return wrap(words, options.width, fmt::format("{}: ", label), "  ");
  return wrap(words, options.width, pad_right(label, kLabel), std::string(kLabel, ' '));
}

}  // namespace headroom::report
