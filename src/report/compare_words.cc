// SPDX-License-Identifier: Apache-2.0
#include "report/compare_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"

namespace headroom::report {

std::string reason_label(CompareReason reason) {
  switch (reason) {
    case CompareReason::kDifferentTasks:
      return "different tasks";
    case CompareReason::kDifferentWork:
      return "different work";
    case CompareReason::kWorkUnknown:
      return "work not counted";
    case CompareReason::kConcurrencyDiffersOrUnknown:
      return "concurrency";
    case CompareReason::kDifferentHardware:
      return "hardware";
    case CompareReason::kInterleavedWithOtherWork:
      return "work in between";
    case CompareReason::kCacheStateUnknown:
      return "page cache";
    case CompareReason::kOutcomesDiffer:
      return "outcomes";
    case CompareReason::kParametersUnknown:
      return "parameters";
    case CompareReason::kParametersDifferUnintended:
      return "parameters differ";
    case CompareReason::kTooFewRepeats:
      return "repeats";
    case CompareReason::kNotInterleaved:
      return "order";
    case CompareReason::kOtherTenants:
      return "others on the GPU";
    case CompareReason::kThrottled:
      return "lowered clocks";
    case CompareReason::kFasterWithMoreWork:
      return "implausible";
  }
  return "";
}

std::string refusal_words(const Comparison& c) {
  const auto count = std::count_if(c.reasons.begin(), c.reasons.end(), [](const auto& r) { return r.refuses; });
  return fmt::format("These two cannot be compared, for {}", count_of(count, "reason"));
}

std::string time_words(double seconds) {
  if (!(seconds > 0)) return "-";
  constexpr double kOne = 0.9995;  // of three digits is one
  if (seconds < 1e-3 * kOne) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < kOne) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds < 60 ? fmt::format("{:.2f} s", seconds)
                      : human_duration(static_cast<Nanos>(std::min(seconds, 9e9) * 1e9));
}

std::string answer_words(const Comparison& c) {
  const Ratio& ratio = *c.ratio;
  const auto percent = [](double by) { return human_percent(std::abs(by)); };
  const std::string interval = fmt::format("95 % interval {:.3f} to {:.3f}", ratio.low, ratio.high);
  const bool unequal = c.unit == "step" && std::any_of(c.reasons.begin(), c.reasons.end(), [](const auto& one) {
                         return one.reason == CompareReason::kDifferentWork;
                       });
  if (unequal)
    return fmt::format(
        "A step of B takes {:.3f} of the time of one of A ({}): whether B is faster at equal work is not known.",
        ratio.value, interval);
  if (!c.differs())
    return fmt::format("No difference can be told: B takes {:.3f} of A's time per {} ({}).", ratio.value, c.unit,
                       interval);
  return fmt::format("B is {} by {}: it takes {:.3f} of A's time per {} ({}).", ratio.value < 1 ? "faster" : "slower",
                     percent(ratio.value < 1 ? 1 / ratio.value - 1 : ratio.value - 1), ratio.value, c.unit, interval);
}

std::string per_unit(const ComparedSide& side) {
  return side.work && *side.work > 0 ? time_words(side.seconds / *side.work) : "";
}

std::string metric_words(double mean, const std::optional<double>& spread) {
  constexpr double kRounding = 1e-9;  // of the mean: less is that of the sums
  if (!spread || *spread <= kRounding * std::abs(mean)) return fmt::format("{:.5g}", mean);
  return fmt::format("{:.5g} (+-{:.2g})", mean, *spread);
}

std::string short_phases_words(const Comparison& c) {
  if (c.phases.empty() || (c.a.short_phases == 0 && c.b.short_phases == 0)) return "";
  return fmt::format(
      "Phases too short to be told apart: {} in A, {} in B. Their time is in the phase around or before them.",
      human_count(c.a.short_phases), human_count(c.b.short_phases));
}

std::string artefact_words(const Comparison& c) {
  if (c.artefacts.empty()) return "";
  const auto same = std::count_if(c.artefacts.begin(), c.artefacts.end(), [](const auto& a) { return a.same; });
  const auto all = static_cast<std::int64_t>(c.artefacts.size());
  return same == all
             ? fmt::format("Artefacts: {} the same.", all == 1 ? "it is" : fmt::format("all {} are", human_count(all)))
             : fmt::format("Artefacts: {} of {} differ.", human_count(all - same), human_count(all));
}

}  // namespace headroom::report
