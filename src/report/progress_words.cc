// SPDX-License-Identifier: Apache-2.0
#include "report/progress_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/human.h"
#include "base/strings.h"

namespace headroom::report {

namespace {

std::string left_words(const Progress::Left& left) {
  // Whether other steps, folds or trainings follow is not known.
  const std::string words = fmt::format("{} left of these {}", seconds_between(left.low_seconds, left.high_seconds),
                                        unit_name(left.to_end_of));
  if (left.to_end_of == Progress::Unit::kSteps) return words + " at this pace";
  return words + (left.without_pauses ? ", and what comes between epochs" : " if they go as the last ones");
}

// "epoch 3/5 done", "epoch 3"
std::string at_words(std::string_view unit, const Progress::At& at) {
  return fmt::format("{} {}{}{}", unit, at.number, at.of > 0 ? fmt::format("/{}", at.of) : "", at.done ? " done" : "");
}

}  // namespace

std::string_view unit_name(Progress::Unit unit) {
  return unit == Progress::Unit::kFolds ? "folds" : unit == Progress::Unit::kEpochs ? "epochs" : "steps";
}

std::string seconds_between(double low, double high) {
  constexpr double kMinute = 60, kHour = 3600, kUnits = 2;  // a unit is used from two of it on
  const auto [unit, name, digits] = high < kUnits * kMinute ? std::tuple(1.0, "s", 0)
                                    : high < kUnits * kHour ? std::tuple(kMinute, "min", 0)
                                                            : std::tuple(kHour, "h", 1);
  const double fine = digits == 0 ? 1 : 10;
  const double from = std::floor(low / unit * fine) / fine,
               to = std::max(1 / fine, std::ceil(high / unit * fine) / fine);
  if (from == to) return fmt::format("about {:.{}f} {}", to, digits, name);
  if (from <= 0) return fmt::format("at most {:.{}f} {}", to, digits, name);
  return fmt::format("{:.{}f} to {:.{}f} {}", from, digits, to, digits, name);
}

std::string progress_words(const Progress& progress) {
  std::vector<std::string> at, parts;
  if (progress.fold) at.push_back(at_words("fold", *progress.fold));
  if (progress.epoch) at.push_back(at_words("epoch", *progress.epoch));
  if (const auto& step = progress.step)
    at.push_back(step->of > 0 ? fmt::format("step {}/{}", step->number, step->of)
                              : count_of(step->number, "step") + " counted");
  parts.push_back(join(at, ", "));
  if (progress.left) parts.push_back(left_words(*progress.left));
  if (const auto& next = progress.next_validation)
    parts.push_back("next validation in " + seconds_between(next->low_seconds, next->high_seconds));
  return join(parts, "; ");
}

std::string metric_words(const SaidMetric& metric) {
  if (metric.values < 2) return fmt::format("{:.6g}", metric.last);
  const std::string begin = fmt::format("{:.6g} last, {:.6g} first", metric.last, metric.first);
  if (metric.better == Better::kUnknown)
    return fmt::format("{}, {:.6g} lowest and {:.6g} highest of {} kept", begin, metric.lowest, metric.highest,
                       metric.values);
  return fmt::format("{}, {:.6g} best ({}) of {} kept", begin, *metric.best(),
                     metric.better == Better::kLower ? "lowest" : "highest", metric.values);
}

std::string curve_text(const std::vector<double>& values, std::size_t cells) {
  constexpr std::array kRising{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.size() < 2) return "";
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  std::string text;
  const std::size_t drawn = std::min(values.size(), cells);
  for (std::size_t i = 0; i < drawn; ++i) {
    const double value = values[drawn < 2 ? 0 : i * (values.size() - 1) / (drawn - 1)];
    // Halves, so that their difference is finite.
    const double whole = *highest / 2 - *lowest / 2, share = whole > 0 ? (value / 2 - *lowest / 2) / whole : 0;
    text += kRising[static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * (kRising.size() - 1)))];
  }
  return text;
}

}  // namespace headroom::report
