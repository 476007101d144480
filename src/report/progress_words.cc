// SPDX-License-Identifier: Apache-2.0
#include "report/progress_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/strings.h"

namespace headroom::report {

namespace {

std::string left_words(const Progress::Left& left) {
  // Whether other steps, folds or trainings follow is not known.
  const std::string words = fmt::format("{} left of these {}", seconds_between(left.low_seconds, left.high_seconds),
                                        left.of_epochs ? "epochs" : "steps");
  if (left.of_epochs && left.without_pauses) return words + ", and what comes between epochs";
  return words + (left.of_epochs ? " if they go as the last ones" : " at this pace");
}

}  // namespace

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
  if (const auto& epoch = progress.epoch)
    at.push_back(fmt::format("epoch {}/{}{}", epoch->number, epoch->of, epoch->done ? " done" : ""));
  if (const auto& step = progress.step) at.push_back(fmt::format("step {}/{}", step->number, step->of));
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
  const bool low = metric.better == Better::kLower;
  return fmt::format("{}, {:.6g} best ({}) of {} kept", begin, low ? metric.lowest : metric.highest,
                     low ? "lowest" : "highest", metric.values);
}

std::string curve_text(const std::vector<double>& values) {
  constexpr std::array kRising{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.size() < 2) return "";
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  std::string text;
  for (const double value : values) {
    // Halves, so that their difference is finite.
    const double whole = *highest / 2 - *lowest / 2, share = whole > 0 ? (value / 2 - *lowest / 2) / whole : 0;
    text += kRising[static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * (kRising.size() - 1)))];
  }
  return text;
}

}  // namespace headroom::report
